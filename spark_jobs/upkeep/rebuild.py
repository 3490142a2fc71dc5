"""A query's SweepAreas, and the results that are damaged, computed again from its inputs and exchanged in one commit.

A SweepArea is a cache of what past inputs still contribute: losing it costs time, never answers. Results that are
sound are compared with what comes out, and replaced where they differ.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.touched import memory
from sweeparea.operators.time.ticks import INF
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.deployment.history_gone import gone_up_to
from sweeparea.spark_jobs.rewriting.backfill import exchange, until_first
from sweeparea.spark_jobs.rewriting.rewritten import Rewritten
from sweeparea.spark_jobs.rewriting.shadow import Shadow
from sweeparea.spark_jobs.slices.catch_up import Tell
from sweeparea.spark_jobs.spark.errors import NotReadyError
from sweeparea.spark_jobs.spark.instants import slice_text
from sweeparea.spark_jobs.upkeep.agreement import tables_of
from sweeparea.tables.errors import TableError
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.folders import has_folder, move_folder
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.publish import recover

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CAUSE = "check --rebuild"


def rebuild(
    application: Application,
    query: str,
    spark: SparkSession,
    damaged: Iterable[str] = (),
    tell: Tell = lambda text: None,
) -> Rewritten:
    """Computes a query again and exchanges its SweepAreas and its ``damaged`` tables (paths in the data folder).

    Raises NotReadyError if it has not committed anything, HistoryGone if RETAIN has let elements go that it needs.
    """
    with application.analyzing(spark):
        plan = application.plans.plan(query)
        _row(application, plan)  # there is something to rebuild
        damaged = set(damaged)
        _set_aside(application, query, damaged, tell)
        recover(str(application.data), application.ledger, [query])
        return until_first(query, lambda: _run(application, plan, _row(application, plan), spark, damaged, tell), tell)


def in_order_of_reading(application: Application, queries: Iterable[str]) -> list[str]:
    """Queries, hidden ones too, each after those that it reads: what is rebuilt must be there for its readers."""
    wanted, found = sorted(queries), dict[str, None]()
    seen: set[str] = set()

    def place(name: str) -> None:
        if name in seen or not application.is_query(name):
            return
        seen.add(name)
        with suppress(SweepAreaError):  # one that cannot be planned is told of when it is rebuilt
            for source in application.plans.plan(name).inputs:
                place(application.owner(source))
        if name in wanted:
            found[name] = None

    for name in wanted:
        place(name)
    return list(found)


def _row(application: Application, plan: Plan) -> LedgerRow:
    row = application.ledger.head().get(plan.name)
    application.registry.check_state(plan, row)
    if row is None or row.committed is None:
        raise NotReadyError(
            f"{plan.name} has not computed anything yet, so there is nothing to rebuild."
            f" `{application.command('process', plan.name)}` computes it from START."
        )
    return row


def _run(
    application: Application, plan: Plan, row: LedgerRow, spark: SparkSession, damaged: set[str], tell: Tell
) -> Rewritten:
    committed, name = row.committed or 0, plan.name
    since, back, gone = plan.start - 1, memory(plan.root), gone_up_to(application, plan)
    results = {table for table in damaged if table.startswith("results/")}
    if gone is not None and back < INF and not results:
        # what came before has gone; SweepAreas need no more than the windows hold
        since = min(committed - 1, max(since, gone + back + 1))
    areas = {application.layout.relative(application.layout.state(name, op)) for op in row.of_query.state.rows}
    pins = {source: pin["seq"] for source, pin in row.pins.items()}
    tell(f"{name}: {slice_text(plan.time, since, committed)} is computed again")
    with Shadow(application, plan, spark, since, pins, tell) as shadow:
        done = exchange(application, shadow, row, CAUSE, areas | results)
    exchanged = len(areas) + len(results)
    done.words = f"{exchanged} tables exchanged; of the other results {done.counts}"
    return done


def _set_aside(application: Application, query: str, damaged: set[str], tell: Tell) -> None:
    """Tables of the query whose log cannot be read are moved away, so that new ones can take their place."""
    layout, row = application.layout, application.ledger.head().get(query)
    for table in tables_of(row) if row is not None else ():
        log = DeltaLog(layout.absolute(table))
        try:
            if log.exists():
                log.version()
        except TableError:
            damaged.add(table)
            aside = f"{layout.dropped(query, 'damaged')}-{uuid.uuid4().hex[:8]}/{table}"
            tell(f"{table}: its log cannot be read; it is moved to {layout.relative(aside)}")
            if has_folder(log.uri):
                move_folder(log.uri, aside)
            application.ledger.close([table])
