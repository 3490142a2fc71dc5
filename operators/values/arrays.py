"""Arrow columns as NumPy arrays, and nested values as bytes: what equality (``keys.py``) and order
(``order.py``) share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_BYTES_PER_CODE = 8


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The column as a single array without offset surprises; strings beyond 2 GB become large strings."""
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 1:
            column = column.chunk(0)
        else:
            if column.nbytes > (1 << 31) - 1 and (pt.is_string(column.type) or pt.is_binary(column.type)):
                column = column.cast(pa.large_string() if pt.is_string(column.type) else pa.large_binary())
            column = column.combine_chunks()
            if isinstance(column, pa.ChunkedArray):
                column = pa.concat_arrays(column.chunks)
    if pt.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


def numpy_of(array: pa.Array, null: Any) -> np.ndarray:
    """The array's values with NULL replaced; a writable copy where Arrow's own memory cannot be used."""
    return (pc.fill_null(array, null) if array.null_count else array).to_numpy(zero_copy_only=False)


def int64_of(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """An integer column as int64, NULL as 0."""
    return np.ascontiguousarray(numpy_of(one_array(column), 0), np.int64)


def positions(values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Positions, in order, of the values that are among ``wanted``, which are distinct and in order. Where the values
    are in order too, each wanted one is looked up among them.

    >>> positions(np.array([1, 3, 3, 7, 9]), np.array([3, 4, 9])).tolist()
    [1, 2, 4]
    >>> positions(np.array([9, 3, 1]), np.array([3, 4])).tolist()
    [1]
    """
    if not np.all(values[1:] >= values[:-1]):
        return np.flatnonzero(np.isin(values, wanted))
    first, end = np.searchsorted(values, wanted, "left"), np.searchsorted(values, wanted, "right")
    sizes = end - first
    return np.repeat(first - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))


def first_rows(codes: np.ndarray, count: int) -> np.ndarray:
    """Per code below ``count`` the first row that has it, 0 where none has.

    >>> first_rows(np.array([2, 0, 2]), 3).tolist()
    [1, 0, 0]
    """
    first = np.zeros(count, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first


def flat_values(array: pa.Array) -> pa.Array:
    """The elements of a list array's non-NULL rows, in order; ``list_bytes`` and ``lengths`` know where each row's
    lie.
    """
    return array.flatten()


def lengths(array: pa.Array) -> np.ndarray:
    """Number of elements per row of a list array, 0 for NULL."""
    return pc.fill_null(array.value_lengths(), 0).to_numpy(zero_copy_only=False).astype(np.int64)


def list_bytes(array: pa.Array, element_codes: np.ndarray, big_endian: bool = False) -> pa.Array:
    """Each list as the bytes of its elements' codes: equal bytes iff equal lists; big-endian ranks also order alike."""
    offsets = np.concatenate([[0], np.cumsum(lengths(array))])
    return as_binary(element_codes, offsets, array, big_endian)


def as_binary(values: np.ndarray, offsets: np.ndarray, like: pa.Array, big_endian: bool = False) -> pa.Array:
    data = np.ascontiguousarray(values, np.dtype(">i8" if big_endian else "<i8"))
    validity = None
    if like.null_count:
        validity = np.packbits(like.is_valid().to_numpy(zero_copy_only=False), bitorder="little")
    parts = (validity, (offsets * _BYTES_PER_CODE).astype(np.int64), data)
    buffers = [None if p is None else pa.py_buffer(p.tobytes()) for p in parts]
    return pa.Array.from_buffers(pa.large_binary(), len(like), buffers)


def entries_by_key(array: pa.MapArray, key_ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(entry offsets per row from 0, order of ``array.keys`` positions) with each row's entries sorted by key,
    given the keys' ranks."""
    raw = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    starts, sizes = raw[:-1], np.where(valid, raw[1:] - raw[:-1], 0)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    row = np.repeat(np.arange(len(array)), sizes)
    # array.keys starts at the first row's entries, whatever the offsets of a slice say
    base = len(array.keys) and _keys_base(array, raw)
    position = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1]) - base
    ranks = key_ranks[position]
    return offsets, position[np.lexsort((ranks, row))]


def _keys_base(array: pa.MapArray, raw: np.ndarray) -> int:
    return int(raw[0]) if len(array.keys) == raw[-1] - raw[0] else 0


def canonical_floats(array: pa.Array) -> pa.Array:
    """Floating numbers with 0.0 for -0.0 and one NaN."""
    t = array.type
    width = {16: np.uint16, 32: np.uint32, 64: np.uint64}[t.bit_width]
    values = array.to_numpy(zero_copy_only=False).astype(t.to_pandas_dtype())
    if not np.any(np.isnan(values) | ((values == 0) & np.signbit(values))):
        return array
    values = values + values.dtype.type(0)  # -0.0 + 0.0 is 0.0
    nan = {16: 0x7E00, 32: 0x7FC00000, 64: 0x7FF8 << 48}[t.bit_width]
    values.view(width)[np.isnan(values)] = nan
    mask = ~array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array(values, t, mask=mask, from_pandas=False)
