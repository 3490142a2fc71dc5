"""Duplicate elimination over known expiry: at every instant one copy of what is there, however the timeline is cut.
Over unknown expiry it is an aggregation without calls (`test_aggregate.py`).
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.plan.edge import Edge
from sweeparea.operators.sweeps import distinct, two_counts
from tests.operators.two_bags import (
    carry_of,
    holds_at_every_instant,
    holds_of_whole_bags,
    keeps_one_interval_a_side,
    leaves_the_least,
    left,
    negative_tuples_leave_nothing,
    of_known,
    tells_each_change_once,
)


@of_known
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_every_instant_however_sliced(known, data):
    holds_at_every_instant("distinct", known, data)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_each_change_is_told_once(data):
    tells_each_change_once("distinct", data)


@of_known
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_every_slice_leaves_the_least(known, data):
    leaves_the_least("distinct", known, data)


def test_negative_tuples_leave_nothing():
    negative_tuples_leave_nothing("distinct")


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_bags_that_are_known_to_the_end_of_time(data):
    holds_of_whole_bags(distinct.whole, "distinct", data)


def test_presence_of_known_expiry_keeps_one_interval_a_side():
    keeps_one_interval_a_side(two_counts.DISTINCT)


def test_pending_intervals_stay_only_where_a_gap_parts_them():
    rows = [left(1, 1, 300), left(1, 150, 250), left(1, 160, 400), left(1, 400, 450), left(1, 460, 470)]
    carry = carry_of(two_counts.DISTINCT, rows, (True, True))
    assert sorted(zip(*(carry.column(c).to_pylist() for c in ("__ts", "__te")), strict=True)) == [
        (100, 450),
        (460, 470),
    ]


def test_expiry_is_known_where_the_input_s_is():
    assert distinct.operation() == two_counts.DISTINCT
    assert distinct.edge([Edge("WKS", True)]) == Edge("WK", True)
    assert distinct.edge([Edge("STR", False)]) == Edge("STR", False)
