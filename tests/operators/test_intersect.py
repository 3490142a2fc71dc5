"""INTERSECT ALL and INTERSECT: at every instant the copies that both sides have, however the timeline is cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.nodes import Intersect, RelationScan
from sweeparea.operators.plan.edge import Edge
from sweeparea.operators.sweeps import intersect, two_counts
from tests.operators.two_bags import (
    holds_at_every_instant,
    holds_of_whole_bags,
    keeps_one_interval_a_side,
    leaves_the_least,
    negative_tuples_leave_nothing,
    of_known,
    tells_each_change_once,
)


@of_known
@pytest.mark.parametrize("name", ["intersect all", "intersect"])
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_every_instant_however_sliced(name, known, data):
    holds_at_every_instant(name, known, data)


@pytest.mark.parametrize("name", ["intersect all", "intersect"])
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_each_change_is_told_once(name, data):
    tells_each_change_once(name, data)


@of_known
@pytest.mark.parametrize("name", ["intersect all", "intersect"])
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_every_slice_leaves_the_least(name, known, data):
    leaves_the_least(name, known, data)


@pytest.mark.parametrize("name", ["intersect all", "intersect"])
def test_negative_tuples_leave_nothing(name):
    negative_tuples_leave_nothing(name)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_bags_that_are_known_to_the_end_of_time(data):
    holds_of_whole_bags(intersect.whole, "intersect all", data)


def test_presence_of_known_expiry_keeps_one_interval_a_side():
    keeps_one_interval_a_side(two_counts.INTERSECT)


def test_a_record_ends_with_the_first_of_its_sides():
    side = RelationScan("R", ())
    for every, operation in ((True, two_counts.INTERSECT_ALL), (False, two_counts.INTERSECT)):
        node = Intersect(side, side, (), every)
        assert node.edge([Edge("WKS", True), Edge("monotonic", True)], ()) == Edge("WK", True)
        assert node.edge([Edge("WKS", True), Edge("STR", False)], ()) == Edge("STR", False)
        assert node.operation == operation
        assert node.lengthens
