"""The tables that the page previews: what lies there, and the files of one committed state. Nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from sweeparea.infra.errors import SweepAreaError, UsageError
from sweeparea.spark_jobs.spark.instants import instant_of
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile
from sweeparea.tables.publication.ledger import Ledger, LedgerRow
from sweeparea.tables.publication.snapshot import version_at

SUFFIXES = ("", "__relation", "__istream", "__dstream", "__rstream")


@dataclass(frozen=True)
class PinnedTable:
    """One table at the state that ``row`` has committed, or at the one before where that is still to be applied.

    ``time`` is the column that files are ordered by (``valid_from`` of a relation, ``ts`` of a stream), ``end`` the
    first instant that is not known (microseconds, or a tick), None: nobody says.
    """

    name: str
    log: DeltaLog
    files: tuple[DataFile, ...]
    schema: pa.Schema
    end: int | None = None

    @property
    def relation(self) -> bool:
        return "valid_to" in self.schema.names

    @property
    def ticks(self) -> bool:
        """Whether its instants are BIGINT ticks."""
        return self.time is not None and str(self.schema.field(self.time).type) == "int64"

    @property
    def time(self) -> str | None:
        return "valid_from" if self.relation else "ts" if "ts" in self.schema.names else None

    @property
    def columns(self) -> list[str]:
        """Those of the query, without instants."""
        own = {"valid_from", "valid_to"} if self.relation else {"ts"}
        return [name for name in self.schema.names if name not in own]

    def until(self, instant: int) -> list[DataFile]:
        """The files that may hold rows of instants up to one."""
        return list(self.files) if self.time is None else scan.prune(self.files, self.time, None, instant)


def names_of(ledger: Ledger, query: str) -> list[str]:
    """The result tables of a query that are there."""
    return [f"{query}{s}" for s in SUFFIXES if DeltaLog(ledger.layout.result(f"{query}{s}")).exists()]


def result(ledger: Ledger, query: str, name: str | None = None) -> PinnedTable | None:
    """A result table of a query (``query__istream``; None: the first of them); None if nothing is committed.
    UsageError for a name that is not the query's.
    """
    row, known = ledger.row(query), names_of(ledger, query)
    if row is None or not known:
        return None
    chosen = known[0] if name is None else name
    if chosen not in known:
        raise UsageError(f"{query} keeps no table {name}: it has {', '.join(known)}.")
    log = DeltaLog(ledger.layout.result(chosen), ledger.storage_options)
    version = version_at(log, row.app, row.seq)
    if version is None:
        raise SweepAreaError(f"The log of {chosen} was cleaned while it was read. Look again.")
    applied = _applied(ledger, row)
    if applied is None or applied.committed is None:
        return None
    end = (applied.committed + 1) * (applied.of_query.chronon or 1)
    return PinnedTable(chosen, log, tuple(log.files(version)), log.schema(), end)


def other(ledger: Ledger, path: str, name: str) -> PinnedTable | None:
    """Another table of the application, as it is now; None where there is none."""
    log = DeltaLog(path, ledger.storage_options)
    return PinnedTable(name, log, tuple(log.files()), log.schema()) if log.exists() else None


def instant(table: PinnedTable, text: str) -> int:
    """An instant that a person wrote, as the table counts: microseconds, or a tick. UsageError for one that is none, or
    that is not known yet.
    """
    if table.ticks:
        if not text.strip().lstrip("-").isdigit():
            raise UsageError(f"{text} is no tick: time is counted in BIGINT ticks here, so give a whole number.")
        found = int(text)
    else:
        found = instant_of(text.strip().removesuffix("Z"))
    if table.end is not None and found >= table.end:
        raise UsageError(f"{table.name} is known up to its committed instant only; ask for an earlier one.")
    return found


def _applied(ledger: Ledger, row: LedgerRow) -> LedgerRow | None:
    """The row, or the last one of its registration that its tables hold."""
    seq = ledger.applied_seq(row)
    if seq is None or seq >= row.seq:
        return row if seq is not None else None
    return next((r for r in ledger.history(row.name, seq) if r.registration == row.registration), None)


def shown_columns(columns: Sequence[str], most: int) -> tuple[list[str], int]:
    """The first columns, and how many are left out."""
    return list(columns[:most]), max(0, len(columns) - most)
