"""What tasks and commands run: each job by name, with a session of its own. Returns plain JSON-able reports."""

from __future__ import annotations

import datetime as dt
import logging
import os
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from sweeparea.spark_jobs.application import Application

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sweeparea.infra.errors import SweepAreaError
    from sweeparea.spark_jobs.admission.release.wanted_rows import WantedRows

MOST_THREADS = 4
"""So many queries run side by side where nobody says how many."""
T = TypeVar("T")
Tell = Callable[[str], None]


def _log(text: str) -> None:
    """The default listener of progress: the log, which under Airflow is the task's own."""
    logging.getLogger(__name__).info(text)


@contextmanager
def tagged(spark: SparkSession) -> Iterator[None]:
    """Marks all Spark work inside with a tag of its own, by which a killed task is interrupted on the server."""
    tag = f"sweeparea-{uuid.uuid4().hex}"
    spark.addTag(tag)
    try:
        yield
    finally:
        spark.removeTag(tag)


def admit(
    application: str | Application, name: str, tell: Tell = _log, take_columns: bool = False, baseline: bool = False
) -> dict[str, Any]:
    """Admits what is new in the source of a stream (or pins a static relation).

    ``take_columns`` takes over columns that it has gained; ``baseline`` goes on from the source as it is now where
    versions are gone.
    """
    from sweeparea.spark_jobs.admission.admit import admit as run
    from sweeparea.spark_jobs.spark.session import spark_session

    opened = application if isinstance(application, Application) else Application.open(application)
    with spark_session() as spark, tagged(spark):
        return run(opened, name, spark, tell=tell, take_columns=take_columns, baseline=baseline).as_dict()


def release(application: str | Application, name: str, wanted: WantedRows) -> dict[str, Any]:
    """Releases rows of a stream's quarantine: they are admitted after all, or refused with the reason."""
    from sweeparea.spark_jobs.admission.release.release import release as run
    from sweeparea.spark_jobs.spark.session import spark_session

    opened = application if isinstance(application, Application) else Application.open(application)
    with spark_session() as spark, tagged(spark):
        return dict(run(opened, name, spark, wanted).__dict__)


def refresh(application: str | Application, name: str) -> str:
    """Takes the source of a static relation as it is now (REFRESH RELATION); returns what came of it, in words."""
    from sweeparea.spark_jobs.admission.relation.static import refresh as run
    from sweeparea.spark_jobs.spark.session import spark_session

    opened = application if isinstance(application, Application) else Application.open(application)
    with spark_session() as spark, tagged(spark), opened.analyzing(spark):
        return run(opened, name, spark)


def maintain(application: str | Application, name: str | None = None, tell: Tell = _log) -> dict[str, Any]:
    """Maintains the tables of an application, or of one name; no Spark. Raises SweepAreaError after the rest is done
    if a table was not as it should be.
    """
    from sweeparea.infra.errors import SweepAreaError
    from sweeparea.spark_jobs.upkeep.maintain import maintain as run

    opened = application if isinstance(application, Application) else Application.open(application)
    report = run(opened, name, tell=tell)
    if report.problems:
        raise SweepAreaError(f"{'; '.join(report.problems)} The rest was maintained: {report.words}.")
    return report.as_dict()


def rebuild(application: str | Application, query: str, damaged: Collection[str], tell: Tell = _log) -> str:
    """Computes a query's SweepAreas and its ``damaged`` tables again; returns what came of it, in words."""
    from sweeparea.spark_jobs.spark.session import spark_session
    from sweeparea.spark_jobs.upkeep.rebuild import rebuild as run

    opened = application if isinstance(application, Application) else Application.open(application)
    with spark_session() as spark, tagged(spark):
        return run(opened, query, spark, damaged, tell).words


def process(
    application: str | Application, query: str, until: int | str | None = None, tell: Tell = _log
) -> dict[str, Any]:
    """Processes a query up to its inputs' heartbeats, or up to ``until`` if that is earlier: a tick, or an instant as a
    person wrote it.
    """
    from sweeparea.spark_jobs.orchestration.process import process as run
    from sweeparea.spark_jobs.spark.instants import tick_of
    from sweeparea.spark_jobs.spark.session import spark_session

    opened = application if isinstance(application, Application) else Application.open(application)
    if isinstance(until, str):
        until = tick_of(until, opened.plans.plan(query).time)
    with spark_session() as spark, tagged(spark):
        return run(opened, query, spark, until=until, tell=tell).as_dict()


def process_all(
    application: Application,
    opened: Callable[[], Application],
    queries: Sequence[str],
    work: Callable[[Application, str, SparkSession], T],
    threads: int | None = None,
) -> Iterator[tuple[str, T | SweepAreaError]]:
    """``work`` of queries with a session that they share, several at a time (``side_by_side.py``), as they end.
    ``threads`` None: as many as there are cores, at most ``MOST_THREADS``; on a server one after the other.
    """
    from sweeparea.spark_jobs.orchestration.side_by_side import each_of
    from sweeparea.spark_jobs.spark.session import spark_session

    with spark_session() as spark:
        server = "connect" in type(spark).__module__
        several = threads or (1 if server else min(os.cpu_count() or 1, MOST_THREADS))

        def tagged_work(mine: Application, name: str) -> T:
            with tagged(spark):
                return work(mine, name, spark)

        yield from each_of(application, opened, queries, tagged_work, several)


def process_due(
    application: str,
    queries: Sequence[str],
    busy: Callable[[str], bool],
    threads: int | None = None,
    tell: Tell = _log,
) -> Iterator[tuple[str, dict[str, Any] | SweepAreaError]]:
    """What is due of ``queries``, each after those of them that it reads, as reports of `process`; a query that has
    nothing to do, or is ``busy`` elsewhere when its turn comes, has an empty one.
    """
    from sweeparea.heartbeats.readiness import judge
    from sweeparea.spark_jobs.orchestration.process import process as run

    opened = Application.open(application)
    inputs = {name: opened.catalog.dependencies(name) for name in opened.catalog.queries}

    def work(mine: Application, name: str, spark: SparkSession) -> dict[str, Any]:
        if not judge(mine.ledger.head(), inputs)[name].is_ready or busy(name):
            return {}
        report = run(mine, name, spark, tell=tell).as_dict()
        tell(f"{name}: {report['slices']} slices, {report['rows_out']} rows out, {report['seconds']} s")
        return report

    yield from process_all(opened, lambda: Application.open(application), queries, work, threads)


def recompute(
    application: str | Application,
    query: str,
    first: int | None = None,
    last: int | None = None,
    tell: Tell = _log,
    below: bool = True,
) -> dict[str, Any]:
    """Computes a query's results at instants ``first`` to ``last`` (ticks) again and replaces what differs; ``below``:
    then lets the queries that rest on it follow, in order.
    """
    from sweeparea.spark_jobs.orchestration.process import process as follow
    from sweeparea.spark_jobs.rewriting.backfill import backfill as run
    from sweeparea.spark_jobs.spark.session import spark_session

    opened = application if isinstance(application, Application) else Application.open(application)
    with spark_session() as spark, tagged(spark):
        report = run(opened, query, spark, first, last, tell)
        tell(f"{query}: {report.words}")
        found = opened.registry.readers(query) if below else ()
        for reader in (name for name in opened.catalog.queries if name in found):
            follow(opened, reader, spark, tell=tell)
    return report.as_dict()


def backfill(
    application: str | Application, query: str, start: dt.datetime, end: dt.datetime, tell: Tell = _log
) -> dict[str, Any]:
    """Brings a query to the end of ``[start, end)``, as far as heartbeats allow, and computes again what of that range
    had been committed before.

    What precedes ``start`` is processed as well where it is missing, since results never have gaps.
    """
    opened = application if isinstance(application, Application) else Application.open(application)
    plan = opened.plans.plan(query)
    chronon = plan.time.clock or None
    first, last = tick_before(start, chronon) + 1, tick_before(end, chronon)
    row = opened.ledger.row(query)
    before = row.committed if row is not None else None
    report = process(opened, query, until=last, tell=tell)
    if before is not None and max(first, plan.start) <= min(last, before):
        report["recomputed"] = recompute(opened, query, first, min(last, before), tell, below=False)
    report["backfill"] = {
        "from": start.isoformat(),
        "to": end.isoformat(),
        "complete": (report["committed"] or 0) >= last,
    }
    return report


def tick_before(instant: dt.datetime, chronon: int | None) -> int:
    """The last tick before an instant: the end of a half-open range as a slice's closed one. BIGINT time has no
    calendar.
    """
    from sweeparea.infra.errors import SweepAreaError

    if chronon is None:
        raise SweepAreaError(
            "A backfill by dates needs a query over TIMESTAMP time; this one counts in BIGINT ticks. Use "
            "`sweeparea process APP QUERY --until TICK`."
        )
    moment = instant if instant.tzinfo else instant.replace(tzinfo=dt.UTC)
    micros = (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    return -(-micros // chronon) - 1
