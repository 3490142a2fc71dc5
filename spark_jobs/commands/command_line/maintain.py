"""``maintain``: small files packed, old ones deleted."""

from __future__ import annotations

import click

from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, placed, tell


@command("maintain", "pack small files, let go what RETAIN allows, delete old files")
@placed
@click.argument("name", required=False, help="one stream, relation or query (default: all, and the ledger)")
@click.option("--dry-run", is_flag=True, help="say what would be done; change nothing")
@click.option(
    "--retention",
    metavar="TIME",
    help="how long former versions stay readable: '36 hours' (default: SET maintenance.retention, else 7 days)",
)
def maintain(place: NamedApplication, name: str | None, dry_run: bool, retention: str | None) -> int:
    from sweeparea.spark_jobs.upkeep import maintain as upkeep

    report = upkeep.maintain(place.open(), name, dry_run=dry_run, retention=retention, tell=tell)
    return 1 if report.problems else 0
