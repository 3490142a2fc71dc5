"""Rates and sizes of a query's inputs, from the ledger and the statistics in their Delta logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sweeparea.cql.rewrites import MeasuredInput
from sweeparea.spark_jobs.declarations.declarations import Declarations
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog

DIGITS = 3
"""Significant digits of a rate: more would only be noise."""


def measured(
    declared: Declarations, table_of: Callable[[str], str], names: Iterable[str]
) -> dict[str, MeasuredInput] | None:
    """Rates (rows a tick) and sizes (rows) of inputs, from the ledger and the statistics of what was admitted or
    computed; None while one of them has no heartbeat. ``table_of`` gives the folder of a query's result.
    """
    head, found, names = declared.ledger.head(), {}, [*names]
    rows = [head.get(declared.owner(name)) for name in names if name not in declared.catalog.relations]
    chronon = max((row.of_query.chronon or 1 for row in rows if row is not None), default=1)
    for name in names:
        row = head.get(declared.owner(name))
        if row is None or row.committed is None:
            return None
        if declared.is_static(name):
            found[name] = MeasuredInput(rows=float(_rows(DeltaLog(declared.layout.admitted(name)))))
            continue
        rate = _rate(declared, table_of, name, row.committed, row.of_query.chronon or 1)
        if rate is not None and name in declared.catalog.relations:
            rate *= chronon  # a relation counts microseconds, its query takes the streams' chronon
        if rate is not None:
            found[name] = MeasuredInput(rate=rate)
    return found


def _rate(
    declared: Declarations, table_of: Callable[[str], str], name: str, committed: int, scale: int
) -> float | None:
    """Rows a tick between the first row and the heartbeat; None without rows."""
    derived = declared.is_query(declared.owner(name))
    log = DeltaLog(table_of(name) if derived else declared.layout.admitted(name))
    if not log.exists():
        return None
    column = "__tick" if not derived else "ts" if "ts" in log.schema().names else "valid_from"
    least = [low for file in log.files() if (low := scan.bounds(file, column)[0]) is not None]
    if not least:
        return None
    first = min(least) // (scale if derived else 1)
    # each row of a relation's history begins and mostly ends
    changes = _rows(log) * (2 if column == "valid_from" else 1)
    return float(f"{changes / max(1, committed - first + 1):.{DIGITS}g}")


def _rows(log: DeltaLog) -> int:
    return sum(file.rows for file in log.files()) if log.exists() else 0
