"""The one reader and committer of the Delta logs that SweepArea owns, through delta-rs.

A commit is a compare-and-swap on the table's version. delta-rs validates nothing (it accepts removing a file that is
not there, adding one twice, rows of another type), so :meth:`DeltaLog.commit` does. Paths in actions are raw: delta-rs
reports them percent-encoded, and a remove action with an encoded path would silently do nothing.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from os import PathLike, fspath
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake import Field as DeltaField
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from sweeparea.infra import storage
from sweeparea.tables.errors import CommitConflict, ForeignWrite, TableError
from sweeparea.tables.faults import crash_point
from sweeparea.tables.log.add_actions import live_files
from sweeparea.tables.log.commits import Commit, read_apps, read_commit
from sweeparea.tables.log.files import DataFile, sync
from sweeparea.tables.log.fitting import Fitting, Layout
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
NEAR = 16
_COMMIT = re.compile(r"\d{20}\.json\Z", re.ASCII)
_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\.parquet\Z", re.ASCII)
_NUMBERED = re.compile(r"\d{20}\.", re.ASCII)
STALE_SECONDS = 300
"""A handle not refreshed for so long is opened anew: the versions after it may have been cleaned away meanwhile."""


class DeltaLog:
    """One table; not to be shared by threads.

    A handle is kept between calls. Methods without a ``version`` bring it up to date first (a look for the next
    commit's file, however long the log is); methods told the version it stands at do not, so a caller asks for
    :meth:`version` once and passes it on.
    """

    def __init__(self, uri: str | PathLike[str], storage_options: dict[str, str] | None = None) -> None:
        self.uri = fspath(uri)
        storage.prepare(self.uri)
        self.storage_options = storage_options
        self._handle: DeltaTable | None = None
        self._fresh_at = 0.0
        self._fitting = Fitting(self.uri, storage_options)

    def exists(self) -> bool:
        """Whether a Delta table is here."""
        if self._handle is not None and self._seen(self._handle.version())[0]:
            return True
        # delta-rs lists the log to find out, which takes the longer the more commits it holds
        fs, base = filesystem(self.uri, self.storage_options)
        log = f"{base.rstrip('/')}/_delta_log"
        found = fs.get_file_info([f"{log}/{0:020d}.json", f"{log}/_last_checkpoint"])
        return any(info.type == pafs.FileType.File for info in found)

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
        present = pa.schema(self._current().schema())
        if not same_columns(present, schema):
            raise TableError(
                f"The table at {self.uri} exists with other columns. It has ({describe_columns(present)}); wanted are"
                f" ({describe_columns(schema)}). Give the new definition another name, or remove the old one's tables."
            )

    def version(self) -> int:
        """The latest version."""
        return self._current().version()

    def schema(self) -> pa.Schema:
        """The columns as Arrow sees them."""
        return pa.schema(self._held().schema())

    def files(self, version: int | None = None, columns: Collection[str] | None = None) -> list[DataFile]:
        """The live files, with raw paths, at ``version`` or now. ``columns``: of these alone statistics are told, which
        is what listing many files costs.
        """
        return live_files(self._at(version), self.uri, columns)

    def paths(self, version: int | None = None) -> set[str]:
        """The raw paths of the live files alone: much cheaper than :meth:`files`."""
        return {unquote(path) for path in pa.table(self._at(version).get_add_actions()).column("path").to_pylist()}

    def uris(self, files: Iterable[DataFile]) -> list[str]:
        """Absolute paths of ``files``, for ``spark.read.parquet`` and other readers."""
        return [f"{self.uri.rstrip('/')}/{file.path}" for file in files]

    def read(self, columns: list[str] | None = None, filters: Any = None, version: int | None = None) -> pa.Table:
        """The rows as Arrow, for small tables. ``filters`` as pyarrow takes them: ``[("a", ">", 3)]``."""
        wanted = None if filters is None else pq.filters_to_expression(filters)
        # in nanoseconds an instant of Spark's would be none after 2262
        options = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
        dataset = self._at(version).to_pyarrow_dataset(parquet_read_options=options)
        table = dataset.to_table(columns=columns, filter=wanted)
        schema = self.schema()
        return table.cast(pa.schema([schema.field(name) for name in table.column_names]))

    def app_version(self, app: str, version: int | None = None) -> int | None:
        """The last sequence number that ``app`` committed here, None if it never did."""
        return self._at(version).transaction_version(app)

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The newest commits' information, newest first."""
        return self._current().history(limit)

    def commit_of(self, version: int) -> Commit | None:
        """The raw actions of one version, None if its log file is gone."""
        return read_commit(self.uri, version, self.storage_options)

    def _apps_of(self, version: int) -> dict[str, int] | None:
        """Which applications committed a version, and up to which sequence; None if its log file is gone."""
        return read_apps(self.uri, version, self.storage_options)

    def version_tagged(self, app: str, sequence: int) -> int | None:
        """The version that holds what ``app`` had committed up to ``sequence``; None if the log no longer tells.

        Versions after it that rearrange files only hold the same rows, but the tagged one itself is returned. A table
        that ``app`` never touched up to ``sequence`` is pinned to its creation, version 0.
        """
        version = self.version()
        for _ in range(NEAR):  # most ask for one of the last commits
            apps = self._apps_of(version)
            if apps is None:
                return None
            if version == 0 or apps.get(app, sequence + 1) <= sequence:
                return version
            version -= 1
        oldest = self._oldest()
        low, high, found = oldest, version, 0 if oldest == 0 else None
        while low <= high:
            middle = tagged = (low + high) // 2
            seq = None
            while tagged >= low and seq is None:
                seq = (self._apps_of(tagged) or {}).get(app)
                tagged -= 1
            if seq is None:
                low = middle + 1
            elif seq <= sequence:
                found, low = tagged + 1, middle + 1
            else:
                high = tagged
        return found

    def _oldest(self) -> int:
        """The oldest version whose commit the log still tells."""
        names = (info.base_name for info in files_in(f"{self.uri.rstrip('/')}/_delta_log"))
        return min((int(name[:20]) for name in names if _COMMIT.match(name)), default=self.version())

    def foreign_commits(
        self, since_version: int, our_apps: Collection[str], version: int | None = None
    ) -> list[Commit]:
        """Others' commits after ``since_version`` that only rearrange files (OPTIMIZE), oldest first: they are adopted.

        Looks up to ``version``, the latest if not given. Any other commit that is not of ``our_apps`` (see
        :meth:`Commit.is_of`) raises ForeignWrite, unless what it did was undone since (RESTORE to the version before).
        """
        latest = self.version() if version is None else version
        commits = [commit for version in range(since_version + 1, latest + 1) if (commit := self.commit_of(version))]
        foreign = [commit for commit in commits if not commit.is_of(our_apps) and commit.version > 0]
        bad = [commit for commit in foreign if not commit.rearranges]
        if not bad:
            return foreign
        first, last = bad[0], bad[-1]
        ours_between = any(first.version < c.version < last.version and c.is_of(our_apps) for c in commits)
        if not ours_between and self._same_table(first.version - 1, last.version):
            return [commit for commit in foreign if not first.version <= commit.version <= last.version]
        when = "unknown" if first.time is None else datetime.fromtimestamp(first.time / 1e6, UTC).isoformat()
        raise ForeignWrite(
            f"The table {self.uri} was changed from outside: version {first.version} is a {first.operation} by"
            f" {first.engine} at {when}, and its rows or settings are no longer what SweepArea committed. Nothing was"
            f" overwritten. Undo it with RESTORE TABLE delta.`{self.uri}` TO VERSION AS OF {first.version - 1} and run"
            " again; keep own additions in a table of your own."
        )

    def refuse_foreign(self, owner: str) -> None:
        """ForeignWrite if somebody else changed rows or settings since the last commit of ``owner``, who alone may."""
        latest = self.version()
        self.foreign_commits(self.last_version_of({owner}, latest), {owner}, latest)

    def last_version_of(self, our_apps: Collection[str], version: int | None = None) -> int:
        """The latest version that one of ``our_apps`` committed; the creation, 0, if none did.

        Looks from the newest version back; where the log was cleaned it stops, at the oldest version it can see.
        """
        version = self.version() if version is None else version
        while version > 0:
            apps = self._apps_of(version)
            if apps is None or Commit(version, apps=apps).is_of(our_apps):
                break
            version -= 1
        return version

    def commit(
        self,
        adds: Collection[DataFile],
        removes: Collection[DataFile],
        *,
        app: tuple[str, int] | None,
        base_version: int,
        data_change: bool = True,
        metadata: dict[str, Any] | None = None,
        schema: str | None = None,
    ) -> int:
        """Commit ``base_version + 1`` with exactly these files added and removed; returns that version.

        ``schema`` (``schema_text``): the table gets these columns, and all files that it holds are removed besides.
        ``app`` tags the commit with (application, sequence). Raises CommitConflict if the version has moved, TableError
        if the actions do not fit the table (file missing or of other columns, added twice, removed but not live),
        SetupError if the log cannot be written. After an exception only the log knows whether the commit happened:
        a caller that must know reads :meth:`app_version`.
        """
        crash_point("commit.before", self.uri)
        table = self._held()
        partition_columns = list(table.metadata().partition_columns)
        if table.version() != base_version:
            table = self._current()
        if table.version() != base_version:
            raise self._conflict(base_version, table.version())
        columns = table.schema() if schema is None else DeltaSchema.from_json(schema)
        self.validate(adds, removes, base_version, None if schema is None else pa.schema(columns))
        properties = CommitProperties(
            custom_metadata=metadata,
            max_commit_retries=0,
            app_transactions=None if app is None else [Transaction(*app)],
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
            self._handle = None
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
        table = self._current()
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
            self._handle = None
            if self.version() > base:
                raise self._conflict(base, self.version()) from error
            raise TableError(
                f"Columns cannot be added to the table {self.uri}: {error}. Nothing was changed."
            ) from error
        self._handle = None
        crash_point("columns.after", self.uri)

    def _sync(self, version: int) -> None:
        """A commit is to survive a power cut before anything rests on it."""
        fs, base = filesystem(self.uri, self.storage_options)
        log = f"{base.rstrip('/')}/_delta_log"
        try:
            with explain_write_errors(self.uri):
                sync(fs, f"{log}/{version:020d}.json", log)
        except FileNotFoundError:  # a commit told done at a version long gone: the caller reads what stands
            self._handle = None

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
            return self._current().vacuum(
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
        later = {field.name for field in self._held().schema().fields if ADDED in (field.metadata or {})}
        partition_columns = set(self._held().metadata().partition_columns)
        layout = Layout.of(self.schema() if schema is None else schema, partition_columns, later)
        self._fitting.check(adds, layout)

    def _held(self) -> DeltaTable:
        """The handle at the version it stands at."""
        return self._current() if self._handle is None else self._handle

    def _current(self) -> DeltaTable:
        """The handle at the latest version."""
        now = time.time()
        if self._handle is not None and 0 <= now - self._fresh_at < STALE_SECONDS:
            try:
                stands, followed = self._seen(self._handle.version())
                if stands:
                    if followed:
                        self._handle.update_incremental()
                    self._fresh_at = now
                    return self._handle
            except (DeltaError, OSError):
                self._handle = None
        self._handle = self._open(None)
        self._fresh_at = now
        return self._handle

    def _seen(self, version: int) -> tuple[bool, bool]:
        """Whether a version's commit is still there (else the log was shortened, or the table is another one), and
        whether there is one after it. Listing the log, as delta-rs does to find out, takes the longer the longer it is.
        """
        fs, base = filesystem(self.uri, self.storage_options)
        log = f"{base.rstrip('/')}/_delta_log"
        this, following = fs.get_file_info([f"{log}/{v:020d}.json" for v in (version, version + 1)])
        return this.type == pafs.FileType.File, following.type == pafs.FileType.File

    def _at(self, version: int | None) -> DeltaTable:
        if version is None:
            return self._current()
        held = self._held()
        return held if held.version() == version else self._open(version)

    def _open(self, version: int | None) -> DeltaTable:
        try:
            return DeltaTable(self.uri, version=version, storage_options=self.storage_options)
        except TableNotFoundError:
            raise TableError(
                f"There is no Delta table at {self.uri}. It is created by the first run of the stream or query that"
                " it belongs to."
            ) from None
        except (DeltaError, OSError) as error:
            at = "" if version is None else f" at version {version}"
            raise TableError(f"The Delta table {self.uri} cannot be opened{at}: {error}") from error

    def _same_table(self, left: int, right: int) -> bool:
        """Whether two versions hold the same files under the same columns and settings."""
        a, b = self._open(left), self._open(right)
        settings = [(t.schema().to_json(), t.metadata().configuration, t.metadata().partition_columns) for t in (a, b)]
        return settings[0] == settings[1] and self.paths(left) == self.paths(right)

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
