"""``backfill``: a range of a query's results again."""

from __future__ import annotations

import click

from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, placed, tell


@command("backfill", "compute a range of a query's results again and replace what differs")
@placed
@click.argument("query", help="a continuous query")
@click.option("--from", "first", metavar="INSTANT", help="the first instant (default: START)")
@click.option("--to", "last", metavar="INSTANT", help="the last instant (default: all that is there)")
@click.option("--dry-run", is_flag=True, help="tell only what it would read and replace")
def backfill(place: NamedApplication, query: str, first: str | None, last: str | None, dry_run: bool) -> int:
    from sweeparea.spark_jobs.commands.jobs import recompute
    from sweeparea.spark_jobs.rewriting.backfill import outlook
    from sweeparea.spark_jobs.spark.instants import tick_of

    application = place.open()
    application.query(query)
    time = application.plans.plan(query).time
    low, high = (None if text is None else tick_of(text, time) for text in (first, last))
    if dry_run:
        print(outlook(application, query, low, high))
        return 0
    recompute(application, query, low, high, tell)
    return 0
