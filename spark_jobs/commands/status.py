"""How far an application is: one line per stream, relation and query, from one ledger state. No Spark."""

from __future__ import annotations

from typing import Any

from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.heartbeats.minimum import query_heartbeat
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.spark_jobs.admission.judging import quarantine
from sweeparea.spark_jobs.admission.judging.checks import check_identity
from sweeparea.spark_jobs.declarations.application import Application
from sweeparea.spark_jobs.declarations.input_sizes import before_start
from sweeparea.spark_jobs.deployment.history_gone import HistoryGone, require_history
from sweeparea.spark_jobs.deployment.planning import readers_of
from sweeparea.spark_jobs.slices.corrections import announced
from sweeparea.spark_jobs.slices.place import REWRITE
from sweeparea.spark_jobs.upkeep.agreement import faults
from sweeparea.tables.publication.ledger import LedgerRow

SOURCES_SHOWN = 5
"""Sources of HEARTBEAT PER that a line tells of."""


def status(application: Application, hidden: bool = False) -> str:
    """The report as text. ``hidden`` shows the subplans that queries share as well."""
    from sweeparea.spark_jobs.spark.instants import instant_text

    head = application.ledger.head()
    lines = [f"Application {application.name}, data in {application.data}", "", "Streams and relations"]
    for name in [*application.catalog.streams, *application.catalog.relations]:
        lines.append(f"  {name}: {_input_line(application, name, head.get(name), instant_text)}")
    lines += ["", "Continuous queries"]
    for name in application.catalog.queries:
        lines.append(f"  {name}: {_query_line(application, name, head, instant_text)}")
    shared = sorted({n for n in (*application.registry.deployed.rows(), *head) if is_hidden(n)}) if hidden else []
    if shared:
        lines += ["", "Shared subplans"]
    for name in shared:
        readers = ", ".join(readers_of(application, name)) or "no query"
        lines.append(f"  {name}: {_query_line(application, name, head, instant_text)}; read by {readers}")
    return "\n".join(lines)


def _input_line(application: Application, name: str, row: LedgerRow | None, shown: Any) -> str:
    static = application.is_static(name)
    changed = _changed(application, name, row)
    if changed:
        return changed
    if row is None:
        return f"not admitted yet; run `{application.command('admit', name)}`"
    newest, lost = _newest(application, name, row)
    behind = "" if newest is None or newest <= row.info["source_version"] else f", source is at version {newest}"
    total = _rows(application.layout.admitted(name))
    wrong = "".join(f"; {fault}" for fault in _wrong(application, row))
    if static:
        return f"pinned at source version {row.info['source_version']}{behind}, {total} rows{wrong}"
    time = application.input_schema(name).time
    heartbeat = "no heartbeat yet" if row.committed is None else f"heartbeat {shown(time, row.committed)}"
    kept_out, remembered = _kept_out(application, name)
    return (
        f"{heartbeat}{_per_source(row, time, shown)}, source version {row.info['source_version']}{behind}, {total} rows"
        f" admitted, {kept_out} in quarantine{_counts(row)}"
        f"{f', {remembered} duplicates remembered' if remembered else ''}{lost}{wrong}"
    )


def _counts(row: LedgerRow) -> str:
    """What has happened to a stream's rows beside being admitted or kept out, over its life."""
    totals = row.info.get("totals") or {}
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


def _per_source(row: LedgerRow, time: TimeDomain, shown: Any) -> str:
    """HEARTBEAT PER: the sources that are not idle, the furthest behind first."""
    sources = (row.info.get("policy") or {}).get("sources")
    if not isinstance(sources, dict) or not sources:
        return ""
    ordered = sorted(sources.items(), key=lambda item: item[1][0])
    listed = ", ".join(f"{key} {shown(time, tick)}" for key, (tick, _) in ordered[:SOURCES_SHOWN])
    more = f" and {len(ordered) - SOURCES_SHOWN} more" if len(ordered) > SOURCES_SHOWN else ""
    return f" held back by {ordered[0][0]} (per source: {listed}{more})"


def _changed(application: Application, name: str, row: LedgerRow | None) -> str:
    """Why a name is not run: its definition is another than the one its tables were made by. Empty if it is not."""
    why = application.registry.refused(name, row)
    return f"stands still: {why}" if why else ""


def _wrong(application: Application, row: LedgerRow) -> list[str]:
    """Tables that are missing, damaged or written by others, which no run goes on from."""
    found = faults(application, row)
    way_out = f"WRONG, `{application.command('check', row.name)}` tells more: "
    return [f"{way_out}{'; '.join(found)}"] if found else []


def _newest(application: Application, name: str, row: LedgerRow) -> tuple[int | None, str]:
    """The newest version of a source, and why nothing more of it can be admitted; empty if nothing speaks against it
    here.
    """
    try:
        source = application.source_table(name)
        newest = source.version()
        check_identity(name, source, row)
    except SweepAreaError as error:
        return None, f"; goes no further: {error}"
    return newest, ""


def _rows(path: str) -> int:
    from sweeparea.tables.log.delta_log import DeltaLog

    log = DeltaLog(path)
    return sum(f.rows for f in log.files()) if log.exists() else 0


def _kept_out(application: Application, name: str) -> tuple[int, int]:
    """Rows in quarantine: those that something is wrong with, and dropped duplicates that are remembered."""
    total = _rows(application.layout.quarantine(name))
    declared = application.catalog.streams.get(name)
    if declared is None or declared.deduplicate is None or declared.on_source_change != "correct":
        return total, 0
    return quarantine.counted(application, name)


def _query_line(application: Application, name: str, head: dict[str, LedgerRow], shown: Any) -> str:
    try:
        plan = application.plan(name)
        heartbeats = application.heartbeats(application.whole(name), head)
        ready = query_heartbeat(name, heartbeats)
    except SweepAreaError as error:
        return f"cannot run: {error}"
    row, time = head.get(name), plan.time
    changed = _changed(application, name, row)
    if changed:
        return changed
    done = None if row is None else row.committed
    parts = ["not processed yet" if done is None else f"committed up to {shown(time, done)}"]
    if application.paused(name):
        parts.append("paused")
    if ready is None:
        missing = ", ".join(n for n, h in heartbeats.items() if h is None)
        parts.append(f"waits for the first heartbeat of {missing}")
    elif done is None and (gone := _gone(application, plan, head)):
        parts.append(f"cannot run: {gone}")
    elif done is None and ready < plan.start:
        behind = ", ".join(n for n, h in heartbeats.items() if h == ready)
        parts.append(f"waits for its START, {shown(time, plan.start)}: {behind} is at {shown(time, ready)}")
    elif done is None or ready > done:
        parts.append(f"ready up to {shown(time, ready)}{_lag(time, done, ready)}")
    else:
        parts.append(f"up to date with {', '.join(n for n, h in heartbeats.items() if h == ready)}")
    if row is not None and (corrected := announced(application, plan, row, head)):
        parts.append(f"to be repaired after corrections of {', '.join(corrected)}")
    if before := before_start(application, plan):
        parts.append(before)
    if row is not None:
        shared = (head[n] for n in plan.inputs if is_hidden(n) and n in head)
        parts += [fault for each in (row, *shared) for fault in _wrong(application, each)]
        info = row.info
        size = info.get("state_bytes") or {}
        state = ", ".join(
            f"{op} {n}{f' ({_bytes(size[op])})' if op in size else ''}"
            for op, n in (info.get("state_rows") or {}).items()
            if n
        )
        parts.append(f"state rows: {state or 'none'}")
        warned = {k: v for verdict in info.get("verdicts") or [] for k, v in verdict["warnings"].items()}
        parts.append(f"last verdict: {'passed' if not warned else f'warnings {warned}'}")
        parts.append(f"last slice {sum((info.get('seconds') or {}).values()):.2f} s")
        if rewritten := info.get(REWRITE):
            parts.append(f"results changed afterwards by {rewritten['cause']} ({rewritten['rows']})")
    return "; ".join(parts)


def _gone(application: Application, plan: Plan, head: dict[str, LedgerRow]) -> str:
    """Why a query that never ran cannot begin, by what RETAIN has let go; empty if it can."""
    shared = (name for name in plan.inputs if is_hidden(name))
    unbegun = [name for name in shared if (row := head.get(name)) is None or row.committed is None]
    try:
        for each in (*(application.plan(name) for name in unbegun), plan):
            require_history(application, each, each.start)
    except HistoryGone as error:
        return str(error)
    return ""


def _lag(time: TimeDomain, done: int | None, ready: int) -> str:
    if done is None:
        return ""
    behind = ready - done
    return f" ({behind * time.chronon / 1e6:.0f} s behind)" if time.kind == "TIMESTAMP" else f" ({behind} ticks behind)"


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size = size / 1000
    return f"{size:.1f} GB"
