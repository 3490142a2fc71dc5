"""Time windows: ``interval`` against the definitions tick by tick, ``sql`` against ``interval`` through DuckDB."""

from __future__ import annotations

import re

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.nodes import StreamScan, UnionAll, Window
from sweeparea.operators.plan.patterns import edge_of
from sweeparea.operators.time.ticks import INF, MAX_TICK, MIN_TICK
from sweeparea.operators.windows import Calendar, Fixed, Hopping, Landmark, Range, Slide, TimeWindow, Unbounded

SMALL = 60


def hops(slide: int, anchor: int) -> list[int]:
    return [t for t in range(-8 * SMALL, 8 * SMALL) if (t - anchor) % slide == 0]


def instants(window: TimeWindow, s: int) -> set[int]:
    """The instants at which an element of instant s is valid, read off the definitions; a horizon stands for
    infinity.
    """
    horizon = range(-8 * SMALL, 8 * SMALL)
    match window:
        case Unbounded():
            return {t for t in horizon if t >= s}
        case Range(length):
            return {t for t in horizon if s <= t < s + length}
        case Slide(length, slide, lag, anchor):
            # Patroumpas' scope: at a hop h the window shows (h - length, h] of the shifted instants, and so until the
            # next hop
            at = hops(slide, anchor)
            shown = [h for h in at if h - length < s + lag <= h]
            return {t for h in shown for t in range(h, h + slide)}
        case Hopping(length, slide, anchor):
            buckets = [a for a in hops(slide, anchor) if a <= s < a + length]
            return {t for a in buckets for t in range(a + length - 1, a + length - 1 + slide)}
        case Fixed(length, anchor):
            return set(range(s, min(t for t in hops(length, anchor) if t > s)))
        case Landmark(start, end):
            inside = (start is None or s >= start) and (end is None or s <= end)
            return {t for t in horizon if t >= s} if inside else set()
    raise AssertionError(window)


def windows(lengths: st.SearchStrategy[int], ticks: st.SearchStrategy[int], lags: st.SearchStrategy[int]):
    optional = st.none() | ticks
    return st.one_of(
        st.just(Unbounded()),
        st.builds(Range, lengths),
        st.builds(Slide, lengths, lengths, lags, ticks),
        st.builds(Hopping, lengths, lengths, ticks),
        st.builds(Fixed, lengths, ticks),
        st.builds(Landmark, optional, optional),
    )


@given(windows(st.integers(1, SMALL), st.integers(-SMALL, SMALL), st.integers(0, SMALL)), st.integers(-SMALL, SMALL))
def test_interval_is_the_definition(window, s):
    expected = instants(window, s)
    interval = window.interval(s)
    got = set() if interval is None else {t for t in range(-8 * SMALL, 8 * SMALL) if interval[0] <= t < interval[1]}
    assert got == expected
    assert interval is None or interval[0] < interval[1]
    assert interval is None or window.reach == INF or interval[1] <= s + window.reach


def first_in_first_out(intervals) -> bool:
    """Whether no row of ``(ts, te)`` that appears later ends earlier."""
    return all(b[0] <= a[0] or b[1] >= a[1] for a in intervals for b in intervals)


ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"])
HOURS = st.integers(0, 366 * 24 * 2).map(lambda half: 1_704_067_200 + 1800 * half)  # half hours of 2024, in seconds
UNITS = st.sampled_from(["hour", "day", "week", "month", "quarter"])


@settings(deadline=None)
@given(st.builds(Calendar, UNITS, ZONES, st.just(1_000_000)), st.lists(HOURS, max_size=8))
def test_calendar_windows_are_first_in_first_out_over_daylight_saving(window, instants):
    assert first_in_first_out([window.interval(s) for s in instants])


SOME = windows(st.integers(1, 9), st.integers(-5, 5), st.integers(0, 5))


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


@pytest.fixture(scope="module")
def database():
    with duckdb.connect() as connection:
        connection.execute("CREATE MACRO pmod(a, b) AS ((a % b) + b) % b")
        yield connection


def evaluate(database, window: TimeWindow, values: list[int]) -> list[tuple[int, int]]:
    """The Spark SQL text run by DuckDB, whose BIGINT arithmetic fails on overflow as Spark's does in ANSI mode."""
    ts, te = (re.sub(r"(\d+)L\b", r"CAST(\1 AS BIGINT)", e) for e in window.sql("s"))
    rows = ", ".join(f"({i}, CAST({v} AS BIGINT))" for i, v in enumerate(values))
    return database.execute(f"SELECT {ts}, {te} FROM (VALUES {rows}) AS t(i, s) ORDER BY i").fetchall()


ANY_LENGTH = st.integers(1, 100) | st.integers(1, MAX_TICK) | st.integers(MAX_TICK - 100, MAX_TICK)
ANY_TICK = (
    st.integers(-100, 100)
    | st.integers(MIN_TICK, MAX_TICK)
    | st.integers(MIN_TICK, MIN_TICK + 100)
    | st.integers(MAX_TICK - 100, MAX_TICK)
)


@settings(max_examples=300, deadline=None)
@given(windows(ANY_LENGTH, ANY_TICK, ANY_LENGTH | st.just(0)), st.lists(ANY_TICK, min_size=1, max_size=20))
def test_sql_is_interval_up_to_the_ends_of_the_domain(database, window, values):
    values += [MIN_TICK, MIN_TICK + 1, 0, MAX_TICK - 1, MAX_TICK]
    for s, (ts, te) in zip(values, evaluate(database, window, values), strict=True):
        interval = window.interval(s)
        if interval is None:
            assert ts >= te, s
        else:
            assert (ts, te) == interval, s


def test_now_is_one_tick_and_the_last_tick_does_not_end(database):
    assert evaluate(database, Range(1), [5, MAX_TICK]) == [(5, 6), (MAX_TICK, INF)]
