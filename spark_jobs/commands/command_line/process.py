"""``process``: queries catch up with the heartbeats of their inputs."""

from __future__ import annotations

import click

from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, each, placed, tell


@command("process", "let queries catch up with their inputs' heartbeats, slice by slice")
@placed
@click.argument("query", required=False, help="one continuous query (default: all, in order of dependency)")
@click.option("--until", metavar="INSTANT", help="stop at this instant: 2013-01-31 12:00:00 (UTC), or a tick")
def process(place: NamedApplication, query: str | None, until: str | None) -> int:
    from sweeparea.spark_jobs.commands import jobs
    from sweeparea.spark_jobs.spark.instants import instant_text, tick_of

    application = place.open()

    def work(name: str) -> None:
        time = application.plans.plan(name).time
        report = jobs.process(application, name, until=None if until is None else tick_of(until, time), tell=tell)
        committed = report["committed"]
        done = "not processed yet" if committed is None else f"committed up to {instant_text(time, committed)}"
        if report["paused"]:
            resume = application.command("run", "-c", f"RESUME CONTINUOUS QUERY {name}")
            tell(f"{name}: paused, {done}; `{resume}` lets it go on")
            return
        if report["slices"] or report["repaired"]:
            tell(f"{name}: {done}, {report['rows_out']} rows out, {report['seconds']} s")
            return
        waits = f"; waits for the heartbeat of {report['waits_for']}" if report["waits_for"] else ""
        missing = [n for n in application.catalog.dependencies(name) if n not in application.ledger.head()]
        if missing:
            waits = f"; {', '.join(missing)} has not run yet (`sweeparea admit`, or `process` for a query)"
        tell(f"{name}: nothing to do, {done}{waits}")

    return each([query] if query else list(application.catalog.queries), work)
