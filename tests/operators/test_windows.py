"""Time windows: ``interval`` against the definitions tick by tick, ``sql`` against ``interval`` through DuckDB."""

from __future__ import annotations

import re

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.ticks import INF, MAX_TICK, MIN_TICK
from sweeparea.operators.windows import Fixed, Hopping, Landmark, Range, Slide, TimeWindow, Unbounded

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
