"""Loop of the operators that compare two bags record by record: two running counts, one multiplicity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sweeparea.operators.kernels.compiled import njit
from sweeparea.operators.kernels.events import closes, opens, row_of, signed
from sweeparea.operators.time.ticks import INF

DIFFERENCE, EXCEPT, STRICT, INTERSECT_ALL, INTERSECT, SEMI, MAX_UNION, DISTINCT = range(8)
_NEVER = -INF - 1


class SidedRows(NamedTuple):
    """Of each row: whether it counts to the right bag, whether an earlier slice left it, and its copies."""

    right: np.ndarray
    carried: np.ndarray
    n: np.ndarray


@njit(cache=True)
def multiplicity(op, a, b):
    """Copies in the result of a record of which the left bag has ``a`` and the right bag ``b``; of a bag that has
    fewer than none it has none.
    """
    a = max(np.int64(0), a)
    b = max(np.int64(0), b)
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
def _written(out, k, s, ts, te, copies):
    # the number of rows with one more
    out[0, k] = s
    out[1, k] = ts
    out[2, k] = te
    out[3, k] = copies
    return k + 1


# one function: counts, stack and published levels are one state, which calls would have to hand over at every event
@njit(cache=True)
def emissions(cut, rows, op, ahead, may_fall, h0, last):
    """(segment, ts, te, n, negative): the rows by which the result changes within the segments of ``cut``.

    A stack of levels per group pairs what comes with what goes, the youngest first. ``ahead`` False: the result's own
    changes after ``h0``; a group's segment at or before ``h0`` tells what is published, which ends by a negative row.
    ``ahead`` True: what the rows add to the result of the carried ones alone, which is never negative where rows only
    add; ``may_fall``: it may be (then the levels of the stack are negative, while it is). ``negative`` is the first
    segment at or before ``last`` that has fewer than no copies of its record in a bag, or with ``ahead``, not
    ``may_fall``, in what is added; -1 if there is none.
    """
    events, first, group, tick = cut
    right, carried, n = rows
    size = len(group)
    out = np.empty((4, 2 * size + 2), np.int64)  # each change of a level opens one entry and ends at most one in part
    k = 0
    since = np.empty(size + 1, np.int64)
    level = np.empty(size + 1, np.int64)
    counts = np.zeros((2, 2), np.int64)  # of the left and the right bag: all copies, and the carried ones
    depth = 0
    before = np.int64(0)
    published = _NEVER if ahead else h0
    negative = -1
    for s in range(size):
        if opens(group, s):
            counts[:] = 0
            before = np.int64(0)
            depth = 0
        for i in range(first[s], first[s + 1]):
            e = events[i]
            row = row_of(e)
            w = signed(e, n[row])
            side = 1 if right[row] else 0
            counts[side, 0] += w
            if carried[row]:
                counts[side, 1] += w
        t = tick[s]
        if (counts[0, 0] < 0 or counts[1, 0] < 0) and negative < 0 and t <= last:
            negative = s
        value = multiplicity(op, counts[0, 0], counts[1, 0])
        if ahead:
            value -= multiplicity(op, counts[0, 1], counts[1, 1])
            if value < 0 and not may_fall and negative < 0:
                negative = s
        change = value - before
        before = value
        # levels are positive, but for those that ``may_fall``: all have the sign of what was added before
        while change != 0 and depth > 0 and (change < 0) != (level[depth - 1] < 0):
            top = depth - 1
            gone = min(-change, level[top]) if change < 0 else max(-change, level[top])
            if since[top] <= published:
                k = _written(out, k, s, t, INF, -gone)
            else:
                k = _written(out, k, s, since[top], t, gone)
            change += gone
            level[top] -= gone
            if level[top] == 0:
                depth = top
        if change > 0 or (change < 0 and ahead and may_fall):
            since[depth] = t
            level[depth] = change
            depth += 1
        if closes(group, s):
            for j in range(depth):
                if since[j] > published:
                    k = _written(out, k, s, since[j], INF, level[j])
    return out[0, :k].copy(), out[1, :k].copy(), out[2, :k].copy(), out[3, :k].copy(), negative
