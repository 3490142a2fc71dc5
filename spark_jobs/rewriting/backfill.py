"""Backfill: a range of a query's results computed again from its frozen inputs, beside the tables that hold it.

By law S2 the same rows come out; where something has damaged the tables or a SweepArea, or a function that a query
calls has become another, what differs is replaced in one commit and passed on to the queries that read this one. Live
slices go on meanwhile: what they add is computed on before the exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from sweeparea.infra.errors import SweepAreaError, UsageError
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.touched import warm_from
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.deployment.history_gone import require_history
from sweeparea.spark_jobs.deployment.input_sizes import new_rows
from sweeparea.spark_jobs.rewriting.rewrite import Rewrite
from sweeparea.spark_jobs.rewriting.rewritten import Rewritten
from sweeparea.spark_jobs.rewriting.shadow import Shadow
from sweeparea.spark_jobs.slices.catch_up import Tell, slices
from sweeparea.spark_jobs.slices.corrections import pending
from sweeparea.spark_jobs.slices.history import History
from sweeparea.spark_jobs.spark.errors import NotReadyError
from sweeparea.spark_jobs.spark.instants import instant_text, slice_text
from sweeparea.tables.errors import LostRace
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.publish import recover

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
TRIES = 20
"""After so many live slices that came in between, a backfill gives up; each costs it one slice more."""


@dataclass
class Backfilled:
    """What a backfill has done: ``since`` and ``upto`` are the range as a slice, in ticks."""

    query: str
    since: int
    upto: int
    rows_in: int = 0
    removed: dict[str, int] = field(default_factory=dict)
    added: dict[str, int] = field(default_factory=dict)
    words: str = ""

    def as_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


def backfill(
    application: Application, query: str, spark: SparkSession, first: int | None, last: int | None, tell: Tell
) -> Backfilled:
    """Computes the results at instants ``first`` to ``last`` (ticks; None: START, the query's instant) again.

    Raises SweepAreaError if nothing of the range has been committed yet.
    """
    with application.analyzing(spark):
        recover(str(application.data), application.ledger, [query])

        def run() -> Backfilled:
            return _run(application, *_range(application, query, first, last), spark, tell)

        return until_first(query, run, tell)


def until_first(query: str, run: Callable[[], T], tell: Tell) -> T:
    """What ``run`` gives; it is begun again where another run of the query was faster. SweepAreaError in the end."""
    for _ in range(TRIES):
        try:
            return run()
        except LostRace as error:
            tell(f"{query}: {error} Starting again.")
    raise SweepAreaError(f"{query}: other runs were faster {TRIES} times. Nothing was replaced; run again later.")


def outlook(application: Application, query: str, first: int | None, last: int | None) -> str:
    """What a backfill of a range would do, in words; reads no data. HistoryGone: RETAIN has let go what it needs."""
    plan, _, since, upto = _range(application, query, first, last)
    origin = warm_from(plan.root, plan.start, since)
    require_history(application, replace(plan, start=origin), origin)
    rows = new_rows(application.plans, plan, origin - 1, upto)
    count = slices(plan, rows)
    lines = [
        f"{query}: {slice_text(plan.time, since, upto)} would be computed again from about {rows:,} input rows since"
        f" {instant_text(plan.time, origin)}, in about {count} slice{'s' if count > 1 else ''}"
    ]
    for name in map(plan.table, plan.materialize):
        log = DeltaLog(application.layout.result(name))
        files = History.of(log, plan.time).files(since, upto) if log.exists() else []
        rows = sum(f.rows for f in files)
        lines.append(
            f"{name}: at most {rows:,} rows in {len(files)} files; of these, the ones that differ are replaced"
        )
    below = application.registry.readers(query)
    if below:
        lines.append(f"then, where anything differs: {', '.join(below)}")
    return "\n".join(lines)


def _range(
    application: Application, query: str, first: int | None, last: int | None
) -> tuple[Plan, LedgerRow, int, int]:
    """Plan, ledger row and the range ``(since, upto]`` of a query, as far as it has been committed."""
    head = application.ledger.head()
    row = head.get(query)
    for name in application.plans.rests_on(query):
        application.registry.registration(name, head.get(name))
    plan = application.plans.plan(query)
    application.registry.check_state(plan, row)
    if row is None or row.committed is None:
        raise NotReadyError(
            f"{query} has not computed anything yet. `{application.command('process', query)}` computes it from START,"
            " the past and the present alike."
        )
    since = plan.start - 1 if first is None else max(first, plan.start) - 1
    upto = row.committed if last is None else min(last, row.committed)
    if upto <= since:
        begins = instant_text(plan.time, plan.start)
        raise UsageError(
            f"{query}: nothing of that range has been committed: its results are known from {begins} to"
            f" {instant_text(plan.time, row.committed)}. Give instants in between, --from before --to."
        )
    return plan, row, since, upto


def _run(
    application: Application, plan: Plan, row: LedgerRow, since: int, upto: int, spark: SparkSession, tell: Tell
) -> Backfilled:
    pins = {name: pin["seq"] for name, pin in row.pins.items()}
    report = Backfilled(plan.name, since, upto)
    with Shadow(application, plan, spark, since, pins, tell) as shadow:
        shadow.run(upto)
        report.rows_in = shadow.rows_in
        done = Rewritten()
        if upto == row.committed or Rewrite(shadow, upto, closed=True).differs():
            done = exchange(application, shadow, row, f"backfill from {instant_text(plan.time, since + 1)}")
    report.removed, report.added = done.removed, done.added
    what = slice_text(plan.time, since, upto)
    same = f"{what} computed again from {report.rows_in:,} rows: nothing differs, nothing was written"
    report.words = f"{what} replaced: {done.counts}" if done else same
    return report


def exchange(
    application: Application, shadow: Shadow, row: LedgerRow, cause: str, renewed: Collection[str] = ()
) -> Rewritten:
    """Goes on to the query's instant, also while live slices move it, and takes over what differs up to there.

    ``renewed``: as of ``Rewrite``; SweepAreas are exchanged then, even if no result differs.
    """
    name = shadow.plan.name
    for _ in range(TRIES):
        assert row.committed is not None
        shadow.run(row.committed)
        try:
            rewrite = Rewrite(shadow, row.committed, closed=False, renewed=renewed)
            return rewrite.publish(cause, row, row.pins, always=bool(renewed))
        except LostRace:
            row = _moved(application, shadow, row)
    raise LostRace(f"live slices of {name} were faster {TRIES} times.")


def _moved(application: Application, shadow: Shadow, row: LedgerRow) -> LedgerRow:
    """The ledger row that a live slice has left meanwhile; LostRace if it repaired what the shadow has computed."""
    head = application.ledger.head()
    new = head.get(shadow.plan.name)
    if new is None or new.registration != row.registration:
        raise SweepAreaError(f"{shadow.plan.name} was dropped or replaced meanwhile. Nothing was written.")
    pins = {name: pin["seq"] for name, pin in new.pins.items()}
    if pending(application, shadow.published, row, head, pins, shadow.done):
        raise LostRace(f"Inputs of {shadow.plan.name} were corrected meanwhile.")
    shadow.pins = pins
    return new
