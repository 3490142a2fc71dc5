"""What must hold before anything of a source is admitted: it is the table that was admitted before, and what was
admitted is there. Its columns: ``source_schema.py``.
"""

from __future__ import annotations

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.declarations.declarations import Declarations
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.sources.source import SourceTable


def check_identity(name: str, source: SourceTable, row: LedgerRow | None) -> None:
    """The source must be the very table that was admitted before: a new one under its path has versions of its own."""
    known = row.of_source.source_id if row else None
    if known is not None and known != source.identity():
        raise SweepAreaError(
            f"{name}: its source {source.uri} is not the table that was admitted before: it was removed and made anew"
            " (its Delta table id has changed), so its versions do not go on where the old ones ended. Nothing was"
            " admitted. Restore the old table, or declare a new stream over this one."
        )


def check_tables(application: Declarations, name: str, row: LedgerRow | None) -> None:
    """The admitted rows of a name that has been admitted must be there."""
    if row is not None and not DeltaLog(application.layout.admitted(name)).exists():
        raise SweepAreaError(
            f"The admitted rows of {name} are missing, though {name} has been admitted before. Restore the data folder"
            f" {application.data} from a backup of one moment, or run `{application.command('drop', name)}` (after"
            " the queries that read it) and admit it anew."
        )
