"""``quarantine``: rows that were kept out, and those that are admitted after all."""

from __future__ import annotations

import sys

import click

from sweeparea.infra.errors import UsageError
from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, OneOf, placed, tell


@command("quarantine", "show rows that were kept out, and admit those that were put right")
@click.argument("action", type=OneOf(("list", "release")), help="list shows rows, release admits them after all")
@placed
@click.argument("stream", required=False, help="a stream or relation (list: default all)")
@click.argument("ids", nargs=-1, metavar="[ID ...]", help="release: rows by their ids, as list shows them")
@click.option(
    "--where", metavar="SQL", help="rows by a condition over their columns and __reason, __version, __tick, __id"
)
@click.option(
    "--set",
    "assigned",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="release: correct a column first (NULL is NULL, nested values as JSON); may be given several times",
)
@click.option("--row", metavar="JSON", help="release: the whole corrected row, as list shows it")
@click.option("--limit", type=int, default=100, metavar="LIMIT", help="list: at most so many rows (100)")
@click.option("--format", "form", type=OneOf(("table", "json")), default="table", help="list: how rows are printed")
def quarantine(
    place: NamedApplication,
    action: str,
    stream: str | None,
    ids: tuple[str, ...],
    where: str | None,
    assigned: tuple[str, ...],
    row: str | None,
    limit: int,
    form: str,
) -> int:
    application = place.open()
    if action == "list":
        from sweeparea.spark_jobs.admission.judging.quarantine import listing

        print(listing(application, stream, where, form, limit))
        return 0
    from sweeparea.spark_jobs.admission.release.wanted_rows import WantedRows
    from sweeparea.spark_jobs.commands.jobs import release

    if stream is None:
        raise UsageError("Say which stream's rows are to be released: `sweeparea quarantine release APP STREAM ID`.")
    values = {column: value for column, _, value in (text.partition("=") for text in assigned)}
    wanted = WantedRows(ids, where, values, row)
    report = release(application, stream, wanted)
    repaired = f", {report['repaired']} of them below the heartbeat: results are repaired" if report["repaired"] else ""
    tell(f"{stream}: {report['rows']} rows released{repaired}")
    for refused, reason in report["refused"]:
        print(f"sweeparea: {refused} stays in quarantine: {reason}", file=sys.stderr)
    return 1 if report["refused"] else 0
