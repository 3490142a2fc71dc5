"""The total order of records: ranks that sort like the values do.

Columns left to right, ascending, NULL first, NaN greatest, -0.0 equal to 0.0, strings by UTF-8 bytes, binary by bytes,
structs field by field, lists element by element (a prefix comes first), maps by their sorted entries. Values equal in
this order are one value (``keys``). ORDER BY .. LIMIT ties, row windows and everything else that must choose use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from sweeparea.operators.kernels.sorting import sorted_order
from sweeparea.operators.values import arrays


def column_ranks(column: pa.ChunkedArray | pa.Array) -> tuple[np.ndarray, int]:
    """(ranks as int64, number of ranks): equal values share a rank, a smaller value has a smaller one, dense from 0.

    NULL, where it occurs, has rank 0. Works for any Arrow type that ``keys.codes`` can tell apart and that has an
    order.
    """
    array = arrays.one_array(column)
    t = array.type
    if pt.is_struct(t):
        parts = [column_ranks(pa.array(array.is_valid()))[0], *(column_ranks(f)[0] for f in array.flatten())]
        return _dense_ranks(parts)
    if pt.is_list(t) or pt.is_large_list(t) or pt.is_fixed_size_list(t):
        return column_ranks(arrays.list_bytes(array, column_ranks(arrays.flat_values(array))[0], big_endian=True))
    if pt.is_map(t):
        offsets, order = map_entry_order(array)
        pairs = np.stack([column_ranks(array.keys)[0][order], column_ranks(array.items)[0][order]], axis=1)
        return column_ranks(arrays.as_binary(pairs.ravel(), offsets * 2, array, big_endian=True))
    if pt.is_null(t):
        return np.zeros(len(array), np.int64), min(1, len(array))
    sortable = _sortable(array)
    if sortable is not None:
        return _ranks_of_integers(sortable, array)
    encoded = array.dictionary_encode(null_encoding="mask")
    values = encoded.dictionary
    nulls = array.null_count > 0
    rank = np.empty(len(values), np.int64)
    rank[_ascending(values)] = np.arange(len(values)) + int(nulls)
    if not nulls:
        return rank[encoded.indices.to_numpy(zero_copy_only=False)], len(values)
    index = pc.fill_null(encoded.indices, len(values)).to_numpy(zero_copy_only=False)
    return np.append(rank, 0)[index], len(values) + 1


def map_entry_order(array: pa.MapArray) -> tuple[np.ndarray, np.ndarray]:
    """(entry offsets per row from 0, order of ``array.keys`` positions) with each row's entries sorted by key."""
    return arrays.entries_by_key(array, column_ranks(array.keys)[0])


def _sortable(array: pa.Array) -> np.ndarray | None:
    # int64 that order like the values (NULL: anything), for numbers and times
    t = array.type
    if pt.is_floating(t):
        array = arrays.canonical_floats(array)
        bits = pc.fill_null(array.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False).view(np.int64)
        return np.where(bits < 0, bits ^ np.int64((1 << 63) - 1), bits)  # the one NaN is above +infinity
    if pt.is_integer(t) and not pt.is_uint64(t):
        return pc.fill_null(array, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if pt.is_timestamp(t) or pt.is_date(t) or pt.is_time(t) or pt.is_duration(t):
        return _sortable(array.view(pa.int64() if t.bit_width == 64 else pa.int32()))
    return None


def _ranks_of_integers(values: np.ndarray, array: pa.Array) -> tuple[np.ndarray, int]:
    nulls = array.null_count > 0
    ranks = np.zeros(len(values), np.int64)
    at = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False)) if nulls else None
    if at is not None:
        values = values[at]
    if not len(values):
        return ranks, int(nulls)
    order = sorted_order((values,))
    ordered = values[order]
    change = np.empty(len(values), np.int64)
    change[0] = int(nulls)
    change[1:] = ordered[1:] != ordered[:-1]
    np.cumsum(change, out=change)
    ranks[order if at is None else at[order]] = change
    return ranks, int(change[-1]) + 1


def _ascending(values: pa.Array) -> np.ndarray:
    # positions of distinct non-NULL values in ascending order; Arrow compares strings and binaries as unsigned bytes
    if pt.is_boolean(values.type):
        values = values.cast(pa.int8())
    return pc.call_function("array_sort_indices", [values]).to_numpy(zero_copy_only=False)


def _dense_ranks(parts: Sequence[np.ndarray]) -> tuple[np.ndarray, int]:
    # rank of the tuple: sort, then count the changes
    if len(parts[0]) == 0:
        return np.zeros(0, np.int64), 0
    order = np.lexsort(tuple(reversed(parts)))
    change = np.zeros(len(order), np.int64)
    for part in parts:
        p = part[order]
        change[1:] |= p[1:] != p[:-1]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(change)
    return ranks, int(change.sum()) + 1


def record_sort_indices(table: pa.Table, columns: Sequence[str]) -> np.ndarray:
    """Positions (int64) that put the rows into the total order of ``columns``; equal records keep their order."""
    if not columns:
        return np.arange(table.num_rows)
    return np.lexsort(tuple(column_ranks(table.column(c))[0] for c in reversed(columns)))


def record_ranks(table: pa.Table, columns: Sequence[str]) -> tuple[np.ndarray, int]:
    """Dense ranks of whole records, as ``column_ranks`` of a struct of ``columns``."""
    if not columns:
        return np.zeros(table.num_rows, np.int64), min(1, table.num_rows)
    return _dense_ranks([column_ranks(table.column(c))[0] for c in columns])


@dataclass(frozen=True)
class OrderKey:
    """One key of an order over the rows: a column and its direction."""

    column: str
    descending: bool = False
    nulls_first: bool = True


def ranks(records: pa.Table, order: tuple[OrderKey, ...]) -> np.ndarray:
    """Dense ranks of the records in an order."""
    parts = [key_ranks(arrays.one_array(records.column(key.column)), key) for key in order]
    if not parts or not records.num_rows:
        return np.zeros(records.num_rows, np.int64)
    return _dense_ranks(parts)[0]


def key_ranks(column: pa.Array, key: OrderKey) -> np.ndarray:
    """Where each value stands among the others by one key of an order; -1 for NULLs that come first."""
    rank, count = column_ranks(column)
    if key.descending:
        rank = count - 1 - rank
    if column.null_count:
        null = column.is_null().to_numpy(zero_copy_only=False)
        rank = np.where(null, -1 if key.nulls_first else count, rank)
    return rank


def sorted_groups(
    records: pa.Table, group: np.ndarray, order: tuple[OrderKey, ...], peers: int
) -> tuple[np.ndarray, np.ndarray]:
    """(positions of the records by group and order, the class of peers at each of these): classes are dense from 0,
    one for each group and value of the order's first ``peers`` keys.

    A later key is looked at only of those records that all keys before leave equal, as ties of whole records are: of
    wide columns that break them little is read.
    """
    positions = sorted_order((group,)) if len(group) else np.zeros(0, np.int64)
    begins = _changes(group[positions])
    classes = np.cumsum(begins) - 1 if peers == 0 else begins
    for i, key in enumerate(order):
        tied = np.flatnonzero(~(begins & np.append(begins[1:], True))) if len(begins) else positions
        if len(tied):
            rows = positions[tied]
            rank = key_ranks(arrays.one_array(records.column(key.column).take(pa.array(rows))), key)
            again = sorted_order((np.cumsum(begins)[tied], rank))
            positions[tied] = rows[again]
            begins[tied] |= _changes(rank[again])
        if i + 1 == peers:
            classes = np.cumsum(begins) - 1
    return positions, classes


def _changes(values: np.ndarray) -> np.ndarray:
    """Whether each value is another one than that before it."""
    return np.append(True, values[1:] != values[:-1]) if len(values) else np.zeros(0, np.bool_)
