"""From rows with intervals to instants: the events of a slice in the order of (key, tick), cut where either changes
(``events.py`` tells how they are coded).
"""

from __future__ import annotations

import numpy as np

from sweeparea.operators.kernels.compiled import njit
from sweeparea.operators.kernels.events import Segments, end_of, start_of
from sweeparea.operators.kernels.sorting import sorted_order
from sweeparea.operators.time.ticks import INF

NO_MARK = INF


@njit(cache=True)
def _ends_ascend(group, end, last):
    for i in range(1, len(group)):  # noqa: SIM110 - numba compiles no generator
        if group[i] == group[i - 1] and end[i] < end[i - 1] and end[i] <= last:
            return False
    return True


@njit(cache=True)
def _merge(group, start, end, by_end, last, mark):
    size = len(group)
    capacity = 2 * size + 1
    events = np.empty(capacity, np.int64)
    first = np.empty(capacity + 1, np.int64)
    seg_group = np.empty(capacity, np.int64)
    seg_tick = np.empty(capacity, np.int64)
    count = 0
    segments = 0
    a = 0
    while a < size or mark != NO_MARK:
        g = group[a] if a < size else 0
        b = a
        while b < size and group[b] == g:
            b += 1
        i = a
        j = a
        while True:
            tick = mark
            if i < b and start[i] < tick:
                tick = start[i]
            if j < b and end[by_end[j]] < tick:
                tick = end[by_end[j]]
            if tick > last:
                break
            first[segments] = count
            seg_group[segments] = g
            seg_tick[segments] = tick
            segments += 1
            while i < b and start[i] == tick:
                events[count] = start_of(i)
                count += 1
                i += 1
            while j < b and end[by_end[j]] == tick:
                events[count] = end_of(by_end[j])
                count += 1
                j += 1
            if mark == tick:
                mark = NO_MARK
        mark = NO_MARK
        a = b
    first[segments] = count
    return events[:count], first[: segments + 1], seg_group[:segments], seg_tick[:segments]


@njit(cache=True)
def gathered(rows, a, b):
    """``a[rows]`` and ``b[rows]``, in one pass: what waits for memory waits for both."""
    size = len(rows)
    of_a = np.empty(size, np.int64)
    of_b = np.empty(size, np.int64)
    for i in range(size):
        of_a[i] = a[rows[i]]
        of_b[i] = b[rows[i]]
    return of_a, of_b


def segments(group: np.ndarray, start: np.ndarray, end: np.ndarray, last: int, mark: int = NO_MARK) -> Segments:
    """The segments of rows that count from ``start`` to before ``end``.

    Rows are sorted by (group, start) and have start < end. What lies after ``last`` is no event. At tick ``mark`` the
    first group (0 if there are no rows) gets a segment whether anything happens or not.
    """
    if _ends_ascend(group, end, last):
        by_end = np.arange(len(group))
    else:
        by_end = sorted_order((group, np.minimum(end, last + 1)))
    return Segments(*_merge(group, start, end, by_end, last, mark))
