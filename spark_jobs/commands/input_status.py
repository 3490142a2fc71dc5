"""What status says of a stream or relation: how far it is read, and what has become of its rows."""

from __future__ import annotations

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.spark_jobs.admission.judging import quarantine
from sweeparea.spark_jobs.admission.judging.checks import check_identity
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.status_faults import not_run, wrong_tables
from sweeparea.spark_jobs.spark.instants import instant_text
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.ledger import LedgerRow

SOURCES_SHOWN = 5
"""Sources of HEARTBEAT PER that a line tells of."""


def input_line(application: Application, name: str, row: LedgerRow | None) -> str:
    """What status says of a stream or relation."""
    static = application.is_static(name)
    changed = not_run(application, name, row)
    if changed:
        return changed
    if row is None:
        return f"not admitted yet; run `{application.command('admit', name)}`"
    newest, lost = _newest(application, name, row)
    version = row.of_source.source_version or 0
    behind = "" if newest is None or newest <= version else f", source is at version {newest}"
    total = _rows(application.layout.admitted(name))
    wrong = "".join(f"; {fault}" for fault in wrong_tables(application, row))
    if static:
        return f"pinned at source version {version}{behind}, {total} rows{wrong}"
    time = application.plans.input_schema(name).time
    heartbeat = "no heartbeat yet" if row.committed is None else f"heartbeat {instant_text(time, row.committed)}"
    kept_out, remembered = _kept_out(application, name)
    return (
        f"{heartbeat}{_per_source(row, time)}, source version {version}{behind}, {total} rows"
        f" admitted, {kept_out} in quarantine{_counts(row)}"
        f"{f', {remembered} duplicates remembered' if remembered else ''}{lost}{wrong}"
    )


def _counts(row: LedgerRow) -> str:
    """What has happened to a stream's rows beside being admitted or kept out, over its life."""
    totals = row.of_source.totals or {}
    told = {
        "late": "late",
        "repaired": "admitted below the heartbeat",
        "deduplicated": "duplicates dropped",
        "reinstated": "of them elements since a kept row was taken back",
        "displaced": "elements that these made duplicates",
        "ignored": "removed by the source and kept",
        "taken_back": "taken back by the source",
        "cancelled": "taken back from quarantine",
        "released": "released from quarantine",
        "clamped": "heartbeats that would have gone back",
        "distant": "heartbeats too far in the future (MAX AHEAD)",
    }
    parts = [f"{totals[key]} {text}" for key, text in told.items() if totals.get(key)]
    return "".join(f", {part}" for part in parts)


def _per_source(row: LedgerRow, time: TimeDomain) -> str:
    """HEARTBEAT PER: the sources that are not idle, the furthest behind first."""
    sources = (row.of_source.policy or {}).get("sources")
    if not isinstance(sources, dict) or not sources:
        return ""
    ordered = sorted(sources.items(), key=lambda item: item[1][0])
    listed = ", ".join(f"{key} {instant_text(time, tick)}" for key, (tick, _) in ordered[:SOURCES_SHOWN])
    more = f" and {len(ordered) - SOURCES_SHOWN} more" if len(ordered) > SOURCES_SHOWN else ""
    return f" held back by {ordered[0][0]} (per source: {listed}{more})"


def _newest(application: Application, name: str, row: LedgerRow) -> tuple[int | None, str]:
    """The newest version of a source, and why nothing more of it can be admitted; empty if nothing speaks against it
    here.
    """
    try:
        source = application.sources.table(name)
        newest = source.version()
        check_identity(name, source, row)
    except SweepAreaError as error:
        return None, f"; goes no further: {error}"
    return newest, ""


def _rows(path: str) -> int:
    log = DeltaLog(path)
    return sum(f.rows for f in log.files()) if log.exists() else 0


def _kept_out(application: Application, name: str) -> tuple[int, int]:
    """Rows in quarantine: those that something is wrong with, and dropped duplicates that are remembered."""
    total = _rows(application.layout.quarantine(name))
    declared = application.catalog.streams.get(name)
    if declared is None or declared.deduplicate is None or declared.on_source_change != "correct":
        return total, 0
    return quarantine.counted(application, name)
