"""Dense codes of 64-bit words by a hash table with open addressing, grown as distinct words appear.

The table is as large as the distinct words ask for, not the rows: few keys stay in the processor's cache.
"""

from __future__ import annotations

import numpy as np

from sweeparea.operators.kernels.compiled import njit

_FACTOR = -7046029254386353131  # 2**64 / the golden ratio, odd (Knuth, volume 3, section 6.4)


@njit(cache=True)
def _slot(word, shift):
    # the top bits of the product, shifted without its sign
    return ((word * _FACTOR) >> shift) & ((np.int64(1) << (64 - shift)) - 1)


@njit(cache=True)
def _larger(words, count, null, bits):
    table = np.full(1 << bits, -1, np.int64)
    mask = (1 << bits) - 1
    for code in range(count):
        if code == null:
            continue
        at = _slot(words[code], 64 - bits)
        while table[at] >= 0:
            at = (at + 1) & mask
        table[at] = code
    return table


@njit(cache=True)
def codes(words, valid):
    """(codes by appearance, their number); rows that are not ``valid`` (empty: all are) share one."""
    size = len(words)
    out = np.empty(size, np.int64)
    bits = 12
    table = np.full(1 << bits, -1, np.int64)
    known = np.empty(1 << (bits - 1), np.int64)
    null = np.int64(-1)
    count = 0
    checked = len(valid) > 0
    for i in range(size):
        if count == len(known):
            bits += 1
            grown = np.empty(1 << (bits - 1), np.int64)
            for j in range(count):  # assigning a slice takes numba seconds to compile
                grown[j] = known[j]
            known = grown
            table = _larger(known, count, null, bits)
        if checked and not valid[i]:
            if null < 0:
                null = count
                known[count] = 0
                count += 1
            out[i] = null
            continue
        word = words[i]
        mask = (1 << bits) - 1
        at = _slot(word, 64 - bits)
        while True:
            code = table[at]
            if code < 0:
                table[at] = count
                known[count] = word
                out[i] = count
                count += 1
                break
            if known[code] == word:
                out[i] = code
                break
            at = (at + 1) & mask
    return out, count


@njit(cache=True)
def renumbered(numbers, bound):
    """``codes`` of numbers from 0 up to ``bound``, which is not much more than there are of them: by a table."""
    known = np.full(bound, -1, np.int64)
    out = np.empty(len(numbers), np.int64)
    count = 0
    for i in range(len(numbers)):
        code = known[numbers[i]]
        if code < 0:
            code = count
            known[numbers[i]] = code
            count += 1
        out[i] = code
    return out, count
