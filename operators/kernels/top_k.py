"""The first rows of a group and how they change: an order-statistics tree (Fenwick 1994) over their places.

The tree counts the copies alive at each place. A row enters where its interval begins and leaves where it ends, at
O(log n). Only where that happens before the last row that is shown are the first rows looked up again, O(log n) each.
"""

from __future__ import annotations

import numpy as np

from sweeparea.operators.kernels.compiled import njit


@njit(cache=True)
def _add(tree, at, n):
    i = at + 1
    while i < len(tree):
        tree[i] += n
        i += i & -i


@njit(cache=True)
def _place(tree, top, copies):
    # the place that holds copy number ``copies`` (from 0), and how many lie before it
    i = 0
    left = copies
    step = top
    while step > 0:
        if i + step < len(tree) and tree[i + step] <= left:
            i += step
            left -= tree[i]
        step >>= 1
    return i, copies - left


@njit(cache=True)
def _larger(rows, size):
    grown = np.empty((rows.shape[0], 2 * rows.shape[1]), np.int64)
    grown[:, :size] = rows[:, :size]
    return grown


@njit(cache=True)
def changes(place, begin, end, copies, by_begin, by_end, opens, offset, limit):
    """(place, segment, n): how the rows with copies number ``offset`` to ``offset + limit - 1`` change from segment to
    segment; with a negative limit all from ``offset`` on.

    Interval i lies in segments ``begin[i]`` to ``end[i] - 1``, at ``place[i]`` of the order, with ``copies[i]`` > 0;
    ``by_begin`` and ``by_end`` sort the intervals. Places are dense, and unlike for intervals of one segment.
    ``opens[s]`` tells that segment s is the first of its group, which changes nothing.
    """
    places = 0
    for p in place:
        places = max(places, p + 1)
    tree = np.zeros(places + 1, np.int64)
    at_place = np.zeros(places + 1, np.int64)
    top = 1
    while top * 2 <= places:
        top *= 2
    found = np.empty((3, 1024), np.int64)
    size = 0
    shown = np.empty((2, 64), np.int64)  # places and copies of the rows that the last segment shows, and of this one
    fresh = np.empty((2, 64), np.int64)
    held = 0
    full = False
    total = 0
    a = 0
    z = 0
    for segment in range(len(opens)):
        touched = opens[segment] or not full
        edge = shown[0, held - 1] if held > 0 else places
        while z < len(by_end) and end[by_end[z]] == segment:
            i = by_end[z]
            _add(tree, place[i], -copies[i])
            at_place[place[i]] -= copies[i]
            total -= copies[i]
            touched |= place[i] <= edge
            z += 1
        while a < len(by_begin) and begin[by_begin[a]] == segment:
            i = by_begin[a]
            _add(tree, place[i], copies[i])
            at_place[place[i]] += copies[i]
            total += copies[i]
            touched |= place[i] <= edge
            a += 1
        if not touched:
            continue
        last = total if limit < 0 else min(total, offset + limit)
        full = limit >= 0 and total >= offset + limit
        count = 0
        copy = offset
        while copy < last:
            p, before = _place(tree, top, copy)
            until = min(before + at_place[p], last)
            if count == fresh.shape[1]:
                fresh = _larger(fresh, count)
            fresh[0, count] = p
            fresh[1, count] = until - copy
            count += 1
            copy = until
        i = 0
        j = 0
        while not opens[segment] and (i < held or j < count):
            p = places
            n = 0
            if i < held:
                p = shown[0, i]
            if j < count:
                p = min(p, fresh[0, j])
            if i < held and shown[0, i] == p:
                n -= shown[1, i]
                i += 1
            if j < count and fresh[0, j] == p:
                n += fresh[1, j]
                j += 1
            if n != 0:
                if size == found.shape[1]:
                    found = _larger(found, size)
                found[0, size] = p
                found[1, size] = segment
                found[2, size] = n
                size += 1
        shown, fresh = fresh, shown
        held = count
    return found[:, :size]
