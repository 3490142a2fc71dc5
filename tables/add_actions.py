"""The live files of an open Delta table, as delta-rs lists them."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from sweeparea.tables.files import DataFile, describe_file
from sweeparea.tables.stats import dump, stats_value


def live_files(table: DeltaTable, root: str | None = None) -> list[DataFile]:
    """The files at the version that ``table`` stands at, with raw paths: delta-rs gives them percent-encoded.

    ``root``: the table's folder, where a file is looked at of which the log tells no number of rows, as that of a
    writer without statistics does.
    """
    return [
        _data_file(row)
        if root is None or row["num_records"] is not None
        else describe_file(root, unquote(row["path"]), partition=_partition(row))
        for row in pa.table(table.get_add_actions()).to_pylist()
    ]


def _data_file(row: dict[str, Any]) -> DataFile:
    bounds = {"minValues": row.get("min"), "maxValues": row.get("max"), "nullCount": row.get("null_count")}
    stats = {"numRecords": row["num_records"], **{key: stats_value(value or {}) for key, value in bounds.items()}}
    return DataFile(unquote(row["path"]), row["size_bytes"], row["num_records"] or 0, dump(stats), _partition(row))


def _partition(row: dict[str, Any]) -> dict[str, str | None]:
    return {key: _partition_text(value) for key, value in (row.get("partition") or {}).items()}


def _partition_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)
