"""``profile``: what was admitted, as constraints to be declared."""

from __future__ import annotations

import click

from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, placed


@command("profile", "propose a stream's constraints, heartbeat and lateness from what it has admitted, as CQL")
@placed
@click.argument("stream", help="a stream that has admitted rows")
def profile(place: NamedApplication, stream: str) -> int:
    from sweeparea.spark_jobs.commands.profile import profile as work

    print(work(place.open(), stream), end="")
    return 0
