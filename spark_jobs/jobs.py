"""What a task runs: the three jobs by name, with a session of their own. Returns plain JSON-able reports."""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sweeparea.spark_jobs.application import Application

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    from sweeparea.spark_jobs.admit import admit as run
    from sweeparea.spark_jobs.session import spark_session

    opened = application if isinstance(application, Application) else Application.open(application)
    with spark_session() as spark, tagged(spark):
        return run(opened, name, spark, tell=tell, take_columns=take_columns, baseline=baseline).as_dict()


def process(application: str | Application, query: str, until: int | None = None, tell: Tell = _log) -> dict[str, Any]:
    """Processes a query up to its inputs' heartbeats, or up to tick ``until`` if that is earlier."""
    from sweeparea.spark_jobs.process import process as run
    from sweeparea.spark_jobs.session import spark_session

    opened = application if isinstance(application, Application) else Application.open(application)
    with spark_session() as spark, tagged(spark):
        return run(opened, query, spark, until=until, tell=tell).as_dict()


def backfill(
    application: str | Application, query: str, start: dt.datetime, end: dt.datetime, tell: Tell = _log
) -> dict[str, Any]:
    """Brings a query to the end of ``[start, end)``, as far as heartbeats allow.

    A range that is committed already is left alone: it was computed from frozen inputs, and computing it again gives
    the same rows (law S2). What precedes ``start`` is processed as well where it is missing, since results never have
    gaps.
    """
    opened = application if isinstance(application, Application) else Application.open(application)
    plan = opened.plan(query)
    last = tick_before(end, plan.time.chronon if plan.time.kind == "TIMESTAMP" else None)
    report = process(opened, query, until=last, tell=tell)
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
