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
import pyarrow.types as pt

from sweeparea.operators.kernels import hashing
from sweeparea.operators.values import shared_rows
from sweeparea.operators.values.arrays import (
    as_binary,
    canonical_floats,
    first_rows,
    flat_values,
    int64_of,
    lengths,
    list_bytes,
    numpy_of,
    one_array,
    positions,
)
from sweeparea.operators.values.order import column_ranks, map_entry_order

__all__ = [
    "canonical",
    "canonical_array",
    "codes",
    "column_codes",
    "first_rows",
    "int64_of",
    "needs_canonical",
    "numpy_of",
    "one_array",
    "positions",
]


_TABLE = 4
"""A table of so many numbers a row is read and written faster than a hash table of those that occur."""


def codes(columns: Sequence[pa.ChunkedArray | pa.Array]) -> tuple[np.ndarray, int]:
    """(dense codes 0..k-1 as int64, k) of the rows of one or several columns of any Arrow type, numbered by appearance.

    With no columns every row is the same: code 0. Of several columns, k counts the combinations that occur.
    """
    if not columns:
        raise ValueError("codes of no columns: the number of rows is unknown; use zeros")
    shared = [column for column in columns if pt.is_dictionary(column.type)]
    found = shared_rows.places_of(shared)
    if found is None:
        return _codes(columns)
    places, records = found
    code, count = _codes(records)
    others = [column for column in columns if not pt.is_dictionary(column.type)]
    # of these records not all come, nor in their order
    code, count = _pairs(code[places], count, *_codes(others)) if others else _dense(code[places], count)
    return code, count


def _codes(columns: Sequence[pa.ChunkedArray | pa.Array]) -> tuple[np.ndarray, int]:
    first, *others = _cheapest_first(columns)
    result, count = column_codes(first)
    for column in others:
        if count == len(result):  # all rows differ
            break
        result, count = _refined(result, count, column)
    return result, count


def _cheapest_first(columns: Sequence[pa.ChunkedArray | pa.Array]) -> list[pa.ChunkedArray | pa.Array]:
    """Columns of fixed width cost least. Numbers by appearance do not depend on which column is looked at first."""
    return sorted(columns, key=lambda column: column.type.num_fields > 0 or not pt.is_primitive(column.type))


def _refined(code: np.ndarray, count: int, column: pa.ChunkedArray | pa.Array) -> tuple[np.ndarray, int]:
    """Codes of pairs of a code below ``count`` and the value of a column. Where most codes stand alone already, only
    the values of the others are looked at.
    """
    tied = np.flatnonzero(np.bincount(code, minlength=count)[code] > 1)
    if 2 * len(tied) > len(code):
        return _pairs(code, count, *column_codes(column))
    pair, pairs = _pairs(code[tied], count, *column_codes(column.take(pa.array(tied))))
    found = code.copy()
    found[tied] = pair + count
    return _dense(found, pairs + count)


def _pairs(code: np.ndarray, count: int, more: np.ndarray, k: int) -> tuple[np.ndarray, int]:
    return _dense(code * k + more, count * k) if count * k < 1 << 62 else _dense_pairs(code, more)


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
        offsets, order = map_entry_order(array)
        keys = column_ranks(array.keys)[0][order]
        items = column_codes(array.items)[0][order]
        return _encode(as_binary(np.stack([keys, items], axis=1).ravel(), offsets * 2, array))
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


def _dense(values: np.ndarray, bound: int) -> tuple[np.ndarray, int]:
    """Numbers below ``bound`` by appearance."""
    if bound <= _TABLE * len(values):
        return hashing.renumbered(values, bound)
    return hashing.codes(values, np.zeros(0, np.bool_))


def _dense_pairs(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, int]:
    pairs = np.stack([a, b], axis=1)
    return _encode(pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(a), [None, pa.py_buffer(pairs.tobytes())]))


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
        return canonical_floats(array)
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
