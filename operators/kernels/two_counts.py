"""Loop of the operators that compare two bags record by record: two running counts, one multiplicity."""

from __future__ import annotations

import numpy as np

from sweeparea.operators.kernels.compiled import njit
from sweeparea.operators.time.ticks import INF

DIFFERENCE, EXCEPT, STRICT, INTERSECT_ALL, INTERSECT, SEMI, MAX_UNION, DISTINCT = range(8)


@njit(cache=True)
def multiplicity(op, a, b):
    """Copies in the result of a record of which the left bag has ``a`` and the right bag ``b``."""
    if op == DIFFERENCE:
        return max(np.int64(0), a - b)
    if op == EXCEPT:
        return np.int64(1) if a > 0 and b == 0 else np.int64(0)
    if op == STRICT:
        return a if b == 0 else np.int64(0)
    if op == INTERSECT_ALL:
        return min(a, b)
    if op == INTERSECT:
        return np.int64(1) if a > 0 and b > 0 else np.int64(0)
    if op == SEMI:
        return a if b > 0 else np.int64(0)
    if op == MAX_UNION:
        return max(a, b)
    return np.int64(1) if a > 0 else np.int64(0)


@njit(cache=True)
def emissions(events, first, group, tick, right, carried, n, op, ahead, signed, h0, last):
    """(segment, ts, te, n, negative): the rows by which the result changes within the segments given.

    A row of the input counts to the left bag or, where ``right``, to the other. A stack of levels per group pairs
    what comes with what goes, the youngest first. ``ahead`` False: the result's own changes after ``h0``; a group's
    segment at or before ``h0`` tells what is published, which ends by a negative row. ``ahead`` True: what the rows
    add to the result of the ``carried`` ones alone, which is never negative where rows only add; ``signed``: it may be
    (then the levels of the stack are negative, while it is). ``negative`` is the first segment at or before ``last``
    that has fewer than no copies of its record in a bag, or with ``ahead``, not ``signed``, in what is added; -1 if
    there is none.
    """
    size = len(group)
    capacity = 2 * size + 2  # each change of a level opens one entry and ends at most one in part
    source = np.empty(capacity, np.int64)
    ts = np.empty(capacity, np.int64)
    te = np.empty(capacity, np.int64)
    copies = np.empty(capacity, np.int64)
    k = 0
    since = np.empty(size + 1, np.int64)
    level = np.empty(size + 1, np.int64)
    depth = 0
    a = np.int64(0)
    b = np.int64(0)
    old_a = np.int64(0)
    old_b = np.int64(0)
    before = np.int64(0)
    negative = -1
    for s in range(size):
        if s == 0 or group[s] != group[s - 1]:
            a = np.int64(0)
            b = np.int64(0)
            old_a = np.int64(0)
            old_b = np.int64(0)
            before = np.int64(0)
            depth = 0
        for i in range(first[s], first[s + 1]):
            e = events[i]
            row = e >> 1
            w = -n[row] if e & 1 else n[row]
            if right[row]:
                b += w
                if carried[row]:
                    old_b += w
            else:
                a += w
                if carried[row]:
                    old_a += w
        t = tick[s]
        if (a < 0 or b < 0) and negative < 0 and t <= last:
            negative = s
        value = multiplicity(op, max(a, np.int64(0)), max(b, np.int64(0)))
        if ahead:
            value -= multiplicity(op, max(old_a, np.int64(0)), max(old_b, np.int64(0)))
            if value < 0 and not signed and negative < 0:
                negative = s
        change = value - before
        before = value
        # levels are positive, but for ``signed`` ones: those all have the sign of what was added before
        while change != 0 and depth > 0 and (change < 0) != (level[depth - 1] < 0):
            top = depth - 1
            gone = min(-change, level[top]) if change < 0 else max(-change, level[top])
            source[k] = s
            old = not ahead and since[top] <= h0
            ts[k] = t if old else since[top]
            te[k] = INF if old else t
            copies[k] = -gone if old else gone
            k += 1
            change += gone
            level[top] -= gone
            if level[top] == 0:
                depth = top
        if change > 0 or (change < 0 and ahead and signed):
            since[depth] = t
            level[depth] = change
            depth += 1
        if s == size - 1 or group[s + 1] != group[s]:
            for j in range(depth):
                if ahead or since[j] > h0:
                    source[k] = s
                    ts[k] = since[j]
                    te[k] = INF
                    copies[k] = level[j]
                    k += 1
    return source[:k].copy(), ts[:k].copy(), te[:k].copy(), copies[:k].copy(), negative
