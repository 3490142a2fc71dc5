"""Loops of the calls that keep values: each gives one quantity at the end of every segment (``kernels/instants.py``).

``place`` numbers the (group, value) pairs of a block in their order, from 0: the values of a group are neighbours.
Copies are counted per place, so a value is present while it has more than none. All give the first segment in which a
value has fewer than no copies, -1 if there is none.
"""

from __future__ import annotations

import math

import numpy as np

from sweeparea.operators.kernels.compiled import njit


@njit(cache=True)
def _count(copies, at, n):
    # n copies more at a place; how many places more are below zero then
    before = copies[at]
    copies[at] = before + n
    return (before + n < 0) - (before < 0)


@njit(cache=True)
def transitions(events, first, group, rank, weight, copies):
    """(change, negative): of each event by how much the number of distinct ranks present in its group changes.

    ``copies`` (per rank, zero) is work space, given back as it was where nothing is negative.
    """
    size = len(group)
    change = np.zeros(len(events), np.int64)
    since = 0  # first segment of the group
    below = 0
    for s in range(size + 1):
        if s == size or s == 0 or group[s] != group[s - 1]:
            for k in range(first[since], first[s]):
                copies[rank[events[k] >> 1]] = 0
            since = s
            if s == size:
                break
        for k in range(first[s], first[s + 1]):
            e = events[k]
            w = weight[e >> 1]
            if w == 0:
                continue
            r = rank[e >> 1]
            before = copies[r]
            below += _count(copies, r, -w if e & 1 else w)
            change[k] = (copies[r] > 0) - (before > 0)
        if below > 0:
            return change, s
    return change, -1


@njit(cache=True)
def _span(events, first, place, begin, end):
    # (least, greatest) place of the events of segments begin..end-1
    low = np.int64(1) << 62
    high = np.int64(-1)
    for k in range(first[begin], first[end]):
        p = place[events[k] >> 1]
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
def _numbered(tree, base, count, top, number):
    # the place of element ``number`` (from 0) among ``count`` places from ``base`` on
    i = 0
    left = number
    step = top
    while step > 0:
        if i + step <= count and tree[base + i + step] <= left:
            i += step
            left -= tree[base + i]
        step >>= 1
    return base + i


@njit(cache=True)
def order_statistics(events, first, group, place, weight, places, share, discrete):
    """(low, high, fraction, negative) per segment: the places between which the percentile lies, and how far; -1: of
    none.

    Continuous: number ``share * (n - 1)`` from 0. ``discrete``: the first value whose share of the elements up to it
    reaches ``share``; low and high are that. A Fenwick tree (Fenwick 1994) for each group.
    """
    size = len(group)
    low = np.full(size, -1, np.int64)
    high = np.full(size, -1, np.int64)
    fraction = np.zeros(size, np.float64)
    tree = np.zeros(places + 1, np.int64)
    copies = np.zeros(places + 1, np.int64)
    begin = 0
    while begin < size:
        end = _group_end(group, begin)
        base, last = _span(events, first, place, begin, end)
        count = last - base + 1
        top = 1
        while top * 2 <= count:
            top *= 2
        total = np.int64(0)
        below = 0
        for s in range(begin, end):
            touched = False
            for k in range(first[s], first[s + 1]):
                e = events[k]
                w = weight[e >> 1]
                if w == 0:
                    continue
                if e & 1:
                    w = -w
                p = place[e >> 1]
                below += _count(copies, p, w)
                total += w
                touched = True
                i = p - base + 1
                while i <= count:
                    tree[base + i] += w
                    i += i & -i
            if below > 0:
                return low, high, fraction, s
            if not touched:
                if s > begin:
                    low[s] = low[s - 1]
                    high[s] = high[s - 1]
                    fraction[s] = fraction[s - 1]
                continue
            if total <= 0:
                continue
            if discrete:
                number = np.int64(math.ceil(share * total)) - 1
                number = min(max(number, np.int64(0)), total - 1)
                low[s] = _numbered(tree, base, count, top, number)
                high[s] = low[s]
                continue
            position = share * (total - 1)
            number = np.int64(math.floor(position))
            at = _numbered(tree, base, count, top, number)
            low[s] = at
            high[s] = at
            fraction[s] = position - number
            if position > number:
                high[s] = _numbered(tree, base, count, top, number + 1)
        for i in range(base, last + 1):
            tree[i + 1] = 0
        begin = end
    return low, high, fraction, -1


@njit(cache=True)
def most_frequent(events, first, group, place, weight, places):
    """(place, negative) per segment: of the places with the most copies the least; -1: there is none.

    A tournament tree for each group: node i has the better of nodes 2i and 2i+1.
    """
    size = len(group)
    best = np.full(size, -1, np.int64)
    tree = np.zeros(2 * places + 2, np.int64)
    copies = np.zeros(places + 1, np.int64)
    begin = 0
    while begin < size:
        end = _group_end(group, begin)
        base, last = _span(events, first, place, begin, end)
        count = last - base + 1
        root = 2 * base
        for i in range(count):
            tree[root + count + i] = base + i
        for i in range(count - 1, 0, -1):  # nobody has copies yet: the least place
            tree[root + i] = min(tree[root + 2 * i], tree[root + 2 * i + 1])
        below = 0
        for s in range(begin, end):
            for k in range(first[s], first[s + 1]):
                e = events[k]
                w = weight[e >> 1]
                if w == 0:
                    continue
                if e & 1:
                    w = -w
                p = place[e >> 1]
                below += _count(copies, p, w)
                i = (count + p - base) >> 1
                while i > 0:
                    a = tree[root + 2 * i]
                    b = tree[root + 2 * i + 1]
                    tree[root + i] = b if copies[b] > copies[a] or (copies[b] == copies[a] and b < a) else a
                    i >>= 1
            if below > 0:
                return best, s
            if count > 0:
                winner = tree[root + 1]
                best[s] = winner if copies[winner] > 0 else -1
        begin = end
    return best, -1


@njit(cache=True)
def bits(events, first, group, words, weight, function):
    """Per segment the bits that all (function 0), some (1) or an odd number (2) of the elements' words have."""
    size = len(group)
    out = np.zeros(size, np.int64)
    counts = np.zeros(64, np.int64)
    total = np.int64(0)
    one = np.int64(1)
    for s in range(size):
        if s == 0 or group[s] != group[s - 1]:
            counts[:] = 0
            total = np.int64(0)
        for k in range(first[s], first[s + 1]):
            e = events[k]
            w = weight[e >> 1]
            if e & 1:
                w = -w
            total += w
            if w != 0:
                word = words[e >> 1]
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
