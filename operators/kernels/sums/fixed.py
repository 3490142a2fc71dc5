"""Sums of doubles in fixed point: exact like ``exact.py``, and much faster, where the summands' exponents lie close.

With ``unit`` the exponent of the least bit that occurs, every summand is an integer times ``2**unit``. Where the sum of
all their sizes is below 2**122, two words hold any partial sum: ``high * 2**62 + low``, ``0 <= low < 2**62``. Rounding
is that of ``exact.py``, so both give the same bits. A few dozen binary orders of magnitude pass, as measurements have
them; what does not goes by accumulators.
"""

from __future__ import annotations

import numpy as np

from sweeparea.operators.kernels.compiled import njit
from sweeparea.operators.kernels.events import opens, row_of, signed
from sweeparea.operators.kernels.sums import exact

_BITS = 62
_MASK = (1 << _BITS) - 1
_MOST = 122
_HALF_MASK = (1 << 30) - 1


@njit(cache=True)
def _significand_of(bits):
    # (significand, exponent of its lowest bit) of a finite double
    exponent = (bits >> 52) & 0x7FF
    significand = bits & ((1 << 52) - 1)
    if exponent == 0:
        return significand, np.int64(-1074)
    return significand | (1 << 52), exponent - 1075


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
        significand, exponent = _significand_of(bits[i])
        if significand == 0 or n[i] == 0:
            continue
        if exponent == 972:  # NaN or infinite
            return False, np.int64(0)
        least = min(least, exponent)
        top = max(top, exponent + 53)
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
def _added(high, low, value, shift):
    # (high, low) + value * 2**shift, 0 <= value < 2**62
    if shift < _BITS:
        low += (value << shift) & _MASK
        if shift:
            high += value >> (_BITS - shift)
        high += low >> _BITS
        low &= _MASK
    else:
        high += value << (shift - _BITS)
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
        sum_high = np.int64(0)
        sum_low = np.int64(0)
        if len(kind) > 0 and kind[i] == 1:
            at = begin[i]
            if at == end[i]:
                continue
            shift = 32 * np.int64(data[at + 1]) - exact.DOUBLE_BIAS - unit
            count = np.int64(data[at + 2])
            for place in range(count):
                digit = np.int64(0)
                for byte in range(4):
                    digit |= np.int64(data[at + 3 + 4 * place + byte]) << (8 * byte)
                if place == count - 1 and data[at] & 1:
                    sum_high, sum_low = _negated(sum_high, sum_low)
                    sum_high, sum_low = _added(sum_high, sum_low, (np.int64(1) << 32) - digit, shift + 32 * place)
                    sum_high, sum_low = _negated(sum_high, sum_low)
                else:
                    sum_high, sum_low = _added(sum_high, sum_low, digit, shift + 32 * place)
        else:
            significand, exponent = _significand_of(bits[i])
            copies = n[i]
            if significand == 0 or copies == 0:
                continue
            exponent -= unit
            negative = (bits[i] < 0) != (copies < 0)
            copies = abs(copies)
            if copies == 1:
                sum_high, sum_low = _added(sum_high, sum_low, significand, exponent)
            else:
                while copies:
                    part = copies & _HALF_MASK
                    sum_high, sum_low = _added(sum_high, sum_low, (significand & _HALF_MASK) * part, exponent)
                    sum_high, sum_low = _added(sum_high, sum_low, (significand >> 30) * part, exponent + 30)
                    copies >>= 30
                    exponent += 30
            if negative:
                sum_high, sum_low = _negated(sum_high, sum_low)
        high[i] = sum_high
        low[i] = sum_low
    return high, low


@njit(cache=True)
def _length(value):
    # how many bits 0 < value < 2**62 has
    bits = 0
    if value >= 1 << 32:
        bits = 32
        value >>= 32
    return bits + exact.bit_length(value)


@njit(cache=True)
def _rounded(high, low, unit):
    negative = high < 0
    if negative:
        high, low = _negated(high, low)
    if high == 0:
        if low == 0:
            return np.int64(0)
        bits = _length(low)
        return exact.rounded(low << (_BITS - bits), False, bits - 1 + unit, negative)
    bits = _length(high)
    top = high << (_BITS - bits) | low >> bits
    return exact.rounded(top, low & ((np.int64(1) << bits) - 1) != 0, _BITS + bits - 1 + unit, negative)


@njit(cache=True)
def running(cut, high, low, weight, unit):
    """Bits of the correctly rounded sum per segment, of each row ``weight`` times: -1, 0 or 1."""
    events, first, group, _ = cut
    size = len(group)
    out = np.empty(size, np.int64)
    sum_high = np.int64(0)
    sum_low = np.int64(0)
    for s in range(size):
        if opens(group, s):
            sum_high = np.int64(0)
            sum_low = np.int64(0)
        for k in range(first[s], first[s + 1]):
            e = events[k]
            row = row_of(e)
            sign = signed(e, weight[row])
            if sign > 0:
                sum_high += high[row]
                sum_low += low[row]
                sum_high += sum_low >> _BITS
                sum_low &= _MASK
            elif sign < 0:
                sum_high -= high[row]
                sum_low -= low[row]
                sum_high += sum_low >> _BITS
                sum_low &= _MASK
        out[s] = _rounded(sum_high, sum_low, unit)
    return out
