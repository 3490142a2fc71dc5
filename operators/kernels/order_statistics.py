"""Order statistics of several groups in one array: of each group a tree of counts (Fenwick 1994), base to base + size.

Every function takes the array, where the group begins in it (``base``), and how many entries the group has (``size``).
Entry i of a group lies in ``tree[base + 1]`` to ``tree[base + size]``, so the array is one longer than all groups.
"""

from __future__ import annotations

from sweeparea.operators.kernels.compiled import njit


@njit(cache=True)
def add(tree, base, size, at, n):
    i = at + 1
    while i <= size:
        tree[base + i] += n
        i += i & -i


@njit(cache=True)
def before(tree, base, at):
    # how many lie before entry ``at``
    found = 0
    i = at
    while i > 0:
        found += tree[base + i]
        i -= i & -i
    return found


@njit(cache=True)
def entry(tree, base, size, count):
    # the entry that holds number ``count`` (from 0), and how many lie before it; ``size`` where there are fewer
    i = 0
    left = count
    step = 1
    while step * 2 <= size:
        step *= 2
    while step > 0:
        if i + step <= size and tree[base + i + step] <= left:
            i += step
            left -= tree[base + i]
        step >>= 1
    return i, count - left
