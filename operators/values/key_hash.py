"""A hash of keys: equal values have equal hashes, in every process and for ever.

SweepAreas are laid out by it (``sweep_area.py``), so it must not change from one version to the next. "Equal" is that
of ``keys.py``: -0.0 is 0.0, all NaN are one, NULL equals NULL, a map's order of entries says nothing. Different values
may share a hash, which costs a look at a row too many and never an answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from sweeparea.operators.kernels.key_hash import combine, hash_bytes, hash_lists, hash_words
from sweeparea.operators.values import keys

_NULL = np.uint64(0x632BE59BD9B4E019)


def key_hash(columns: Sequence[pa.ChunkedArray | pa.Array], rows: int) -> np.ndarray:
    """One int64 a row. ``columns`` of any Arrow type, ``rows`` long; with no columns every hash is 0.

    >>> a, b = key_hash([pa.array([0.0, 1.0])], 2), key_hash([pa.array([-0.0, 2.0])], 2)
    >>> bool(a[0] == b[0]), bool(a[1] == b[1])
    (True, False)
    """
    total = np.zeros(rows, np.uint64)
    for column in columns:
        combine(total, _column(keys.one_array(column)))
    return total.view(np.int64)


def combined(hashes: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Hashes (as of ``key_hash``) with an int64 each: one uint64 a row."""
    total = hashes.view(np.uint64).copy()
    combine(total, hash_words(np.ascontiguousarray(numbers).view(np.uint64)))
    return total


def in_part(columns: Sequence[pa.ChunkedArray | pa.Array], rows: int, part: int, parts: int) -> np.ndarray:
    """Which rows are in one of ``parts`` parts, of which each has all rows of its records."""
    return key_hash(columns, rows).view(np.uint64) % np.uint64(parts) == part


def _column(array: pa.Array) -> np.ndarray:
    if pt.is_dictionary(array.type):
        values = np.append(_column(array.dictionary), _NULL)
        return values[keys.numpy_of(array.indices, len(array.dictionary))]
    found = _values(array)
    if array.null_count:
        found = np.where(array.is_null().to_numpy(zero_copy_only=False), _NULL, found)
    return found


def _values(array: pa.Array) -> np.ndarray:
    """Hashes of an array; those of NULLs are anything."""
    t, rows = array.type, len(array)
    if pt.is_null(t):
        return np.full(rows, _NULL)
    if pt.is_struct(t):
        total = np.zeros(rows, np.uint64)
        for child in array.flatten():
            combine(total, _column(keys.one_array(child)))
        return total
    if pt.is_map(t):
        return _map(array)
    if pt.is_list(t) or pt.is_large_list(t) or pt.is_fixed_size_list(t):
        offsets = np.concatenate([[0], np.cumsum(keys.lengths(array))])
        return hash_lists(_column(keys.flat_values(array)), offsets, True)
    if pt.is_floating(t):
        doubles = keys.canonical_array(array.cast(pa.float64()))
        return hash_words(keys.numpy_of(doubles, 0.0).astype(np.float64).view(np.uint64))
    if pt.is_string(t) or pt.is_binary(t) or pt.is_large_string(t) or pt.is_large_binary(t):
        return _bytes(array)
    return _fixed(array)


def _map(array: pa.MapArray) -> np.ndarray:
    offsets, order = keys.map_entry_order(array)
    entries = np.zeros(len(order), np.uint64)
    combine(entries, _column(array.keys)[order])
    combine(entries, _column(array.items)[order])
    return hash_lists(entries, offsets, False)


def _bytes(array: pa.Array) -> np.ndarray:
    large = pt.is_large_string(array.type) or pt.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    if offsets is None or not len(array):
        return np.zeros(len(array), np.uint64)
    at = np.frombuffer(offsets, np.int64 if large else np.int32)[array.offset : array.offset + len(array) + 1]
    content = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return hash_bytes(content, at.astype(np.int64))


def _fixed(array: pa.Array) -> np.ndarray:
    """Values of a fixed width; what has none of its own gets the same hash for every value."""
    t = array.type
    if pt.is_boolean(t):
        array = array.cast(pa.int8())
    elif pt.is_decimal(t):
        return _decimal(array)
    elif pt.is_date(t) or pt.is_timestamp(t) or pt.is_time(t) or pt.is_duration(t):
        array = array.view(pa.int32() if t.bit_width == 32 else pa.int64())
    elif not pt.is_integer(t):
        return np.zeros(len(array), np.uint64)
    return hash_words(keys.numpy_of(array, 0).astype(np.int64).view(np.uint64))


def _decimal(array: pa.Array) -> np.ndarray:
    if array.type.bit_width < 128:
        array = array.cast(pa.decimal128(38, array.type.scale))
    data, words = array.buffers()[1], array.type.bit_width // 64
    if data is None:
        return np.zeros(len(array), np.uint64)
    each = np.frombuffer(data, np.uint64)[array.offset * words : (array.offset + len(array)) * words]
    total = np.zeros(len(array), np.uint64)
    for word in range(words):
        combine(total, np.ascontiguousarray(each[word::words]))
    return total


__all__ = ["key_hash"]
