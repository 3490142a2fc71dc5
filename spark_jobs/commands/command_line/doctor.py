"""``doctor``: whether this machine has what commands and services need."""

from __future__ import annotations

import click

from sweeparea.spark_jobs.commands.command_line.command import command


@command(
    "doctor", "look whether this machine is fit: Java, jars, packages, ports, disk, rights, zones; changes nothing"
)
@click.option("--json", "as_json", is_flag=True, help="as one JSON object, for programs")
def doctor(as_json: bool) -> int:
    from sweeparea.infra.doctor import Level, examine
    from sweeparea.infra.errors import SetupError

    found = examine()
    fit = not any(finding.level == Level.FAIL for finding in found)
    if as_json:
        import json
        from dataclasses import asdict

        print(json.dumps({"format": 1, "fit": fit, "findings": [asdict(finding) for finding in found]}, indent=2))
    else:
        for finding in found:
            todo = f" {finding.todo}" if finding.todo else ""
            print(f"{finding.level.value:4}  {finding.check}: {finding.found}{'.' if todo else ''}{todo}")
        failed = sum(finding.level == Level.FAIL for finding in found)
        print("This machine is fit." if fit else f"{failed} of these have to be mended first.")
    return 0 if fit else SetupError.exit_code
