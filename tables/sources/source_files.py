"""One data file of a user's source table as its logical rows, whatever Delta features the table has.

What a file's Parquet columns mean is told by the log: column mapping (by name or by field id, nested fields too),
partition values, deletion vectors, types that were widened since, columns that came later. A file is read in batches,
so a file of any size takes the memory of one.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from sweeparea.tables.errors import TableError
from sweeparea.tables.log.commits import FileAction
from sweeparea.tables.log.schema import spark_type
from sweeparea.tables.sources.char_columns import pad
from sweeparea.tables.sources.deletion_vectors import deleted_rows

BATCH = 131_072
"""Rows of a file that are in memory at a time."""
_NAME, _ID, _FIELD_ID = "delta.columnMapping.physicalName", "delta.columnMapping.id", b"PARQUET:field_id"
_ZONE = re.compile(r"(Z|[+-]\d\d:?\d\d)\Z")
CHANGE_TYPE = "_change_type"
"""The column that tells in a file of the change data feed what happened to a row."""


@dataclass(frozen=True)
class SourceFiles:
    """Reads files of one table: ``base`` is its folder in ``fs``, ``schema`` the columns that are wanted, ``fields``
    the log's JSON of the same columns, ``by_id`` whether files are matched by field ids, ``partitioned`` the columns
    whose values stand in the log, ``chars`` the declared types of those that hold CHAR values.
    """

    uri: str
    fs: pafs.FileSystem
    base: str
    schema: pa.Schema
    fields: Sequence[Mapping[str, Any]]
    by_id: bool = False
    partitioned: Collection[str] = ()
    chars: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def read(self, action: FileAction, feed: bool = False) -> Iterator[pa.Table]:
        """The rows of a file less those that its deletion vector deletes, in the columns of ``schema``; of a file of
        the change data ``feed`` also ``_change_type``, which Spark leaves in other files too. Raises
        FileNotFoundError where the file is gone.
        """
        deleted = deleted_rows(action.vector, self.fs, self.base) if action.vector else None
        # The file system is given a name, not an open file: files of old engines hold times in 96 bits.
        file = pq.ParquetFile(self.path_of(action.path), filesystem=self.fs, coerce_int96_timestamp_unit="us")
        with file:
            at = 0
            for batch in self._batches(file, action.path):
                count = batch.num_rows
                if deleted is not None:
                    inside = deleted[np.searchsorted(deleted, at) : np.searchsorted(deleted, at + count)]
                    keep = np.ones(count, bool)
                    keep[inside - at] = False
                    batch = batch.filter(pa.array(keep))
                at += count
                yield self._logical(batch, action.partition, feed)

    def _batches(self, file: pq.ParquetFile, path: str) -> Iterator[pa.RecordBatch]:
        try:
            yield from file.iter_batches(batch_size=BATCH)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TableError(
                f"The file {path} of the source table {self.uri} cannot be read: {error}. Let its writer write it"
                " again, or give its columns plainer types there (an ARRAY of fixed length as a list)."
            ) from error

    def path_of(self, path: str) -> str:
        """Where a file lies: a shallow clone names those of the table it was made of, by absolute address."""
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", path):
            if path.startswith("file:"):
                return re.sub(r"\Afile:/*", "/", path)
            return path.split("://", 1)[1]
        return path if path.startswith("/") else f"{self.base}/{path}"

    def _logical(self, batch: pa.RecordBatch, partition: Mapping[str, str | None], feed: bool) -> pa.Table:
        columns = []
        for wanted, field in zip(self.schema, self.fields, strict=True):
            physical = _physical(field)
            if field["name"] in self.partitioned or physical in partition:
                # Spark leaves NULL values out of remove actions, and files may hold what a partition column is not
                value = _partition_value(partition.get(physical), wanted.type)
                columns.append(self._padded(pa.repeat(value, batch.num_rows), wanted.name))
                continue
            found = self._match(batch.schema, field)
            if found is None:
                columns.append(pa.nulls(batch.num_rows, wanted.type))
                continue
            try:
                shaped = self._shaped(batch.column(found), wanted.type, field["type"])
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
                raise cannot_convert(
                    self.uri, wanted.name, batch.schema.field(found).type, wanted.type, error
                ) from error
            texts = valid_texts(shaped, f"Column {wanted.name} of the source table {self.uri}")
            columns.append(self._padded(texts, wanted.name))
        rows = pa.table(columns, schema=nullable(self.schema))
        if feed:
            rows = rows.append_column(CHANGE_TYPE, batch.column(CHANGE_TYPE).cast(pa.string()))
        return rows

    def _padded(self, column: pa.Array, name: str) -> pa.Array:
        kind = self.chars.get(name)
        return column if kind is None else pad(column, kind, f"Column {name} of the source table {self.uri}")

    def _match(self, found: Any, field: Mapping[str, Any]) -> int | None:
        """Where the column of a field stands in a file's schema or struct; None if the file lacks it."""
        fields = list(found)
        if self.by_id and _ID in field.get("metadata", {}):
            wanted = str(field["metadata"][_ID]).encode()
            ids = [(each.metadata or {}).get(_FIELD_ID) for each in fields]
            if any(ids):
                return ids.index(wanted) if wanted in ids else None
        names = [each.name for each in fields]
        return names.index(_physical(field)) if _physical(field) in names else None

    def _shaped(self, column: pa.Array, wanted: pa.DataType, kind: Any) -> pa.Array:
        """``column`` of a file as the type that it has in the table: nested fields by name or id, widened types."""
        if column.type.equals(wanted) and not self.by_id:
            return column
        if pa.types.is_timestamp(wanted) and pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            # the microsecond in which it lies: a cast refuses it
            column = pc.floor_temporal(column, unit="microsecond")
        if pa.types.is_struct(wanted):
            children = []
            whole = list(zip(wanted, kind["fields"], strict=True))
            parts = column.flatten()
            for field, described in whole:
                at = self._match(column.type, described)
                if at is None:
                    children.append(pa.nulls(len(column), field.type))
                else:
                    children.append(self._shaped(parts[at], field.type, described["type"]))
            return pa.StructArray.from_arrays(
                children, fields=[f.with_nullable(True) for f in wanted], mask=column.is_null()
            ).cast(wanted)
        if pa.types.is_map(wanted):
            column = _alone(column)
            keys = self._shaped(column.keys, wanted.key_type, kind["keyType"])
            items = self._shaped(column.items, wanted.item_type, kind["valueType"])
            return pa.MapArray.from_arrays(_offsets(column), keys, items).cast(wanted)
        if pa.types.is_list(wanted) or pa.types.is_large_list(wanted):
            if pa.types.is_fixed_size_list(column.type):
                # a NULL of it has values all the same, which must not become those of the list before
                lists = column.cast(pa.list_(column.type.value_field))
                column = lists.take(pa.array(np.arange(len(lists))))
            column = _alone(column)
            values = self._shaped(column.values, wanted.value_type, kind["elementType"])
            return pa.ListArray.from_arrays(_offsets(column), values).cast(wanted)
        return column.cast(wanted)


def nullable(schema: pa.Schema) -> pa.Schema:
    """The columns without what Arrow knows of NULLs and metadata."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def cannot_convert(uri: str, column: str, old: pa.DataType, new: pa.DataType, error: object) -> TableError:
    """The error for old values of a column whose type has changed."""
    before = str(old) if pa.types.is_unsigned_integer(old) else spark_type(old)
    return TableError(
        f"Column {column} of the source table {uri} was {before} and is {spark_type(new)} now, and the old"
        f" values cannot be converted ({error}). Declare a new stream on the table as it is now."
    )


def _physical(field: Mapping[str, Any]) -> str:
    return (field.get("metadata") or {}).get(_NAME, field["name"])


def valid_texts(column: pa.Array, what: str) -> pa.Array:
    """A column of texts with U+FFFD for bytes that are no UTF-8: Spark writes any bytes as a text, and other readers,
    ours too, cannot read those. TableError where such bytes lie inside a nested value; ``what`` names the column.
    """
    try:
        column.validate(full=True)
        return column
    except pa.ArrowInvalid as error:
        if not pa.types.is_string(column.type):
            raise TableError(
                f"{what} cannot be read: {error}. Where a text in it holds bytes that are no UTF-8, write them as a"
                " BINARY, or correct them (in Spark: make_valid_utf8)."
            ) from error
    texts = (value.as_py() for value in column.cast(pa.binary()))
    return pa.array((t if t is None else t.decode(errors="replace") for t in texts), pa.string())


def _alone(column: pa.Array) -> pa.Array:
    """A nested array whose offsets begin at its own first value."""
    return column.take(pa.array(np.arange(len(column)))) if column.offset else column


def _offsets(column: pa.Array) -> pa.Array:
    """The offsets of a list or map, NULL where it is NULL itself: so Arrow takes validity from offsets."""
    if not column.null_count:
        return column.offsets
    valid = np.append(np.asarray(column.is_valid()), True)
    return pc.if_else(pa.array(valid), column.offsets, pa.scalar(None, pa.int32()))


def _partition_value(text: str | None, kind: pa.DataType) -> pa.Scalar:
    """A partition value of the log (PROTOCOL.md, "Partition Value Serialization"); an empty text is NULL."""
    if not text:
        return pa.scalar(None, kind)
    value: pa.Scalar = pa.scalar(text, pa.string())
    if pa.types.is_timestamp(kind):
        # without a zone it is what the writer's session said, and ours says UTC
        zoned = kind if _ZONE.search(text) and kind.tz else pa.timestamp("us")
        return value.cast(pa.timestamp("us", "UTC") if zoned is kind else zoned).cast(kind)
    if pa.types.is_decimal(kind) and "E" in text.upper():
        value = pa.scalar(f"{np.format_float_positional(float(text), trim='-')}", pa.string())
    return value.cast(kind)
