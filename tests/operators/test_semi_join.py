"""Semi and anti joins by their two forms, against their definitions at every instant, however the timeline is cut.

What Spark does between the sweeps is done here by hand: the inner join of two bags, pair by pair.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.nodes import Aggregate, Join, Project, RelationScan, Select
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.sweeps import two_counts
from sweeparea.operators.sweeps.join import JoinKind
from sweeparea.operators.sweeps.semi_join import plan_of
from sweeparea.operators.sweeps.two_counts import TwoCountsSpec
from tests.operators import brute
from tests.operators.matches import CONDITIONS, hold_by_counting, ids, joined, wanted
from tests.operators.two_bags import (
    CUTS,
    LAST,
    arrivals,
    holds_at_every_instant,
    leaves_the_least,
    negative_tuples_leave_nothing,
    of_known,
    run,
    tells_each_change_once,
)


@of_known
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_every_instant_however_sliced(known, data):
    holds_at_every_instant("semi", known, data)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_each_change_is_told_once(data):
    tells_each_change_once("semi", data)


@of_known
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_every_slice_leaves_the_least(known, data):
    leaves_the_least("semi", known, data)


def test_negative_tuples_leave_nothing():
    negative_tuples_leave_nothing("semi")


@of_known
@pytest.mark.parametrize("condition", CONDITIONS)
@settings(max_examples=50, deadline=None)
@given(st.data())
def test_by_counting_matches(condition, known, data):
    """The second form: left rows beside their matches, each counted as often as pairs are. Of anti joins it is
    `test_negation.py`.
    """
    hold_by_counting(two_counts.SEMI, bool, condition, known, data)


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
