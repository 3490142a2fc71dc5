"""The tables of verdicts and samples: every commit's, as the ledger's history tells them, and those that were refused.

A slice that is committed writes nothing here, since each commit to a Delta table takes as long as a tenth of a small
slice: its verdict stands in its ledger row. ``bring_up`` copies what the history has and the tables lack; whoever reads
them does so before, and ``maintain``. A commit of these tables carries the number up to which each name was copied, so
none is copied twice, whoever copies and however it ends. A refused verdict has no commit: ``refuse`` writes it at once.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.infra.errors import SetupError
from sweeparea.quality import records
from sweeparea.quality.records import CommitVerdict
from sweeparea.tables.errors import CommitConflict, TableError
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile, write_file
from sweeparea.tables.publication.ledger import Ledger, LedgerRow, now_micros, rows_of_files
from sweeparea.tables.publication.name_kinds import NameKind

NAMES = ("verdicts", "samples")
TRIES = 100
_RowsOf = Callable[[CommitVerdict], list[dict[str, Any]]]
_SEEN = "sweeparea.history"
"""In a commit's metadata: the version of the ledger's history that was copied up to."""


class VerdictTables:
    """The two tables of one data folder."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        layout = ledger.layout
        self.brought_up = 0
        """How many commits the last look at the history brought."""
        self.verdicts, self.samples = ledger.log(layout.verdicts), ledger.log(layout.samples)

    def refuse(self, judgement: CommitVerdict) -> None:
        """Keeps the verdict of what was not committed, at once. ``judgement.refused`` says so in each row."""
        if not judgement.refused:
            raise ValueError(f"the verdict of {judgement.name} is not marked as refused")
        self._create()
        self._append(self.samples, lambda _: (records.sample_rows(judgement), {}))
        self._append(self.verdicts, lambda _: (records.verdict_rows(judgement), {}))

    def bring_up(self) -> int:
        """Copies what the ledger's history has and the tables lack; returns how many commits that were."""
        history = self.ledger.log(self.ledger.layout.history)
        if not history.exists():
            return 0
        self._create()
        # samples first: a verdict that tells of some has them
        for log, rows_of in reversed(self._kinds()):
            self._append(log, lambda version, log=log, rows_of=rows_of: self._missing(log, version, rows_of)[:2])
        return self.brought_up

    def read(self, name: str | None = None, write: bool = True) -> tuple[pa.Table, pa.Table]:
        """Verdicts and samples, of one name or of all, in the order of their commits. They are brought up; where
        nothing can be written, or is to be (``write``), what is missing is added to what is read.
        """
        missing: list[list[dict[str, Any]]] = [[], []]
        try:
            if write:
                self.bring_up()
        except (SetupError, OSError):
            write = False
        if not write:
            missing = [self._missing(log, log.version() if log.exists() else None, f)[0] for log, f in self._kinds()]
        found: list[pa.Table] = []
        for (log, _), schema, more in zip(self._kinds(), (records.VERDICTS, records.SAMPLE_ROWS), missing, strict=True):
            held = log.read().select(schema.names) if log.exists() else schema.empty_table()
            rows = pa.concat_tables([held.cast(schema), pa.Table.from_pylist(more, schema=schema)])
            if name is not None:
                rows = rows.filter(pc.field("name") == name)
            found.append(rows.sort_by([("judged_at", "ascending"), ("name", "ascending"), ("seq", "ascending")]))
        return found[0], found[1]

    def refused(self) -> pa.Table:
        """The verdicts that were refused. Nothing is brought up for them: each was written at once."""
        if not self.verdicts.exists():
            return records.VERDICTS.empty_table()
        chosen = scan.plan(self.verdicts, self.verdicts.files())
        return chosen.read(records.VERDICTS.names, pc.field("refused"))

    def let_go(self, before: int) -> int:
        """RETAIN: removes rows of commits before ``before`` (microseconds since the epoch, UTC); returns how many."""
        return sum(_let_go(log, before) for log in (self.verdicts, self.samples) if log.exists())

    def _create(self) -> None:
        what = ("What was judged of every commit, and of those that were refused", "Rows that broke a check")
        both = zip((self.verdicts, self.samples), NAMES, (records.VERDICTS, records.SAMPLE_ROWS), what, strict=True)
        for log, name, schema, description in both:
            log.create(schema, name=name, description=description)

    def _kinds(self) -> tuple[tuple[DeltaLog, _RowsOf], tuple[DeltaLog, _RowsOf]]:
        return (self.verdicts, records.verdict_rows), (self.samples, records.sample_rows)

    def _missing(
        self, log: DeltaLog, version: int | None, rows_of: _RowsOf
    ) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """The rows that a table lacks at a version (None: there is no table), and the numbers by application up to
        which it then holds them.
        """
        history = self.ledger.log(self.ledger.layout.history)
        rows: list[dict[str, Any]] = []
        apps: dict[str, int] = {}
        self.brought_up = 0
        if not history.exists():
            return rows, apps
        upto = history.version()
        for row in _new_rows(history, None if version is None else log.app_version(_SEEN, version), upto):
            known = apps.get(row.app) or (None if version is None else log.app_version(row.app, version)) or 0
            if row.seq <= known:
                continue
            apps[row.app] = row.seq
            judgement = judgement_of(row)
            if judgement is not None:
                rows += rows_of(judgement)
                self.brought_up += 1
        return rows, {**apps, _SEEN: upto} if apps else {}

    def _append(self, log: DeltaLog, rows_at: Callable[[int], tuple[list[dict[str, Any]], dict[str, int]]]) -> None:
        """One commit of the rows, and the numbers by application, that ``rows_at`` gives for a version of the table."""
        for number in range(TRIES):
            version = log.version()
            rows, apps = rows_at(version)
            if not rows and not apps:
                return
            files: list[DataFile] = []
            if rows:
                table = pa.Table.from_pylist(rows, schema=log.schema())
                files = [write_file(table, log.uri, "rows", uuid.uuid4().hex, self.ledger.storage_options)]
            try:
                log.commit(files, [], app=apps or None, base_version=version)
            except CommitConflict:
                time.sleep(random.uniform(0.002, 0.02) * min(number + 1, 10))
            else:
                return
        raise TableError(f"The table {log.uri} was changed by others {TRIES} times meanwhile. Run again.")


def judgement_of(row: LedgerRow) -> CommitVerdict | None:
    """What a commit's own verdict says; None where it has none: later commits carry on what the last one said."""
    query = row.kind == NameKind.QUERY
    info = row.info
    if info.get("judged") != row.attempt or not info.get("verdicts"):
        return None
    of_query, of_source = row.of_query, row.of_source
    rewrite = of_query.rewrite
    recomputed = query and rewrite is not None and of_query.correction_seq == row.seq
    since = (rewrite.since if recomputed and rewrite is not None else of_query.h0) if query else None
    return CommitVerdict(
        row.name,
        row.kind.value,
        row.registration,
        row.seq,
        row.attempt,
        row.at,
        list(info["verdicts"]),
        since,
        rewrite.upto if recomputed and rewrite is not None else _finite(row.committed),
        info.get("chronon") or 0,
        None if query else of_source.source_version,
        rewrite.cause if recomputed and rewrite is not None else None,
    )


def _finite(tick: int | None) -> int | None:
    """The tick; None for that of a snapshot, which is valid for ever."""
    return None if tick is None or tick >= 1 << 62 else tick


def refused(
    ledger: Ledger,
    name: str,
    kind: NameKind,
    entries: Iterable[records.Entry],
    *,
    registration: str,
    seq: int,
    attempt: str,
    since: int | None = None,
    upto: int | None = None,
    chronon: int = 0,
    source_version: int | None = None,
    cause: str | None = None,
    note: str | None = None,
) -> None:
    """Keeps the verdict of a slice, or of a version of a source, that is refused: the one function for it.

    ``entries`` one a table (``records.entry``); ``seq`` the number that the commit would have had; ``cause``: repair,
    backfill or whatever else computed it; ``note`` is free text, such as who accepted it and why.
    """
    judgement = CommitVerdict(
        name,
        kind.value,
        registration,
        seq,
        attempt,
        now_micros(),
        list(entries),
        since,
        upto,
        chronon,
        source_version,
        cause,
        refused=True,
        note=note,
    )
    VerdictTables(ledger).refuse(judgement)


def _new_rows(history: DeltaLog, seen: int | None, upto: int) -> list[LedgerRow]:
    """Rows of the history's files that it did not have at version ``seen``, in the order of their numbers: those that
    were packed since come again.
    """
    files = history.files(upto)
    if seen is not None:
        try:
            before = history.paths(seen)
        except TableError:  # its log was shortened: all are looked at
            before = set[str]()
        files = [file for file in files if file.path not in before]
    return rows_of_files(history, files)


def _let_go(log: DeltaLog, before: int) -> int:
    """Files whose last row is older go, and those are written again that hold older rows for the greater part."""
    version = log.version()
    removes: list[DataFile] = []
    adds: list[DataFile] = []
    for file in log.files(version):
        least, greatest = scan.bounds(file, "judged_at")
        if least is None or greatest is None or least >= before:
            continue
        if greatest >= before:
            if 2 * (before - least) < greatest - least:
                continue
            kept = pa.table(
                scan.dataset(log.uris([file]), log.schema()).to_table(filter=pc.field("judged_at") >= _moment(before))
            )
            if kept.num_rows:
                rows = kept.select(log.schema().names).cast(log.schema())
                adds.append(write_file(rows, log.uri, "rows", uuid.uuid4().hex, log.storage_options))
        removes.append(file)
    if removes:
        try:
            log.commit(adds, removes, app=None, base_version=version)
        except CommitConflict:
            return 0  # the next run goes on
    return sum(f.rows for f in removes) - sum(f.rows for f in adds)


def _moment(micros: int) -> pa.Scalar:
    return pa.scalar(micros, pa.timestamp("us", "UTC"))


__all__ = ["NAMES", "VerdictTables", "judgement_of", "refused"]
