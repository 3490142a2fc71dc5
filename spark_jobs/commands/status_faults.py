"""What keeps a name from going on, for whoever asks for its status."""

from __future__ import annotations

from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.upkeep.agreement import faults
from sweeparea.tables.publication.ledger import LedgerRow


def not_run(application: Application, name: str, row: LedgerRow | None) -> str:
    """Why a name is not run: its definition is another than the one its tables were made by. Empty if it is not."""
    why = application.registry.refused(name, row)
    return f"stands still: {why}" if why else ""


def wrong_tables(application: Application, row: LedgerRow) -> list[str]:
    """Tables that are missing, damaged or written by others, which no run goes on from."""
    found = faults(application, row)
    way_out = f"WRONG, `{application.command('check', row.name)}` tells more: "
    return [f"{way_out}{'; '.join(found)}"] if found else []
