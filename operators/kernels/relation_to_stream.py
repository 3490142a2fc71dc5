"""Loop of the relation-to-stream operators: multiplicities over time as a stack of levels per record."""

from __future__ import annotations

import numpy as np

from sweeparea.operators.kernels.compiled import njit


@njit(cache=True)
def levels(group, tick, n):
    """Sweep net changes n in the order of (group, tick), those of a group beginning with the levels that were open
    already.

    Gives (closed, opened, negative). closed: rows (group, from, to, count);
    opened: rows (group, from, count); negative: index of the change that makes a multiplicity negative, or -1. A fall
    closes the levels that opened last, so level k is exactly where the multiplicity is at least k.
    """
    size = len(group)
    closed = np.empty((4, max(16, size)), np.int64)
    opened = np.empty((3, max(16, size)), np.int64)
    closed_count = 0
    opened_count = 0
    since = np.empty(size + 1, np.int64)
    copies = np.empty(size + 1, np.int64)
    depth = 0
    for i in range(size):
        if i == 0 or group[i] != group[i - 1]:
            depth = 0
        c = n[i]
        if c > 0:
            since[depth] = tick[i]
            copies[depth] = c
            depth += 1
        elif c < 0:
            c = -c
            while c > 0:
                if depth == 0:
                    return closed[:, :closed_count].copy(), opened[:, :opened_count].copy(), i
                top = depth - 1
                k = min(c, copies[top])
                if closed_count == closed.shape[1]:
                    larger = np.empty((4, 2 * closed_count), np.int64)
                    for field in range(4):  # assigning a slice takes numba seconds to compile
                        for j in range(closed_count):
                            larger[field, j] = closed[field, j]
                    closed = larger
                closed[0, closed_count] = group[i]
                closed[1, closed_count] = since[top]
                closed[2, closed_count] = tick[i]
                closed[3, closed_count] = k
                closed_count += 1
                c -= k
                copies[top] -= k
                if copies[top] == 0:
                    depth = top
        if i == size - 1 or group[i + 1] != group[i]:
            for level in range(depth):
                opened[0, opened_count] = group[i]
                opened[1, opened_count] = since[level]
                opened[2, opened_count] = copies[level]
                opened_count += 1
    return closed[:, :closed_count].copy(), opened[:, :opened_count].copy(), -1
