"""Loops of the windows that count elements: which later element brings an element in, which one drives it out."""

from __future__ import annotations

import numpy as np

from sweeparea.operators.kernels.compiled import njit
from sweeparea.operators.time.ticks import INF


@njit(cache=True)
def positions(group, n, known):
    """Position of the last copy of each row among its partition's arrivals; ``known`` > 0 where a slice before said
    so.
    """
    size = len(group)
    last = np.empty(size, np.int64)
    at = np.int64(0)
    for r in range(size):
        if r == 0 or group[r] != group[r - 1]:
            at = np.int64(0)
        at = known[r] if known[r] > 0 else at + n[r]
        last[r] = at
    return last


@njit(cache=True)
def visits(group, tick, n, last, count, slide):
    """(row, copies, enter, leave), in the order of rows: the runs of copies that enter and leave together.

    The element at position i enters with the arrival at the least multiple of ``slide`` >= i and leaves with that at
    the least multiple >= i + ``count``; ``INF`` where no such element has arrived. What would leave as it enters is
    left out.
    """
    size = len(group)
    capacity = (
        3 * size + 1
    )  # a run ends with its row, with the row that brings it in or with the one that drives it out
    out = np.empty((4, capacity), np.int64)
    found = 0
    lo = 0
    while lo < size:
        hi = lo
        while hi < size and group[hi] == group[lo]:
            hi += 1
        e = lo
        d = lo
        for r in range(lo, hi):
            i = last[r] - n[r] + 1
            while i <= last[r]:
                enters = i if slide == 1 else (i + slide - 1) // slide * slide
                leaves = i + count if slide == 1 else (i + count + slide - 1) // slide * slide
                while e < hi and last[e] < enters:
                    e += 1
                while d < hi and last[d] < leaves:
                    d += 1
                top = last[r]
                if e < hi:
                    top = min(top, last[e] if slide == 1 else last[e] // slide * slide)
                if d < hi:
                    top = min(top, (last[d] if slide == 1 else last[d] // slide * slide) - count)
                enter = tick[e] if e < hi else INF
                leave = tick[d] if d < hi else INF
                if enter < leave or enter == INF:
                    out[0, found] = r
                    out[1, found] = top - i + 1
                    out[2, found] = enter
                    out[3, found] = leave
                    found += 1
                i = top + 1
        lo = hi
    return out[0, :found].copy(), out[1, :found].copy(), out[2, :found].copy(), out[3, :found].copy()


@njit(cache=True)
def condition_visits(group, tick, n, meets):
    """(row, copies, enter, leave), in the order of rows, of the buckets that end with the elements that ``meets``.

    Of a meeter's copies each ends a bucket; only the last one's is visible, the others leave as they enter.
    """
    size = len(group)
    copies = np.empty(size, np.int64)
    enter = np.empty(size, np.int64)
    leave = np.empty(size, np.int64)
    meeter = np.int64(-1)  # the next meeter at or after the row
    later = INF  # the instant of the meeter after that
    for r in range(size - 1, -1, -1):
        if r == size - 1 or group[r] != group[r + 1]:
            meeter = -1
            later = INF
        copies[r] = n[r]
        if meets[r]:
            later = tick[meeter] if meeter >= 0 else INF
            meeter = r
            copies[r] = 1
            enter[r] = tick[r]
            leave[r] = later
        elif meeter < 0:
            enter[r] = INF
            leave[r] = INF
        else:
            enter[r] = tick[meeter]
            leave[r] = tick[meeter] if n[meeter] > 1 else later
    kept = np.flatnonzero((enter < leave) | (enter == INF))
    return kept, copies[kept], enter[kept], leave[kept]
