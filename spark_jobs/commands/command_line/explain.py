"""``explain``: how a query will be run."""

from __future__ import annotations

import click

from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, OneOf, placed


@command("explain", "show how a query will be run; reads no data")
@placed
@click.argument("query", help="a continuous query of the application, or the text of one in quotes")
@click.option(
    "--form",
    type=OneOf(("tree", "mermaid", "svg", "cql")),
    default="tree",
    help="a tree, a picture of the plan, or the plan after its rewrites written back as CQL",
)
def explain(place: NamedApplication, query: str, form: str) -> int:
    from sweeparea.spark_jobs.orchestration.explaining import explained_text

    application = place.open()
    for name in (*application.catalog.streams, *application.catalog.relations):
        if query in application.catalog.queries and name in application.catalog.dependencies(query):
            application.sources.check(name)  # faults of what it reads are told here already
    print(explained_text(application, query, form))
    return 0
