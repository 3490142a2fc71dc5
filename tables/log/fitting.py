"""Whether data files fit the table that they are to be added to; delta-rs looks into none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sweeparea.tables.errors import TableError
from sweeparea.tables.log.files import DataFile, side_by_side
from sweeparea.tables.log.folders import filesystem
from sweeparea.tables.log.schema import spark_type


@dataclass(frozen=True)
class ColumnLayout:
    """What a table's files have to look like: its columns' Spark types, its partition columns, and the columns that it
    gained after it was made, which a file may lack.
    """

    columns: dict[str, str]
    partition_columns: set[str]
    later: set[str]

    @classmethod
    def of(cls, schema: pa.Schema, partition_columns: set[str], later: set[str]) -> ColumnLayout:
        return cls({field.name: spark_type(field.type) for field in schema}, partition_columns, later)


class Fitting:
    """Looks into files that are to be added to one table, and only after those that it has looked into for the actions
    before: what is staged is validated again when it is committed.
    """

    def __init__(self, uri: str, storage_options: dict[str, str] | None) -> None:
        self.uri, self.storage_options = uri, storage_options
        self._sound: dict[str, DataFile] = {}
        """Files of the last actions that were looked into and fit ``_layout``."""
        self._layout: ColumnLayout | None = None

    def check(self, adds: Collection[DataFile], layout: ColumnLayout) -> None:
        """TableError if a file is missing, incomplete or of other columns."""
        fs, base = filesystem(self.uri, self.storage_options)
        sound = self._sound if layout == self._layout else {}
        self._sound, self._layout = {}, layout
        again = [file for file in adds if sound.get(file.path) == file]
        there = fs.get_file_info([f"{base.rstrip('/')}/{file.path}" for file in again])
        same = {file.path for file, info in zip(again, there, strict=True) if info.size == file.size}
        types = _Types()
        side_by_side(
            lambda file: _check_file(fs, f"{base.rstrip('/')}/{file.path}", file, layout, types),
            [file for file in adds if file.path not in same],
        )
        self._sound = {file.path: file for file in adds}


class _Types:
    """The columns of one file after the other, which are mostly those of the file before."""

    def __init__(self) -> None:
        self._last: tuple[pa.Schema, dict[str, str]] | None = None

    def of(self, schema: pa.Schema) -> dict[str, str]:
        last = self._last
        if last is None or not last[0].equals(schema):
            last = self._last = schema, {field.name: spark_type(field.type) for field in schema}
        return dict(last[1])


def _check_file(
    fs: Any,
    path: str,
    file: DataFile,
    layout: ColumnLayout,
    types: _Types,
) -> None:
    try:
        with fs.open_input_file(path) as source:
            size = source.size()
            schema = pq.read_schema(source)
    except FileNotFoundError:
        raise TableError(
            f"The data file {path} is missing, so it cannot be committed. Run the slice again, which writes it anew."
        ) from None
    except pa.ArrowInvalid as error:
        raise TableError(f"The data file {path} is no complete Parquet file ({error}). Run the slice again.") from error
    if size != file.size:
        raise TableError(
            f"The data file {path} has {size} bytes instead of {file.size}: it was written twice. Run again."
        )
    found, partition_columns = types.of(schema), layout.partition_columns
    for name in partition_columns:
        found.pop(name, None)
    # a file staged before its table gained a column has NULL there
    left_out = partition_columns | (layout.later - found.keys())
    wanted = {name: ddl for name, ddl in layout.columns.items() if name not in left_out}
    if found != wanted:
        odd = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))[0]
        raise TableError(
            f"The data file {path} does not fit its table: column {odd} is {found.get(odd, 'missing')} in the file and"
            f" {wanted.get(odd, 'missing')} in the table. Cast the rows to the table's columns before staging them."
        )
    if file.partition.keys() != partition_columns:
        raise TableError(
            f"The data file {path} names the partition columns {sorted(file.partition)}, its table has"
            f" {sorted(partition_columns)}."
        )
