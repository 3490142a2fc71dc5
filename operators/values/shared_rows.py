"""Rows that come again, once: columns of a table as places in those of its *records*.

A sweep that tells of a record when it enters and when it leaves would copy each of its columns twice, and who is told
would compare them all again. So its columns are Arrow's dictionary arrays, all with the same places, and stay so within
a worker, until rows are written.

>>> import numpy as np, pyarrow as pa
>>> records = pa.table({"k": ["a", "b"], "v": [1, 2]})
>>> rows = shared(records, np.array([1, 0, 1]))
>>> plain(rows).to_pylist() == records.take(pa.array([1, 0, 1])).to_pylist()
True
>>> taken(rows, np.array([2])).to_pylist()
[{'k': 'b', 'v': 2}]
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt


def shared(records: pa.Table, places: np.ndarray) -> pa.Table:
    """The rows at ``places`` of the records, which must be in canonical form. A column that cannot be shared is copied:
    one of nested values, or in several chunks.
    """
    index = pa.array(places.astype(np.int32)) if records.num_rows < 1 << 31 else pa.array(places)
    columns = [
        pa.DictionaryArray.from_arrays(index, column.chunk(0), safe=False)
        if column.num_chunks == 1 and not (field.type.num_fields or pt.is_null(field.type))
        else column.take(index)
        for column, field in zip(records.columns, records.schema, strict=True)
    ]
    return pa.table(columns, names=records.column_names)


def plain(rows: pa.Table) -> pa.Table:
    """The rows with all values in them."""
    if not any(pt.is_dictionary(field.type) for field in rows.schema):
        return rows
    columns = [_plain(column) for column in rows.columns]
    return pa.table(columns, names=rows.column_names)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pt.is_dictionary(column.type):
        return column
    chunks = [chunk.dictionary.take(chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(chunks, column.type.value_type)


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of ``schema``, by name, in its order and types; shared ones stay so."""
    if rows.schema.equals(schema, check_metadata=True):
        return rows
    columns = [_of_type(rows.column(field.name), field.type) for field in schema]
    return pa.table(columns, names=schema.names)


def _of_type(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pt.is_dictionary(column.type) and column.type.value_type == kind:
        return column
    return _plain(column).cast(kind)


def taken(rows: pa.Table, at: np.ndarray) -> pa.Table:
    """Some of the rows, with all values in them: no others are copied."""
    index = pa.array(at)
    columns: list[pa.Array | pa.ChunkedArray] = []
    places: dict[tuple[int, int, int], pa.Array] = {}
    for column in rows.columns:
        if pt.is_dictionary(column.type) and column.num_chunks == 1:
            whole = column.chunk(0)
            found = places.get(_address(whole))
            if found is None:
                found = places[_address(whole)] = whole.indices.take(index)
            columns.append(whole.dictionary.take(found))
        else:
            columns.append(_plain(column.take(index)))
    return pa.table(columns, names=rows.column_names)


def places_of(columns: Sequence[pa.ChunkedArray | pa.Array]) -> tuple[np.ndarray, list[pa.Array]] | None:
    """(places, the records' columns) of columns that are all shared, with the same places; None: they are not."""
    arrays: list[pa.DictionaryArray] = []
    for column in columns:
        if isinstance(column, pa.ChunkedArray):
            if column.num_chunks != 1:
                return None
            column = column.chunk(0)
        if not pt.is_dictionary(column.type) or column.null_count:
            return None
        arrays.append(column)
    if not arrays or len({_address(array) for array in arrays}) > 1:
        return None
    return arrays[0].indices.to_numpy(), [array.dictionary for array in arrays]


def _address(array: pa.DictionaryArray) -> tuple[int, int, int]:
    """Where its places lie: those of two columns that say the same are the same."""
    buffer = array.indices.buffers()[1]
    return (0 if buffer is None else buffer.address, array.offset, len(array))
