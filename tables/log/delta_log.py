"""The one reader and committer of the Delta logs that SweepArea owns, through delta-rs.

A commit is a compare-and-swap on the table's version. delta-rs validates nothing (it accepts removing a file that is
not there, adding one twice, rows of another type), so :meth:`DeltaLog.commit` does. Paths in actions are raw: delta-rs
reports them percent-encoded, and a remove action with an encoded path would silently do nothing.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake import Field as DeltaField
from deltalake import Schema as DeltaSchema
from deltalake.transaction import AddAction, RemoveAction

from sweeparea.tables.errors import CommitConflict, TableError
from sweeparea.tables.faults import crash_point
from sweeparea.tables.log.commit_history import CommitHistory
from sweeparea.tables.log.files import DataFile, sync
from sweeparea.tables.log.fitting import ColumnLayout, Fitting
from sweeparea.tables.log.folders import files_in, filesystem
from sweeparea.tables.log.schema import bare, describe_columns, same_columns
from sweeparea.tables.log.write_errors import explain_write_errors, write_error

DATA_TABLE = {
    "delta.checkpointInterval": "25",
    "delta.dataSkippingNumIndexedCols": "-1",
    "delta.logRetentionDuration": "interval 7 days",
}
"""Configuration of tables of rows. -1: tick columns come last, and files are pruned by them however wide rows are. The
commits since the last checkpoint are read whenever a table is opened (0.2 ms each), and each checkpoint takes 10 ms.
"""
LEDGER_TABLE = {
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 1 hours",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
}
"""Configuration of the ledger's head, which gets a commit a slice and whose old versions nobody needs."""
ADDED = "sweeparea.added"
"""Metadata of a column that was added after the table's first rows."""
_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\.parquet\Z", re.ASCII)
_NUMBERED = re.compile(r"\d{20}\.", re.ASCII)


class DeltaLog(CommitHistory):
    """One table, read and changed; not to be shared by threads."""

    def __init__(self, uri: str | PathLike[str], storage_options: dict[str, str] | None = None) -> None:
        super().__init__(uri, storage_options)
        self._fitting = Fitting(self.uri, storage_options)

    def create(
        self,
        schema: pa.Schema,
        *,
        name: str,
        description: str,
        configuration: dict[str, str] | None = None,
        partition_by: list[str] | None = None,
    ) -> None:
        """Create the table unless it exists; raises TableError if it exists with other columns.

        ``configuration`` defaults to :data:`DATA_TABLE`.
        """
        if not self.exists():
            wanted: dict[str, str | None] = {**(DATA_TABLE if configuration is None else configuration)}
            crash_point("create.before", self.uri)
            try:
                DeltaTable.create(
                    self.uri,
                    bare(schema),
                    mode="ignore",
                    name=name,
                    description=description,
                    configuration=wanted,
                    partition_by=partition_by,
                    storage_options=self.storage_options,
                )
            except Exception as error:
                explained = write_error(self.uri, error)
                if explained is not None:
                    raise explained from error
                # Another run may have created it in the same instant: then its table is taken.
                if not DeltaTable.is_deltatable(self.uri, self.storage_options):
                    raise
            crash_point("create.after", self.uri)
        present = pa.schema(self.handle.current().schema())
        if not same_columns(present, schema):
            raise TableError(
                f"The table at {self.uri} exists with other columns. It has ({describe_columns(present)}); wanted are"
                f" ({describe_columns(schema)}). Give the new definition another name, or remove the old one's tables."
            )

    def commit(
        self,
        adds: Collection[DataFile],
        removes: Collection[DataFile],
        *,
        app: tuple[str, int] | Mapping[str, int] | None,
        base_version: int,
        data_change: bool = True,
        metadata: dict[str, Any] | None = None,
        schema: str | None = None,
    ) -> int:
        """Commit ``base_version + 1`` with exactly these files added and removed; returns that version.

        ``schema`` (``schema_text``): the table gets these columns, and all files that it holds are removed besides.
        ``app`` tags the commit with (application, sequence), or with several. Raises CommitConflict if the version has
        moved, TableError if the actions do not fit the table (file missing or of other columns, added twice, removed
        but not live), SetupError if the log cannot be written. After an exception only the log knows whether the commit
        happened: a caller that must know reads :meth:`app_version`.
        """
        crash_point("commit.before", self.uri)
        table = self.handle.held()
        partition_columns = list(table.metadata().partition_columns)
        if table.version() != base_version:
            table = self.handle.current()
        if table.version() != base_version:
            raise self._conflict(base_version, table.version())
        columns = table.schema() if schema is None else DeltaSchema.from_json(schema)
        self.validate(adds, removes, base_version, None if schema is None else pa.schema(columns))
        apps = app.items() if isinstance(app, Mapping) else (app,) if app is not None else ()
        properties = CommitProperties(
            custom_metadata=metadata,
            max_commit_retries=0,
            app_transactions=[Transaction(*each) for each in apps] or None,
        )
        crash_point("commit.within", self.uri)
        try:
            table.create_write_transaction(
                _actions(adds, removes, data_change),
                "append" if schema is None else "overwrite",
                columns,
                partition_columns,
                commit_properties=properties,
            )
        except Exception as error:
            self.handle.forget()
            explained = write_error(self.uri, error)
            if explained is not None:
                raise explained from error
            latest = self.version()
            if latest > base_version:
                raise self._conflict(base_version, latest) from error
            raise TableError(
                f"The commit to the table {self.uri} failed: {error}. Nothing was changed; run again."
            ) from error
        self._sync(base_version + 1)
        crash_point("commit.after", self.uri)
        return base_version + 1

    def add_columns(self, added: Sequence[pa.Field], app: str) -> None:
        """Append nullable columns, NULL in all rows that are there, in one commit tagged as ``app``'s. A column that is
        there already is left as it is; files that lack one of these columns fit the table from now on.

        Raises CommitConflict where somebody committed meanwhile; SetupError if the log cannot be written.
        """
        table = self.handle.current()
        present = set(self.schema().names)
        missing = [field for field in added if field.name not in present]
        if not missing:
            return
        told = [DeltaField.from_arrow(field.with_nullable(True).with_metadata({ADDED: "true"})) for field in missing]
        base = table.version()
        tag = CommitProperties(max_commit_retries=0, app_transactions=[Transaction(app, base + 1)])
        crash_point("columns.before", self.uri)
        try:
            table.alter.add_columns(told, commit_properties=tag)
        except Exception as error:
            explained = write_error(self.uri, error)
            if explained is not None:
                raise explained from error
            self.handle.forget()
            if self.version() > base:
                raise self._conflict(base, self.version()) from error
            raise TableError(
                f"Columns cannot be added to the table {self.uri}: {error}. Nothing was changed."
            ) from error
        self.handle.forget()
        crash_point("columns.after", self.uri)

    def _sync(self, version: int) -> None:
        """A commit is to survive a power cut before anything rests on it."""
        fs, base = filesystem(self.uri, self.storage_options)
        log = f"{base.rstrip('/')}/_delta_log"
        try:
            with explain_write_errors(self.uri):
                sync(fs, f"{log}/{version:020d}.json", log)
        except FileNotFoundError:  # a commit told done at a version long gone: the caller reads what stands
            self.handle.forget()

    def trim(self, commits: int, seconds: float, kept: Collection[int] = ()) -> int:
        """Shorten the log to about ``commits`` versions, from a checkpoint on, but by none younger than ``seconds`` and
        by none of ``kept``; returns how many files went. Versions before cannot be read any more.

        Each commit and opening lists the log (2.5 us a file, several times), so its length is what a slice costs.
        """
        files = {info.base_name: info for info in files_in(f"{self.uri.rstrip('/')}/_delta_log")}
        last = min([self.version() - commits, *kept])
        checkpoints = [int(name[:20]) for name in files if _CHECKPOINT.match(name) and int(name[:20]) <= last]
        if not checkpoints:
            return 0
        first, now, gone = max(checkpoints), time.time(), 0
        old = sorted(name for name in files if _NUMBERED.match(name) and int(name[:20]) < first)
        fs, base = filesystem(self.uri, self.storage_options)
        for name in old:
            modified = files[name].mtime_ns
            if modified is None or now - modified / 1e9 < seconds:
                break  # what follows is younger
            with suppress(FileNotFoundError):
                fs.delete_file(f"{base.rstrip('/')}/_delta_log/{name}")
            gone += 1
        return gone

    def vacuum(
        self, hours: int, *, orphans: bool = False, kept: Collection[int] = (), dry_run: bool = False
    ) -> list[str]:
        """Delete files that no version of the last ``hours`` holds; returns their paths. None: no commit either.

        ``orphans``: also those of that age that no version has ever held, left by runs that were killed. ``kept``:
        versions whose files stay, whatever their age.
        """

        def run(dry: bool) -> list[str]:
            return self.handle.current().vacuum(
                retention_hours=hours,
                dry_run=dry,
                enforce_retention_duration=False,
                full=orphans,
                keep_versions=sorted(set(kept)) or None,
            )

        found = run(True)
        return found if dry_run or not found else run(False)

    def validate(
        self,
        adds: Collection[DataFile],
        removes: Collection[DataFile],
        base_version: int | None = None,
        schema: pa.Schema | None = None,
    ) -> None:
        """Raise TableError unless a commit of these actions on ``base_version`` would give a sound table, with the
        columns of ``schema`` where it is to get other ones.
        """
        live = self.paths(base_version)
        added = Counter(file.path for file in adds)
        removed = Counter(file.path for file in removes)
        doubled = sorted(path for path, times in added.items() if times > 1 or path in live)
        if doubled:
            raise TableError(
                f"The table {self.uri} already holds the file {doubled[0]}: it cannot be added a second time."
            )
        absent = sorted(path for path, times in removed.items() if times > 1 or path not in live)
        if absent:
            raise TableError(
                f"The table {self.uri} does not hold the file {absent[0]}, so it cannot be removed: the table was"
                " rearranged since it was read. Run again, which reads it anew."
            )
        later = {field.name for field in self.handle.held().schema().fields if ADDED in (field.metadata or {})}
        partition_columns = set(self.handle.held().metadata().partition_columns)
        layout = ColumnLayout.of(self.schema() if schema is None else schema, partition_columns, later)
        self._fitting.check(adds, layout)

    def _conflict(self, base: int, latest: int) -> CommitConflict:
        return CommitConflict(
            f"The table {self.uri} is at version {latest}, not {base}: somebody committed in between."
        )


def schema_text(schema: pa.Schema) -> str:
    """Columns as a Delta log writes them."""
    return DeltaSchema.from_arrow(bare(schema)).to_json()


def _actions(
    adds: Iterable[DataFile], removes: Iterable[DataFile], data_change: bool
) -> list[AddAction | RemoveAction]:
    now = int(time.time() * 1000)
    removed = [RemoveAction(file.path, data_change, now, file.size, file.partition or None) for file in removes]
    return [*removed, *(AddAction(file.path, file.size, file.partition, now, data_change, file.stats) for file in adds)]
