"""``status``: how far everything is."""

from __future__ import annotations

import click

from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, placed


@command("status", "show heartbeats, committed instants, state, late rows, and what waits for what")
@placed
@click.option("--all", "hidden", is_flag=True, help="also the subplans that queries share")
@click.option("--json", "as_json", is_flag=True, help="as one JSON object, for programs")
def status(place: NamedApplication, hidden: bool, as_json: bool) -> int:
    from sweeparea.spark_jobs.commands import status as reported
    from sweeparea.spark_jobs.commands.metrics import required_data

    opened = place.open()
    if place.data is not None:
        required_data(opened)
    if not as_json:
        print(reported.status(opened, hidden))
        return 0
    import json

    from sweeparea.spark_jobs.commands.facts import facts_of
    from sweeparea.spark_jobs.commands.status_json import status_json

    print(json.dumps(status_json(facts_of(opened, hidden)), indent=2))
    return 0
