"""Superaccumulators: sums as integers in base 2**32, exact whatever the order, and able to subtract.

An accumulator is an int64 array: ``CHUNKS`` digits, then the range of digits in use, a count of additions since
carries were last propagated, and the numbers of NaN, +infinity and -infinity among the summands. Digit i weighs
``2**(32*i - bias)``: ``bias`` is ``DOUBLE_BIAS`` for doubles (digit 0 lies below the least subnormal) and 0 for
integers. Digits are signed 64-bit so that hundreds of millions of summands can be added before a carry must move
(Neal 2015, "Fast exact summation using small and large superaccumulators"; Shewchuk's ``fsum`` gives the same results
but cannot subtract an expired summand).

All arithmetic is on int64: numba turns a mix of int64 and uint64 into floats.
"""

from __future__ import annotations

import numpy as np

from sweeparea.operators.kernels.compiled import njit

CHUNKS = 72
LO = CHUNKS  # first digit in use; LO > HI: the value is zero
HI = CHUNKS + 1
ADDS = CHUNKS + 2
NANS = CHUNKS + 3
PINF = CHUNKS + 4
NINF = CHUNKS + 5
SIZE = CHUNKS + 6

DOUBLE_BIAS = 1088
INTEGER_BIAS = 0

_MASK = 0xFFFFFFFF
_HALF = 1 << 31
_CARRY_AFTER = 1 << 27  # an addition changes a digit by less than 2**34

NAN_BITS = 0x7FF8 << 48
INF_BITS = 0x7FF0 << 48
SIGN_BIT = -(1 << 63)

MAX_BYTES = 3 + 4 * CHUNKS + 24
"""The longest encoding of an accumulator."""


@njit(cache=True)
def clear(acc):
    """Make an accumulator zero (also the way to initialise a fresh array: its content does not matter then if
    zeroed).
    """
    for i in range(acc[LO], acc[HI] + 1):
        acc[i] = 0
    acc[LO] = CHUNKS
    acc[HI] = -1
    acc[ADDS] = 0
    acc[NANS] = 0
    acc[PINF] = 0
    acc[NINF] = 0


@njit(cache=True)
def new():
    acc = np.zeros(SIZE, np.int64)
    acc[LO] = CHUNKS
    acc[HI] = -1
    return acc


@njit(cache=True)
def carry(acc):
    """Propagate carries: digits below the top in [0, 2**32), the top one carries the sign; the one form of each value.

    The top digit is positive, or negative and >= -2**31 with no shorter form; the lowest digit is not zero.
    """
    lo = acc[LO]
    hi = acc[HI]
    acc[ADDS] = 0
    if lo > hi:
        return
    c = np.int64(0)
    for i in range(lo, hi):
        v = acc[i] + c
        acc[i] = v & _MASK
        c = v >> 32
    v = acc[hi] + c
    while v < -_HALF or v >= _HALF:
        acc[hi] = v & _MASK
        v = v >> 32
        hi += 1
    acc[hi] = v
    while hi >= lo and acc[hi] == 0:
        hi -= 1
    while lo <= hi and acc[lo] == 0:
        lo += 1
    while lo < hi and acc[hi] == -1 and acc[hi - 1] >= _HALF:
        acc[hi] = 0
        hi -= 1
        acc[hi] -= 1 << 32
    if lo > hi:
        lo = CHUNKS
        hi = -1
    acc[LO] = lo
    acc[HI] = hi


@njit(cache=True)
def _touch(acc, lo, hi):
    if lo < acc[LO]:
        acc[LO] = lo
    if hi > acc[HI]:
        acc[HI] = hi
    acc[ADDS] += 1
    if acc[ADDS] >= _CARRY_AFTER:
        carry(acc)


@njit(cache=True)
def _add_shifted(acc, f, p, m):
    # add f * 2**p * m, f < 2**53, |m| <= 2**30
    k = p >> 5
    s = p & 31
    l0 = (f << s) & _MASK
    l1 = (f >> (32 - s)) & _MASK
    l2 = (f >> (32 - s)) >> 32
    if m == 1:
        acc[k] += l0
        acc[k + 1] += l1
        acc[k + 2] += l2
        _touch(acc, k, k + 2)
    elif m == -1:
        acc[k] -= l0
        acc[k + 1] -= l1
        acc[k + 2] -= l2
        _touch(acc, k, k + 2)
    else:
        d0 = l0 * m
        d1 = l1 * m
        d2 = l2 * m
        acc[k] += d0 & _MASK
        acc[k + 1] += (d1 & _MASK) + (d0 >> 32)
        acc[k + 2] += (d2 & _MASK) + (d1 >> 32)
        acc[k + 3] += d2 >> 32
        _touch(acc, k, k + 3)


@njit(cache=True)
def _add_copies(acc, f, p, m):
    # as _add_shifted for any int64 m, 30 bits of it at a time
    while m < -(1 << 30) or m >= 1 << 30:
        _add_shifted(acc, f, p, m & ((1 << 30) - 1))
        m >>= 30
        p += 30
    _add_shifted(acc, f, p, m)


@njit(cache=True)
def add_double(acc, bits, n):
    """Add n copies (n any int64 but the least) of the double whose IEEE 754 bits are given."""
    e = (bits >> 52) & 0x7FF
    f = bits & ((1 << 52) - 1)
    if e == 0x7FF:
        if f != 0:
            acc[NANS] += n
        elif bits < 0:
            acc[NINF] += n
        else:
            acc[PINF] += n
        return
    if e == 0:
        if f == 0:
            return
        e = np.int64(1)
    else:
        f |= 1 << 52
    _add_copies(acc, f, e - 1075 + DOUBLE_BIAS, -n if bits < 0 else n)


@njit(cache=True)
def add_integer(acc, high, low, n):
    """Add n copies of the 128-bit two's complement integer ``high * 2**64 + (low as unsigned)``."""
    for k in range(4):  # digits of 32 bits, the top one signed
        word = low if k < 2 else high
        d = word >> 32 if k & 1 else word & _MASK
        if k == 1:
            d &= _MASK
        if d != 0:
            _add_copies(acc, abs(d), 32 * k, n if d > 0 else -n)


@njit(cache=True)
def add_encoded(acc, data, at, end, sign):
    """Add (sign 1) or subtract (sign -1) the accumulator encoded in ``data[at:end]``."""
    if at == end:
        return
    flags = data[at]
    lo = np.int64(data[at + 1])
    count = np.int64(data[at + 2])
    at += 3
    for i in range(count):
        v = np.int64(0)
        for b in range(4):
            v |= np.int64(data[at + b]) << (8 * b)
        at += 4
        if i == count - 1 and flags & 1:
            v -= 1 << 32
        acc[lo + i] += sign * v
    if count > 0:
        _touch(acc, lo, lo + count - 1)
    if flags & 2:
        for k in range(3):
            v = np.int64(0)
            for b in range(8):
                v |= np.int64(data[at + b]) << (8 * b)
            at += 8
            acc[NANS + k] += sign * v


@njit(cache=True)
def encode(acc, out, at):
    """Write the canonical bytes of an accumulator to ``out`` from position ``at``; gives the position after them.

    Zero is no bytes at all. Else: flags (1: negative, 2: non-finite counts follow), first digit, number of digits,
    the digits as 4 bytes each, then three 8-byte counts (NaN, +infinity, -infinity); all little-endian.
    """
    carry(acc)
    lo = acc[LO]
    hi = acc[HI]
    special = acc[NANS] != 0 or acc[PINF] != 0 or acc[NINF] != 0
    if lo > hi and not special:
        return at
    count = hi - lo + 1 if lo <= hi else 0
    negative = count > 0 and acc[hi] < 0
    out[at] = (1 if negative else 0) | (2 if special else 0)
    out[at + 1] = lo if count > 0 else 0
    out[at + 2] = count
    at += 3
    for i in range(count):
        v = acc[lo + i]
        for b in range(4):
            out[at + b] = (v >> (8 * b)) & 0xFF
        at += 4
    if special:
        for k in range(3):
            v = acc[NANS + k]
            for b in range(8):
                out[at + b] = (v >> (8 * b)) & 0xFF
            at += 8
    return at


@njit(cache=True)
def bit_length(v):
    """Of 0 < v <= 2**32."""
    b = 1
    if v >= 1 << 16:
        b += 16
        v >>= 16
    if v >= 1 << 8:
        b += 8
        v >>= 8
    if v >= 1 << 4:
        b += 4
        v >>= 4
    if v >= 1 << 2:
        b += 2
        v >>= 2
    if v >= 1 << 1:
        b += 1
    return b


@njit(cache=True)
def _magnitude(acc, i, lo, negative):
    if i < lo:
        return np.int64(0)
    v = acc[i]
    if not negative:
        return v
    if i == acc[HI]:
        return -v if i == lo else -v - 1
    return (1 << 32) - v if i == lo else _MASK - v


@njit(cache=True)
def rounded(x, sticky, e, negative):
    """IEEE 754 bits of the double nearest to a value (half to even): its highest bit weighs ``2**e``, its top 62 bits
    are x, ``sticky`` tells whether any other is set. A multiple of 2**-1074.
    """
    if e < -1022:  # subnormal: every summand is a multiple of 2**-1074, nothing to round
        bits = x >> (61 - (e + 1074))
    else:
        m = x >> 9
        rest = x & 511
        if rest > 256 or (rest == 256 and (sticky or m & 1)):
            m += 1
            if m == 1 << 53:
                m >>= 1
                e += 1
        if e > 1023:
            bits = np.int64(INF_BITS)
        else:
            bits = ((e + 1023) << 52) | (m & ((1 << 52) - 1))
    return bits | np.int64(SIGN_BIT) if negative else bits


@njit(cache=True)
def to_double(acc, bias):
    """IEEE 754 bits of the correctly rounded value (half to even); beyond the double range: an infinity. Zero is
    +0.0.
    """
    if acc[NANS] != 0 or (acc[PINF] != 0 and acc[NINF] != 0):
        return np.int64(NAN_BITS)
    if acc[PINF] != 0:
        return np.int64(INF_BITS)
    if acc[NINF] != 0:
        return np.int64(INF_BITS) | np.int64(SIGN_BIT)
    carry(acc)
    lo = acc[LO]
    top = acc[HI]
    if lo > top:
        return np.int64(0)
    negative = acc[top] < 0
    t0 = _magnitude(acc, top, lo, negative)
    if t0 == 0:
        top -= 1
        t0 = _magnitude(acc, top, lo, negative)
    t1 = _magnitude(acc, top - 1, lo, negative)
    t2 = _magnitude(acc, top - 2, lo, negative)
    sticky = lo < top - 2
    b = bit_length(t0)
    # x: the top 62 bits, its highest bit set
    x = t0 << (62 - b)
    if b <= 30:
        x |= t1 << (30 - b)
        if b + 2 < 32:
            x |= t2 >> (b + 2)
            sticky = sticky or (t2 & ((1 << (b + 2)) - 1)) != 0
        else:
            sticky = sticky or t2 != 0
    else:
        x |= t1 >> (b - 30)
        sticky = sticky or (t1 & ((1 << (b - 30)) - 1)) != 0 or t2 != 0
    e = 32 * top + b - 1 - bias
    return rounded(x, sticky, e, negative)


@njit(cache=True)
def to_integer(acc):
    """(fits in 128 bits, high word, low word) of an integer accumulator."""
    carry(acc)
    lo = acc[LO]
    hi = acc[HI]
    if lo > hi:
        return True, np.int64(0), np.int64(0)
    if hi > 3 or (hi == 3 and acc[3] >= _HALF):
        return False, np.int64(0), np.int64(0)
    fill = np.int64(_MASK) if acc[hi] < 0 else np.int64(0)
    d0 = acc[0] & _MASK
    d1 = acc[1] & _MASK if hi >= 1 else fill
    d2 = acc[2] & _MASK if hi >= 2 else fill
    d3 = acc[3] & _MASK if hi >= 3 else fill
    return True, d2 | d3 << 32, d0 | d1 << 32


@njit(cache=True)
def sum_doubles(bits, n, out):
    """Add ``n[i]`` copies of each double to the accumulator ``out``."""
    for i in range(len(bits)):
        add_double(out, bits[i], n[i])


@njit(cache=True)
def sum_integers(high, low, n, out):
    """Add ``n[i]`` copies of each 128-bit integer to the accumulator ``out``."""
    for i in range(len(low)):
        add_integer(out, high[i], low[i], n[i])
