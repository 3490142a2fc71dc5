"""Who reads the output of a command may go, and Ctrl-C is heeded from the beginning: no trace in either case."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from sweeparea import __main__ as command

WORK = """
import sys
from pathlib import Path
from sweeparea.infra.errors import exit_code_of

def work():
    for line in range(20_000):
        print("line", line, flush={flush})
    Path({mark!r}).write_text("done")
    return 4

sys.exit(exit_code_of(work, "never"))
"""
TOLD = """
import sys
from pathlib import Path
from sweeparea.spark_jobs.commands import cli
from sweeparea.spark_jobs.commands.command_line.shared import tell

def work(*names, **options):
    for line in range(3):
        tell("line")
    print("more")
    Path({mark!r}).write_text("done")
    return 4

cli.PROGRAM.commands["status"].callback = work
sys.exit(cli.main(["status", "."]))
"""


@pytest.mark.parametrize("text", [WORK.replace("{flush}", "True"), WORK.replace("{flush}", "False"), TOLD])
def test_work_goes_on_when_nobody_reads_its_output(text: str, tmp_path: Path):
    read, write = os.pipe()
    os.close(read)
    mark = tmp_path / "mark"
    script = [sys.executable, "-c", text.replace("{mark!r}", repr(str(mark)))]
    done = subprocess.run(script, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr, mark.read_text()) == (4, "", "done")


def test_an_interrupt_while_the_command_is_imported_shows_no_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    class Interrupted(types.ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    name = "sweeparea.spark_jobs.commands.cli"
    monkeypatch.setitem(sys.modules, name, Interrupted(name))
    assert command.main() == 130
    assert capsys.readouterr().err == "sweeparea: interrupted\n"
