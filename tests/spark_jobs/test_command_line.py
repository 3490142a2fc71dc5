"""How command lines are read, and how commands end. What the commands do is not run here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from sweeparea.infra import settings
from sweeparea.infra.errors import DataError, SetupError, UsageError
from sweeparea.spark_jobs.commands.cli import main
from sweeparea.spark_jobs.commands.command_line.command import asked
from sweeparea.spark_jobs.commands.command_line.program import PROGRAM

LINES = Path(__file__).parent / "command_lines.jsonl"
"""Command lines with their exit code and what was asked for; what is false, empty or absent is left out. All of it was
recorded when argparse read them."""


@pytest.fixture
def last(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the last command was asked for; the commands themselves do nothing."""
    found: dict[str, Any] = {}

    def work(**values: object) -> int:
        found.update(values, command=asked().command, debug=asked().debug)
        return 0

    for command in PROGRAM.commands.values():
        monkeypatch.setattr(command, "callback", work)
    return found


def ended(words: list[str]) -> int:
    """The exit code of a command line, as a process would have it."""
    try:
        return main(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1


def test_names_and_options_in_any_order_shortened_and_wrong(
    last: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = []
    for line in LINES.read_text("utf-8").splitlines():
        case = json.loads(line)
        last.clear()
        code, told = ended(case["line"]), capsys.readouterr().err
        found = {k: list(v) if isinstance(v, tuple) else v for k, v in last.items() if v not in (None, False, ())}
        if (code, found) != (case["code"], case.get("asked", {})) or case.get("said", "") not in told:
            wrong.append((case, code, found, told))
        if code and not (told.startswith("sweeparea: ") and told.count("\n") == 1 and "; sweeparea" in told):
            wrong.append((case["line"], told))
    assert not wrong


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["prcess", "flights"], "Did you mean process?"),
        (["explain", "flights", "q", "--frm", "cql"], "Did you mean '--form'?"),
        (["status", "flights", "--dbug"], "Did you mean '--debug'?"),
    ],
)
def test_what_was_mistyped_is_suggested(words: list[str], meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(words) == 2
    assert meant in capsys.readouterr().err


def test_help_has_every_command_name_and_option_with_its_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert ended(["-h"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "sweeparea plan flights what the files say against what is deployed; `apply` deploys it" in told
    for name, command in PROGRAM.commands.items():
        assert f"{name} {command.short_help}" in told
    for name, command in PROGRAM.commands.items():
        assert ended([name, "--help"]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert f"{command.help}" in told
        for parameter in command.params:
            assert isinstance(parameter, click.Option | click.Argument)
            assert all(spelling in told for spelling in parameter.opts if spelling.startswith("-"))
            assert parameter.help
            assert parameter.help in told


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("no such name."), 2, "sweeparea: no such name.\n"),
        (DataError("one row is wrong."), 1, "sweeparea: one row is wrong.\n"),
        (SetupError("no Java."), 3, "sweeparea: no Java.\n"),
        (ValueError("odd"), 1, "sweeparea: process: ValueError: odd (--debug shows where)\n"),
        (KeyboardInterrupt(), 130, "sweeparea: interrupted; nothing of the slice at work was published"),
    ],
)
def test_errors_end_a_command_with_one_paragraph_and_their_exit_code(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(**_: object) -> int:
        raise error

    monkeypatch.setattr(PROGRAM.commands["process"], "callback", work)
    assert main(["process", "flights"]) == code
    assert capsys.readouterr().err.startswith(said)
    if isinstance(error, Exception):
        with pytest.raises(type(error)):
            main(["--debug", "process", "flights"])


def _run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        cwd=settings.source_root(),
        env=os.environ | variables,
        check=False,
    )


def test_a_reader_that_goes_away_ends_a_command_without_a_word() -> None:
    broken = (
        "from sweeparea.spark_jobs.commands import cli\ndef work(**_): raise BrokenPipeError\n"
        "cli.PROGRAM.commands['status'].callback = work\nraise SystemExit(cli.main(['status', 'x']))"
    )
    done = _run("-c", broken)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_command_line_loads_no_engine() -> None:
    heavy = "'pyspark', 'pyarrow', 'numpy', 'duckdb', 'sqlglot', 'deltalake', 'numba', 'great_expectations'"
    done = _run(
        "-c", f"import sys, sweeparea.spark_jobs.commands.cli; print([m for m in ({heavy}) if m in sys.modules])"
    )
    assert done.stdout == "[]\n"


def test_a_shell_completes_commands_options_and_choices() -> None:
    def completed(words: str, place: int) -> list[str]:
        done = _run("-m", "sweeparea", COMP_WORDS=words, COMP_CWORD=str(place), _SWEEPAREA_COMPLETE="bash_complete")
        return [line.partition(",")[2] for line in done.stdout.splitlines()]

    assert completed("sweeparea proc", 1) == ["process"]
    assert completed("sweeparea backfill flights --dr", 3) == ["--dry-run"]
    assert completed("sweeparea sql flights --format ", 4) == ["table", "csv", "json"]
