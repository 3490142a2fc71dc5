"""Loops of the calls that keep values: each gives one quantity at the end of every segment (``kernels/events.py``).

``place`` numbers the (group, value) pairs of a block in their order, from 0: the values of a group are neighbours.
Copies are counted per place, so a value is present while it has more than none. All give the first segment in which a
value has fewer than no copies, -1 if there is none.
"""

from __future__ import annotations

import math

import numpy as np

from sweeparea.operators.kernels.compiled import njit
from sweeparea.operators.kernels.events import count, opens, row_of, signed


@njit(cache=True)
def transitions(cut, rank, weight, copies):
    """(change, negative): of each event by how much the number of distinct ranks present in its group changes.

    ``copies`` (per rank, zero) is work space, given back as it was where nothing is negative.
    """
    events, first, group, _ = cut
    size = len(group)
    change = np.zeros(len(events), np.int64)
    since = 0  # first segment of the group
    below = 0
    for s in range(size + 1):
        if s == size or opens(group, s):
            for k in range(first[since], first[s]):
                copies[rank[row_of(events[k])]] = 0
            since = s
            if s == size:
                break
        for k in range(first[s], first[s + 1]):
            e = events[k]
            w = signed(e, weight[row_of(e)])
            if w == 0:
                continue
            r = rank[row_of(e)]
            before = copies[r]
            below += count(copies, r, w)
            change[k] = (copies[r] > 0) - (before > 0)
        if below > 0:
            return change, s
    return change, -1


@njit(cache=True)
def _span(cut, place, begin, end):
    # (least, greatest) place of the events of segments begin..end-1
    events, first, _, _ = cut
    low = np.int64(1) << 62
    high = np.int64(-1)
    for k in range(first[begin], first[end]):
        p = place[row_of(events[k])]
        low = min(low, p)
        high = max(high, p)
    return low, high


@njit(cache=True)
def _group_end(group, s):
    end = s
    while end < len(group) and group[end] == group[s]:
        end += 1
    return end


@njit(cache=True)
def _put(tree, base, width, p, w):
    # w copies more at place p, in the Fenwick tree of ``width`` places from ``base`` on
    i = p - base + 1
    while i <= width:
        tree[base + i] += w
        i += i & -i


@njit(cache=True)
def _numbered(tree, base, width, top, number):
    # the place of element ``number`` (from 0) among ``width`` places from ``base`` on; ``top``: the greatest power of
    # two that is no more
    i = 0
    left = number
    step = top
    while step > 0:
        if i + step <= width and tree[base + i + step] <= left:
            i += step
            left -= tree[base + i]
        step >>= 1
    return base + i


@njit(cache=True)
def _percentile(tree, base, width, top, total, share, discrete):
    # (low, high, fraction), as below, of ``total`` elements
    if discrete:
        number = np.int64(math.ceil(share * total)) - 1
        number = min(max(number, np.int64(0)), total - 1)
        at = _numbered(tree, base, width, top, number)
        return at, at, 0.0
    position = share * (total - 1)
    number = np.int64(math.floor(position))
    low = _numbered(tree, base, width, top, number)
    high = _numbered(tree, base, width, top, number + 1) if position > number else low
    return low, high, position - number


@njit(cache=True)
def order_statistics(cut, place, weight, places, share, discrete):
    """(low, high, fraction, negative) per segment: the places between which the percentile lies, and how far; -1: of
    none.

    Continuous: number ``share * (n - 1)`` from 0. ``discrete``: the first value whose share of the elements up to it
    reaches ``share``; low and high are that. A Fenwick tree (Fenwick 1994) for each group.
    """
    events, first, group, _ = cut
    size = len(group)
    low = np.full(size, -1, np.int64)
    high = np.full(size, -1, np.int64)
    fraction = np.zeros(size, np.float64)
    tree = np.zeros(places + 1, np.int64)
    copies = np.zeros(places + 1, np.int64)
    begin = 0
    while begin < size:
        end = _group_end(group, begin)
        base, last = _span(cut, place, begin, end)
        width = last - base + 1
        top = 1
        while top * 2 <= width:
            top *= 2
        total = np.int64(0)
        below = 0
        for s in range(begin, end):
            touched = False
            for k in range(first[s], first[s + 1]):
                e = events[k]
                w = signed(e, weight[row_of(e)])
                if w == 0:
                    continue
                p = place[row_of(e)]
                below += count(copies, p, w)
                total += w
                touched = True
                _put(tree, base, width, p, w)
            if below > 0:
                return low, high, fraction, s
            if touched and total > 0:
                low[s], high[s], fraction[s] = _percentile(tree, base, width, top, total, share, discrete)
            elif not touched and s > begin:
                low[s], high[s], fraction[s] = low[s - 1], high[s - 1], fraction[s - 1]
        for i in range(base, last + 1):
            tree[i + 1] = 0
        begin = end
    return low, high, fraction, -1


@njit(cache=True)
def most_frequent(cut, place, weight, places):
    """(place, negative) per segment: of the places with the most copies the least; -1: there is none.

    A tournament tree for each group: node i has the better of nodes 2i and 2i+1.
    """
    events, first, group, _ = cut
    size = len(group)
    best = np.full(size, -1, np.int64)
    tree = np.zeros(2 * places + 2, np.int64)
    copies = np.zeros(places + 1, np.int64)
    begin = 0
    while begin < size:
        end = _group_end(group, begin)
        base, last = _span(cut, place, begin, end)
        width = last - base + 1
        root = 2 * base
        for i in range(width):
            tree[root + width + i] = base + i
        for i in range(width - 1, 0, -1):  # nobody has copies yet: the least place
            tree[root + i] = min(tree[root + 2 * i], tree[root + 2 * i + 1])
        below = 0
        for s in range(begin, end):
            for k in range(first[s], first[s + 1]):
                e = events[k]
                w = signed(e, weight[row_of(e)])
                if w == 0:
                    continue
                p = place[row_of(e)]
                below += count(copies, p, w)
                i = (width + p - base) >> 1
                while i > 0:
                    a = tree[root + 2 * i]
                    b = tree[root + 2 * i + 1]
                    tree[root + i] = b if copies[b] > copies[a] or (copies[b] == copies[a] and b < a) else a
                    i >>= 1
            if below > 0:
                return best, s
            if width > 0:
                winner = tree[root + 1]
                best[s] = winner if copies[winner] > 0 else -1
        begin = end
    return best, -1


@njit(cache=True)
def bits(cut, words, weight, function):
    """Per segment the bits that all (function 0), some (1) or an odd number (2) of the elements' words have."""
    events, first, group, _ = cut
    size = len(group)
    out = np.zeros(size, np.int64)
    counts = np.zeros(64, np.int64)
    total = np.int64(0)
    one = np.int64(1)
    for s in range(size):
        if opens(group, s):
            counts[:] = 0
            total = np.int64(0)
        for k in range(first[s], first[s + 1]):
            e = events[k]
            w = signed(e, weight[row_of(e)])
            total += w
            if w != 0:
                word = words[row_of(e)]
                for b in range(64):
                    counts[b] += w * ((word >> b) & 1)
        value = np.int64(0)
        for b in range(64):
            c = counts[b]
            if function == 0:
                is_set = c == total
            elif function == 1:
                is_set = c > 0
            else:
                is_set = c & 1 == 1
            if is_set:
                value |= one << b
        out[s] = value
    return out
