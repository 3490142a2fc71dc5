"""``replay``: small cases through the real engine."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import IO

import click

from sweeparea.infra.errors import SweepAreaError, UsageError
from sweeparea.spark_jobs.commands.command_line.command import asked, command
from sweeparea.spark_jobs.commands.command_line.shared import tell


@command("replay", "run small cases (JSON lines) through the real engine, without Airflow")
@click.argument("cases", help="a file of cases, one JSON object a line; - for standard input")
@click.option("--out", metavar="FILE", help="where results go, a line each (default: standard output)")
def replay(cases: str, out: str | None) -> int:
    import json

    from sweeparea.spark_jobs.cases import replay as replaying
    from sweeparea.spark_jobs.spark.session import spark_session

    lines = _lines(cases)
    failed = 0
    with contextlib.ExitStack() as stack:
        target = stack.enter_context(_opened(out)) if out else sys.stdout
        trace = sys.stderr.write if asked().debug else None
        for result in replaying.replay(lines, stack.enter_context(spark_session()), trace):
            failed += "error" in result
            target.write(json.dumps(result, ensure_ascii=False, allow_nan=False) + "\n")
            target.flush()
    if out:
        count = sum(1 for line in lines if line.strip())
        tell(f"{count} cases, {failed} ended with an error; results are in {out}")
    return 0


def _lines(cases: str) -> list[str]:
    if cases == "-":
        return sys.stdin.readlines()
    try:
        return Path(cases).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The cases {cases} cannot be read: {error}.") from None


def _opened(path: str) -> IO[str]:
    try:
        return Path(path).open("w", encoding="utf-8")
    except OSError as error:
        raise SweepAreaError(f"The results cannot be written to {path}: {error.strerror}.") from None
