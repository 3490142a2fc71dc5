"""Hashing of bytes and of lists of hashes, for ``operators/values/key_hash.py``."""

from __future__ import annotations

import numpy as np

from sweeparea.operators.kernels.compiled import njit

_PRIME = np.uint64(0x9E3779B97F4A7C15)
_A = np.uint64(0xBF58476D1CE4E5B9)
_B = np.uint64(0x94D049BB133111EB)


@njit(cache=True)
def _mixed(x):
    # the finalizer of splitmix64 (Steele, Lea & Flood 2014)
    x = (x ^ (x >> np.uint64(30))) * _A
    x = (x ^ (x >> np.uint64(27))) * _B
    return x ^ (x >> np.uint64(31))


@njit(cache=True)
def hash_words(words):
    """uint64 -> uint64, one value at a time."""
    out = np.empty(len(words), np.uint64)
    for i in range(len(words)):
        out[i] = _mixed(words[i] + _PRIME)
    return out


@njit(cache=True)
def combine(into, words):
    """Folds one hash a row into ``into``, in place: the order of the columns matters."""
    for i in range(len(into)):
        into[i] = _mixed(into[i] * _PRIME + words[i])


@njit(cache=True)
def _byte(data, at, number):
    return np.uint64(data[at + np.uint64(number)]) << np.uint64(8 * number)


@njit(cache=True)
def hash_bytes(data, offsets):
    """The hash of each of the byte strings ``data[offsets[i]:offsets[i+1]]``."""
    out = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(out)):
        h = np.uint64(offsets[i + 1] - offsets[i]) * _PRIME
        at, end = np.uint64(offsets[i]), np.uint64(offsets[i + 1])
        while at + np.uint64(8) <= end:
            # eight bytes by places that cannot be negative: one load, where a loop takes eight
            low = _byte(data, at, 0) | _byte(data, at, 1) | _byte(data, at, 2) | _byte(data, at, 3)
            high = _byte(data, at, 4) | _byte(data, at, 5) | _byte(data, at, 6) | _byte(data, at, 7)
            h = _mixed((h ^ (low | high)) * _PRIME)
            at += np.uint64(8)
        if at < end:
            word, shift = np.uint64(0), np.uint64(0)
            while at < end:
                word |= np.uint64(data[at]) << shift
                shift += np.uint64(8)
                at += np.uint64(1)
            h = _mixed((h ^ word) * _PRIME)
        out[i] = _mixed(h)
    return out


@njit(cache=True)
def hash_lists(elements, offsets, ordered):
    """The hash of each list of element hashes; not ``ordered``: the same for every order (entries of a map)."""
    out = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(out)):
        h = np.uint64(offsets[i + 1] - offsets[i]) * _PRIME
        for j in range(offsets[i], offsets[i + 1]):
            if ordered:
                h = _mixed(h * _PRIME + elements[j])
            else:
                h += elements[j]
        out[i] = _mixed(h)
    return out
