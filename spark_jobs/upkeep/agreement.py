"""Whether a table is what the ledger says, as far as its log tells: for all who report on tables or read them.

A look at a few files of the log; the rows themselves are not read, ``check.py`` does that.
"""

from __future__ import annotations

from pyarrow.fs import FileType

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.declarations.declarations import Declarations
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.folders import filesystem
from sweeparea.tables.publication.ledger import Ledger, LedgerRow
from sweeparea.tables.publication.publish import State, state_of

MISSING = "the table is missing"


def tables_of(row: LedgerRow) -> list[str]:
    """The tables that a name has committed to, by their paths in the data folder."""
    return sorted({*(row.of_query.tables or {}), *row.actions})


def disagreement(ledger: Ledger, row: LedgerRow, table: str) -> str | None:
    """What is wrong with a table (its path in the data folder) of a ledger row, in a sentence; None if nothing is.

    It is missing, it is of another state than the ledger, somebody else has written to it, or (a SweepArea) it lacks
    rows. A commit that was killed before it was applied is no fault, nor is one that was made meanwhile.
    """
    log = DeltaLog(ledger.layout.absolute(table), ledger.storage_options)  # one that is kept open sees no loss
    try:
        if not log.exists():
            return MISSING
        version = log.version()
        known = (row.of_query.tables or {}).get(table)
        applied = log.app_version(row.app, version)
        if known is not None and applied != known:
            if _underway(ledger, row, table, applied):
                return None
            return f"holds commit {applied} of {row.name} as its last, the ledger says {known}"
        log.refuse_foreign(row.name)
        return _lost_rows(row, table, log, version)
    except (SweepAreaError, OSError) as error:
        return str(error)


def faults(application: Declarations, row: LedgerRow) -> list[str]:
    """What is wrong with the tables of a ledger row, each with a way out, for people."""
    found = []
    for table in tables_of(row):
        fault = disagreement(application.ledger, row, table)
        if fault is None and table.startswith("state/"):
            fault = _lost_files(DeltaLog(application.layout.absolute(table)))
        if fault is not None:
            found.append(f"{table}: {fault.rstrip('.')}")
    return found


def _underway(ledger: Ledger, row: LedgerRow, table: str, applied: int | None) -> bool:
    """Whether the row is still to be applied to the table, or the name has committed again since the row was read."""
    action = row.actions.get(table)
    if action is not None and applied == action["previous_seq"] and state_of(ledger, row) is State.COMMITTED:
        return True
    now = ledger.row(row.name)
    return now is None or now.attempt != row.attempt


def _lost_rows(row: LedgerRow, table: str, log: DeltaLog, version: int) -> str | None:
    op = table.rpartition("/")[2]
    left = row.of_query.state.rows.get(op)
    if table != f"state/{row.name}/{op}" or left is None:
        return None
    held = sum(file.rows for file in log.files(version))
    return None if held == left else f"this SweepArea holds {held} rows, the last slice has left {left}"


def _lost_files(log: DeltaLog) -> str | None:
    fs, base = filesystem(log.uri, log.storage_options)
    paths = [f"{base.rstrip('/')}/{file.path}" for file in log.files()]
    lost = [info.base_name for info in fs.get_file_info(paths) if info.type == FileType.NotFound] if paths else []
    return f"the file {lost[0]} is missing" if lost else None
