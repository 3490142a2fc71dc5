"""Process: a query catches up with its inputs' heartbeats, slice by slice.

The engine chooses the range, not its caller: from the query's committed instant to the minimum heartbeat of its
inputs, cut where it is long. A slice pins its inputs, evaluates the plan, stages every output in one Spark job, has
the staged rows judged, and commits to the ledger. A run that finds nothing to do says so; a run that was killed
anywhere is continued by the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.heartbeats.minimum import query_heartbeat
from sweeparea.operators.plan.plan import Plan
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.deployment.history_gone import require_history
from sweeparea.spark_jobs.deployment.query_plans import hidden_inputs
from sweeparea.spark_jobs.rewriting.repair import repair
from sweeparea.spark_jobs.slices import acceptance
from sweeparea.spark_jobs.slices.catch_up import catch_up
from sweeparea.spark_jobs.slices.corrections import Corrected
from sweeparea.spark_jobs.slices.slice import Slice
from sweeparea.tables.errors import LostRace
from sweeparea.tables.publication.info import QueryInfo
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.publish import recover

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Processed:
    """What one run of process did."""

    query: str
    committed: int | None = None
    slices: int = 0
    rows_in: int = 0
    rows_out: int = 0
    waits_for: str | None = None
    paused: bool = False
    seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    repaired: list[str] = field(default_factory=list)

    def add(self, committed: int, info: QueryInfo) -> None:
        """Takes a slice into account."""
        self.committed = committed
        self.slices += 1
        self.rows_in += info.rows_in or 0
        self.rows_out += sum((info.rows or {}).values())
        for phase, seconds in (info.seconds or {}).items():
            self.phases[phase] = round(self.phases.get(phase, 0.0) + seconds, 4)

    def as_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


def process(
    application: Application,
    query: str,
    spark: SparkSession,
    until: int | None = None,
    cuts: list[int] | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Processed:
    """Processes ``query`` up to the minimum heartbeat of its inputs, but not beyond tick ``until``.

    ``cuts`` are instants at which slices must end as well (law S2 makes any cut right). Raises SweepAreaError with
    nothing of the failing slice published; the slices before it stand.
    """
    with application.analyzing(spark):
        return _process(application, query, spark, until, cuts, tell)


def _process(
    application: Application,
    query: str,
    spark: SparkSession,
    until: int | None,
    cuts: list[int] | None,
    tell: Callable[[str], None],
) -> Processed:
    started = time.monotonic()
    recover(str(application.data), application.ledger, [query])
    head = application.ledger.head()
    # neither the query nor what it reads or calls may have been made by another text than the files now hold
    for name in application.plans.rests_on(query):
        application.registry.registration(name, head.get(name))
    application.registry.settle(query)
    row = head.get(query)
    first = row is None or row.committed is None
    plan = _checked(application, query, spark) if first else application.plans.plan(query)
    for hidden in () if is_hidden(query) else hidden_inputs(plan):
        if not application.registry.paused(query):
            _process_hidden(application, hidden, spark, until, cuts, tell)
    head = application.ledger.head()
    row = head.get(query)
    application.registry.check_state(plan, row)
    heartbeats = application.plans.heartbeats(plan, head)
    ready = query_heartbeat(query, heartbeats)
    done = row.committed if row is not None and row.committed is not None else plan.start - 1
    report = Processed(query, committed=row.committed if row else None)
    if application.registry.paused(query):
        report.paused = True
        return report
    if ready is None:
        report.waits_for = ", ".join(_waiting(application, query, head, None))
        return report
    if report.committed is None:
        require_history(application, plan, plan.start)
    target = ready if until is None else min(ready, until)

    def run(h0: int, h1: int) -> QueryInfo:
        return Slice(application, plan, spark, h0, h1, tell=tell).run()

    while True:
        for repaired in repair(application, plan, spark, tell):
            report.repaired.append(repaired.words)
        try:
            ends = acceptance.ends(application.ledger.row(query))
            for h1, info in catch_up(application, plan, done, target, run, tell, (*(cuts or ()), *ends)):
                report.add(h1, info)
                done = h1
        except Corrected:
            continue  # an input was corrected meanwhile
        break
    if not report.slices and ready <= done:
        report.waits_for = ", ".join(_waiting(application, query, head, done))
    report.seconds = round(time.monotonic() - started, 3)
    return report


def _checked(application: Application, query: str, spark: SparkSession) -> Plan:
    """The plan, before the first slice: an expression that Spark refuses is told with its place in the text."""
    from sweeparea.spark_jobs.declarations.analysis import Checking, analyzer

    with application.asking(Checking(analyzer(spark), lambda: spark)):
        return application.plans.plan(query)


def _process_hidden(
    application: Application,
    hidden: str,
    spark: SparkSession,
    until: int | None,
    cuts: list[int] | None,
    tell: Callable[[str], None],
) -> None:
    """Lets a hidden query catch up. Runs of other readers may do so at the same time: whoever is slower goes on from
    where the faster one has come to.
    """
    before = None
    while True:
        try:
            _process(application, hidden, spark, until, cuts, tell)
            return
        except LostRace:
            row = application.ledger.row(hidden)
            reached = None if row is None else row.committed
            if reached == before:
                raise
            before = reached


def _waiting(application: Application, query: str, head: dict[str, LedgerRow], done: int | None) -> list[str]:
    """The inputs that hold a query at ``done``; those without a heartbeat, where it has not begun."""
    heartbeats = application.plans.heartbeats(application.plans.whole(query), head)
    if done is None or None in heartbeats.values():
        return sorted(name for name, heartbeat in heartbeats.items() if heartbeat is None)
    return sorted(name for name, heartbeat in heartbeats.items() if heartbeat is not None and heartbeat <= done)
