"""Everything that a data folder says, in a form in which two folders of equal runs are equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.ledger import Ledger, LedgerRow
from sweeparea.tables.publication.publish import recover

CHANGING = ("seconds", "judged", "state_bytes", "definition", "commit_time", "instant", "source_id")
"""What the ledger's ``info`` says of a run rather than of its results, when a source's commit was made, and the id of a
source's table, which a run may have made.
"""


def contents(data: Path) -> dict[str, Any]:
    """Rows and tags of every table of a data folder, and the ledger with its history."""
    ledger = Ledger(str(data))
    recover(str(data), ledger)
    found: dict[str, Any] = {}
    for folder in sorted(data.rglob("_delta_log")):
        table = str(folder.parent.relative_to(data))
        if not table.startswith(("_sweeparea", "source")):
            found[table] = rows(DeltaLog(str(folder.parent)))
    found["ledger"] = [_said(row) for _, row in sorted(ledger.head().items())]
    found["history"] = sorted((_said(row) for row in ledger.history()), key=repr)
    found["tags"] = {
        (row.name, table): DeltaLog(ledger.layout.absolute(table)).app_version(row.app)
        for row in ledger.head().values()
        for table in row.actions
    }
    return found


def rows(log: DeltaLog) -> list[str]:
    """A table's rows in an order of their own, read from its files: statistics are checked, not believed."""
    read = []
    for file in log.files():
        part = pq.ParquetFile(f"{log.uri}/{file.path}").read()
        assert part.num_rows == file.rows, f"{log.uri}/{file.path}"
        read += [repr(row) for row in part.to_pylist()]
    return sorted(read)


def _said(row: LedgerRow) -> tuple[Any, ...]:
    info = {key: value for key, value in row.info.items() if key not in CHANGING}
    if "verdicts" in info:
        info["verdicts"] = [{k: v for k, v in each.items() if k not in CHANGING} for each in info["verdicts"]]
    return row.name, row.kind, row.seq, row.committed, row.pins, info


def difference(left: dict[str, Any], right: dict[str, Any]) -> str:
    """Where two folders differ; empty where they do not."""
    for key in sorted(left.keys() | right.keys()):
        if left.get(key) != right.get(key):
            return f"{key}: {str(left.get(key))[:1500]}\n    against {str(right.get(key))[:1500]}"
    return ""
