"""Sorting of rows by integer columns: a radix sort over the columns packed into one 64-bit key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sweeparea.operators.kernels.compiled import njit

_DIGIT = 11
_SIGN = -(1 << 63)


@njit(cache=True)
def _radix(key, bits):
    # stable positions that sort keys as unsigned numbers below 2**bits
    n = len(key)
    order = np.arange(n).astype(np.int32)
    ascending = True
    for i in range(1, n):
        if (key[i] ^ _SIGN) < (key[i - 1] ^ _SIGN):
            ascending = False
            break
    if ascending:
        return order
    passes = (bits + _DIGIT - 1) // _DIGIT
    size = 1 << _DIGIT
    mask = size - 1
    counts = np.zeros((passes, size), np.int64)
    for i in range(n):
        v = key[i]
        for p in range(passes):
            counts[p, (v >> (p * _DIGIT)) & mask] += 1
    source = key.copy()
    target = np.empty_like(source)
    order2 = np.empty_like(order)
    for p in range(passes):
        shift = p * _DIGIT
        c = counts[p]
        if c[(source[0] >> shift) & mask] == n:
            continue
        at = np.int64(0)
        for d in range(size):
            k = c[d]
            c[d] = at
            at += k
        for i in range(n):
            v = source[i]
            d = (v >> shift) & mask
            j = c[d]
            c[d] = j + 1
            target[j] = v
            order2[j] = order[i]
        source, target = target, source
        order, order2 = order2, order
    return order


@njit(cache=True)
def _ascending(values):
    for i in range(1, len(values)):  # noqa: SIM110 - numba compiles no generator
        if values[i] < values[i - 1]:
            return False
    return True


@njit(cache=True)
def _by_group(group, groups):
    # stable counting sort
    at = np.zeros(groups + 1, np.int64)
    for g in group:
        at[g + 1] += 1
    for g in range(groups):
        at[g + 1] += at[g]
    order = np.empty(len(group), np.int64)
    for i in range(len(group)):
        g = group[i]
        order[at[g]] = i
        at[g] += 1
    return order


def sorted_order(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Positions (int64) that sort rows by int64 ``columns``, the first the most significant; stable.

    One radix sort where the columns' ranges fit 64 bits together (group and tick of a slice do), else a lexicographic
    sort.
    """
    n = len(columns[0])
    if n < 2:
        return np.arange(n)
    widths = [(int(c.max()) - int(c.min())).bit_length() for c in columns]
    if sum(widths) > 64 or n >= 1 << 31:
        return np.lexsort(tuple(reversed(columns)))
    packed = np.zeros(n, np.int64)
    for column, width in zip(columns, widths, strict=True):
        if width == 64:
            packed = column - column.min()  # wraps: an unsigned difference
        elif width:
            packed <<= width
            packed |= column - column.min()
    return _radix(packed, sum(widths)).astype(np.int64)


def group_order(group: np.ndarray, groups: int, tick: np.ndarray) -> np.ndarray:
    """``sorted_order((group, tick))`` for dense group codes, in one pass where the ticks ascend already."""
    if groups == 1 or _ascending(tick):
        tick_sorted = sorted_order((tick,)) if groups == 1 else None
        return tick_sorted if tick_sorted is not None else _by_group(group, groups)
    return sorted_order((group, tick))
