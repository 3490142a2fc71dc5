"""Time windows as maps on a stream's bag: each element becomes its interval of validity, or nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.nodes import StreamScan, Window
from sweeparea.operators.plan.edge import Edge
from sweeparea.operators.sql.expressions import Column, reference
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.windows import Hopping, Landmark, Range, Rows, Session, Unbounded, window
from tests.operators.frames import V, W, frame, rows_of
from tests.operators.window_scopes import LAGS, LENGTHS, TICKS, bucket_windows, time_windows

STREAM = StreamScan("S", ((V, "v"), (W, "w")))
ELEMENTS = st.lists(
    st.tuples(st.tuples(st.sampled_from([1, None]), st.sampled_from(["x", None])), TICKS, st.sampled_from([1, 3])),
    max_size=8,
)


@settings(max_examples=40, deadline=None)
@given(spec=time_windows(LENGTHS, TICKS, LAGS) | bucket_windows(LENGTHS, TICKS), elements=ELEMENTS)
def test_an_element_is_valid_in_its_interval(database, spec, elements):
    bag = frame(database, [(record, s, s + 1, n) for record, s, n in elements])
    found = rows_of(window.apply(Window(STREAM, spec), bag, str))
    wanted = [(record, *spec.interval(s), n) for record, s, n in elements if spec.interval(s) is not None]
    assert sorted(found, key=repr) == sorted(wanted, key=repr)


@pytest.mark.parametrize(
    ("spec", "edge", "forgets", "cheap"),
    [
        (Unbounded(), Edge("monotonic", True), False, True),
        (Landmark(3), Edge("monotonic", True), False, True),
        (Range(5), Edge("WKS", True), True, True),
        (Hopping(5, 2), Edge("WKS", True), True, True),
        (Rows(2), Edge("WKS", False), True, False),
        (Session(5), Edge("WK", False), True, False),
    ],
    ids=str,
)
def test_what_is_known_of_a_window(spec, edge, forgets, cheap):
    node = Window(STREAM, spec)
    assert node.edge([], ()) == edge
    assert (node.forgets, node.cheap, node.readable_again) == (forgets, cheap, cheap)
    assert node.ends == frozenset({spec})


def test_an_element_reaches_as_far_as_the_window_and_the_stream_below():
    assert Window(STREAM, Range(5)).reaches({"S": 1}) == {"S": 5}
    assert Window(STREAM, Range(5)).reaches({"S": 7}) == {"S": 12}
    assert Window(STREAM, Unbounded()).reaches({"S": 7}) == {"S": INF}
    assert [Window(STREAM, spec).looks_back for spec in (Range(5), Rows(2, 1, 9), Rows(2, 3, 9), Session(5))] == [
        5,
        9,
        INF,
        INF,
    ]


def test_selection_commutes_with_windows_that_count_on_what_they_partition_by():
    below = STREAM.carriers([])
    assert Window(STREAM, Range(5)).carriers([below]) == below
    assert Window(STREAM, Rows(2)).carriers([below]) == {}
    assert Window(STREAM, Rows(2), (reference(V),)).carriers([below]) == {"c0": frozenset({"c0"})}


def test_bounds_that_nobody_needs_are_not_computed():
    bounds = Column("c2", "start"), Column("c3", "end")
    node = Window(STREAM, Hopping(5, 2), bounds=bounds)
    assert node.columns == (V, W, *bounds)
    assert node.cut((STREAM,), frozenset({"c0", "c3"})) == node
    assert node.cut((STREAM,), frozenset({"c0"})).columns == (V, W)
