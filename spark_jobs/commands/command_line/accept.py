"""``accept``: a person takes a slice, or a version of a source, whose verdict was refused."""

from __future__ import annotations

import click

from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, placed, tell


@command("accept", "accept a slice, or a version of a source, that a constraint has refused")
@placed
@click.argument("name", help="the query, stream or relation")
@click.option("--why", metavar="TEXT", required=True, help="why it is accepted: kept in the ledger with who has")
@click.option("--who", metavar="NAME", help="who accepts it (default: the user of this process)")
def accept(place: NamedApplication, name: str, why: str, who: str | None) -> int:
    from sweeparea.spark_jobs.orchestration import accept as work

    application = place.open()
    tell(work.accepted_text(application, *work.accept(application, name, why, who)))
    return 0
