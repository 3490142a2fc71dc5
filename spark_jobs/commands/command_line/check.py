"""``check``: whether tables are what the ledger says."""

from __future__ import annotations

import click

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, each, placed, tell


@command("check", "verify tables against the ledger, and results against the laws R1 and R2")
@placed
@click.argument("name", required=False, help="one stream, relation or query (default: all)")
@click.option(
    "--rebuild",
    is_flag=True,
    help="compute the SweepAreas of the query NAME (default: of each that is damaged), and its results that are"
    " damaged, again from its inputs",
)
def check(place: NamedApplication, name: str | None, rebuild: bool) -> int:
    from sweeparea.spark_jobs.commands import jobs
    from sweeparea.spark_jobs.upkeep import check as checks
    from sweeparea.spark_jobs.upkeep.rebuild import in_order_of_reading

    application = place.open()
    if rebuild and name is not None and not application.is_query(name):
        known = ", ".join(application.catalog.queries) or "none"
        raise SweepAreaError(
            f"{name} is no query, and only queries can be computed again. Queries: {known}. Of a stream or"
            " relation restore a backup, or drop it and admit its source anew."
        )
    found, code = checks.check(application, name, tell), 0
    if rebuild:
        wrong = [query for query in found.wrong if application.is_query(query)]
        names = in_order_of_reading(application, wrong) if name is None else [name]

        def work(query: str) -> None:
            tell(f"{query}: {jobs.rebuild(application, query, found.damaged.get(query, ()), tell)}")

        code = each(names, work)
        if names:
            found = checks.check(application, name, tell)
    faults = sum(map(len, found.wrong.values()))
    tell(f"{faults} faults" if faults else "all as the ledger says")
    return code or (1 if faults else 0)
