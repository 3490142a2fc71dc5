"""Files whose instants are finer than Delta's microseconds, as other writers than Spark may leave them: an instant is
the microsecond in which it lies. delta-rs cuts towards zero, which is another one before 1970.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from sweeparea.tables.log import stats
from sweeparea.tables.log.delta_log import DataFile

_SAFE = 1_000_000
"""Microseconds. Statistics are cut to milliseconds, by some writers towards zero; beyond this none hides 1969."""


def columns_of_instants(fields: Iterable[Mapping[str, Any]], partitioned: Collection[str]) -> dict[str, bool]:
    """The columns of files that hold TIMESTAMP or TIMESTAMP_NTZ values, from the fields of a log's schema; true: the
    column is one itself, false: it holds them inside.
    """
    found = {f["name"]: f["type"] for f in fields if f["name"] not in partitioned}
    return {name: isinstance(kind, str) for name, kind in found.items() if '"timestamp' in json.dumps(kind)}


def may_be_before_1970(file: DataFile, columns: Mapping[str, bool]) -> bool:
    """Whether the log's statistics leave open that ``columns`` of a file hold instants before 1970."""
    for name, plain in columns.items():
        least = stats.bounds(file.stats, name)[0] if plain else None
        if (least is None or least < _SAFE) and not (plain and file.rows == stats.nulls(file.stats, name)):
            return True
    return False


def holds_nanoseconds(path: str, fs: pafs.FileSystem) -> bool:
    """Whether a column of a Parquet file is a timestamp in nanoseconds; only the footer is read."""
    schema = pq.read_metadata(path, filesystem=fs).schema
    kinds = (json.loads(schema.column(i).logical_type.to_json()) for i in range(len(schema.names)))
    return any(kind.get("timeUnit") == "nanoseconds" for kind in kinds)
