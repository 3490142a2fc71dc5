"""Loops of the semi and anti join by key: when there is a row of a key, and where rows meet that."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sweeparea.operators.kernels.compiled import njit
from sweeparea.operators.kernels.events import closes, opens, row_of, signed
from sweeparea.operators.time.ticks import INF


class Pieces(NamedTuple):
    """Of group g the intervals ``[since, until)`` at ``first[g]`` to before ``first[g + 1]``, in the order of time,
    none overlapping another. ``sign`` says for each whether something comes there, 1, or goes, -1.
    """

    first: np.ndarray
    since: np.ndarray
    until: np.ndarray
    sign: np.ndarray


@njit(cache=True)
def _lengthened(pieces, k, group, since, until, sign):
    # the number of pieces with one more, unless the last one goes on
    first, begins, ends, signs = pieces
    if first[group + 1] > 0 and ends[k - 1] == since and signs[k - 1] == sign:
        ends[k - 1] = until
        return k
    begins[k] = since
    ends[k] = until
    signs[k] = sign
    first[group + 1] += 1
    return k + 1


@njit(cache=True)
def _none(size, groups):
    return np.zeros(groups + 1, np.int64), np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)


@njit(cache=True)
def existence(cut, groups, n, carried, last):
    """(first, since, until, sign) of the pieces in which a group has any copies; the same of those in which that is
    otherwise than by the carried rows alone; and the first segment at or before ``last`` with fewer than no copies, -1:
    none.
    """
    events, begins, group, tick = cut
    size = len(group)
    whole, changed = _none(size, groups), _none(size, groups)
    in_whole = 0
    in_changed = 0
    copies = np.int64(0)
    before = np.int64(0)
    negative = -1
    for s in range(size):
        if opens(group, s):
            copies = np.int64(0)
            before = np.int64(0)
        for i in range(begins[s], begins[s + 1]):
            e = events[i]
            row = row_of(e)
            w = signed(e, n[row])
            copies += w
            if carried[row]:
                before += w
        if copies < 0 and negative < 0 and tick[s] <= last:
            negative = s
        until = INF if closes(group, s) else tick[s + 1]
        if copies > 0:
            in_whole = _lengthened(whole, in_whole, group[s], tick[s], until, 1)
        if (copies > 0) != (before > 0):
            sign = 1 if copies > 0 else -1
            in_changed = _lengthened(changed, in_changed, group[s], tick[s], until, sign)
    for g in range(groups):
        whole[0][g + 1] += whole[0][g]
        changed[0][g + 1] += changed[0][g]
    return whole, changed, negative


@njit(cache=True)
def _first_beyond(until, low, high, t):
    # of the pieces from low to before high the first that ends after t
    while low < high:
        middle = (low + high) >> 1
        if until[middle] > t:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True)
def met(group, start, end, pieces, without):
    """(row, ts, te, sign): where each row ``[start, end)`` meets the pieces of its group; ``without``: where it meets
    none of them, with the sign 1.
    """
    first, since, until, sign = pieces
    size = 0
    for i in range(len(group)):
        high = first[group[i] + 1]
        j = _first_beyond(until, first[group[i]], high, start[i])
        while j < high and since[j] < end[i]:
            size += 1
            j += 1
        if without:
            size += 1  # behind the last one
    out = np.empty((4, size), np.int64)
    k = 0
    for i in range(len(group)):
        high = first[group[i] + 1]
        j = _first_beyond(until, first[group[i]], high, start[i])
        free = start[i]
        while j < high and since[j] < end[i]:
            ts = free if without else max(start[i], since[j])
            te = since[j] if without else min(end[i], until[j])
            if ts < te:
                out[0, k], out[1, k], out[2, k], out[3, k] = i, ts, te, 1 if without else sign[j]
                k += 1
            free = until[j]
            j += 1
        if without and free < end[i]:
            out[0, k], out[1, k], out[2, k], out[3, k] = i, free, end[i], 1
            k += 1
    return out[0, :k].copy(), out[1, :k].copy(), out[2, :k].copy(), out[3, :k].copy()
