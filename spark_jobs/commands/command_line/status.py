"""``status``: how far everything is."""

from __future__ import annotations

import click

from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, placed


@command("status", "show heartbeats, committed instants, state, late rows, and what waits for what")
@placed
@click.option("--all", "hidden", is_flag=True, help="also the subplans that queries share")
def status(place: NamedApplication, hidden: bool) -> int:
    from sweeparea.spark_jobs.commands import status as reported

    print(reported.status(place.open(), hidden))
    return 0
