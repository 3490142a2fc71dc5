"""``quality``: how good what was admitted and computed is: reports, two ranges compared, suites."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sweeparea.infra.errors import UsageError
from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, OneOf, placed, tell


@command("quality", "report verdicts as HTML, compare two ranges of time; suites of Great Expectations")
@click.argument(
    "action",
    type=OneOf(("report", "diff", "export", "import")),
    help="report writes a page a name; diff compares two ranges; export prints a name's expectations as a suite, import"
    " a suite as clauses of CQL",
)
@placed
@click.argument(
    "words",
    nargs=-1,
    metavar="[RANGE RANGE | FILE] [NAME]",
    help="diff: two ranges FROM..TO (a day: 2024-05-01); import: the suite's file; all: one stream, relation or query",
)
@click.option(
    "--out",
    metavar="PATH",
    help="report: the folder of its pages (default: quality/reports in the data folder); export: a file",
)
@click.option("--all", "everything", is_flag=True, help="diff: also what did not change")
def quality(place: NamedApplication, action: str, words: tuple[str, ...], out: str | None, everything: bool) -> int:
    from sweeparea.spark_jobs.commands import quality as work

    least, most, usage = _WORDS[action]
    if not least <= len(words) <= most:
        raise UsageError(f"Write `sweeparea quality {action} APP {usage}`.")
    application = place.open()
    match action:
        case "report":
            written = work.write_reports(application, words[0] if words else None, out)
            for path in written:
                tell(str(path))
            if not written:
                tell("Nothing has been judged yet, so there is nothing to report.")
        case "diff":
            print(work.diff(application, words[0], words[1], words[2] if len(words) == 3 else None, everything))
        case "export":
            suite, left = work.exported(application, words[0])
            if out is None:
                print(suite)
            else:
                Path(out).write_text(suite + "\n", encoding="utf-8")
            for line in left:
                print(f"sweeparea: a suite cannot say {line}", file=sys.stderr)
        case _:
            print(work.imported(application, words[0], words[1] if len(words) == 2 else None))
    return 0


_WORDS = {
    "report": (0, 1, "[NAME]"),
    "diff": (2, 3, "2024-05-01..2024-05-08 2024-05-08..2024-05-15 [NAME]"),
    "export": (1, 1, "NAME"),
    "import": (1, 2, "FILE [NAME]"),
}
"""Per action how many words it takes, and which."""
