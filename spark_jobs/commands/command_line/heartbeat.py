"""``heartbeat``: moves one by hand."""

from __future__ import annotations

import click

from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, tell, where


@command("heartbeat", "move the heartbeat of what is declared HEARTBEAT MANUAL")
@where
@click.argument(
    "words",
    nargs=-1,
    required=True,
    metavar="[advance] APPLICATION NAME INSTANT",
    help="a stream or relation, and up to when no element will come any more: 2013-01-31 12:00:00 (UTC), or a tick",
)
def heartbeat(data: str | None, env: str | None, words: tuple[str, ...]) -> int:
    from sweeparea.spark_jobs.admission.heartbeat import advance_to

    meant = words[1:] if words[0] == "advance" else words
    if len(meant) != 3:
        click.get_current_context().fail("write sweeparea heartbeat advance APPLICATION NAME INSTANT")
    application, name, instant = meant
    now, before = advance_to(NamedApplication(application, data, env).open(), name, instant)
    tell(f"{name}: heartbeat {now} (was {before or 'nowhere'})")
    return 0
