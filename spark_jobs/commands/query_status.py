"""What status says of a continuous query: how far it is, what it waits for, what it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.heartbeats.minimum import query_heartbeat
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.status_faults import not_run, wrong_tables
from sweeparea.spark_jobs.deployment.history_gone import HistoryGone, require_history
from sweeparea.spark_jobs.deployment.input_sizes import before_start
from sweeparea.spark_jobs.slices.corrections import announced
from sweeparea.spark_jobs.spark.instants import instant_text
from sweeparea.tables.publication.ledger import LedgerRow


def query_line(application: Application, name: str, head: dict[str, LedgerRow]) -> str:
    """What status says of a query, declared or hidden."""
    try:
        plan = application.plans.plan(name)
        heartbeats = application.plans.heartbeats(application.plans.whole(name), head)
        ready = query_heartbeat(name, heartbeats)
    except SweepAreaError as error:
        return f"cannot run: {error}"
    row = head.get(name)
    if why := not_run(application, name, row):
        return why
    done = None if row is None else row.committed
    parts = ["not processed yet" if done is None else f"committed up to {instant_text(plan.time, done)}"]
    if application.registry.paused(name):
        parts.append("paused")
    parts.append(_next(application, plan, head, heartbeats, ready, done))
    if row is not None and (corrected := announced(application, plan, row, head)):
        parts.append(f"to be repaired after corrections of {', '.join(corrected)}")
    if before := before_start(application, plan):
        parts.append(before)
    if row is not None:
        shared = (head[n] for n in plan.inputs if is_hidden(n) and n in head)
        parts += [fault for each in (row, *shared) for fault in wrong_tables(application, each)]
        parts += _last_slice(row)
    return "; ".join(parts)


def _next(
    application: Application,
    plan: Plan,
    head: dict[str, LedgerRow],
    heartbeats: Mapping[str, int | None],
    ready: int | None,
    done: int | None,
) -> str:
    """Up to where a query may go on, or what it waits for. ``ready`` is the least of its inputs' ``heartbeats``."""
    if ready is None:
        missing = ", ".join(n for n, h in heartbeats.items() if h is None)
        return f"waits for the first heartbeat of {missing}"
    least = ", ".join(n for n, h in heartbeats.items() if h == ready)
    time = plan.time
    if done is None and (gone := _gone(application, plan, head)):
        return f"cannot run: {gone}"
    if done is None and ready < plan.start:
        return f"waits for its START, {instant_text(time, plan.start)}: {least} is at {instant_text(time, ready)}"
    if done is None or ready > done:
        return f"ready up to {instant_text(time, ready)}{_lag(time, done, ready)}"
    return f"up to date with {least}"


def _last_slice(row: LedgerRow) -> Iterator[str]:
    """What the last slice has left, and what has changed results since."""
    info = row.of_query
    sizes = info.state.bytes
    state = ", ".join(
        f"{op} {n}{f' ({_bytes(sizes[op])})' if op in sizes else ''}" for op, n in info.state.rows.items() if n
    )
    yield f"state rows: {state or 'none'}"
    warned = {k: v for verdict in info.verdicts or [] for k, v in verdict["warnings"].items()}
    yield f"last verdict: {'passed' if not warned else f'warnings {warned}'}"
    yield f"last slice {sum((info.seconds or {}).values()):.2f} s"
    if info.rewrite is not None:
        yield f"results changed afterwards by {info.rewrite.cause} ({info.rewrite.rows})"


def _gone(application: Application, plan: Plan, head: dict[str, LedgerRow]) -> str:
    """Why a query that never ran cannot begin, by what RETAIN has let go; empty if it can."""
    shared = (name for name in plan.inputs if is_hidden(name))
    unbegun = [name for name in shared if (row := head.get(name)) is None or row.committed is None]
    try:
        for each in (*(application.plans.plan(name) for name in unbegun), plan):
            require_history(application, each, each.start)
    except HistoryGone as error:
        return str(error)
    return ""


def _lag(time: TimeDomain, done: int | None, ready: int) -> str:
    if done is None:
        return ""
    behind = ready - done
    told = f"{behind * time.chronon / 1e6:.0f} s" if time.kind == TimeKind.TIMESTAMP else f"{behind} ticks"
    return f" ({told} behind)"


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size = size / 1000
    return f"{size:.1f} GB"
