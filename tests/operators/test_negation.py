"""Negation (NOT IN, NOT EXISTS, anti joins): at every instant the left records that nothing matches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.nodes import Join, RelationScan
from sweeparea.operators.plan.edge import STRICT, Edge
from sweeparea.operators.sweeps import negation, two_counts
from sweeparea.operators.sweeps.join import JoinKind
from tests.operators.matches import CONDITIONS, hold_by_counting
from tests.operators.two_bags import (
    holds_at_every_instant,
    holds_of_whole_bags,
    leaves_the_least,
    negative_tuples_leave_nothing,
    of_known,
    tells_each_change_once,
)


@of_known
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_every_instant_however_sliced(known, data):
    holds_at_every_instant("strict", known, data)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_each_change_is_told_once(data):
    tells_each_change_once("strict", data)


@of_known
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_every_slice_leaves_the_least(known, data):
    leaves_the_least("strict", known, data)


def test_negative_tuples_leave_nothing():
    negative_tuples_leave_nothing("strict")


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_bags_that_are_known_to_the_end_of_time(data):
    holds_of_whole_bags(negation.whole, "strict", data)


@of_known
@pytest.mark.parametrize("condition", CONDITIONS)
@settings(max_examples=50, deadline=None)
@given(st.data())
def test_by_counting_matches(condition, known, data):
    """Left rows beside their matches, each counted as often as pairs are."""
    hold_by_counting(negation.operation(), lambda found: not found, condition, known, data)


def test_an_arrival_on_the_right_takes_back_what_had_no_match():
    anti = Join(RelationScan("L", ()), RelationScan("R", ()), None, JoinKind.ANTI)
    assert anti.edge([Edge("WKS", True)] * 2, ()) == STRICT
    assert anti.compares
    assert negation.operation() == two_counts.STRICT_DIFFERENCE
