"""Exact sums as rows of digits, which can be added and subtracted column by column, in any order.

A summand is laid into digits of 32 bits (30 for sums of powers) at places that all summands share. 2**30 of them can
be added before a column overflows. What comes out is rounded as by ``exact.py``, to the same bits.
"""

from __future__ import annotations

import numpy as np

from sweeparea.operators.kernels.compiled import njit
from sweeparea.operators.kernels.sums import exact, powers

COPIES = 1 << 30
"""How many summands the digits can hold."""
_MASK = 0xFFFFFFFF
_MAGNITUDE = (1 << 63) - 1


@njit(cache=True)
def of_doubles(bits):
    """(number of the first digit, how many there are, digits of each double; where some are not finite, then the
    numbers of NaN, +infinity and -infinity).
    """
    least, most = np.int64(exact.CHUNKS), np.int64(-1)
    odd = 0
    for v in bits:
        exponent = (v >> 52) & 0x7FF
        if exponent == 0x7FF:
            odd = 3
        elif v & _MAGNITUDE != 0:
            at = (max(exponent, 1) - 1075 + exact.DOUBLE_BIAS) >> 5
            least, most = min(least, at), max(most, at + 2)
    width = most - least + 1 if most >= 0 else np.int64(0)
    found = np.zeros((len(bits), width + odd), np.int64)
    for i in range(len(bits)):
        v = bits[i]
        exponent = (v >> 52) & 0x7FF
        significand = v & ((np.int64(1) << 52) - 1)
        if exponent == 0x7FF:
            found[i, width + (0 if significand != 0 else 1 if v > 0 else 2)] = 1
            continue
        if exponent == 0:
            exponent = np.int64(1)
        else:
            significand |= np.int64(1) << 52
        if significand == 0:
            continue
        at = exponent - 1075 + exact.DOUBLE_BIAS
        k, s = (at >> 5) - least, at & 31
        sign = -1 if v < 0 else 1
        found[i, k] = sign * ((significand << s) & _MASK)
        found[i, k + 1] = sign * ((significand >> (32 - s)) & _MASK)
        found[i, k + 2] = sign * ((significand >> (32 - s)) >> 32)
    return least, width, found


@njit(cache=True)
def rounded_doubles(first, width, digits):
    """Bits of the sums that rows of ``of_doubles`` add up to."""
    out = np.empty(len(digits), np.int64)
    acc = exact.new()
    for i in range(len(digits)):
        exact.clear(acc)
        _take(acc, first, digits[i], width)
        if digits.shape[1] > width:
            acc[exact.NANS], acc[exact.PINF], acc[exact.NINF] = (
                digits[i, width],
                digits[i, width + 1],
                digits[i, width + 2],
            )
        out[i] = exact.to_double(acc, exact.DOUBLE_BIAS)
    return out


@njit(cache=True)
def _take(acc, first, digits, width):
    for k in range(width):
        acc[first + k] = digits[k]
    if width > 0:
        acc[exact.LO], acc[exact.HI] = first, first + width - 1


@njit(cache=True)
def of_integers(high, low):
    """The four digits of each 128-bit integer."""
    found = np.empty((len(low), 4), np.int64)
    for i in range(len(low)):
        found[i, 0], found[i, 1] = low[i] & _MASK, (low[i] >> 32) & _MASK
        found[i, 2], found[i, 3] = high[i] & _MASK, high[i] >> 32
    return found


@njit(cache=True)
def integers(digits, rounded):
    """(whether they fit in 128 bits, high words, low words) of the sums that rows of ``of_integers`` add up to;
    ``rounded``: the low word holds the bits of the nearest double.
    """
    fits = np.ones(len(digits), np.bool_)
    high, low = np.zeros(len(digits), np.int64), np.zeros(len(digits), np.int64)
    acc = exact.new()
    for i in range(len(digits)):
        exact.clear(acc)
        _take(acc, 0, digits[i], digits.shape[1])
        if rounded:
            low[i] = exact.to_double(acc, exact.INTEGER_BIAS)
        else:
            fits[i], high[i], low[i] = exact.to_integer(acc)
    return fits, high, low


@njit(cache=True)
def of_powers(sums, degree, x, y):
    """(first digit of each sum, number of its digits, digits of each row's powers one sum after the other, then the
    numbers of values that are not finite). ``degree`` and the sums: ``powers`` of ``powers.add``.
    """
    acc = powers.new(sums)
    a, b = np.zeros(32, np.int64), np.zeros(32, np.int64)
    bounds = acc.bounds.copy()
    for i in range(len(x)):
        powers.clear(acc)
        powers.add(acc, degree, x[i], y[i], np.int64(1), a, b)
        for j in range(sums):
            bounds[j, 0], bounds[j, 1] = min(bounds[j, 0], acc.bounds[j, 0]), max(bounds[j, 1], acc.bounds[j, 1])
    widths = np.maximum(0, bounds[:, 1] - bounds[:, 0] + 1)
    found = np.zeros((len(x), widths.sum() + 2), np.int64)
    for i in range(len(x)):
        powers.clear(acc)
        powers.add(acc, degree, x[i], y[i], np.int64(1), a, b)
        at = 0
        for j in range(sums):
            for k in range(widths[j]):
                found[i, at + k] = acc.digits[j, bounds[j, 0] + k]
            at += widths[j]
        found[i, at], found[i, at + 1] = acc.odd[0], acc.odd[1]
    return bounds[:, 0].copy(), widths, found
