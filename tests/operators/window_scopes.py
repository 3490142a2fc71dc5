"""Time windows by their definitions, instant by instant, and their Spark SQL evaluated by DuckDB."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from sweeparea.operators.time.ticks import INF, MAX_TICK, MIN_TICK
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


def time_windows(lengths: st.SearchStrategy[int], ticks: st.SearchStrategy[int], lags: st.SearchStrategy[int]):
    optional = st.none() | ticks
    return st.one_of(
        st.just(Unbounded()),
        st.builds(Range, lengths),
        st.builds(Slide, lengths, lengths, lags, ticks),
        st.builds(Landmark, optional, optional),
    )


def bucket_windows(lengths: st.SearchStrategy[int], ticks: st.SearchStrategy[int]):
    return st.builds(Hopping, lengths, lengths, ticks) | st.builds(Fixed, lengths, ticks)


LENGTHS, TICKS, LAGS = st.integers(1, SMALL), st.integers(-SMALL, SMALL), st.integers(0, SMALL)
ANY_LENGTH = st.integers(1, 100) | st.integers(1, MAX_TICK) | st.integers(MAX_TICK - 100, MAX_TICK)
ANY_TICK = (
    st.integers(-100, 100)
    | st.integers(MIN_TICK, MAX_TICK)
    | st.integers(MIN_TICK, MIN_TICK + 100)
    | st.integers(MAX_TICK - 100, MAX_TICK)
)


def interval_is_the_definition(window: TimeWindow, s: int) -> None:
    expected = instants(window, s)
    interval = window.interval(s)
    got = set() if interval is None else {t for t in range(-8 * SMALL, 8 * SMALL) if interval[0] <= t < interval[1]}
    assert got == expected
    assert interval is None or interval[0] < interval[1]
    assert interval is None or window.reach == INF or interval[1] <= s + window.reach


def first_in_first_out(intervals) -> bool:
    """Whether no row of ``(ts, te)`` that appears later ends earlier."""
    return all(b[0] <= a[0] or b[1] >= a[1] for a in intervals for b in intervals)


def evaluate(database, texts: Sequence[str], values: list[int]) -> list[tuple[int, ...]]:
    """Spark SQL over ``s`` run by DuckDB, whose BIGINT arithmetic fails on overflow as Spark's does in ANSI mode."""
    columns = ", ".join(re.sub(r"(\d+)L\b", r"CAST(\1 AS BIGINT)", text) for text in texts)
    rows = ", ".join(f"({i}, CAST({v} AS BIGINT))" for i, v in enumerate(values))
    return database.execute(f"SELECT {columns} FROM (VALUES {rows}) AS t(i, s) ORDER BY i").fetchall()


def sql_is_interval(database, window: TimeWindow, values: list[int]) -> None:
    """Up to the ends of the domain; so is what is computed of an array."""
    values += [MIN_TICK, MIN_TICK + 1, 0, MAX_TICK - 1, MAX_TICK]
    arrays = window.intervals(np.array(values, np.int64))
    assert arrays is not None
    by_array = [tuple(pair) for pair in np.stack(arrays, axis=1).tolist()]
    for found in (evaluate(database, window.sql("s"), values), by_array):
        for s, (ts, te) in zip(values, found, strict=True):
            interval = window.interval(s)
            if interval is None:
                assert ts >= te, s
            else:
                assert (ts, te) == interval, s
