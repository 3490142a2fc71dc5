"""``metrics``: how far everything is, as Prometheus reads it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sweeparea.infra.errors import SweepAreaError, UsageError
from sweeparea.spark_jobs.commands.command_line.command import asked, command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, where


@command("metrics", "print metrics for Prometheus: heartbeats, lag, slices, rows, state, verdicts")
@where
@click.argument("applications", nargs=-1, required=True, help="folders of .cql files, or names of some under queries/")
@click.option(
    "--output",
    metavar="FILE",
    help="write a file, whole or not at all, for node_exporter's textfile collector (name it *.prom)",
)
def metrics(applications: tuple[str, ...], data: str | None, env: str | None, output: str | None) -> int:
    from sweeparea.spark_jobs.commands import metrics as exposed_metrics
    from sweeparea.spark_jobs.commands.facts import facts_of
    from sweeparea.spark_jobs.commands.prometheus_text import exposition, write_whole

    if data is not None and len(applications) > 1:
        raise UsageError("--data names the folder of one application: give one, or let each have its own.")
    exposed, code = exposed_metrics.Exposed(), 0
    for given in dict.fromkeys(applications):
        try:
            opened = NamedApplication(given, data, env).open()
            exposed_metrics.required_data(opened)
            if exposed.reserve(opened):
                exposed.add(facts_of(opened))
        except (SweepAreaError, OSError) as error:
            if asked().debug:
                raise
            print(f"sweeparea: {given}: {error}", file=sys.stderr, flush=True)
            code = error.exit_code if isinstance(error, SweepAreaError) else 3
            exposed.down(Path(given).name or given)
    text = exposition(exposed.metrics.values())
    if output is None:
        print(text, end="")
    else:
        write_whole(Path(output), text)
    return code
