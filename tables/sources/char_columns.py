"""CHAR(n) columns of a source: Delta keeps their values as they were written, and Spark pads them when it reads them.

Spark notes the declared type beside the column (``__CHAR_VARCHAR_TYPE_STRING``), of a nested one that of the whole
column. A VARCHAR's limit is a matter of writing alone, so nothing happens to it here.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.tables.errors import TableError
from sweeparea.tables.log.schema import declared_type

CHARS = "chars"
"""In a source's ledger info: the columns that were admitted padded, with their declared types."""
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
_CHAR = re.compile(r"(?<![a-z_`])char\s*\(", re.IGNORECASE)


def char_columns(fields: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """By the name of a column that holds CHAR values its declared type, as ``char(5)`` or ``array<char(5)>``, from the
    fields of a Delta log's schema.
    """
    declared = {f["name"]: (f.get("metadata") or {}).get(_DECLARED, "") for f in fields}
    return {name: kind for name, kind in declared.items() if _CHAR.search(kind)}


def pad(column: pa.Array, kind: str, what: str) -> pa.Array:
    """A column with its CHAR values filled up with blanks as ``kind`` says; a longer value stays, as in Spark.

    ``what`` names the column for the TableError where ``kind`` cannot be read.
    """
    try:
        return _padded(column, declared_type(kind))
    except (TableError, KeyError) as error:
        raise TableError(
            f"{what} is declared {kind}, whose CHAR parts are padded when they are read, but that type cannot be"
            f" followed ({error}). Declare it STRING in the source (ALTER TABLE .. ALTER COLUMN .. TYPE STRING), or"
            " give its fields plain names."
        ) from error


def _padded(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """``kind`` has a fixed-size binary of n bytes in the place of CHAR(n)."""
    if pa.types.is_fixed_size_binary(kind):
        return pc.utf8_rpad(column, width=kind.byte_width, padding=" ")
    if not _holds_char(kind):
        return column
    if pa.types.is_struct(kind):
        parts = [
            _padded(part, kind.field(i).type) if i < kind.num_fields else part
            for i, part in enumerate(column.flatten())
        ]
        return pa.StructArray.from_arrays(parts, fields=list(column.type), mask=column.is_null())
    column = column.take(pa.array(np.arange(len(column)))) if column.offset else column
    offsets = column.offsets
    if column.null_count:
        valid = np.append(np.asarray(column.is_valid()), True)
        offsets = pc.if_else(pa.array(valid), offsets, pa.scalar(None, pa.int32()))
    if pa.types.is_map(kind):
        keys, items = _padded(column.keys, kind.key_type), _padded(column.items, kind.item_type)
        return pa.MapArray.from_arrays(offsets, keys, items).cast(column.type)
    return pa.ListArray.from_arrays(offsets, _padded(column.values, kind.value_type)).cast(column.type)


def _holds_char(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_holds_char(field.type) for field in kind)
    if pa.types.is_map(kind):
        return _holds_char(kind.key_type) or _holds_char(kind.item_type)
    if pa.types.is_list(kind):
        return _holds_char(kind.value_type)
    return pa.types.is_fixed_size_binary(kind)
