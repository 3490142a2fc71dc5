"""Maintenance of an application's tables, beside its live slices: what keeps a slice as fast as on the first day.

Small files are packed, elements that no query needs any more go (RETAIN), and what no reader of the last days holds is
deleted. Each step is a commit of its own that live slices adopt or overtake; what they beat is left to the next run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sweeparea.infra.errors import SweepAreaError, UsageError
from sweeparea.operators.state.open_rows import holds_open
from sweeparea.quality.verdict_tables import VerdictTables
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.upkeep import retained
from sweeparea.spark_jobs.upkeep.agreement import tables_of
from sweeparea.tables.log.compaction import Compacted, compact
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.attempts import Attempts
from sweeparea.tables.publication.ledger import LedgerRow, now_micros
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import recover
from sweeparea.tables.publication.retention import HOURS, empty_folders, left_over, pinned_versions, trim, vacuum

RETENTION = "maintenance.retention"
"""The setting that says how long former versions of tables can be read."""
QUALITY_RETAIN = "quality.retain"
"""The setting that says how long verdicts are kept."""
QUALITY_KEPT = "90 days"
_LENGTH = re.compile(r"\s*(\d+)\s*(hour|day|week)s?\s*\Z", re.IGNORECASE)
_HOURS = {"hour": 1, "day": 24, "week": 7 * 24}

Tell = Callable[[str], None]


@dataclass
class Maintained:
    """What a run has done (or, dry, would do). ``deleted`` counts files, ``let_go`` elements."""

    packed: Compacted = field(default_factory=Compacted)
    let_go: int = 0
    deleted: int = 0
    left_over: int = 0
    problems: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "packed": dict(self.packed.__dict__)}

    @property
    def words(self) -> str:
        packed = self.packed
        return (
            f"{packed.removed} files packed into {packed.added}, {self.let_go} elements let go, {self.deleted} old"
            f" files and {self.left_over} left-over folders deleted"
        )


def hours_of(text: str, what: str = RETENTION) -> int:
    """A length of time of whole hours: ``7 days``, ``36 hours``."""
    found = _LENGTH.match(text)
    if found is None or int(found[1]) == 0:
        raise UsageError(
            f"{what} {text!r} is no length of time. Write a whole number of hours, days or weeks: '7 days'."
        )
    return int(found[1]) * _HOURS[found[2].lower()]


def maintain(
    application: Application,
    name: str | None = None,
    *,
    dry_run: bool = False,
    retention: str | None = None,
    tell: Tell = lambda text: None,
) -> Maintained:
    """Maintains the tables of one stream, relation or query, or of all; the ledger's with all.

    ``retention``: how long former versions stay readable, by default the setting ``maintenance.retention``, else 7
    days. What is wrong with one name does not stop the others; the report holds it.
    """
    given = retention or application.catalog.settings.get(RETENTION)
    hours = HOURS if given is None else hours_of(given)
    ledger, report = application.ledger, Maintained()
    head = ledger.head()
    if name is not None and name not in head:
        known = f"There are tables of {', '.join(sorted(head))}." if head else "Nothing has been admitted yet."
        raise UsageError(f"{name} has no tables to maintain. {known}")
    for each in sorted(head) if name is None else [name]:
        try:
            _maintain_name(application, each, hours, dry_run, report, tell)
        except SweepAreaError as error:
            report.problems.append(f"{each}: {error}")
            tell(report.problems[-1])
    if name is None:
        # before the history is packed: what it has that the verdicts lack lies in its newest files
        _maintain_verdicts(application, hours, dry_run, report, tell)
        _maintain_ledger(application, hours, dry_run, report)
        gone = left_over(application.layout, hours, dry_run)
        report.left_over += len(gone)
        for folder in gone:
            tell(f"{folder}: left over by a run that has ended")
    tell(report.words if not dry_run else f"would be done: {report.words}")
    return report


def _maintain_name(
    application: Application, name: str, hours: int, dry_run: bool, report: Maintained, tell: Tell
) -> None:
    ledger, layout = application.ledger, application.layout
    if not dry_run:
        # a commit that is not applied yet names files as they were
        recover(layout.data_folder, ledger, [name])
        Attempts(layout).bury(name, lambda attempt: ledger.made(name, attempt))
    _retain(application, name, dry_run, report, tell)
    row = ledger.head().get(name)
    for table in () if row is None else tables_of(row):
        log = DeltaLog(layout.absolute(table))
        if not log.exists():
            raise SweepAreaError(f"its table {table} is missing. `{application.command('check', name)}` tells more.")
        log.refuse_foreign(name)
        done = _pack(log, table, dry_run)
        assert row is not None
        kept = _pinned(application, row, log)
        gone = len(vacuum(log, hours, kept, dry_run))
        if not dry_run:
            trim(log, kept)
            empty_folders(log.uri)
        report.packed += done
        report.deleted += gone
        if done.removed or gone:
            tell(f"{table}: {done.removed} files packed into {done.added}, {gone} old files")
        if done.left:
            tell(f"{table}: {done.left} times others' commits were faster; the next run goes on")


def _retain(application: Application, name: str, dry_run: bool, report: Maintained, tell: Tell) -> None:
    found = (retained.outlook if dry_run else retained.let_go)(application, name)
    if found is not None:
        report.let_go += found.rows
        for line in retained.words(application, found):
            tell(line)


def _pack(log: DeltaLog, table: str, dry_run: bool) -> Compacted:
    """SweepAreas merge themselves, and open rows of a relation lie as slices lay them
    (``operators/state/open_rows.py``)."""
    columns = log.schema().names
    if table.startswith("admitted/"):
        return compact(log, "__tick", dry_run=dry_run)
    if table.startswith("quarantine/"):
        return compact(log, "__seq", dry_run=dry_run)
    if not table.startswith("results/"):
        return Compacted()
    if columns[-1] == "valid_to":
        return compact(log, "valid_to", eligible=lambda file: not holds_open(file), dry_run=dry_run)
    return compact(log, columns[-1], dry_run=dry_run)  # ts of a stream, seq of corrections


def _pinned(application: Application, row: LedgerRow, log: DeltaLog) -> list[int]:
    """The versions of a query's table that its readers have pinned: a backfill of theirs reads these."""
    readers = application.ledger.head().values() if row.kind == NameKind.QUERY else ()
    pins = [pin["seq"] for r in readers for source, pin in r.pins.items() if application.owner(source) == row.name]
    return pinned_versions(log, row.app, pins)


def _maintain_verdicts(application: Application, hours: int, dry_run: bool, report: Maintained, tell: Tell) -> None:
    tables = VerdictTables(application.ledger)
    if not dry_run:
        tables.bring_up()
        kept = hours_of(application.catalog.settings.get(QUALITY_RETAIN, QUALITY_KEPT), QUALITY_RETAIN)
        gone = tables.let_go(now_micros() - kept * 3_600_000_000)
        if gone:
            tell(f"quality: {gone:,} rows older than {QUALITY_RETAIN} let go")
    for log in (tables.verdicts, tables.samples):
        if log.exists():
            report.packed += compact(log, "judged_at", dry_run=dry_run)
            report.deleted += len(vacuum(log, hours, dry_run=dry_run))
            if not dry_run:
                trim(log)
                empty_folders(log.uri)


def _maintain_ledger(application: Application, hours: int, dry_run: bool, report: Maintained) -> None:
    ledger = application.ledger
    history = ledger.log(application.layout.history)
    if history.exists():
        report.packed += compact(history, "seq", ("name", "seq"), dry_run=dry_run)
        report.deleted += len(vacuum(history, hours, dry_run=dry_run))
        if not dry_run:
            trim(history)
    if not dry_run and ledger.head():
        report.deleted += ledger.clean()
        for uri in (history.uri, application.layout.ledger):
            empty_folders(uri)


__all__ = ["RETENTION", "Maintained", "hours_of", "maintain"]
