"""``process``: queries catch up with the heartbeats of their inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, each, placed, tell, told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sweeparea.infra.errors import SweepAreaError
    from sweeparea.spark_jobs.application import Application


@command("process", "let queries catch up with their inputs' heartbeats, slice by slice")
@placed
@click.argument("query", required=False, help="one continuous query (default: all, in order of dependency)")
@click.option("--until", metavar="INSTANT", help="stop at this instant: 2013-01-31 12:00:00 (UTC), or a tick")
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(1),
    help="so many queries at a time (default: as many as there are cores, at most 4; on a Spark server one)",
)
def process(place: NamedApplication, query: str | None, until: str | None, jobs: int | None) -> int:
    from sweeparea.spark_jobs.commands import jobs as work

    application = place.open()
    names = [query] if query else list(application.catalog.queries)
    if len(names) > 1:
        return told(names, _side_by_side(place, application, names, until, jobs))

    def alone(name: str) -> None:
        report = work.process(application, name, until=_tick(application, name, until), tell=tell)
        tell(_words(application, name, report))

    return each(names, alone)


def _side_by_side(
    place: NamedApplication, application: Application, names: Sequence[str], until: str | None, threads: int | None
) -> Iterator[tuple[str, str | SweepAreaError]]:
    """By query what came of it, in words, or its error."""
    from sweeparea.spark_jobs.commands import jobs
    from sweeparea.spark_jobs.orchestration.process import process

    def work(mine: Application, name: str, spark: SparkSession) -> str:
        report = process(mine, name, spark, until=_tick(mine, name, until), tell=tell)
        return _words(mine, name, report.as_dict())

    return jobs.process_all(application, place.open, names, work, threads)


def _tick(application: Application, name: str, until: str | None) -> int | None:
    from sweeparea.spark_jobs.spark.instants import tick_of

    return None if until is None else tick_of(until, application.plans.plan(name).time)


def _words(application: Application, name: str, report: dict[str, Any]) -> str:
    """What came of a query."""
    from sweeparea.spark_jobs.spark.instants import instant_text

    time, committed = application.plans.plan(name).time, report["committed"]
    done = "not processed yet" if committed is None else f"committed up to {instant_text(time, committed)}"
    if report["paused"]:
        resume = application.command("run", "-c", f"RESUME CONTINUOUS QUERY {name}")
        return f"{name}: paused, {done}; `{resume}` lets it go on"
    if report["slices"] or report["repaired"]:
        return f"{name}: {done}, {report['rows_out']} rows out, {report['seconds']} s"
    waits = f"; waits for the heartbeat of {report['waits_for']}" if report["waits_for"] else ""
    missing = [n for n in application.catalog.dependencies(name) if n not in application.ledger.head()]
    if missing:
        waits = f"; {', '.join(missing)} has not run yet (`sweeparea admit`, or `process` for a query)"
    return f"{name}: nothing to do, {done}{waits}"
