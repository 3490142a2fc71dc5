"""Windows of buckets (hopping, tumbling, fixed, of the calendar): ``interval`` and ``buckets`` against the definitions
tick by tick, ``sql`` against ``interval`` through DuckDB. What only Spark evaluates of them:
`tests/spark_jobs/test_window_sql.py`.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.windows import Calendar, Hopping
from tests.operators.window_scopes import (
    ANY_LENGTH,
    ANY_TICK,
    LENGTHS,
    TICKS,
    bucket_windows,
    evaluate,
    first_in_first_out,
    hops,
    interval_is_the_definition,
    sql_is_interval,
)


@given(bucket_windows(LENGTHS, TICKS), TICKS)
def test_interval_is_the_definition(window, s):
    interval_is_the_definition(window, s)


def slide_of(window) -> int:
    return window.slide if isinstance(window, Hopping) else window.length


@given(bucket_windows(LENGTHS, TICKS), TICKS)
def test_an_element_is_in_the_buckets_that_hold_it_while_they_are_visible(window, s):
    found = window.buckets(s)
    assert [start for start, *_ in found] == [
        a for a in hops(slide_of(window), window.anchor) if a <= s < a + window.length
    ]
    assert all(end == start + window.length for start, end, *_ in found)
    shown = {t for _, _, ts, te in found for t in range(ts, te)}
    assert shown == set(range(*(window.interval(s) or (0, 0))))


@given(LENGTHS, TICKS, TICKS)
def test_a_tumbling_window_is_a_hopping_one_with_a_bucket_for_each_element(length, anchor, s):
    ((start, end, ts, te),) = Hopping(length, length, anchor).buckets(s)
    assert start <= s < end
    assert (ts, te) == (end - 1, end - 1 + length)
    assert str(Hopping(length, length)) == f"[Tumbling {length}]"


ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"])
HOURS = st.integers(0, 366 * 24 * 2).map(lambda half: 1_704_067_200 + 1800 * half)  # half hours of 2024, in seconds
UNITS = st.sampled_from(["hour", "day", "week", "month", "quarter"])


@settings(deadline=None)
@given(st.builds(Calendar, UNITS, ZONES, st.just(1_000_000)), st.lists(HOURS, max_size=8))
def test_calendar_windows_are_first_in_first_out_over_daylight_saving(window, instants):
    assert first_in_first_out([window.interval(s) for s in instants])


@settings(deadline=None)
@given(st.builds(Calendar, UNITS, ZONES, st.just(1_000_000)), HOURS)
def test_a_calendar_bucket_holds_its_element_and_shows_until_the_next_one_ends(window, s):
    ((start, end, ts, te),) = window.buckets(s)
    assert start <= s < end
    assert (ts, te) == window.interval(s)
    assert ts == end - 1
    ((following, past, _, _),) = window.buckets(end)
    assert (following, past) == (end, te + 1)


@settings(max_examples=100, deadline=None)
@given(bucket_windows(ANY_LENGTH, ANY_TICK), st.lists(ANY_TICK, min_size=1, max_size=20))
def test_sql_is_interval_up_to_the_ends_of_the_domain(database, window, values):
    sql_is_interval(database, window, values)


@settings(max_examples=100, deadline=None)
@given(bucket_windows(LENGTHS, TICKS), st.lists(TICKS, min_size=2, max_size=20))
def test_a_pane_is_an_instant_for_all_that_lie_in_its_buckets(database, window, values):
    pane = window.pane_sql("s")
    if pane is None:
        return
    of: dict[tuple, int] = {}
    for s, (at,) in zip(values, evaluate(database, [pane], values), strict=True):
        assert window.buckets(at) == window.buckets(s)
        if window.buckets(s):
            assert of.setdefault(tuple(window.buckets(s)), at) == at
