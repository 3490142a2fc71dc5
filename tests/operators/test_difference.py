"""EXCEPT ALL and EXCEPT: at every instant the copies that the right side leaves, however the timeline is cut."""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.nodes import Difference, RelationScan
from sweeparea.operators.plan.edge import STRICT, Edge
from sweeparea.operators.sweeps import difference, two_counts
from sweeparea.operators.sweeps.two_counts import TwoCountsSpec, rows_schema, sweep
from sweeparea.operators.time.ticks import INF
from tests.operators.two_bags import (
    KNOWN,
    bag_of,
    carry_of,
    holds_at_every_instant,
    holds_of_whole_bags,
    keeps_one_interval_a_side,
    leaves_the_least,
    left,
    negative_tuples_leave_nothing,
    of_known,
    right,
    run,
    table,
    tells_each_change_once,
)


@of_known
@pytest.mark.parametrize("name", ["difference", "except"])
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_every_instant_however_sliced(name, known, data):
    holds_at_every_instant(name, known, data)


@pytest.mark.parametrize("name", ["difference", "except"])
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_each_change_is_told_once(name, data):
    tells_each_change_once(name, data)


@of_known
@pytest.mark.parametrize("name", ["difference", "except"])
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_every_slice_leaves_the_least(name, known, data):
    leaves_the_least(name, known, data)


@pytest.mark.parametrize("name", ["difference", "except"])
def test_negative_tuples_leave_nothing(name):
    negative_tuples_leave_nothing(name)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_bags_that_are_known_to_the_end_of_time(data):
    holds_of_whole_bags(difference.whole, "difference", data)


def test_hammad_figure_7():
    """``S - R``: an arrival in R retracts A; when R's E expires, S's E becomes an answer at that instant."""
    rows = [(0, (("A",), 1, 11, 1)), (0, (("E",), 5, 15, 1)), (1, (("E",), 2, 8, 1)), (1, (("A",), 4, 14, 1))]
    schema = rows_schema([pa.field("v", pa.string())])
    bag = pa.Table.from_pylist(
        [{"v": r[0], "__ts": ts, "__te": te, "__n": n, "__side": side} for side, (r, ts, te, n) in rows], schema
    )
    spec = TwoCountsSpec(("v",), two_counts.DIFFERENCE, (True, True))
    first, carry = sweep(bag.filter(pc.less_equal(bag.column("__ts"), 3)), spec, 0, 3)
    assert first.to_pylist() == [{"v": "A", "__ts": 1, "__te": INF, "__n": 1}]
    rest = pa.concat_tables([carry, bag.filter(pc.greater(bag.column("__ts"), 3))])
    second, _ = sweep(rest, spec, 3, 20)
    assert second.sort_by("__ts").to_pylist() == [
        {"v": "A", "__ts": 4, "__te": INF, "__n": -1},
        {"v": "E", "__ts": 8, "__te": 15, "__n": 1},
    ]


def test_what_expires_together_changes_nothing():
    result, _ = sweep(table([left(2, 1, 9), right(1, 2, 9)]), TwoCountsSpec(("a", "b"), two_counts.DIFFERENCE), 0, 20)
    assert [t[1:] for t in bag_of(result)] == [(1, 2, 1), (1, 9, 1)]


def test_a_difference_of_known_ends_takes_nothing_back_when_nothing_more_comes():
    rows = [(1, 0, ((1.0, "x"), 1, 9, 1)), (2, 1, ((1.0, "x"), 2, 5, 1))]
    spec = TwoCountsSpec(("a", "b"), two_counts.DIFFERENCE, (True, True))
    direct = TwoCountsSpec(("a", "b"), two_counts.DIFFERENCE, (True, True), expected=True)
    record = (1.0, "x")
    assert run(spec, rows, [3, 6, 10]) == [(record, 1, 2, 1), (record, 5, INF, 1), (record, 9, INF, -1)]
    schema = two_counts.rows_schema([pa.field("a", pa.float64()), pa.field("b", pa.string())])
    given_ = pa.Table.from_pylist(
        [dict(zip(schema.names, (*r, ts, te, n, side), strict=True)) for _, side, (r, ts, te, n) in rows], schema
    )
    first, carry = two_counts.sweep(given_, direct, 0, 3)
    assert sorted(tuple(row.values()) for row in first.to_pylist()) == [(*record, 1, 2, 1), (*record, 5, 9, 1)]
    assert two_counts.sweep(carry, direct, 3, 10)[0].num_rows == 0


def test_presence_of_known_expiry_keeps_one_interval_a_side():
    keeps_one_interval_a_side(two_counts.EXCEPT)


@pytest.mark.parametrize("known", KNOWN)
def test_counts_are_one_row_a_record_and_a_future_instant(known):
    rows = [side(1, i % 100, 200 + i % 3) for i in range(3000) for side in (left, right)]
    carry = carry_of(two_counts.DIFFERENCE, rows, known)
    assert carry.num_rows == 2 * (1 + 3)


def test_what_ended_is_gone():
    assert carry_of(two_counts.DIFFERENCE, [left(1, 1, 101), right(1, 1, 50)], (True, True)).num_rows == 2 * 1


def test_expiry_is_unknown_whatever_the_inputs_know():
    side = RelationScan("R", ())
    for every, operation in ((True, two_counts.DIFFERENCE), (False, two_counts.EXCEPT)):
        node = Difference(side, side, (), every)
        assert node.edge([Edge("WKS", True)] * 2, ()) == STRICT
        assert node.operation == operation
        assert node.compares
