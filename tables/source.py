"""A user's source Delta table, read version by version as the signed rows that each commit added and removed.

Never "what looks new": a version gives the bag difference of the rows it removed and added, so an UPDATE of one row in
a file of a million gives two rows, and OPTIMIZE gives none. Reading is delta-rs's; deletion vectors work.
"""

# pyarrow.compute makes its functions when it is imported, where a type checker cannot see them.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import json
from os import PathLike, fspath

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from sweeparea.tables.commits import Commit, FileAction, read_commit
from sweeparea.tables.errors import TableError
from sweeparea.tables.files import filesystem
from sweeparea.tables.schema import delta_type, spark_type

N = "__n"
"""The column that counts copies: +1 added, -1 removed (BIGINT)."""
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
}


class SourceTable:
    """One source table. A handle of the latest version is kept; :meth:`version` brings it up to date."""

    def __init__(self, uri: str | PathLike[str], storage_options: dict[str, str] | None = None) -> None:
        self.uri = fspath(uri).removeprefix("file://")
        self.storage_options = storage_options
        self._handle: DeltaTable | None = None

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

    def spark_schema(self) -> list[tuple[str, str]]:
        """Name and Spark DDL type of each column, read from the log without a JVM."""
        fields = json.loads(self._latest().schema().to_json())["fields"]
        return [(field["name"], delta_type(field["type"])) for field in fields]

    def partition_columns(self) -> list[str]:
        """The columns whose values stand in the log, not in the files."""
        return list(self._latest().metadata().partition_columns)

    def commit_time(self, version: int) -> int:
        """When ``version`` was committed, by its writer's clock, in microseconds since the epoch. It may go back."""
        time = self._commit(version).time
        if time is None:
            raise TableError(f"Version {version} of the source table {self.uri} does not tell when it was committed.")
        return time

    def snapshot(self, version: int) -> pa.Table:
        """All rows at ``version``, in the columns of the version seen last; a column added later is NULL."""
        handle = self._open(version)
        with _explain(self.uri, f"version {version}"):
            # scan() reads deletion vectors and column mapping, to_pyarrow_table does not.
            rows = pa.table(handle.scan().read_all())
        return self._aligned(rows)

    def changes(self, version: int) -> pa.Table:
        """What commit ``version`` did: the source's columns + ``__n``, the copies of a row added or (negative) removed.

        Rows that a commit removed and added again cancel; no row has ``__n`` 0. Version 0 adds its snapshot. Columns
        are those of the version seen last.
        """
        latest = self._latest().version()
        if version > latest:
            raise TableError(f"The source table {self.uri} has no version {version} yet; its latest is {latest}.")
        commit = self._commit(version)
        if commit.rearranges:
            return self._counted(self.schema().empty_table(), [])
        if version == 0:
            added = self.snapshot(0)
            return net(self._counted(added, [1] * added.num_rows))
        feed = None if commit.metadata or commit.protocol else self._feed(version)
        return net(feed if feed is not None else self._difference(commit))

    def _feed(self, version: int) -> pa.Table | None:
        """The changes by delta-rs's change feed; None where it cannot tell.

        It refuses column mapping, and looks for files in the wrong place where a partition value has a blank or an
        umlaut. The other way round works for those, and says what is wrong where a file is really gone.
        """
        try:
            # Works without the table's change data feed: delta-rs then derives inserts and deletes from whole files.
            rows = pa.table(self._latest().load_cdf(version, version).read_all())
        except Exception:
            return None
        kinds = rows.column("_change_type").cast(pa.string())
        added = pc.is_in(kinds, pa.array(["insert", "update_postimage"]))
        signs = pc.if_else(added, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
        return self._aligned(rows).append_column(N, signs)

    def _difference(self, commit: Commit) -> pa.Table:
        """The changes of a commit from its own files; from two snapshots where files alone do not tell."""
        mapped = self._latest().metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
        if mapped or any(action.deletion_vector for action in (*commit.adds, *commit.removes)):
            before, after = self.snapshot(commit.version - 1), self.snapshot(commit.version)
            signs = [-1] * before.num_rows + [1] * after.num_rows
            return self._counted(pa.concat_tables([before, after]), signs)
        parts = [(self._file(action, commit.version), -1) for action in commit.removes if action.data_change]
        parts += [(self._file(action, commit.version), 1) for action in commit.adds if action.data_change]
        rows = pa.concat_tables([self.schema().empty_table(), *(part for part, _ in parts)])
        return self._counted(rows, [sign for part, sign in parts for _ in range(part.num_rows)])

    def _file(self, action: FileAction, version: int) -> pa.Table:
        fs, base = filesystem(self.uri, self.storage_options)
        try:
            rows = pq.ParquetFile(f"{base}/{action.path}", filesystem=fs).read()
        except FileNotFoundError as error:
            raise self._file_gone(version, error) from error
        for name, text in action.partition.items():
            if name not in self.schema().names:
                continue
            column_type = self.schema().field(name).type
            value = pa.scalar(text or None, pa.string()).cast(column_type)
            column = pa.repeat(value, rows.num_rows)
            if name in rows.column_names:
                rows = rows.drop_columns([name])
            rows = rows.append_column(name, column)
        return self._aligned(rows)

    def _aligned(self, rows: pa.Table) -> pa.Table:
        """``rows`` in the columns and types of the version seen last."""
        columns = []
        for field in self.schema():
            if field.name not in rows.column_names:
                columns.append(pa.nulls(rows.num_rows, field.type))
                continue
            column = rows.column(field.name)
            try:
                columns.append(column.cast(field.type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
                raise TableError(
                    f"Column {field.name} of the source table {self.uri} was {spark_type(column.type)} and is"
                    f" {spark_type(field.type)} now, and the old values cannot be converted ({error}). Declare a new"
                    " stream on the table as it is now."
                ) from error
        nullable = [pa.field(field.name, field.type) for field in self.schema()]
        return pa.table(columns, schema=pa.schema(nullable))

    def _counted(self, rows: pa.Table, signs: list[int]) -> pa.Table:
        return self._aligned(rows).append_column(N, pa.array(signs, pa.int64()))

    def _commit(self, version: int) -> Commit:
        commit = read_commit(self.uri, version, self.storage_options)
        if commit is None:
            self._latest()
            raise TableError(
                f"The log of the source table {self.uri} no longer holds version {version}: it was cleaned"
                " (delta.logRetentionDuration) before the version was read, so what it changed cannot be told. Register"
                " the stream anew, which takes the table as it is for its first version, and raise the source's log"
                " retention above the longest pause between runs."
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
            f"The source table {self.uri} cannot be read at version {version}: {error}. If its log was cleaned,"
            " register the stream anew, which takes the table as it is for its first version."
        )

    def _file_gone(self, version: int, error: BaseException) -> TableError:
        return TableError(
            f"A data file of version {version} of the source table {self.uri} is gone ({error}): VACUUM took it before"
            " the version was read. Register the stream anew, which takes the table as it is for its first version, and"
            " keep VACUUM's retention above the longest pause between runs."
        )


def net(rows: pa.Table) -> pa.Table:
    """``rows`` with equal rows merged into one whose ``__n`` is their sum, without those that come to 0.

    NULL equals NULL and NaN equals NaN. Rows that were only added stay as they are: a bag needs no merging.
    """
    counts = rows.column(N)
    if rows.num_rows == 0 or pc.min(counts).as_py() > 0:
        return rows
    keys: dict[str, pa.ChunkedArray] = {}
    for name in rows.column_names:
        if name != N:
            for part in _comparable(rows.column(name)):
                keys[f"k{len(keys)}"] = part
    numbered = pa.table({**keys, "n": counts, "row": pa.array(range(rows.num_rows), pa.int64())})
    groups = numbered.group_by(list(keys), use_threads=False).aggregate([("n", "sum"), ("row", "min")])
    kept = groups.filter(pc.not_equal(groups.column("n_sum"), 0)).sort_by("row_min")
    picked = rows.take(kept.column("row_min")).drop_columns([N])
    return picked.append_column(N, kept.column("n_sum"))


def _comparable(column: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    """Columns that are equal exactly where ``column`` is, of types that Arrow can group by."""
    if pa.types.is_struct(column.type):
        parts = [column.is_valid()]
        for child in column.flatten():
            parts += _comparable(child)
        return parts
    if pa.types.is_nested(column.type):
        return [pa.chunked_array([pa.array([repr(value) for value in column.to_pylist()], pa.string())])]
    return [column]


class _explain:
    """Turn delta-rs's errors while reading into a TableError that names the table."""

    def __init__(self, uri: str, what: str) -> None:
        self.uri = uri
        self.what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (DeltaError, OSError)):
            raise TableError(
                f"The source table {self.uri} cannot be read ({self.what}): {error}. A file that VACUUM took or a Delta"
                " feature that is not known here; copy the table into a plain Delta table if it goes on."
            ) from error
