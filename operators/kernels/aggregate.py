"""Loops of the aggregation: each gives one quantity at the end of every segment (``kernels/events.py``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sweeparea.operators.kernels.compiled import njit
from sweeparea.operators.kernels.events import closes, count, opens, row_of, signed
from sweeparea.operators.kernels.sums import exact
from sweeparea.operators.time.ticks import INF


@njit(cache=True)
def running_sum(cut, weight):
    """Sum of ``weight`` over the rows that count, per segment. The caller makes sure that int64 is wide enough."""
    events, first, group, _ = cut
    out = np.empty(len(group), np.int64)
    total = np.int64(0)
    for s in range(len(group)):
        if opens(group, s):
            total = np.int64(0)
        for k in range(first[s], first[s + 1]):
            e = events[k]
            total += signed(e, weight[row_of(e)])
        out[s] = total
    return out


@njit(cache=True)
def _apply(acc, row, sign, double, high, low, terms):
    # a raw row that has no value has no copies
    if terms.kind[row] == 1:
        exact.add_encoded(acc, terms.data, terms.begin[row], terms.end[row], sign)
    elif terms.copies[row] != 0:
        if double:
            exact.add_double(acc, low[row], sign * terms.copies[row])
        else:
            exact.add_integer(acc, high[row], low[row], sign * terms.copies[row])


@njit(cache=True)
def running_exact(cut, double, rounded, high, low, terms):
    """Exact sums per segment: (fits, high, low). ``rounded``: low holds the bits of the nearest double."""
    events, first, group, _ = cut
    size = len(group)
    fits = np.ones(size, np.bool_)
    out_high = np.zeros(size, np.int64)
    out_low = np.zeros(size, np.int64)
    acc = exact.new()
    plus = np.int64(1)  # a literal would have the callees compiled once more
    for s in range(size):
        if opens(group, s):
            exact.clear(acc)
        for k in range(first[s], first[s + 1]):
            e = events[k]
            _apply(acc, row_of(e), signed(e, plus), double, high, low, terms)
        if rounded:
            out_low[s] = exact.to_double(acc, exact.DOUBLE_BIAS if double else exact.INTEGER_BIAS)
        else:
            fits[s], out_high[s], out_low[s] = exact.to_integer(acc)
    return fits, out_high, out_low


@njit(cache=True)
def encode_runs(first, double, high, low, terms):
    """Encoded exact sum of each run ``[first[r], first[r+1])`` of rows: (offsets, bytes)."""
    runs = len(first) - 1
    out_offsets = np.zeros(runs + 1, np.int64)
    out = np.empty(max(256, 24 * runs), np.uint8)
    acc = exact.new()
    at, plus = np.int64(0), np.int64(1)  # as above
    for r in range(runs):
        exact.clear(acc)
        for k in range(first[r], first[r + 1]):
            _apply(acc, k, plus, double, high, low, terms)
        if at + exact.MAX_BYTES > len(out):
            larger = np.empty(2 * len(out) + exact.MAX_BYTES, np.uint8)
            for i in range(at):  # assigning a slice takes numba seconds to compile
                larger[i] = out[i]
            out = larger
        at = exact.encode(acc, out, at)
        out_offsets[r + 1] = at
    return out_offsets, out[:at].copy()


@njit(cache=True)
def total_size(low, n):
    """The sum of |value * copies|, rounded."""
    total = 0.0
    for i in range(len(low)):
        total += abs(float(low[i])) * abs(float(n[i]))
    return total


@njit(cache=True)
def decode_small(kind, begin, end, data):
    """(all fit, int64 values): encoded integer sums of the carried rows, 0 elsewhere; not all fit if one is past
    2**62.
    """
    values = np.zeros(len(kind), np.int64)
    for i in range(len(kind)):
        at = begin[i]
        if kind[i] != 1 or at == end[i]:
            continue
        lo = np.int64(data[at + 1])
        count = np.int64(data[at + 2])
        if lo + count > 2:
            return False, values
        v = np.int64(0)
        for c in range(count):
            d = np.int64(0)
            for b in range(4):
                d |= np.int64(data[at + 3 + 4 * c + b]) << (8 * b)
            if c == count - 1 and data[at] & 1:
                d -= 1 << 32
            if lo + c == 1 and (d >= 1 << 30 or d < -(1 << 30)):
                return False, values
            v += d << (32 * (lo + c))
        values[i] = v
    return True, values


class Candidates(NamedTuple):
    """Work space of ``running_least``, given back as it was: of each rank its copies (zero) and whether it is in the
    heap (False), and the heap, of as many places as there are ranks.
    """

    copies: np.ndarray
    listed: np.ndarray
    heap: np.ndarray


@njit(cache=True)
def _pushed(heap, length, r):
    # put rank r into the heap of so many; gives their number then
    i = length
    while i > 0:
        up = (i - 1) >> 1
        if heap[up] <= r:
            break
        heap[i] = heap[up]
        i = up
    heap[i] = r
    return length + 1


@njit(cache=True)
def _popped(heap, length):
    # take the least rank out of the heap of so many; gives their number then
    length -= 1
    r = heap[length]
    i = 0
    while True:
        down = 2 * i + 1
        if down >= length:
            break
        if down + 1 < length and heap[down + 1] < heap[down]:
            down += 1
        if heap[down] >= r:
            break
        heap[i] = heap[down]
        i = down
    heap[i] = r
    return length


@njit(cache=True)
def _forget(copies, listed, heap, length):
    for i in range(length):
        copies[heap[i]] = 0
        listed[heap[i]] = False


@njit(cache=True)
def running_least(cut, rank, weight, space):
    """Least rank with a positive number of copies per segment, -1 if none: (ranks, first segment with a negative
    number).

    A binary heap of the group's ranks; copies are counted per rank, a rank without copies leaves the heap when it
    surfaces (lazy deletion), so an event costs O(log n) amortised. The second result is -1 if all is well. ``space``:
    ``Candidates``.
    """
    events, first, group, _ = cut
    copies, listed, heap = space
    size = len(group)
    out = np.empty(size, np.int64)
    length = 0
    below = 0  # ranks with a negative number of copies
    for s in range(size):
        if opens(group, s):
            _forget(copies, listed, heap, length)
            length = 0
            below = 0
        for k in range(first[s], first[s + 1]):
            e = events[k]
            w = signed(e, weight[row_of(e)])
            if w == 0:
                continue
            r = rank[row_of(e)]
            below += count(copies, r, w)
            if not listed[r]:
                listed[r] = True
                length = _pushed(heap, length, r)
        if below > 0:
            return out, s
        while length > 0 and copies[heap[0]] == 0:
            listed[heap[0]] = False
            length = _popped(heap, length)
        out[s] = heap[0] if length > 0 else -1
    _forget(copies, listed, heap, length)
    return out, -1


@njit(cache=True)
def emissions(group, tick, present, changed, published):
    """The delta's rows as (segment that holds the values, ts, te, n).

    ``changed[s]``: the aggregate row differs from that of the segment before (which may be another group's: ignored
    then). A group's first segment is what is already published if it lies at tick ``published``.
    """
    size = len(group)
    rows = 0
    for s in range(size):
        rows += changed[s] or opens(group, s)
    source = np.empty(rows, np.int64)
    ts = np.empty(rows, np.int64)
    te = np.empty(rows, np.int64)
    n = np.empty(rows, np.int64)
    k = 0
    current = -1  # segment whose row holds now, -1: no row
    since = np.int64(0)
    old = False  # the current row was published by an earlier slice
    for s in range(size):
        if opens(group, s):
            current = -1
            old = tick[s] == published
            differs = present[s]
        else:
            differs = changed[s]
        if differs:
            if current >= 0:
                source[k] = current
                ts[k] = tick[s] if old else since
                te[k] = INF if old else tick[s]
                n[k] = -1 if old else 1
                k += 1
                old = False
            current = s if present[s] else -1
            since = tick[s]
        # a row that was absent at the published tick is not old
        if current < 0:
            old = False
        if closes(group, s) and current >= 0 and not old:
            source[k] = current
            ts[k] = since
            te[k] = INF
            n[k] = 1
            k += 1
    return source[:k], ts[:k], te[:k], n[:k]


@njit(cache=True)
def undominated(order, group, start, end, rank):
    """Rows that may yet be their group's least; ``order`` sorts them by group, start, end descending, rank.

    A row is dominated by one that starts no later, ends no earlier and is not greater: whenever it is valid from then
    on, so is the other. Those stand before it in this order, so what is kept is a staircase: among rows of one start
    (all that are alive) ends and ranks fall; where pending rows follow, a Fenwick tree over the group's ends has the
    least rank of those that last as long, O(log n) a row.
    """
    keep = np.empty(len(order), np.int64)
    k = 0
    lo = 0
    while lo < len(order):
        hi = lo + 1
        while hi < len(order) and group[order[hi]] == group[order[lo]]:
            hi += 1
        if start[order[lo]] == start[order[hi - 1]]:
            best = INF
            for i in range(lo, hi):
                row = order[i]
                if rank[row] < best:
                    best = rank[row]
                    keep[k] = row
                    k += 1
        else:
            k = _kept_of_many_starts(order[lo:hi], end, rank, keep, k)
        lo = hi
    return keep[:k].copy()


@njit(cache=True)
def _kept_of_many_starts(order, end, rank, keep, k):
    size = len(order)
    ends = np.empty(size, np.int64)
    for i in range(size):
        ends[i] = end[order[i]]
    ends.sort()
    least = np.full(size + 1, INF)  # a Fenwick tree of minima, the latest end first
    for row in order:
        lo, hi = 0, size
        while lo < hi:
            middle = (lo + hi) >> 1
            if ends[middle] < end[row]:
                lo = middle + 1
            else:
                hi = middle
        place = size - lo  # how many ends of the group are no earlier
        best = INF
        i = place
        while i > 0:
            best = min(best, least[i])
            i -= i & -i
        if rank[row] < best:
            keep[k] = row
            k += 1
            i = place
            while i <= size:
                least[i] = min(least[i], rank[row])
                i += i & -i
    return k


@njit(cache=True)
def united(order, group, start, end):
    """(row, start, end): the intervals in which there is any row of a group, none touching another; ``order`` sorts the
    rows by group and start.
    """
    size = len(order)
    row = np.empty(size, np.int64)
    since = np.empty(size, np.int64)
    until = np.empty(size, np.int64)
    k = -1
    for at in order:
        if k >= 0 and group[row[k]] == group[at] and start[at] <= until[k]:
            until[k] = max(until[k], end[at])
        else:
            k += 1
            row[k], since[k], until[k] = at, start[at], end[at]
    return row[: k + 1].copy(), since[: k + 1].copy(), until[: k + 1].copy()
