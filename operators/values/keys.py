"""Equality of values: dense codes of Arrow columns, and the one published form of each value.

Two values are equal as in semantics of the total order: NULL equals NULL, -0.0 equals 0.0, NaN equals NaN, maps are
equal when their entries are, whatever their order; nested values likewise. ``codes`` numbers the distinct values of
one or more columns, so that a sweep works with integers; ``canonical`` rewrites values to the form that is compared
and published.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from sweeparea.operators.kernels import hashing

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


def numpy_of(array: pa.Array, null) -> np.ndarray:
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


def codes(columns: Sequence[pa.ChunkedArray | pa.Array]) -> tuple[np.ndarray, int]:
    """(dense codes 0..k-1 as int64, k) of the rows of one or several columns of any Arrow type, numbered by appearance.

    With no columns every row is the same: code 0. Of several columns, k counts the combinations that occur.
    """
    if not columns:
        raise ValueError("codes of no columns: the number of rows is unknown; use zeros")
    result, count = column_codes(columns[0])
    for column in columns[1:]:
        more, k = column_codes(column)
        if count * k < 1 << 62:
            result, count = _dense(result * k + more)
        else:
            result, count = _dense_pairs(result, more)
    return result, count


def first_rows(codes: np.ndarray, count: int) -> np.ndarray:
    """Per code below ``count`` the first row that has it, 0 where none has.

    >>> first_rows(np.array([2, 0, 2]), 3).tolist()
    [1, 0, 0]
    """
    first = np.zeros(count, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first


def column_codes(column: pa.ChunkedArray | pa.Array) -> tuple[np.ndarray, int]:
    """``codes`` of one column."""
    array = one_array(column)
    t = array.type
    if pt.is_struct(t):
        fields = [pa.array(array.is_valid()), *array.flatten()]
        return codes(fields)
    if pt.is_list(t) or pt.is_large_list(t) or pt.is_fixed_size_list(t):
        return _encode(list_bytes(array, column_codes(flat_values(array))[0]))
    if pt.is_map(t):
        from sweeparea.operators.values.order import column_ranks

        offsets, order = map_entry_order(array)
        keys = column_ranks(array.keys)[0][order]
        items = column_codes(array.items)[0][order]
        return _encode(_as_binary(np.stack([keys, items], axis=1).ravel(), offsets * 2, array))
    if pt.is_floating(t):
        array = canonical_array(array)
    return _encode(array)


def _encode(array: pa.Array) -> tuple[np.ndarray, int]:
    if pt.is_null(array.type):
        return np.zeros(len(array), np.int64), min(1, len(array))
    words = _words(array)
    if words is not None:
        valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else np.zeros(0, np.bool_)
        return hashing.codes(words, valid)
    try:
        encoded = array.dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError:
        encoded = pa.array([None if v is None else repr(v) for v in array.to_pylist()], pa.string()).dictionary_encode(
            null_encoding="encode"
        )
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)


def _words(array: pa.Array) -> np.ndarray | None:
    """The bits of numbers and times as int64, NULL as 0; None for other types."""
    t = array.type
    kinds = (pt.is_timestamp, pt.is_date, pt.is_time, pt.is_duration, pt.is_float32, pt.is_float64)
    if any(kind(t) for kind in kinds):
        array = array.view(pa.int64() if t.bit_width == 64 else pa.int32())
    elif not pt.is_integer(t) or pt.is_uint64(t):
        return None
    return int64_of(array)


def _dense(values: np.ndarray) -> tuple[np.ndarray, int]:
    return _encode(pa.array(values))


def _dense_pairs(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, int]:
    pairs = np.stack([a, b], axis=1)
    return _encode(pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(a), [None, pa.py_buffer(pairs.tobytes())]))


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
    return _as_binary(element_codes, offsets, array, big_endian)


def _as_binary(values: np.ndarray, offsets: np.ndarray, like: pa.Array, big_endian: bool = False) -> pa.Array:
    data = np.ascontiguousarray(values, np.dtype(">i8" if big_endian else "<i8"))
    validity = None
    if like.null_count:
        validity = np.packbits(like.is_valid().to_numpy(zero_copy_only=False), bitorder="little")
    parts = (validity, (offsets * _BYTES_PER_CODE).astype(np.int64), data)
    buffers = [None if p is None else pa.py_buffer(p.tobytes()) for p in parts]
    return pa.Array.from_buffers(pa.large_binary(), len(like), buffers)


def map_entry_order(array: pa.MapArray) -> tuple[np.ndarray, np.ndarray]:
    """(entry offsets per row from 0, order of ``array.keys`` positions) with each row's entries sorted by key."""
    from sweeparea.operators.values.order import column_ranks

    raw = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    starts, sizes = raw[:-1], np.where(valid, raw[1:] - raw[:-1], 0)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    row = np.repeat(np.arange(len(array)), sizes)
    # array.keys starts at the first row's entries, whatever the offsets of a slice say
    base = len(array.keys) and _keys_base(array, raw)
    position = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1]) - base
    ranks = column_ranks(array.keys)[0][position]
    return offsets, position[np.lexsort((ranks, row))]


def _keys_base(array: pa.MapArray, raw: np.ndarray) -> int:
    return int(raw[0]) if len(array.keys) == raw[-1] - raw[0] else 0


def canonical(table: pa.Table) -> pa.Table:
    """The table with each value in its one published form: 0.0 for -0.0, one NaN, map entries sorted by key; nested
    too.
    """
    columns = [
        canonical_array(one_array(table.column(i))) if needs_canonical(f.type) else table.column(i)
        for i, f in enumerate(table.schema)
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def needs_canonical(t: pa.DataType) -> bool:
    """Whether a type has values that are equal but not identical."""
    if pt.is_floating(t) or pt.is_map(t):
        return True
    return any(needs_canonical(t.field(i).type) for i in range(t.num_fields))


def canonical_array(array: pa.Array) -> pa.Array:
    """``canonical`` of one array."""
    t = array.type
    if not needs_canonical(t):
        return array
    if pt.is_floating(t):
        width = {16: np.uint16, 32: np.uint32, 64: np.uint64}[t.bit_width]
        values = array.to_numpy(zero_copy_only=False).astype(t.to_pandas_dtype())
        if not np.any(np.isnan(values) | ((values == 0) & np.signbit(values))):
            return array
        values = values + values.dtype.type(0)  # -0.0 + 0.0 is 0.0
        nan = {16: 0x7E00, 32: 0x7FC00000, 64: 0x7FF8 << 48}[t.bit_width]
        values.view(width)[np.isnan(values)] = nan
        mask = ~array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
        return pa.array(values, t, mask=mask, from_pandas=False)
    mask = array.is_null() if array.null_count else None
    if pt.is_struct(t):
        fields = [t.field(i) for i in range(t.num_fields)]
        return pa.StructArray.from_arrays([canonical_array(a) for a in array.flatten()], fields=fields, mask=mask)
    if pt.is_map(t):
        offsets, order = map_entry_order(array)
        take = pa.array(order)
        keys, items = canonical_array(array.keys.take(take)), canonical_array(array.items.take(take))
        return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items, type=t, mask=mask)
    if pt.is_fixed_size_list(t):
        values = canonical_array(array.values.slice(array.offset * t.list_size, len(array) * t.list_size))
        return pa.FixedSizeListArray.from_arrays(values, type=t, mask=mask)
    offsets = np.concatenate([[0], np.cumsum(lengths(array))])
    kind, index = (pa.LargeListArray, pa.int64()) if pt.is_large_list(t) else (pa.ListArray, pa.int32())
    return kind.from_arrays(pa.array(offsets, index), canonical_array(flat_values(array)), type=t, mask=mask)
