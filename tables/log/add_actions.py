"""The live files of an open Delta table, as delta-rs lists them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from sweeparea.tables.log.files import DataFile, describe_file
from sweeparea.tables.log.stats import dump, stats_value

_STATISTICS = ("min", "max", "null_count")


def live_files(table: DeltaTable, root: str | None = None, columns: Collection[str] | None = None) -> list[DataFile]:
    """The files at the version that ``table`` stands at, with raw paths: delta-rs gives them percent-encoded.

    ``root``: the table's folder, where a file is looked at of which the log tells no number of rows, as that of a
    writer without statistics does. ``columns``: those of which statistics are told, all if not given.
    """
    actions = pa.table(table.get_add_actions())
    if columns is not None:
        actions = _narrowed(actions, columns)
    return [
        _data_file(row)
        if root is None or row["num_records"] is not None
        else describe_file(root, unquote(row["path"]), partition=_partition(row))
        for row in actions.to_pylist()
    ]


def _narrowed(actions: pa.Table, columns: Collection[str]) -> pa.Table:
    """``actions`` with the statistics of some columns."""
    for name in _STATISTICS:
        at = actions.schema.get_field_index(name)
        if at < 0:
            continue
        whole = actions.column(at).combine_chunks()
        kept = [field for field in whole.type if field.name in columns]
        if not kept:
            actions = actions.remove_column(at)
            continue
        parts = [whole.field(field.name) for field in kept]
        actions = actions.set_column(at, name, pa.StructArray.from_arrays(parts, fields=kept, mask=whole.is_null()))
    return actions


def _data_file(row: dict[str, Any]) -> DataFile:
    bounds = {"minValues": row.get("min"), "maxValues": row.get("max"), "nullCount": row.get("null_count")}
    stats = {"numRecords": row["num_records"], **{key: stats_value(value or {}) for key, value in bounds.items()}}
    return DataFile(unquote(row["path"]), row["size_bytes"], row["num_records"] or 0, dump(stats), _partition(row))


def _partition(row: dict[str, Any]) -> dict[str, str | None]:
    return {key: _partition_text(value) for key, value in (row.get("partition") or {}).items()}


def _partition_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode()  # the log has it as a text
    return str(value).lower() if isinstance(value, bool) else str(value)
