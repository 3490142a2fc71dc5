"""Exact sums of powers and products of doubles: integers in base 2**30, wide enough for fourth powers.

A finite double is ``f * 2**(e - 1074)`` with a 53-bit ``f``, so its k-th power is an integer times ``2**(-1074 k)``.
Sum number j of an accumulator is ``sum(digits[j, i] * 2**(30 i)) * 2**(-1074 k)``, of products of k factors. Digits
take 2**31 additions before a carry must move. Values that are not finite are counted apart. So summands can be taken
out again without a trace (the small accumulator of Neal 2015, made wide; ``exact.py`` is that of plain sums).

Of ``x`` alone there are the sums of its first ``powers`` powers (2 to 4). Of pairs there are those of x, y, xx, yy
and xy; a pair with one value that is not finite counts with the other.

Encoded, a sum is two bytes each for its first digit and its length, and its two's complement, least byte first; a last
sum of length 0 may be followed by the two counts of values that are not finite, 8 bytes each. Nothing is no bytes.

Letters beside those of ``events.py``: ``acc`` is an accumulator, ``j`` the number of a sum in it, ``k`` of a power and
``i`` of a digit; ``a`` and ``b`` are numbers as digits, of which ``size`` are in use, ``c`` is a carry and ``v`` a
digit before its carry is taken off; ``fx``, ``ex`` are ``f`` and ``e`` of x; ``lo``, ``hi`` the first and last digit in
use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sweeparea.operators.kernels.compiled import njit
from sweeparea.operators.kernels.events import Segments, opens, row_of, signed, start_of

DIGITS = 296
FACTOR = 1074
"""A sum of products of k factors counts in units of ``2**(-FACTOR * k)``."""
BASE = 30
"""Bits of a digit."""
_MASK = (1 << 30) - 1
PAIRS = 5
"""Instead of a number of powers: the five sums of pairs."""


class PowerSums(NamedTuple):
    """Sums as above: a row of ``digits`` each, the range of them that is in use, counts of values that are not
    finite.
    """

    digits: np.ndarray
    bounds: np.ndarray
    odd: np.ndarray


@njit(cache=True)
def new(sums):
    """An accumulator of zero."""
    bounds = np.empty((sums, 2), np.int64)
    bounds[:, 0] = DIGITS
    bounds[:, 1] = -1
    return PowerSums(np.zeros((sums, DIGITS), np.int64), bounds, np.zeros(2, np.int64))


@njit(cache=True)
def clear(acc):
    digits, bounds, odd = acc
    for j in range(len(bounds)):
        for i in range(bounds[j, 0], bounds[j, 1] + 1):
            digits[j, i] = 0
        bounds[j, 0] = DIGITS
        bounds[j, 1] = -1
    odd[0] = 0
    odd[1] = 0


@njit(cache=True)
def _multiply(a, size, b):
    # a[:size] *= b < 2**30, in place; gives the new size
    c = np.int64(0)
    for i in range(size):
        v = a[i] * b + c
        a[i] = v & _MASK
        c = v >> BASE
    if c:
        a[size] = c
        size += 1
    return size


@njit(cache=True)
def _times(a, size, f, scratch):
    # a[:size] *= f < 2**60, in place; gives the new size
    low = f & _MASK
    high = f >> BASE
    if high == 0:
        return _multiply(a, size, low)
    for i in range(size + 2):
        scratch[i] = 0
    for i in range(size):
        scratch[i] += a[i] * low & _MASK
        scratch[i + 1] += (a[i] * low >> BASE) + (a[i] * high & _MASK)
        scratch[i + 2] += a[i] * high >> BASE
    c = np.int64(0)
    for i in range(size + 2):
        v = scratch[i] + c
        a[i] = v & _MASK
        c = v >> BASE
    size += 2
    while size > 0 and a[size - 1] == 0:
        size -= 1
    return size


@njit(cache=True)
def _add(digits, bounds, j, a, size, exponent, negative):
    # sum j += a * 2**exponent, or minus that
    first = exponent // BASE
    shift = exponent % BASE
    for i in range(size):
        value = a[i] << shift
        low = value & _MASK
        high = value >> BASE
        if negative:
            digits[j, first + i] -= low
            digits[j, first + i + 1] -= high
        else:
            digits[j, first + i] += low
            digits[j, first + i + 1] += high
    bounds[j, 0] = min(bounds[j, 0], first)
    bounds[j, 1] = max(bounds[j, 1], first + size)


@njit(cache=True)
def _shifted_significand(bits):
    # (significand, by how many bits it lies above 2**-1074) of a finite double
    exponent = (bits >> 52) & 0x7FF
    significand = bits & ((1 << 52) - 1)
    if exponent == 0:
        return significand, np.int64(0)
    return significand | (1 << 52), exponent - 1


@njit(cache=True)
def _copies(a, n):
    # a = |n|, n any int64 but the least; gives its size
    n = abs(n)
    size = 0
    while n:
        a[size] = n & _MASK
        n >>= BASE
        size += 1
    return size


@njit(cache=True)
def add(acc, powers, x, y, n, a, b):
    """Add n copies of x, or with ``powers`` ``PAIRS`` of (x, y), given by their IEEE 754 bits. ``a`` and ``b``: work
    space.
    """
    digits, bounds, odd = acc
    x_finite = (x >> 52) & 0x7FF != 0x7FF
    fx, ex = _shifted_significand(x)
    minus = n < 0
    if not x_finite:
        odd[0] += n
    elif fx != 0:
        size = _copies(a, n)
        for k in range(2 if powers == PAIRS else powers):
            size = _times(a, size, fx, b)
            j = 2 * k if powers == PAIRS else k
            _add(digits, bounds, j, a, size, (k + 1) * ex, minus != (x < 0 and k % 2 == 0))
    if powers != PAIRS:
        return
    y_finite = (y >> 52) & 0x7FF != 0x7FF
    fy, ey = _shifted_significand(y)
    if not y_finite:
        odd[1] += n
        return
    if fy == 0:
        return
    size = _copies(a, n)
    for k in range(2):
        size = _times(a, size, fy, b)
        _add(digits, bounds, 2 * k + 1, a, size, (k + 1) * ey, minus != (y < 0 and k == 0))
    if x_finite and fx != 0:
        size = _copies(a, n)
        size = _times(a, size, fx, b)
        size = _times(a, size, fy, b)
        _add(digits, bounds, 4, a, size, ex + ey, minus != ((x < 0) != (y < 0)))


@njit(cache=True)
def _normalize(digits, bounds, j):
    # all digits but the last below 2**30 and not negative, the last in [-2**29, 2**29); neither end zero
    lo = bounds[j, 0]
    hi = bounds[j, 1]
    if lo > hi:
        return
    c = np.int64(0)
    for i in range(lo, hi):
        v = digits[j, i] + c
        digits[j, i] = v & _MASK
        c = v >> BASE
    v = digits[j, hi] + c
    while v < -(1 << 29) or v >= 1 << 29:
        digits[j, hi] = v & _MASK
        v >>= BASE
        hi += 1
    digits[j, hi] = v
    while hi >= lo and digits[j, hi] == 0:
        hi -= 1
    # a positive number keeps a zero above a digit that would look negative
    if hi >= lo and digits[j, hi] >= 1 << 29:
        hi += 1
    while lo <= hi and digits[j, lo] == 0:
        lo += 1
    while lo < hi and digits[j, hi] == -1 and digits[j, hi - 1] >= 1 << 29:
        digits[j, hi] = 0
        hi -= 1
        digits[j, hi] -= 1 << BASE
    if lo > hi:
        lo = DIGITS
        hi = -1
    bounds[j, 0] = lo
    bounds[j, 1] = hi


@njit(cache=True)
def encode(acc, out, at):
    """Write the bytes of an accumulator to ``out`` from ``at``; gives the position after them."""
    digits, bounds, odd = acc
    begin = at
    empty = odd[0] == 0 and odd[1] == 0
    for j in range(len(bounds)):
        _normalize(digits, bounds, j)
        lo = bounds[j, 0]
        hi = bounds[j, 1]
        if lo > hi:
            lo = 0
        else:
            empty = False
        start = at + 4
        end = start
        held = np.int64(0)
        width = 0
        for i in range(lo, hi + 1):
            held |= digits[j, i] << width  # the last one's sign reaches as far as it is looked at
            width += BASE
            while width >= 8 or (i == hi and width > 0):
                out[end] = held & 0xFF
                held >>= 8
                width -= 8
                end += 1
        while end > start + 1 and (
            (out[end - 1] == 0 and out[end - 2] < 128) or (out[end - 1] == 255 and out[end - 2] >= 128)
        ):
            end -= 1
        out[at] = lo & 0xFF
        out[at + 1] = lo >> 8
        out[at + 2] = (end - start) & 0xFF
        out[at + 3] = (end - start) >> 8
        at = end
    if empty:
        return begin
    if odd[0] != 0 or odd[1] != 0:
        for k in range(2):
            for b in range(8):
                out[at + b] = (odd[k] >> (8 * b)) & 0xFF
            at += 8
    return at


@njit(cache=True)
def add_encoded(acc, data, at, end, sign):
    """Add (sign 1) or subtract (sign -1) the accumulator encoded in ``data[at:end]``."""
    digits, bounds, odd = acc
    if at == end:
        return
    for j in range(len(bounds)):
        lo = np.int64(data[at]) | np.int64(data[at + 1]) << 8
        count = np.int64(data[at + 2]) | np.int64(data[at + 3]) << 8
        at += 4
        if count == 0:
            continue
        held = np.int64(0)
        width = 0
        i = lo
        for b in range(count):
            held |= np.int64(data[at + b]) << width
            width += 8
            if b == count - 1 and data[at + b] >= 128:
                held -= np.int64(1) << width
            while width >= BASE and b < count - 1:
                digits[j, i] += sign * (held & _MASK)
                held >>= BASE
                width -= BASE
                i += 1
        digits[j, i] += sign * (held & _MASK)
        digits[j, i + 1] += sign * (held >> BASE)
        bounds[j, 0] = min(bounds[j, 0], lo)
        bounds[j, 1] = max(bounds[j, 1], i + 1)
        at += count
    if at < end:
        for k in range(2):
            v = np.int64(0)
            for b in range(8):
                v |= np.int64(data[at + b]) << (8 * b)
            odd[k] += sign * v
            at += 8


@njit(cache=True)
def _room(sums):
    return sums * (4 + 4 * DIGITS) + 16


@njit(cache=True)
def _grown(out, at, room):
    if at + room <= len(out):
        return out
    larger = np.empty(2 * len(out) + room, np.uint8)
    for i in range(at):
        larger[i] = out[i]
    return larger


@njit(cache=True)
def running(cut, sums, powers, x, y, terms):
    """(offsets, bytes): the encoded sums per segment of copies of x (and y), and of the sums that are carried."""
    events, first, group, _ = cut
    size = len(group)
    acc = new(sums)
    kind, copies, begin, end, data = terms
    plus = np.int64(1)
    a = np.zeros(32, np.int64)
    b = np.zeros(32, np.int64)
    room = _room(sums)
    out = np.empty(room + 64 * size, np.uint8)
    offsets = np.zeros(size + 1, np.int64)
    at = np.int64(0)
    for s in range(size):
        if opens(group, s):
            clear(acc)
        for k in range(first[s], first[s + 1]):
            e = events[k]
            row = row_of(e)
            if kind[row] == 1:
                add_encoded(acc, data, begin[row], end[row], signed(e, plus))
            elif copies[row] != 0:
                add(acc, powers, x[row], y[row], signed(e, copies[row]), a, b)
        out = _grown(out, at, room)
        at = encode(acc, out, at)
        offsets[s + 1] = at
    return offsets, out[:at].copy()


@njit(cache=True)
def encode_runs(first, sums, powers, x, y, terms):
    """(offsets, bytes): the encoded sums of each run ``[first[r], first[r+1])`` of rows."""
    runs = len(first) - 1
    each = np.arange(runs)
    return running(Segments(start_of(np.arange(first[runs])), first, each, each), sums, powers, x, y, terms)
