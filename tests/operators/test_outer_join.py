"""Left and full outer joins: at every instant the inner join, and what has no match with NULL beside it."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import IntegerType, LongType, StringType

from sweeparea.operators.nodes import Join, RelationScan
from sweeparea.operators.plan.edge import STRICT, Edge
from sweeparea.operators.sql.expressions import Column
from sweeparea.operators.sweeps import two_counts
from sweeparea.operators.sweeps.join import JoinKind
from sweeparea.operators.sweeps.outer_join import pad, unmatched
from sweeparea.operators.sweeps.two_counts import TwoCountsSpec
from tests.operators import brute
from tests.operators.frames import frame, rows_of
from tests.operators.matches import CONDITIONS, joined
from tests.operators.two_bags import CUTS, LAST, arrivals, at, run

LEFT = RelationScan("L", ((Column("a", "a", "int"), "a"), (Column("b", "b", "string"), "b")))
RIGHT = RelationScan("R", ((Column("c", "c", "int"), "c"), (Column("d", "d", "bigint"), "d")))


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_a_full_outer_join_is_the_inner_one_and_both_anti_joins(data):
    rows, cuts, match = data.draw(arrivals()), data.draw(CUTS), CONDITIONS["less"]
    pairs = list(joined(rows, match))
    inner = [((brute.plain(x), brute.plain(y)), ts, te, n) for _, x, y, ts, te, n in pairs]
    spec, result = TwoCountsSpec(("a", "b"), two_counts.STRICT_DIFFERENCE), list(inner)
    for side in (0, 1):
        own = [(due, 0, row) for due, s, row in rows if s == side]
        matches = [(due, 1, ((x, y)[side], ts, te, n)) for due, x, y, ts, te, n in pairs]
        alone = run(spec, own + matches, cuts)
        result += [((r, None) if side == 0 else (None, r), ts, te, n) for r, ts, te, n in alone]
    for tick in range(LAST + 1):
        left, right = at(rows, 0, tick), at(rows, 1, tick)
        full: Counter = Counter()
        for x, n in left.items():
            for y, n_ in right.items():
                if match(x, y):
                    full[x, y] += n * n_
        full += {(x, None): n for x, n in left.items() if not any(match(x, y) for y in right)}
        full += {(None, y): n for y, n in right.items() if not any(match(x, y) for x in left)}
        assert brute.at(result, tick) == full


def test_the_right_side_of_a_full_join_is_padded_too():
    left, right = unmatched(Join(LEFT, RIGHT, kind=JoinKind.FULL))
    assert (left.left, right.left) == (LEFT, RIGHT)
    assert left.kind == right.kind == "anti"
    assert len(unmatched(Join(LEFT, RIGHT, kind=JoinKind.LEFT))) == 1


def test_the_other_side_s_columns_are_null_and_of_their_types(database):
    node = Join(LEFT, RIGHT, kind=JoinKind.FULL)
    types = {"a": IntegerType(), "b": StringType(), "c": IntegerType(), "d": LongType()}
    like = SimpleNamespace(schema=[SimpleNamespace(name=name, dataType=kind) for name, kind in types.items()])
    alone: Any = pad(node, frame(database, [((1, "x"), 2, 5, 3)], ("a", "b")), like)  # type: ignore[arg-type]
    assert rows_of(alone) == [((1, "x", None, None), 2, 5, 3)]
    assert [str(kind) for kind in alone.relation.types[:4]] == ["BIGINT", "VARCHAR", "INTEGER", "BIGINT"]
    assert alone.columns == ["a", "b", "c", "d", "__ts", "__te", "__n"]


def test_the_first_match_takes_a_padded_record_back():
    for kind in (JoinKind.LEFT, JoinKind.FULL):
        assert Join(LEFT, RIGHT, kind=kind).edge([Edge("WKS", True)] * 2, ()) == STRICT
