"""Time windows: ``interval`` against the definitions tick by tick, ``sql`` against ``interval`` through DuckDB. Those
that have buckets: `test_bucket_windows.py`.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.nodes import StreamScan, UnionAll, Window
from sweeparea.operators.plan.patterns import edge_of
from sweeparea.operators.time.ticks import INF, MAX_TICK
from sweeparea.operators.windows import Landmark, Range, Unbounded
from tests.operators.window_scopes import (
    ANY_LENGTH,
    ANY_TICK,
    LAGS,
    LENGTHS,
    TICKS,
    bucket_windows,
    evaluate,
    first_in_first_out,
    interval_is_the_definition,
    sql_is_interval,
    time_windows,
)


@given(time_windows(LENGTHS, TICKS, LAGS), TICKS)
def test_interval_is_the_definition(window, s):
    interval_is_the_definition(window, s)


SOME = time_windows(st.integers(1, 9), st.integers(-5, 5), st.integers(0, 5)) | bucket_windows(
    st.integers(1, 9), st.integers(-5, 5)
)


@given(SOME, SOME, st.booleans(), st.lists(st.tuples(st.booleans(), st.integers(-20, 20)), max_size=10))
def test_what_is_called_weakest_non_monotonic_is_first_in_first_out(one, other, alike, elements):
    """Golab & Oezsu 2005, section 3.1, and Patroumpas & Sellis 2006, section 3.4: also of a union of two windows."""
    other = one if alike else other
    sides = [Window(StreamScan(name, ()), spec) for name, spec in (("S", one), ("T", other))]
    for edge, spec in zip(map(edge_of, sides), (one, other), strict=True):
        assert edge.pattern == ("monotonic" if isinstance(spec, Unbounded | Landmark) else "WKS")
    pattern = edge_of(UnionAll(tuple(sides), ())).pattern
    assert pattern in ("WKS", "monotonic") or not alike
    if pattern == "WKS":
        shown = [(other if right else one).interval(s) for right, s in elements]
        assert first_in_first_out([interval for interval in shown if interval is not None])


@settings(max_examples=200, deadline=None)
@given(time_windows(ANY_LENGTH, ANY_TICK, ANY_LENGTH | st.just(0)), st.lists(ANY_TICK, min_size=1, max_size=20))
def test_sql_is_interval_up_to_the_ends_of_the_domain(database, window, values):
    sql_is_interval(database, window, values)


def test_now_is_one_tick_and_the_last_tick_does_not_end(database):
    assert evaluate(database, Range(1).sql("s"), [5, MAX_TICK]) == [(5, 6), (MAX_TICK, INF)]
