"""A user's source Delta table, read version by version as the signed rows that each commit added and removed.

Never "what looks new": a version gives the bag difference of the rows it removed and added, so an UPDATE of one row in
a file of a million gives two rows, and OPTIMIZE gives none. A commit is read from the files that it names
(``source_files.py``), so what it costs does not depend on the table or on how many versions there are; whole snapshots
are read by delta-rs.
"""

# pyarrow.compute makes its functions when it is imported, where a type checker cannot see them.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from os import PathLike, fspath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from sweeparea.infra import storage
from sweeparea.tables.errors import TableError, VersionGone
from sweeparea.tables.log.add_actions import live_files
from sweeparea.tables.log.commits import Commit, FileAction, read_commit
from sweeparea.tables.log.folders import filesystem
from sweeparea.tables.log.schema import delta_type
from sweeparea.tables.sources.char_columns import char_columns, pad
from sweeparea.tables.sources.fine_instants import columns_of_instants, holds_nanoseconds, may_be_before_1970
from sweeparea.tables.sources.netting import N, net
from sweeparea.tables.sources.source_files import CHANGE_TYPE, SourceFiles, cannot_convert, nullable

_BASELINE = (
    "`sweeparea admit .. --baseline` goes on from the table as it is now: what it holds and was not admitted is"
    " admitted as one version, what was admitted and is gone counts as removed."
)
_WIDENING = {"typeWidening", "typeWidening-preview"}
_EXACT_FEEDS = ("Apache-Spark", "Databricks-Runtime")
_READABLE = {
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "inCommitTimestamp",
    "appendOnly",
    "invariants",
    "checkConstraints",
    "changeDataFeed",
    "generatedColumns",
    "identityColumns",
    "rowTracking",
    "domainMetadata",
    "clustering",
    "allowColumnDefaults",
    "icebergCompatV1",
    "icebergCompatV2",
    *_WIDENING,
}


class SourceTable:
    """One source table. A handle of the latest version is kept; :meth:`version` brings it up to date."""

    def __init__(self, uri: str | PathLike[str], storage_options: dict[str, str] | None = None) -> None:
        self.uri = fspath(uri).removeprefix("file://")
        storage.prepare(self.uri)
        self.storage_options = storage_options
        self._handle: DeltaTable | None = None
        self._commit: Commit | None = None
        self.padded: Mapping[str, str] | None = None
        """The columns whose CHAR values are padded when they are read, with their declared types; None: all of them."""

    def version(self) -> int:
        """The latest version. Raises TableError, naming the path, if there is no readable Delta table."""
        # Opened anew: a source's log may be cleaned at any time, and a handle left behind would never notice.
        self._handle = self._open(None)
        return self._handle.version()

    def identity(self) -> str:
        """The table's id, which a table that is made anew under the same path does not share."""
        return str(self._latest().metadata().id)

    def schema(self) -> pa.Schema:
        """The columns of the version seen last."""
        return pa.schema(self._latest().schema())

    def read_schema(self) -> pa.Schema:
        """The columns that rows are read in: those of :meth:`schema`, or more."""
        return self.schema()

    def exists(self) -> bool:
        """Whether there is a Delta table."""
        return self._handle is not None or DeltaTable.is_deltatable(self.uri, self.storage_options)

    def spark_schema(self) -> list[tuple[str, str]]:
        """Name and Spark DDL type of each column, read from the log without a JVM."""
        fields = json.loads(self._latest().schema().to_json())["fields"]
        return [(field["name"], delta_type(field["type"])) for field in fields]

    def char_columns(self) -> dict[str, str]:
        """The columns that hold CHAR values, with their declared types (``char(5)``, ``array<char(5)>``)."""
        return char_columns(json.loads(self._latest().schema().to_json())["fields"])

    def _chars(self) -> Mapping[str, str]:
        return self.char_columns() if self.padded is None else self.padded

    def partition_columns(self) -> list[str]:
        """The columns whose values stand in the log, not in the files."""
        return list(self._latest().metadata().partition_columns)

    def commit_time(self, version: int) -> int:
        """When ``version`` was committed, by its writer's clock, in microseconds since the epoch. It may go back."""
        time = self.commit(version).time
        if time is None:
            raise TableError(f"Version {version} of the source table {self.uri} does not tell when it was committed.")
        return time

    def snapshot(self, version: int) -> pa.Table:
        """All rows at ``version``, in the columns of the version seen last; a column added later is NULL."""
        return pa.concat_tables([self._empty(), *self.snapshot_pieces(version)])

    def snapshot_pieces(self, version: int) -> Iterator[pa.Table]:
        """As :meth:`snapshot`, in pieces that fit into memory."""
        handle = self._open(version)
        widened = _WIDENING & set(handle.protocol().reader_features or [])
        if widened or self._needs_floors(handle):
            yield from self._live_files(handle)  # delta-rs does not read what was written under the narrower type
            return
        with _explain(self.uri, f"version {version}"):
            # scan() reads deletion vectors and column mapping, to_pyarrow_table does not.
            for batch in handle.scan():
                rows = pa.table(batch)
                if rows.num_rows:
                    yield self._aligned(self._renamed(rows, handle))

    def _needs_floors(self, handle: DeltaTable) -> bool:
        """Whether a snapshot may hold instants in nanoseconds before 1970, which delta-rs cuts towards zero."""
        fields = json.loads(handle.schema().to_json())["fields"]
        columns = columns_of_instants(fields, handle.metadata().partition_columns)
        if not columns:
            return False
        reader = self._files()
        try:
            return any(
                holds_nanoseconds(reader.path_of(file.path), reader.fs)
                for file in live_files(handle, columns=columns)
                if may_be_before_1970(file, columns)
            )
        except FileNotFoundError as error:
            raise self._file_gone(handle.version(), error) from error

    def _live_files(self, handle: DeltaTable) -> Iterator[pa.Table]:
        """The rows of a snapshot from its files."""
        reader = self._files()
        actions = {f.path: FileAction(f.path, f.size, f.partition, True, False) for f in live_files(handle)}
        if "deletionVectors" in (handle.protocol().reader_features or []):
            actions = self._with_vectors(actions, handle.version())
        for action in actions.values():
            try:
                yield from (rows for rows in reader.read(action) if rows.num_rows)
            except FileNotFoundError as error:
                raise self._file_gone(handle.version(), error) from error

    def _with_vectors(self, actions: dict[str, FileAction], version: int) -> dict[str, FileAction]:
        """Live files at ``version`` with their deletion vectors, which the newest commit that added each tells."""
        found: dict[str, FileAction] = {}
        while len(found) < len(actions):
            for add in self.commit(version).adds:
                if add.path in actions:
                    found.setdefault(add.path, add)
            version -= 1
        return found

    def changes(self, version: int) -> pa.Table:
        """What commit ``version`` did: the source's columns + ``__n``, the copies of a row added or (negative) removed.

        Rows that a commit removed and added again cancel; no row has ``__n`` 0. Version 0 adds its snapshot. Columns
        are those of the version seen last.
        """
        empty = self._empty().append_column(N, pa.array([], pa.int64()))
        return net(pa.concat_tables([empty, *self.pieces(version)]))

    def pieces(self, version: int) -> Iterator[pa.Table]:
        """As :meth:`changes`, in pieces that fit into memory, each row as often as a file holds it: not netted."""
        commit = self.commit(version)
        if commit.rearranges:
            return
        reader = self._files()
        for action, sign in signed_files(commit):
            try:
                for rows in reader.read(action, feed=sign == 0):
                    if rows.num_rows:
                        yield _counted(rows, sign)
            except FileNotFoundError as error:
                raise self._file_gone(version, error) from error

    def size(self, version: int) -> int:
        """About how many rows are read to tell what ``version`` did."""
        # a writer that counts nothing is taken to write ten bytes a row
        return sum(a.size // 10 if a.rows is None else a.rows for a, _ in signed_files(self.commit(version)))

    def only_adds(self, version: int) -> bool:
        """Whether a version takes no row away, so that nothing of it can cancel."""
        commit = self.commit(version)
        return not _feed(commit) and not any(a.data_change for a in commit.removes)

    def _files(self) -> SourceFiles:
        latest = self._latest()
        fs, base = filesystem(self.uri, self.storage_options)
        fields = json.loads(latest.schema().to_json())["fields"]
        mode = latest.metadata().configuration.get("delta.columnMapping.mode", "none")
        return SourceFiles(
            self.uri, fs, base, self.read_schema(), fields, mode == "id", self.partition_columns(), self._chars()
        )

    def _renamed(self, rows: pa.Table, handle: DeltaTable) -> pa.Table:
        """Rows of an earlier version under the names that its columns have now: column mapping knows them by ids."""
        if self._latest().metadata().configuration.get("delta.columnMapping.mode", "none") == "none":
            return rows
        now = {_identity(f): f["name"] for f in json.loads(self._latest().schema().to_json())["fields"]}
        then = {f["name"]: _identity(f) for f in json.loads(handle.schema().to_json())["fields"]}
        kept = [name for name in rows.column_names if then.get(name) in now]
        return rows.select(kept).rename_columns([now[then[name]] for name in kept])

    def _empty(self) -> pa.Table:
        return nullable(self.read_schema()).empty_table()

    def _aligned(self, rows: pa.Table) -> pa.Table:
        """``rows`` in the columns and types of the version seen last."""
        columns, chars = [], self._chars()
        for field in self.read_schema():
            if field.name not in rows.column_names:
                columns.append(pa.nulls(rows.num_rows, field.type))
                continue
            column = rows.column(field.name)
            try:
                column = column.cast(field.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
                raise cannot_convert(self.uri, field.name, column.type, field.type, error) from error
            if field.name in chars:
                what = f"Column {field.name} of the source table {self.uri}"
                column = pad(column.combine_chunks(), chars[field.name], what)
            columns.append(column)
        return pa.table(columns, schema=nullable(self.read_schema()))

    def commit(self, version: int) -> Commit:
        """The raw actions of a version. Raises TableError where its log file is gone, or not there yet."""
        if self._commit is not None and self._commit.version == version:
            return self._commit
        commit = self._commit = read_commit(self.uri, version, self.storage_options)
        if commit is None:
            latest = self._latest().version()
            if version > latest:
                raise TableError(f"The source table {self.uri} has no version {version} yet; its latest is {latest}.")
            raise VersionGone(
                f"The log of the source table {self.uri} no longer holds version {version}: it was cleaned"
                " (delta.logRetentionDuration) before the version was read, so what it changed cannot be told."
                f" {_BASELINE} Raise the source's log retention above the longest pause between runs."
            )
        return commit

    def _latest(self) -> DeltaTable:
        if self._handle is None:
            self.version()
        assert self._handle is not None
        return self._handle

    def _open(self, version: int | None) -> DeltaTable:
        fs, base = filesystem(self.uri, self.storage_options)
        try:
            handle = DeltaTable(self.uri, version=version, storage_options=self.storage_options)
        except TableNotFoundError as error:
            raise self._unreadable(fs, base, version, error) from None
        except (DeltaError, OSError, ValueError) as error:
            raise self._unreadable(fs, base, version, error) from error
        features = set(handle.protocol().reader_features or [])
        unknown = sorted(features - _READABLE)
        if unknown:
            raise TableError(
                f"The source table {self.uri} uses the Delta feature {unknown[0]}, which cannot be read here. Write it"
                " without that feature, or copy it into a plain Delta table."
            )
        for field in json.loads(handle.schema().to_json())["fields"]:
            if collation := _collation(field):
                raise TableError(
                    f"Column {field['name']} of the source table {self.uri} has the collation {collation}, by which"
                    " Spark compares, groups and sorts its texts; here texts are compared by their bytes alone. Give it"
                    " back the collation UTF8_BINARY there (ALTER TABLE .. ALTER COLUMN .. TYPE STRING COLLATE"
                    " UTF8_BINARY), or copy the table with such a column."
                )
        if not handle.schema().fields:
            raise TableError(f"The source table {self.uri} has no columns. Write some rows into it first.")
        return handle

    def _not_a_table(self, fs: pafs.FileSystem, base: str) -> TableError:
        kind = fs.get_file_info(base).type
        if kind == pafs.FileType.NotFound:
            return TableError(f"The source table {self.uri} does not exist. Check the path in its declaration.")
        if kind == pafs.FileType.File:
            return TableError(f"The source {self.uri} is a file, not a Delta table. Name the table's folder.")
        return TableError(
            f"The source folder {self.uri} is not a Delta table: it has no commit in _delta_log. Name the folder above"
            " _delta_log; Parquet files alone can be turned into one with CONVERT TO DELTA."
        )

    def _unreadable(self, fs: pafs.FileSystem, base: str, version: int | None, error: Exception) -> TableError:
        if fs.get_file_info(base).type != pafs.FileType.Directory or not DeltaTable.is_deltatable(self.uri):
            return self._not_a_table(fs, base)
        if version is None:
            return TableError(f"The source table {self.uri} cannot be opened: {error}")
        return TableError(
            f"The source table {self.uri} cannot be read at version {version}: {error}. If its log was cleaned:"
            f" {_BASELINE}"
        )

    def _file_gone(self, version: int, error: BaseException) -> TableError:
        return VersionGone(
            f"A data file of version {version} of the source table {self.uri} is gone ({error}): VACUUM took it before"
            f" the version was read. {_BASELINE} Keep VACUUM's retention above the longest pause between runs."
        )


def signed_files(commit: Commit) -> list[tuple[FileAction, int]]:
    """The files that tell what a commit did, each with the sign of its rows; 0 where each row tells its own.

    Where a commit has files of the change data feed, these alone tell (Delta protocol, "Add CDC File"), if they are to
    be believed.
    """
    if feed := _feed(commit):
        return [(action, 0) for action in feed]
    parts = [(action, -1) for action in commit.removes if action.data_change]
    return parts + [(action, 1) for action in commit.adds if action.data_change]


def _feed(commit: Commit) -> tuple[FileAction, ...]:
    """The files of a commit's change data feed, of engines that write it exactly. delta-rs leaves a row out that an
    UPDATE or MERGE makes equal to another one (1.6 takes the difference of sets), and versions of Trino do not write
    what was there before: then the files that were removed and added tell.
    """
    return commit.feed if commit.engine.startswith(_EXACT_FEEDS) else ()


def _counted(rows: pa.Table, sign: int) -> pa.Table:
    if sign:
        return rows.append_column(N, pa.repeat(pa.scalar(sign, pa.int64()), rows.num_rows))
    added = pc.is_in(rows.column(CHANGE_TYPE), pa.array(["insert", "update_postimage"]))
    signs = pc.if_else(added, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
    return rows.drop_columns([CHANGE_TYPE]).append_column(N, signs)


def _identity(field: dict[str, Any]) -> Any:
    return field.get("metadata", {}).get("delta.columnMapping.id", field["name"])


def _collation(field: dict[str, Any]) -> str | None:
    """A collation other than UTF8_BINARY that a column or a part of it has (``PROTOCOL.md``, "Collations")."""
    inside = [field]
    while inside:
        part = inside.pop()
        for collation in ((part.get("metadata") or {}).get("__COLLATIONS") or {}).values():
            if str(collation).rpartition(".")[2].upper() != "UTF8_BINARY":
                return str(collation)
        for kind in (part.get(key) for key in ("type", "elementType", "keyType", "valueType")):
            if isinstance(kind, str) and " collate " in kind:
                return kind.rpartition(" ")[2]
            if isinstance(kind, dict):
                inside += [kind, *kind.get("fields", ())]
    return None


class _explain:
    """Turn delta-rs's errors while reading into a TableError that names the table."""

    def __init__(self, uri: str, what: str) -> None:
        self.uri = uri
        self.what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and "non UTF-8" in str(error):
            raise TableError(
                f"The source table {self.uri} cannot be read ({self.what}): a text in it holds bytes that are no UTF-8"
                " (Spark writes any bytes as a text). Correct them there, as by make_valid_utf8 of Spark, or write them"
                " as a BINARY."
            ) from error
        if type(error) is Exception:  # what delta-rs finds while Arrow asks it for rows
            raise TableError(
                f"The source table {self.uri} cannot be read ({self.what}): {error}. Where a value does not fit"
                " the type that its column has in the log, write the column again in that type; a damaged file, too."
            ) from error
        if isinstance(error, (DeltaError, OSError)):
            raise TableError(
                f"The source table {self.uri} cannot be read ({self.what}): {error}. A file that VACUUM took or a Delta"
                " feature that is not known here; copy the table into a plain Delta table if it goes on."
            ) from error
