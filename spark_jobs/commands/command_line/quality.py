"""``quality``: how good what was admitted and computed is: reports, two ranges compared."""

from __future__ import annotations

import click

from sweeparea.infra.errors import UsageError
from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, OneOf, placed, tell


@command("quality", "report verdicts as HTML, compare two ranges of time")
@click.argument(
    "action", type=OneOf(("report", "diff")), help="report writes a page a name, diff compares two ranges of time"
)
@placed
@click.argument(
    "words",
    nargs=-1,
    metavar="[RANGE RANGE] [NAME]",
    help="diff: two ranges FROM..TO (a day: 2024-05-01); both: one stream, relation or query (default all)",
)
@click.option("--out", metavar="FOLDER", help="report: where pages go (default: quality/reports in the data folder)")
@click.option("--all", "everything", is_flag=True, help="diff: also what did not change")
def quality(place: NamedApplication, action: str, words: tuple[str, ...], out: str | None, everything: bool) -> int:
    from sweeparea.spark_jobs.commands import quality as work

    if action == "report":
        if len(words) > 1:
            raise UsageError("Name one stream, relation or query, or none: `sweeparea quality report APP NAME`.")
        written = work.write_reports(place.open(), words[0] if words else None, out)
        for path in written:
            tell(str(path))
        if not written:
            tell("Nothing has been judged yet, so there is nothing to report.")
        return 0
    if len(words) not in (2, 3):
        raise UsageError("Give two ranges: `sweeparea quality diff APP 2024-05-01..2024-05-08 2024-05-08..2024-05-15`.")
    print(work.diff(place.open(), words[0], words[1], words[2] if len(words) == 3 else None, everything))
    return 0
