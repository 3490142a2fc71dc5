"""What the tasks call: the jobs of ``spark_jobs``, imported when a task runs and never while DAGs are parsed, in the
task's own process or under a second Python.

A job's report counts what it did (``versions`` of a source, ``slices`` of a query). Where that is nothing, the task is
skipped, so that it emits no asset event.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from sweeparea.dags import second_python
from sweeparea.infra.errors import SweepAreaError, UsageError, missing_extra

if TYPE_CHECKING:
    from sweeparea.spark_jobs.admission.release.wanted_rows import WantedRows

log = logging.getLogger(__name__)

WORKED = ("versions", "slices", "repaired", "recomputed")
"""What of a report counts work. A range that was computed again is work, also where it found what it had found."""
FINAL = {"ParseError", "BindError", "TypeError", "RefusedError", "DataError"}
"""Kinds of errors that a retry would only repeat: the text, the rows or what is asked for have to change first."""


def admit(app: str, stream: str) -> dict[str, Any]:
    """Admits what is new in the source of a stream, or copies a static relation."""
    _tell_quality(app, stream)
    jobs = second_python.jobs()
    return _outcome(jobs.admit, app, stream)


def release(app: str, stream: str, wanted: object) -> dict[str, Any]:
    """Releases rows of a quarantine: ``wanted`` has their ``ids``, and may have values to ``set`` by column. Fails
    where a row stays in quarantine, with the reason.
    """
    report = _report(second_python.jobs().release, app, stream, _wanted_rows(wanted))
    if report["refused"]:
        told = "; ".join(f"{row} stays in quarantine: {why}" for row, why in report["refused"])
        raise AirflowFailException(f"{report['rows']} rows were released. {told}")
    return report


def _wanted_rows(wanted: object) -> WantedRows:
    """What the conf of a release asks for."""
    from sweeparea.spark_jobs.admission.release.wanted_rows import WantedRows

    given: dict[str, Any] = wanted if isinstance(wanted, dict) else {}
    ids, values = given.get("ids"), given.get("set", {})
    texts = tuple(one for one in ids if isinstance(one, str)) if isinstance(ids, list) else ()
    if not texts or texts != tuple(ids or ()) or not isinstance(values, dict) or given.keys() - {"ids", "set"}:
        raise AirflowFailException(
            'The conf of a release is {"release": {"ids": ["17-3fa9c1d2"], "set": {"column": "value"}}}: ids as the'
            f" quarantine lists them, set may be missing. Given was {wanted!r}."
        )
    return WantedRows(texts, assigned={str(column): str(value) for column, value in values.items()})


def process(app: str, query: str, until: object = None) -> dict[str, Any]:
    """Processes a query up to its heartbeat, or up to ``until``: an instant or a tick, as a person wrote it."""
    _tell_quality(app, query)
    jobs = second_python.jobs()
    return _outcome(jobs.process, app, query, None if until is None else str(until))


def catch_up(app: str, query: str, until: str | None = None) -> dict[str, Any]:
    """As ``process``, and no skip where there is nothing to do."""
    return _report(second_python.jobs().process, app, query, until)


def has_worked(report: Mapping[str, Any]) -> bool:
    """Whether a job did anything."""
    return any(report.get(what) for what in WORKED)


def maintain(app: str) -> dict[str, Any]:
    """Maintains the tables of an application; needs no Spark."""
    jobs = second_python.jobs()
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
    jobs = second_python.jobs()
    reports: dict[str, Any] = {}
    failures: dict[str, SweepAreaError] = {}
    for query, outcome in jobs.process_due(app, queries, busy, parallelism):
        if isinstance(outcome, SweepAreaError):
            log.error("%s: %s", query, outcome)
            failures[query] = outcome
        elif has_worked(outcome):
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
    jobs = second_python.jobs()
    return _outcome(jobs.backfill, app, query, start, end)


def interrupt(again: float = 0.5) -> None:
    """Stops what this process runs on the Spark server or under a second Python (``interrupting.py``)."""
    from sweeparea.spark_jobs.spark.interrupting import interrupt as stop

    second_python.end()
    stop(again)


def _tell_quality(app: str, name: str) -> None:
    from sweeparea.dags.alerts import quality_page

    log.info("Verdicts of %s: %s, or `sweeparea quality report %s %s`", name, quality_page(app, name), app, name)


def _is_final(error: SweepAreaError) -> bool:
    return error.type in FINAL or isinstance(error, UsageError)


def _outcome(job: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """The report of a job that did something; skipped where it did nothing."""
    report = _report(job, *arguments)
    if not report.get("backfill") and not has_worked(report):
        waits = report.get("waits_for")
        raise AirflowSkipException("Nothing to do" + (f": waits for {waits}." if waits else "."))
    return report


def _report(job: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """The report of a job, whatever it did; its errors as Airflow is to take them."""
    try:
        report = job(*arguments)
    except SweepAreaError as error:
        if _is_final(error):
            raise AirflowFailException(str(error)) from error
        raise
    except ImportError as error:
        if missing := missing_extra(error):
            raise AirflowFailException(str(missing)) from error
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
    return report
