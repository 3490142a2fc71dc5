"""What the tasks call: the jobs of ``spark_jobs``, imported when a task runs and never while DAGs are parsed.

A job's report counts what it did (``versions`` of a source, ``slices`` of a query). Where that is nothing, the task is
skipped, so that it emits no asset event.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from sweeparea.infra.errors import SweepAreaError, UsageError

log = logging.getLogger(__name__)

WORKED = ("versions", "slices", "repaired", "recomputed")
"""What of a report counts work. A range that was computed again is work, also where it found what it had found."""
FINAL = {"ParseError", "BindError", "TypeError", "RefusedError", "DataError"}
"""Kinds of errors that a retry would only repeat: the text, the rows or what is asked for have to change first."""


def admit(app: str, stream: str) -> dict[str, Any]:
    """Admits what is new in the source of a stream, or copies a static relation."""
    from sweeparea.spark_jobs.commands import jobs

    _tell_quality(app, stream)
    return _outcome(jobs.admit, app, stream)


def process(app: str, query: str, until: object = None) -> dict[str, Any]:
    """Processes a query up to its heartbeat, or up to ``until``: an instant or a tick, as a person wrote it."""
    from sweeparea.spark_jobs.commands import jobs

    _tell_quality(app, query)
    return _outcome(jobs.process, app, query, None if until is None else str(until))


def maintain(app: str) -> dict[str, Any]:
    """Maintains the tables of an application; needs no Spark."""
    from sweeparea.spark_jobs.commands import jobs

    return jobs.maintain(app)


def alert(app: str, context: Any) -> dict[str, Any]:
    """Says who is too far behind the clock, and who is not any more. Skipped where that was said before."""
    from sweeparea.dags import alerts, model

    report = alerts.lag(model.load(app), context)
    if not report["opened"] and not report["closed"]:
        raise AirflowSkipException("Nothing new: everybody who is behind was told of.")
    return report


def process_group(
    app: str,
    queries: Sequence[str],
    busy: Callable[[str], bool],
    done: Callable[[str, dict[str, Any]], None],
    parallelism: int | None,
) -> dict[str, Any]:
    """Processes what is due of ``queries`` and gives each one's report to ``done`` as it ends; those that are ``busy``
    elsewhere are left out. One that fails stops no other; when all are through, the failures are raised as one.
    """
    from sweeparea.spark_jobs.commands import jobs

    reports: dict[str, Any] = {}
    failures: dict[str, SweepAreaError] = {}
    for query, outcome in jobs.process_due(app, queries, busy, parallelism):
        if isinstance(outcome, SweepAreaError):
            log.error("%s: %s", query, outcome)
            failures[query] = outcome
        elif any(outcome.get(what) for what in WORKED):
            reports[query] = outcome
            done(query, outcome)
    if failures:
        final = all(_is_final(error) for error in failures.values())
        told = "\n".join(f"{query}: {error}" for query, error in failures.items())
        through = f" Done: {', '.join(reports)}." if reports else ""
        text = f"{len(failures)} of the group's queries failed.{through}\n{told}"
        raise AirflowFailException(text) if final else SweepAreaError(text)
    if not reports:
        raise AirflowSkipException("Nothing to do.")
    return {"queries": reports}


def backfill(app: str, query: str, start: datetime, end: datetime) -> dict[str, Any]:
    """Processes or recomputes the instants of [start, end) of a query."""
    from sweeparea.spark_jobs.commands import jobs

    return _outcome(jobs.backfill, app, query, start, end)


def interrupt(again: float = 0.5) -> None:
    """Stops what this process runs on the Spark Connect server, which would go on without its client.

    Interrupts by the tags that the job has set, so that nothing else of the server is touched; without a tag,
    everything of this session, which only this process holds. The killed task goes on for some seconds until its
    process ends and may begin the next operation meanwhile, so this is repeated every ``again`` seconds.
    """
    module = sys.modules.get("pyspark.sql.connect.session")
    session = module.SparkSession.getActiveSession() if module else None
    if session is None:
        return
    tags = list(session.getTags())  # those of this thread, in which the job runs

    def stop() -> list[str]:
        return [op for tag in tags for op in session.interruptTag(tag)] if tags else list(session.interruptAll())

    def keep_stopping() -> None:
        while True:
            time.sleep(again)
            stop()

    log.info("Interrupted on the Spark server: %s", ", ".join(stop()) or "nothing was running")
    threading.Thread(target=keep_stopping, name="interrupt-spark", daemon=True).start()


def _tell_quality(app: str, name: str) -> None:
    from sweeparea.dags.alerts import quality_page

    log.info("Verdicts of %s: %s, or `sweeparea quality report %s %s`", name, quality_page(app, name), app, name)


def _is_final(error: SweepAreaError) -> bool:
    return error.type in FINAL or isinstance(error, UsageError)


def _outcome(job: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    try:
        report = job(*arguments)
    except SweepAreaError as error:
        if _is_final(error):
            raise AirflowFailException(str(error)) from error
        raise
    reached = report.get("backfill") or {}
    if reached.get("complete") is False:
        log.warning(
            "The inputs' heartbeats end before %s, so the range is done up to tick %s. What is missing follows by "
            "itself as the heartbeats advance.",
            reached["to"],
            report["committed"],
        )
    if report.get("paused"):
        raise AirflowSkipException("Paused by PAUSE CONTINUOUS QUERY; RESUME CONTINUOUS QUERY lets it go on.")
    if not reached and not any(report.get(what) for what in WORKED):
        waits = report.get("waits_for")
        raise AirflowSkipException("Nothing to do" + (f": waits for {waits}." if waits else "."))
    return report
