"""What status says of a continuous query: how far it is, what it waits for, what it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

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


@dataclass(frozen=True)
class QueryFacts:
    """How far a continuous query is. ``stopped``: why it is not run; ``unfit``: why it cannot run at all.

    ``row`` is None where it never committed. ``heartbeats``: per input, in the query's ticks; ``ready`` is the least of
    them, ``done`` the query's committed instant. ``corrected``: inputs of which it has to take corrections over;
    ``before``: what of its inputs takes no part, in words; ``wrong``: tables that no run goes on from.
    """

    name: str
    row: LedgerRow | None
    stopped: str = ""
    unfit: str = ""
    paused: bool = False
    time: TimeDomain = field(default_factory=TimeDomain)
    start: int = 0
    heartbeats: Mapping[str, int | None] = field(default_factory=dict)
    ready: int | None = None
    corrected: tuple[str, ...] = ()
    before: str = ""
    wrong: tuple[str, ...] = ()

    @property
    def done(self) -> int | None:
        """The committed instant."""
        return None if self.row is None else self.row.committed

    @property
    def behind(self) -> int:
        """By how many ticks the inputs are further than the query; 0 where it has not begun."""
        return 0 if self.ready is None or self.done is None else max(0, self.ready - self.done)

    @property
    def waits_for(self) -> tuple[str, ...]:
        """The inputs without which it cannot go on."""
        waits = self.ready is None or (self.done is not None and self.ready <= self.done) or self.awaits_start
        return tuple(name for name, tick in self.heartbeats.items() if tick == self.ready) if waits else ()

    @property
    def awaits_start(self) -> bool:
        """Whether its inputs have not come to its START yet."""
        return self.done is None and self.ready is not None and self.ready < self.start


def query_facts(application: Application, name: str, head: dict[str, LedgerRow]) -> QueryFacts:
    """What there is to say of a query, declared or hidden."""
    row = head.get(name)
    plain = QueryFacts(name, row)
    try:
        plan = application.plans.plan(name)
        heartbeats = application.plans.heartbeats(application.plans.whole(name), head)
        ready = query_heartbeat(name, heartbeats)
    except SweepAreaError as error:
        return replace(plain, unfit=str(error))
    plain = replace(plain, time=plan.time, start=plan.start, heartbeats=heartbeats, ready=ready)
    if why := not_run(application, name, row):
        return replace(plain, stopped=why)
    shared = (head[n] for n in plan.inputs if is_hidden(n) and n in head)
    rows = () if row is None else (row, *shared)
    return replace(
        plain,
        unfit=_gone(application, plan, head) if plain.done is None and ready is not None else "",
        paused=application.registry.paused(name),
        corrected=() if row is None else tuple(announced(application, plan, row, head)),
        before=before_start(application, plan) or "",
        wrong=tuple(fault for each in rows for fault in wrong_tables(application, each)),
    )


def query_line(facts: QueryFacts) -> str:
    """What status says of a query."""
    if facts.stopped:
        return facts.stopped
    if facts.unfit and not facts.heartbeats:
        return f"cannot run: {facts.unfit}"
    done = facts.done
    parts = ["not processed yet" if done is None else f"committed up to {instant_text(facts.time, done)}"]
    if facts.paused:
        parts.append("paused")
    parts.append(_next(facts))
    if facts.corrected:
        parts.append(f"to be repaired after corrections of {', '.join(facts.corrected)}")
    if facts.before:
        parts.append(facts.before)
    if facts.row is not None:
        parts += [*facts.wrong, *_last_slice(facts.row)]
    return "; ".join(parts)


def _next(facts: QueryFacts) -> str:
    """Up to where a query may go on, or what it waits for."""
    time, ready = facts.time, facts.ready
    if ready is None:
        return f"waits for the first heartbeat of {', '.join(facts.waits_for)}"
    if facts.unfit:
        return f"cannot run: {facts.unfit}"
    least = ", ".join(n for n, h in facts.heartbeats.items() if h == ready)
    if facts.awaits_start:
        return f"waits for its START, {instant_text(time, facts.start)}: {least} is at {instant_text(time, ready)}"
    if facts.done is None or ready > facts.done:
        return f"ready up to {instant_text(time, ready)}{_lag(facts)}"
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


def _lag(facts: QueryFacts) -> str:
    if facts.done is None:
        return ""
    time, behind = facts.time, facts.behind
    told = f"{behind * time.chronon / 1e6:.0f} s" if time.kind == TimeKind.TIMESTAMP else f"{behind} ticks"
    return f" ({told} behind)"


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size = size / 1000
    return f"{size:.1f} GB"
