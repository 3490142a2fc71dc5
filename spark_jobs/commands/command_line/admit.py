"""``admit``: what is new in the sources of streams and relations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, each, placed, tell

if TYPE_CHECKING:
    from collections.abc import Mapping


@command("admit", "take over what is new in the sources of streams and relations")
@placed
@click.argument("name", required=False, help="one stream or relation (default: all)")
@click.option("--take-columns", is_flag=True, help="take over columns that a source has gained (NULL in earlier rows)")
@click.option(
    "--baseline",
    is_flag=True,
    help="where versions of a source are gone: go on from it as it is, by the difference to what was admitted",
)
def admit(place: NamedApplication, name: str | None, take_columns: bool, baseline: bool) -> int:
    from sweeparea.spark_jobs.commands import jobs

    application = place.open()

    def work(name: str) -> None:
        report = jobs.admit(application, name, tell=tell, take_columns=take_columns, baseline=baseline)
        tell(f"{name}: {_told(report)}")

    names = [name] if name else [*application.catalog.relations, *application.catalog.streams]
    return each(names, work)


def _told(report: Mapping[str, Any]) -> str:
    """What was admitted of one stream or relation."""
    from sweeparea.spark_jobs.admission.judging.progress import counted

    text = f"{counted(report['rows'], 'row')} of {counted(report['versions'], 'new source version')}"
    if report["quarantined"]:
        text += "; quarantined: " + ", ".join(f"{n} ({reason})" for reason, n in report["quarantined"].items())
    if report["ignored"]:
        text += f"; {report['ignored']} rows that the source removed stay elements (ON SOURCE CHANGE IGNORE)"
    if report["taken_back"] or report["cancelled"]:
        text += f"; taken back by the source: {report['taken_back']} elements, {report['cancelled']} in quarantine"
    if report["deduplicated"]:
        text += f"; {report['deduplicated']} duplicates dropped"
    if report["reinstated"] or report["displaced"]:
        text += f"; {report['reinstated']} duplicates became elements in place of what was taken back"
        text += f", {report['displaced']} elements became duplicates of these" if report["displaced"] else ""
    if report["late"]:
        text += f"; {report['late']} late ones repair results"
    if report["warned"]:
        text += "; violated but kept: " + ", ".join(f"{n} ({c})" for c, n in report["warned"].items())
    return text
