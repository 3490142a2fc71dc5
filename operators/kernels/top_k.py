"""The first rows of every segment: an order-statistics tree (Fenwick 1994) over the places of the rows in their order.

The tree counts the copies alive at each place. A row enters where its interval begins and leaves where it ends, so a
segment costs O(log n) for each of its events and each row that it shows.
"""

from __future__ import annotations

import numpy as np
from numba import njit


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
def first_rows(place, begin, end, copies, by_begin, by_end, segments, offset, limit):
    """(place, segment, copies): per segment the rows with copies number ``offset`` to ``offset + limit - 1``; with a
    negative limit all from ``offset`` on.

    Interval i lies in segments ``begin[i]`` to ``end[i] - 1``, at ``place[i]`` of the order, with ``copies[i]`` > 0;
    ``by_begin`` and ``by_end`` sort the intervals. Places are dense and unlike for intervals of one segment.
    """
    places = 0
    for p in place:
        places = max(places, p + 1)
    tree = np.zeros(places + 1, np.int64)
    at_place = np.zeros(places + 1, np.int64)
    top = 1
    while top * 2 <= places:
        top *= 2
    capacity = 1024
    found = np.empty((3, capacity), np.int64)
    size = 0
    total = 0
    a = 0
    z = 0
    for segment in range(segments):
        while z < len(by_end) and end[by_end[z]] == segment:
            i = by_end[z]
            _add(tree, place[i], -copies[i])
            at_place[place[i]] -= copies[i]
            total -= copies[i]
            z += 1
        while a < len(by_begin) and begin[by_begin[a]] == segment:
            i = by_begin[a]
            _add(tree, place[i], copies[i])
            at_place[place[i]] += copies[i]
            total += copies[i]
            a += 1
        last = total if limit < 0 else min(total, offset + limit)
        copy = offset
        while copy < last:
            p, before = _place(tree, top, copy)
            until = min(before + at_place[p], last)
            if size == capacity:
                capacity *= 2
                larger = np.empty((3, capacity), np.int64)
                larger[:, :size] = found
                found = larger
            found[0, size] = p
            found[1, size] = segment
            found[2, size] = until - copy
            size += 1
            copy = until
    return found[:, :size]
