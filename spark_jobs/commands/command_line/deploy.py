"""``plan``, ``apply`` and ``drop``: what the files say, against what is deployed."""

from __future__ import annotations

import click

from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, checking, placed, tell

_prune = click.option("--prune", is_flag=True, help="also drop what the files no longer declare")


@command("plan", "show what apply would change: the files against what is deployed")
@placed
@_prune
@click.option("--check", is_flag=True, help="exit code 1 if there is anything to apply")
@click.option("--no-diff", is_flag=True, help="leave out the texts' differences")
@click.option(
    "--check-types",
    is_flag=True,
    help="start Spark, if none runs, to check the types of all expressions that are new (10-15 s)",
)
def plan(place: NamedApplication, prune: bool, check: bool, no_diff: bool, check_types: bool) -> int:
    from sweeparea.spark_jobs.orchestration import planner
    from sweeparea.spark_jobs.orchestration.deployment_plan import text

    application = place.open(lenient=True)
    planned = planner.plan(application, prune, True, checking(application, check_types))
    print(text(planned, diffs=not no_diff))
    return planned.exit_code or int(check and bool(planned.changes))


@command("apply", "make what is deployed what the files say; shows the plan first")
@placed
@_prune
@click.option(
    "--in-place",
    is_flag=True,
    help="drop the old results of a replaced query at once; the next runs compute the new ones",
)
def apply(place: NamedApplication, prune: bool, in_place: bool) -> int:
    from sweeparea.spark_jobs.orchestration import apply as applying
    from sweeparea.spark_jobs.orchestration import planner
    from sweeparea.spark_jobs.orchestration.deployment_plan import text
    from sweeparea.spark_jobs.spark.session import spark_session

    application = place.open(lenient=True)
    planned = planner.plan(application, prune, not in_place, checking(application))
    print(text(planned), flush=True)
    if planned.changes and not planned.problems:
        print()
    applying.apply(application, planned, tell, spark_session)
    return 0


@command("drop", "forget a query (or stream) and remove its tables; sources are never touched")
@placed
@click.argument("name", help="a continuous query, stream or relation")
def drop(place: NamedApplication, name: str) -> int:
    from sweeparea.spark_jobs.orchestration import drop as dropping

    for line in dropping.drop(place.open(), name):
        tell(line)
    return 0
