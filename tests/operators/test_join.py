"""Inner join and product: at every instant the pairs for which the condition is TRUE, however the timeline is cut."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.nodes import Join, RelationScan
from sweeparea.operators.plan.edge import Edge
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.sweeps import join
from tests.operators import brute
from tests.operators.frames import frame, rows_of
from tests.operators.matches import CONDITIONS, bare
from tests.operators.two_bags import CUTS, LAST, arrivals, at

NAMES = ("la", "lb"), ("ra", "rb")
LEFT, RIGHT = (
    RelationScan(name, tuple((Column(c, c), c) for c in names)) for name, names in zip("LR", NAMES, strict=True)
)
TYPES = [pa.float64(), pa.string()]
SQL = {
    "equal": "lb = rb",
    "null-safe": "la <=> ra",
    "not in": "coalesce(lb = rb, TRUE)",
    "less": "lb <= rb",
    "any": None,
}


@pytest.mark.parametrize("condition", CONDITIONS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_every_instant_however_sliced(database, condition, data):
    """What is new on a side meets what the other one holds and what is new there: new L x (held R + new R) + held L x
    new R. What can match nothing more is not held.
    """
    rows, match, sql = data.draw(arrivals()), CONDITIONS[condition], SQL[condition]
    node = Join(LEFT, RIGHT, None if sql is None else Expr(sql))
    found, held, h0 = [], ([], []), -1
    for h1 in data.draw(CUTS):
        new = [[row for due, s, row in rows if s == side and h0 < due <= h1] for side in (0, 1)]
        for left, right in ((new[0], held[1] + new[1]), (held[0], new[1])):
            sides = (frame(database, bag, names, TYPES) for bag, names in zip((left, right), NAMES, strict=True))
            found += [((r[:2], r[2:]), *rest) for r, *rest in rows_of(join.apply(node, *sides))]
        held = tuple([row for row in held[side] + new[side] if row[2] > h1 + 1] for side in (0, 1))
        h0 = h1
    found = [(brute.plain(r), ts, te, n) for r, ts, te, n in found]
    assert all(ts < te for _, ts, te, _ in found)
    for tick in range(LAST + 1):
        pairs = {
            (x, y): n * n_
            for x, n in at(rows, 0, tick).items()
            for y, n_ in at(rows, 1, tick).items()
            if match(bare(x), bare(y))
        }
        assert brute.at(found, tick) == Counter(pairs), tick


def test_a_pair_ends_with_the_first_of_its_parts():
    """Rule 3 of Golab & Oezsu 2005, section 5.2."""
    assert Join(LEFT, RIGHT).edge([Edge("WKS", True), Edge("monotonic", True)], ()) == Edge("WK", True)
    assert Join(LEFT, RIGHT).edge([Edge("WKS", True), Edge("STR", False)], ()) == Edge("STR", False)


def test_columns_that_an_equality_makes_equal_carry_each_other_s_keys():
    node = Join(LEFT, RIGHT, Expr("la = ra", columns=frozenset({"la", "ra"})))
    found = node.carriers([LEFT.carriers([]), RIGHT.carriers([])])
    assert found == {
        "la": frozenset({"la", "ra"}),
        "ra": frozenset({"la", "ra"}),
        "lb": frozenset({"lb"}),
        "rb": frozenset({"rb"}),
    }


def test_a_side_is_held_while_the_other_can_still_bring_rows():
    class Static:
        static = ("R",)

    assert Join(LEFT, RIGHT).kept(Static()) == (  # type: ignore[arg-type]
        "none of its own, inputs are read again by range as far as the other can still change"
    )
    assert Join(LEFT, RIGHT).read_again == (LEFT, RIGHT)
