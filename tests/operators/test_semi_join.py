"""Semi, anti and outer joins against their definitions at every instant, however the timeline is cut.

What Spark does between the sweeps is done here by hand: the inner join of two bags, pair by pair.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.nodes import Aggregate, Join, Project, RelationScan, Select
from sweeparea.operators.plan.conditions import conjunction, take_apart
from sweeparea.operators.plan.expressions import Column, Expr
from sweeparea.operators.sweeps import two_counts
from sweeparea.operators.sweeps.join import JoinKind
from sweeparea.operators.sweeps.outer_join import unmatched
from sweeparea.operators.sweeps.semi_join import plan_of
from sweeparea.operators.sweeps.two_counts import TwoCountsSpec
from tests.operators import brute
from tests.operators.test_two_counts import CUTS, KNOWN, LAST, arrivals, run


def equal(x, y):
    """``=`` of SQL: None where it is unknown."""
    return None if x is None or y is None else brute.plain(x) == brute.plain(y)


CONDITIONS = {
    "equal": lambda x, y: equal(x[1], y[1]),
    "null-safe": lambda x, y: brute.plain(x[0]) == brute.plain(y[0]),
    "not in": lambda x, y: equal(x[1], y[1]) is not False,
    "less": lambda x, y: None if x[1] is None or y[1] is None else x[1] <= y[1],
    "any": lambda x, y: True,
}


def joined(rows, condition):
    """The inner join of a case's sides: (due, left record, right record, ts, te, n)."""
    sides = [[(due, row) for due, s, row in rows if s == side] for side in (0, 1)]
    for due, (x, ts, te, n) in sides[0]:
        for due_, (y, ts_, te_, n_) in sides[1]:
            start, end = max(ts, ts_), min(te, te_)
            if start < end and condition(x, y):
                yield max(due, due_), x, y, start, end, n * n_


def at(rows, side, tick) -> Counter:
    return brute.at([(brute.plain(r), ts, te, n) for _, s, (r, ts, te, n) in rows if s == side], tick)


def wanted(rows, tick, condition, keep) -> Counter:
    left, right = at(rows, 0, tick), at(rows, 1, tick)
    bare = {x: (float("nan") if x[0] == "NaN" else x[0], x[1]) for x in left | right}
    kept = {x: n for x, n in left.items() if keep(any(condition(bare[x], bare[y]) for y in right))}
    return Counter(kept)


@pytest.mark.parametrize("known", KNOWN, ids=["unknown", "left known", "right known", "known"])
@pytest.mark.parametrize("condition", CONDITIONS)
@settings(max_examples=50, deadline=None)
@given(st.data())
def test_by_counting_matches(condition, known, data):
    """The second form: left rows beside their matches, each counted as often as pairs are."""
    rows, cuts, match = data.draw(arrivals(known)), data.draw(CUTS), CONDITIONS[condition]
    left = [row for row in rows if row[1] == 0]
    matches = [(due, 1, (x, ts, te, n)) for due, x, _, ts, te, n in joined(rows, match)]
    for operation, keep in ((two_counts.SEMI, bool), (two_counts.STRICT_DIFFERENCE, lambda found: not found)):
        spec = TwoCountsSpec(("a", "b"), operation, (known[0], all(known)))
        result = run(spec, left + matches, cuts)
        for tick in range(LAST + 1):
            assert brute.at(result, tick) == wanted(rows, tick, match, keep), tick


@pytest.mark.parametrize("known", [False, True], ids=["unknown", "known"])
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_by_sum(known, data):
    """The first form: L join D and L - L join D, where D are the distinct values of the right side."""
    rows, cuts = data.draw(arrivals((known, known))), data.draw(CUTS)
    keys = [(due, 0, ((0.0, y[1]), ts, te, n)) for due, side, (y, ts, te, n) in rows if side == 1]
    distinct = run(TwoCountsSpec(("a", "b"), two_counts.DISTINCT, (known, known)), keys, cuts)
    left = [row for row in rows if row[1] == 0]
    looked_up = [*left, *((0, 1, row) for row in distinct)]
    found = [(brute.plain(x), ts, te, n) for _, x, _, ts, te, n in joined(looked_up, CONDITIONS["equal"])]
    rest = [(brute.plain(x), ts, te, n) for _, _, (x, ts, te, n) in left] + [(x, a, b, -n) for x, a, b, n in found]
    for tick in range(LAST + 1):
        assert brute.at(found, tick) == wanted(rows, tick, CONDITIONS["equal"], bool)
        assert brute.at(rest, tick) == wanted(rows, tick, CONDITIONS["equal"], lambda f: not f)


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


# -- taking conditions apart -----------------------------------------------------------------------------------------


def ids(text: str) -> frozenset[str]:
    return frozenset(c for c in "abcdxy" if c in text.replace("AND", "").replace("CASE", ""))


def apart(text: str):
    return take_apart(Expr(text, columns=ids(text)), "abx", "cdy")


@pytest.mark.parametrize(
    ("text", "equalities", "left", "right", "rest"),
    [
        ("(a = c) AND (d <=> (b + 1))", [("a", "c"), ("b + 1", "d")], [], [], []),
        ("((a = c AND b > 1) AND (d IS NULL))", [("a", "c")], ["b > 1"], ["d IS NULL"], []),
        ("`a` = `c` AND `d` > 1", [("`a`", "`c`")], [], ["`d` > 1"], []),
        ("a = c OR b = d", [], [], [], ["a = c OR b = d"]),
        ("a BETWEEN c AND d AND b = c", [("b", "c")], [], [], ["a BETWEEN c AND d"]),
        (
            "CASE WHEN a = 1 AND c = 2 THEN b ELSE 0 END = d",
            [],
            [],
            [],
            ["CASE WHEN a = 1 AND c = 2 THEN b ELSE 0 END = d"],
        ),
        ("NOT a = c AND b < d", [], [], [], ["NOT a = c", "b < d"]),
        ("a = ' AND ' || c", [("a", "' AND ' || c")], [], [], []),
        ("a + c = d", [], [], [], ["a + c = d"]),
        ("TRUE AND a = c", [("a", "c")], [], ["TRUE"], []),
        ("a = c = b", [], [], [], ["a = c = b"]),
        ("a = c IS NULL", [], [], [], ["a = c IS NULL"]),
    ],
)
def test_a_condition_is_cut_where_that_changes_nothing(text, equalities, left, right, rest):
    (found,) = apart(text)
    assert [(e.left.sql, e.right.sql) for e in found.equalities] == equalities
    assert [[p.sql for p in part] for part in (found.left, found.right, found.rest)] == [left, right, rest]


def test_the_condition_of_not_in_has_three_alternatives():
    found = apart("coalesce(x = y, TRUE) AND a = c")
    shown = [conjunction([*c.left, *c.right]) for c in found]
    assert [[(e.left.sql, e.right.sql) for e in c.equalities] for c in found] == [
        [("a", "c"), ("x", "y")], [("a", "c")], [("a", "c")],
    ]  # fmt: skip
    assert [s and s.sql for s in shown] == [None, "((x) IS NULL)", "((y) IS NULL)"]


@pytest.mark.parametrize("text", ["coalesce(x = y, FALSE)", "coalesce(x <=> y, TRUE)", "coalesce(x < y, TRUE)",
                                  "coalesce(x = y, NULL, TRUE)", "coalesce(x = y, TRUE) = (a = c)"])  # fmt: skip
def test_what_only_looks_like_it_stays_whole(text):
    (found,) = apart(text)
    assert [p.sql for p in found.rest] == [text]


LEFT = RelationScan("L", ((Column("a", "a", "int"), "a"), (Column("b", "b", "string"), "b")))
RIGHT = RelationScan("R", ((Column("c", "c", "int"), "c"), (Column("d", "d", "bigint"), "d")))


def planned(text: str, types=None):
    def type_of(node, expression):
        return (types or {}).get(expression.sql) or next((c.type for c in node.columns if c.id == expression.sql), None)

    return plan_of(Join(LEFT, RIGHT, Expr(text, columns=ids(text)) if text else None, JoinKind.ANTI), type_of)


def test_only_equal_types_are_looked_up_by_sum():
    """A right side that Spark converts first may have two values that equal one of the left: '1' and '01'."""
    assert planned("a = c").by_sum
    assert planned("").by_sum
    assert planned("a + 1 = c", {"a + 1": "int"}).by_sum
    for text in ("a = d", "b = c", "a + 1 = c", "a = c AND a < d", "coalesce(a = c, TRUE)"):
        assert not planned(text).by_sum, text


def test_the_right_side_is_distinct_where_equality_decides():
    (found,) = planned("a = c AND d > 0 AND b = 'z'").lookups
    assert isinstance(found.left, Select)
    assert isinstance(found.right, Aggregate)
    assert isinstance(found.right.input, Select)
    (found,) = planned("a < c").lookups
    assert isinstance(found.right, Project)
    assert [c.id for c in found.right.columns] == ["c"]


def test_the_right_side_of_a_full_join_is_padded_too():
    left, right = unmatched(Join(LEFT, RIGHT, kind=JoinKind.FULL))
    assert (left.left, right.left) == (LEFT, RIGHT)
    assert left.kind == right.kind == "anti"
    assert len(unmatched(Join(LEFT, RIGHT, kind=JoinKind.LEFT))) == 1


def test_a_column_that_is_not_found_leaves_the_condition_whole():
    condition = Expr("a = c AND hidden(1)", columns=frozenset("abc"))
    assert take_apart(condition, "ab", "c")[0].rest == (condition,)
