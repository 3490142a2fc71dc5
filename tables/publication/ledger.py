"""The ledger: one row per stream, relation and query, its head; a commit to it is the commit of a slice.

The head is a small Delta table that holds one file, replaced by compare-and-swap. The history of all rows is a second
table, appended to when a row's actions have been applied. Nothing is cached across calls but open tables and the rows
of the head's file, which has another name after each commit.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from os import PathLike
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sweeparea.tables.errors import CommitConflict, LostRace, TableError
from sweeparea.tables.layout import Layout
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import LEDGER_TABLE, DeltaLog
from sweeparea.tables.log.files import DataFile, write_file
from sweeparea.tables.log.folders import filesystem
from sweeparea.tables.log.write_errors import explain_write_errors
from sweeparea.tables.publication.info import QueryInfo, SourceInfo
from sweeparea.tables.publication.name_kinds import NameKind

KINDS = (NameKind.STREAM, NameKind.RELATION, NameKind.QUERY)
"""Of which names there are rows."""
GIVE_UP_SECONDS = 120.0
"""A commit that others' commits have beaten for so long is reported as an error."""
SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("kind", pa.string()),
        ("registration", pa.string()),
        ("seq", pa.int64()),
        ("committed", pa.int64()),
        ("attempt", pa.string()),
        ("pins", pa.string()),
        ("actions", pa.string()),
        ("info", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
"""pins, actions and info are JSON text; committed is a tick."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class LedgerRow:
    """The last commit of one stream, relation or query.

    ``seq`` counts its commits from 1, one that stands for several as so many; ``committed`` is a stream's heartbeat or
    a query's committed instant (tick); ``attempt`` is the run that made the commit; ``pins`` says per input what was
    read; ``actions`` per table, by its path in the data folder, what apply does; ``info`` is JSON as ``info.py`` has
    it; ``at`` is in microseconds since the epoch, UTC.
    """

    name: str
    kind: NameKind
    registration: str
    seq: int
    committed: int | None
    attempt: str
    pins: dict[str, dict[str, Any]] = field(default_factory=dict)
    actions: dict[str, dict[str, Any]] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    at: int = 0

    @property
    def correction_seq(self) -> int:
        """The last commit that changed anything at or below the instant of the commit before it; 0: none did."""
        return self.info.get("correction_seq") or 0

    @property
    def of_source(self) -> SourceInfo:
        """The info of a stream's or relation's commit."""
        return SourceInfo.of(self.info)

    @property
    def of_query(self) -> QueryInfo:
        """The info of a query's commit."""
        return QueryInfo.of(self.info)

    @property
    def app(self) -> str:
        """The application id of this registration's commits in Delta logs."""
        return f"{self.name}:{self.registration}"


class Ledger:
    """The ledger of one data folder."""

    def __init__(self, data_folder: str | PathLike[str], storage_options: dict[str, str] | None = None) -> None:
        self.layout = Layout(data_folder)
        self.storage_options = storage_options
        self._logs: dict[str, DeltaLog] = {}
        self._head = self.log(self.layout.ledger)
        self._history = self.log(self.layout.history)
        self._parsed: tuple[list[str], list[LedgerRow]] = [], []
        """The head's files that were read last, which nobody changes, and their rows."""

    def log(self, table: str) -> DeltaLog:
        """The log of a table of the data folder, by path or relative path; kept open, since opening is what costs."""
        relative = self.layout.relative(table)
        if relative not in self._logs:
            self._logs[relative] = DeltaLog(self.layout.absolute(relative), self.storage_options)
        return self._logs[relative]

    def create(self) -> None:
        """Create both tables unless they exist."""
        self._head.create(
            SCHEMA,
            name="ledger",
            description="Last commit of every stream, relation and query",
            configuration=LEDGER_TABLE,
        )
        self._history.create(
            SCHEMA,
            name="ledger_history",
            description="Every applied commit of every stream, relation and query",
        )

    def head(self) -> dict[str, LedgerRow]:
        """All rows by name; empty where nothing was ever committed."""
        return self._read()[1] if self._head.exists() else {}

    def row(self, name: str) -> LedgerRow | None:
        """One row, None if the name has never committed."""
        return self.head().get(name)

    def commit(
        self, row: LedgerRow, expected_seq: int | None, expected_attempt: str | None = None, numbers: int = 1
    ) -> LedgerRow:
        """Advance one row by compare-and-swap; returns it as the ledger holds it.

        ``expected_seq`` is the sequence the row had when this run began, None for the first commit; with
        ``expected_attempt``, who made it: a name that was dropped and made anew counts from 1 again. ``numbers``: how
        many sequence numbers the commit takes. Others' commits in
        between are retried after a random pause. Whether the commit happened is judged by reading, never by what the
        commit call says: a writer held up while the log was cleaned can be told "done" at a version long gone. Raises
        LostRace if another run has moved the row.
        """
        if row.kind not in KINDS or row.seq != (expected_seq or 0) + numbers:
            raise TableError(
                f"{row.name}: a ledger row of kind {str(row.kind)!r} and sequence {row.seq} cannot follow"
                f" {expected_seq}."
            )
        self.create()

        def advance(rows: dict[str, LedgerRow]) -> dict[str, LedgerRow] | LedgerRow:
            own = rows.get(row.name)
            if own is not None and (own.seq, own.attempt) == (row.seq, row.attempt):
                return own
            moved = (own.seq if own else None) != expected_seq
            if moved or (own is not None and expected_attempt not in (None, own.attempt)):
                return self._stands_in_history(row, own)
            if own is None and self.used(row.app):  # dropped since this run began
                return self._stands_in_history(row, own)
            return {**rows, row.name: row}

        return self._swap(row.name, f"{row.name}/{row.seq}", advance)

    def forget(self, name: str, expected_seq: int, expected_attempt: str | None = None) -> None:
        """Remove a name's row by compare-and-swap; its tables stay until somebody deletes them.

        ``expected_seq`` and ``expected_attempt`` as in :meth:`commit`. Raises LostRace if another run has moved the row
        meanwhile.
        """

        def without(rows: dict[str, LedgerRow]) -> dict[str, LedgerRow] | LedgerRow | None:
            own = rows.get(name)
            if own is None:
                return None
            if own.seq != expected_seq or expected_attempt not in (None, own.attempt):
                raise LostRace(
                    f"{name} was committed by another run meanwhile (commit {own.seq} of run {own.attempt}) and is not"
                    " removed. Stop what runs it (pause its DAG), then try again."
                )
            return {key: value for key, value in rows.items() if key != name}

        self._swap(name, f"{name}/forgotten", without)

    def retire(self, app: str) -> None:
        """A registration (``name:registration``) that has not committed yet never will, even if it is about to."""
        self.create()
        while not self.used(app):
            with suppress(CommitConflict):
                self._history.commit([], [], app=(app, 0), base_version=self._history.version())
        # who has looked into the history before has to look again: the head moves, by this commit or another's
        version, rows, live = self._read()
        head = _to_table([rows[key] for key in sorted(rows)])
        file = write_file(head, self.layout.ledger, "head", uuid.uuid4().hex, self.storage_options)
        with suppress(CommitConflict):
            self._head.commit([file], live, app=None, base_version=version, metadata={"sweeparea": f"{app}/retired"})

    def _swap(
        self, name: str, tag: str, change: Callable[[dict[str, LedgerRow]], dict[str, LedgerRow] | LedgerRow | None]
    ) -> Any:
        """Replaces the head by ``change`` of it until that is no longer needed: until it returns a row or None."""
        give_up = time.monotonic() + GIVE_UP_SECONDS
        tries = 0
        while True:
            version, rows, live = self._read()
            changed = change(rows)
            if not isinstance(changed, dict):
                return changed
            tries += 1
            if time.monotonic() > give_up:
                raise TableError(
                    f"{name}: the ledger {self.layout.ledger} was moved by others {tries} times within"
                    f" {GIVE_UP_SECONDS:.0f} s. Nothing was committed. Run again, with fewer runs at the same time."
                )
            head = _to_table([changed[key] for key in sorted(changed)])
            file = write_file(head, self.layout.ledger, "head", uuid.uuid4().hex, self.storage_options)
            try:
                self._head.commit([file], live, app=None, base_version=version, metadata={"sweeparea": tag})
            except CommitConflict:
                time.sleep(random.uniform(0.002, 0.02) * min(tries, 10))

    def applied_seq(self, row: LedgerRow) -> int | None:
        """The last sequence of the row's registration that is wholly applied: the history has it."""
        return self._history.app_version(row.app) if self._history.exists() else None

    def used(self, app: str) -> bool:
        """Whether a registration (``name:registration``) has ever applied a commit, even if its row is forgotten."""
        return self._history.exists() and self._history.app_version(app) is not None

    def close(self, tables: Iterable[str]) -> None:
        """Lets go of tables whose folders are removed: one made anew starts again at version 0."""
        for table in tables:
            self._logs.pop(self.layout.relative(table), None)

    def append_history(self, row: LedgerRow) -> None:
        """Append ``row`` to the history unless it is there already."""
        file = None
        tries = 0
        while True:
            version = self._history.version()
            if (self._history.app_version(row.app, version) or 0) >= row.seq:
                return
            tries += 1
            if file is None:
                stem = f"{row.name}-{row.seq}-{uuid.uuid4().hex[:8]}"
                file = write_file(_to_table([row]), self.layout.history, "rows", stem, self.storage_options)
            try:
                self._history.commit([file], [], app=(row.app, row.seq), base_version=version)
            except CommitConflict:
                time.sleep(random.uniform(0.002, 0.02) * min(tries, 10))

    def history(
        self, name: str | None = None, seq: int | None = None, since: int | None = None, after: int | None = None
    ) -> list[LedgerRow]:
        """Applied rows, oldest first, of one name and sequence or of all; ``since``: committed then or later
        (microseconds since the epoch, UTC); ``after``: of later sequences alone.
        """
        if not self._history.exists():
            return []
        filters: list[Any] = [(key, "=", value) for key, value in (("name", name), ("seq", seq)) if value is not None]
        if since is not None:
            filters.append(("at", ">=", _EPOCH + timedelta(microseconds=since)))
        if after is not None:
            filters.append(("seq", ">", after))
        rows = _from_table(self._history.read(filters=filters or None))
        return sorted(rows, key=lambda row: (row.at, row.name, row.seq))

    def last_before(self, name: str, registration: str, committed: int) -> LedgerRow | None:
        """The last applied commit of a registration whose instant is at or before a tick; None if there is none."""
        if not self._history.exists():
            return None
        filters = [("name", "=", name), ("registration", "=", registration), ("committed", "<=", committed)]
        found = self._history.read(columns=["seq"], filters=filters)
        if not found.num_rows:
            return None
        rows = self.history(name, max(found.column("seq").to_pylist()))
        return next((row for row in rows if row.registration == registration), None)

    def made(self, name: str, attempt: str) -> bool:
        """Whether an attempt has committed: its row stands, or has been applied."""
        row = self.row(name)
        if row is not None and row.attempt == attempt:
            return True
        filters = [("name", "=", name), ("attempt", "=", attempt)]
        return self._history.exists() and self._history.read(columns=["seq"], filters=filters).num_rows > 0

    def clean(self) -> int:
        """Delete replaced heads that are older than an hour, and after a week those that no commit ever named.

        Returns how many files. A commit leaves one behind.
        """
        with explain_write_errors(self.layout.ledger):
            return len(self._head.vacuum(hours=1)) + len(self._head.vacuum(hours=168, orphans=True))

    def _stands_in_history(self, row: LedgerRow, own: LedgerRow | None) -> LedgerRow:
        """This attempt's row if it was committed and another run has gone on from it since, else LostRace."""
        for past in self.history(row.name, row.seq):
            if past.attempt == row.attempt:
                return past
        now = "has no row" if own is None else f"is at commit {own.seq}, instant {own.committed}, by run {own.attempt}"
        raise LostRace(
            f"{row.name}: another run was faster. The ledger {now}; this run ({row.attempt}) wanted commit {row.seq}."
            " The other's result stands, this run's is discarded and its files are left to VACUUM. There is nothing to"
            " repair: the next run goes on from what the ledger says."
        )

    def _read(self) -> tuple[int, dict[str, LedgerRow], list[Any]]:
        """Version, rows and live files of the head."""
        fs, base = filesystem(self.layout.ledger, self.storage_options)
        for _ in range(20):
            version = self._head.version()
            files = self._head.files(version)
            paths, parsed = [file.path for file in files], self._parsed
            if paths != parsed[0]:
                try:
                    tables = [pq.ParquetFile(f"{base}/{path}", filesystem=fs).read() for path in paths]
                except FileNotFoundError:
                    # Replaced and vacuumed between the two reads: the head has moved on.
                    continue
                parsed = self._parsed = paths, [row for table in tables for row in _from_table(table)]
            return version, {row.name: row for row in parsed[1]}, files
        raise TableError(
            f"The ledger {self.layout.ledger} names a data file that is missing. Restore the folder from a backup: the"
            " tables are sound, but what was committed last is not known without it."
        )


def now_micros() -> int:
    """The clock, in microseconds since the epoch."""
    return time.time_ns() // 1000


def rows_of_files(log: DeltaLog, files: Sequence[DataFile]) -> list[LedgerRow]:
    """The rows of some files of the history, in the order of their numbers."""
    if not files:
        return []
    table = scan.dataset(log.uris(files), SCHEMA).to_table()
    return sorted(_from_table(table), key=lambda row: (row.seq, row.at))


def _to_table(rows: list[LedgerRow]) -> pa.Table:
    records = [
        {
            **{key: getattr(row, key) for key in ("name", "kind", "registration", "seq", "committed", "attempt")},
            **{key: json.dumps(getattr(row, key), ensure_ascii=False) for key in ("pins", "actions", "info")},
            "at": _EPOCH + timedelta(microseconds=row.at),
        }
        for row in rows
    ]
    return pa.Table.from_pylist(records, schema=SCHEMA)


def _from_table(table: pa.Table) -> list[LedgerRow]:
    at = table.column("at").cast(pa.int64()).to_pylist()
    return [
        LedgerRow(**_parsed(record), at=micros)
        for record, micros in zip(table.drop_columns(["at"]).to_pylist(), at, strict=True)
    ]


def _parsed(record: dict[str, Any]) -> dict[str, Any]:
    texts = {key: json.loads(record[key]) for key in ("pins", "actions", "info")}
    return {**record, "kind": NameKind(record["kind"]), **texts}
