"""Sums of doubles in fixed point: exact like ``exact.py``, and much faster, where the summands' exponents lie close.

With ``unit`` the exponent of the least bit that occurs, every summand is an integer times ``2**unit``. Where the sum of
all their sizes is below 2**122, two words hold any partial sum: ``high * 2**62 + low``, ``0 <= low < 2**62``. Rounding
is that of ``exact.py``, so both give the same bits. A few dozen binary orders of magnitude pass, as measurements have
them; what does not goes by accumulators.
"""

from __future__ import annotations

import numpy as np

from sweeparea.operators.kernels import exact
from sweeparea.operators.kernels.compiled import njit
from sweeparea.operators.kernels.events import opens, row_of, signed

_BITS = 62
_MASK = (1 << _BITS) - 1
_MOST = 122
_HALF_MASK = (1 << 30) - 1


@njit(cache=True)
def _parts(bits):
    # (mantissa, exponent of its lowest bit) of a finite double
    e = (bits >> 52) & 0x7FF
    f = bits & ((1 << 52) - 1)
    if e == 0:
        return f, np.int64(-1074)
    return f | (1 << 52), e - 1075


@njit(cache=True)
def unit_of(bits, terms):
    """(whether fixed point is wide enough, its unit) for the copies of each double, and the sums that are carried as
    bytes (``exact.encode``).
    """
    kind, n, begin, end, data = terms
    least = np.int64(1) << 40
    top = -least
    total = 0.0
    for i in range(len(bits)):
        f, e = _parts(bits[i])
        if f == 0 or n[i] == 0:
            continue
        if e == 972:  # NaN or infinite
            return False, np.int64(0)
        least = min(least, e)
        top = max(top, e + 53)
        total += abs(float(n[i]))
    for i in range(len(begin)):
        at = begin[i]
        if kind[i] != 1 or at == end[i]:
            continue
        if data[at] & 2:
            return False, np.int64(0)
        low = 32 * np.int64(data[at + 1]) - exact.DOUBLE_BIAS
        least = min(least, low)
        top = max(top, low + 32 * np.int64(data[at + 2]))
        total += 1.0
    if total == 0.0:
        return True, np.int64(0)
    width = top - least
    while total >= 1.0:
        total /= 2
        width += 1
    return width <= _MOST, least


@njit(cache=True)
def _added(high, low, v, shift):
    # (high, low) + v * 2**shift, 0 <= v < 2**62
    if shift < _BITS:
        low += (v << shift) & _MASK
        if shift:
            high += v >> (_BITS - shift)
        high += low >> _BITS
        low &= _MASK
    else:
        high += v << (shift - _BITS)
    return high, low


@njit(cache=True)
def _negated(high, low):
    return (-high, low) if low == 0 else (-high - 1, (_MASK + 1) - low)


@njit(cache=True)
def words(bits, terms, unit):
    """(high, low) of each row: the copies of its double, or the sum that it carries."""
    kind, n, begin, end, data = terms
    size = len(bits)
    high = np.zeros(size, np.int64)
    low = np.zeros(size, np.int64)
    for i in range(size):
        h = np.int64(0)
        w = np.int64(0)
        if len(kind) > 0 and kind[i] == 1:
            at = begin[i]
            if at == end[i]:
                continue
            shift = 32 * np.int64(data[at + 1]) - exact.DOUBLE_BIAS - unit
            count = np.int64(data[at + 2])
            for c in range(count):
                d = np.int64(0)
                for b in range(4):
                    d |= np.int64(data[at + 3 + 4 * c + b]) << (8 * b)
                if c == count - 1 and data[at] & 1:
                    h, w = _negated(h, w)
                    h, w = _added(h, w, (np.int64(1) << 32) - d, shift + 32 * c)
                    h, w = _negated(h, w)
                else:
                    h, w = _added(h, w, d, shift + 32 * c)
        else:
            f, e = _parts(bits[i])
            m = n[i]
            if f == 0 or m == 0:
                continue
            e -= unit
            negative = (bits[i] < 0) != (m < 0)
            m = abs(m)
            if m == 1:
                h, w = _added(h, w, f, e)
            else:
                while m:
                    part = m & _HALF_MASK
                    h, w = _added(h, w, (f & _HALF_MASK) * part, e)
                    h, w = _added(h, w, (f >> 30) * part, e + 30)
                    m >>= 30
                    e += 30
            if negative:
                h, w = _negated(h, w)
        high[i] = h
        low[i] = w
    return high, low


@njit(cache=True)
def _length(v):
    # bits of 0 < v < 2**62
    b = 0
    if v >= 1 << 32:
        b = 32
        v >>= 32
    return b + exact.bit_length(v)


@njit(cache=True)
def _rounded(high, low, unit):
    negative = high < 0
    if negative:
        high, low = _negated(high, low)
    if high == 0:
        if low == 0:
            return np.int64(0)
        b = _length(low)
        return exact.rounded(low << (_BITS - b), False, b - 1 + unit, negative)
    b = _length(high)
    x = high << (_BITS - b) | low >> b
    return exact.rounded(x, low & ((np.int64(1) << b) - 1) != 0, _BITS + b - 1 + unit, negative)


@njit(cache=True)
def running(cut, high, low, weight, unit):
    """Bits of the correctly rounded sum per segment, of each row ``weight`` times: -1, 0 or 1."""
    events, first, group, _ = cut
    size = len(group)
    out = np.empty(size, np.int64)
    h = np.int64(0)
    w = np.int64(0)
    for s in range(size):
        if opens(group, s):
            h = np.int64(0)
            w = np.int64(0)
        for k in range(first[s], first[s + 1]):
            e = events[k]
            row = row_of(e)
            sign = signed(e, weight[row])
            if sign > 0:
                h += high[row]
                w += low[row]
                h += w >> _BITS
                w &= _MASK
            elif sign < 0:
                h -= high[row]
                w -= low[row]
                h += w >> _BITS
                w &= _MASK
        out[s] = _rounded(h, w, unit)
    return out
