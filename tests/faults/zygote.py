"""Runs of a scenario as processes that can be killed, suspended and continued, each for the price of a fork.

``python -m tests.faults.zygote`` imports what the runs need and forks one child for each; it must never open a table or
a session itself, whose threads a child would lack. :class:`Zygote` is the tests' end of the pipe.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from sweeparea.infra.errors import SweepAreaError

Point = tuple[str, int]
"""A point and the how manieth passing of it."""
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Outcome:
    """How a run ended, or that it is suspended: done, refused (``text`` is what the user reads), broken (a traceback),
    killed, stopped.
    """

    state: str
    text: str = ""


class Zygote:
    """A process that forks runs. ``modules`` are imported before the first fork."""

    def __init__(self, *modules: str, environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.zygote", *modules],
            cwd=REPOSITORY,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, function: str, *arguments: object, faults: Path | None = None, cwd: Path | None = None) -> int:
        """Starts ``module:function`` with ``arguments``; returns the process id."""
        return self._ask(
            do="start",
            function=function,
            arguments=[str(a) for a in arguments],
            faults=str(faults or ""),
            cwd=str(cwd or ""),
        )

    def wait(self, pid: int) -> Outcome:
        """Returns when the run has ended or was suspended."""
        return Outcome(**self._ask(do="wait", pid=pid))

    def run(self, function: str, *arguments: object, faults: Path | None = None) -> Outcome:
        return self.wait(self.start(function, *arguments, faults=faults))

    def resume(self, pid: int) -> Outcome:
        """Lets a suspended run go on, and waits for it."""
        os.kill(pid, signal.SIGCONT)
        return self.wait(pid)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)

    def _ask(self, **question: object) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the zygote ended with {self.process.wait(60)}")
        return json.loads(answer)


class Faults:
    """The folder that ``tables/faults.py`` reads: what a run passed, and what it is to suffer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def clear(self) -> None:
        for name in ("journal", "plan"):
            (self.folder / name).unlink(missing_ok=True)

    def plan(self, point: str, nth: int = 1, what: int = signal.SIGKILL, pid: int | None = None) -> None:
        """``what`` is to happen at the ``nth`` passing of a point, to ``pid`` or to the process that passes."""
        self.clear()
        plan: dict[str, Any] = {"point": point, "nth": nth, "signal": int(what)}
        self.write(plan if pid is None else {**plan, "pid": pid})

    def write(self, plan: dict[str, Any]) -> None:
        half = self.folder / "plan.tmp"
        half.write_text(json.dumps(plan))
        half.rename(self.folder / "plan")

    def passed(self) -> list[Point]:
        """The points in the order of their passing, each with how often it had been passed then."""
        return [(name, nth) for name, nth, _ in self.journal()]

    def journal(self) -> list[tuple[str, int, int]]:
        """As ``passed``, with the process that passed."""
        file = self.folder / "journal"
        lines = [line.rsplit(" ", 1) for line in file.read_text().splitlines()] if file.exists() else []
        names = [name for name, _ in lines]
        return [(name, names[: i + 1].count(name), int(pid)) for i, (name, pid) in enumerate(lines)]


# -- the process itself ------------------------------------------------------------------------------------------------


def _serve(modules: list[str]) -> None:
    for module in ("pandas", "pyarrow.dataset", *modules):  # what pyarrow imports late is imported once
        import_module(module)
    results: dict[int, int] = {}
    for line in sys.stdin:
        question = json.loads(line)
        if question["do"] == "start":
            answer: Any = _fork(question, results)
        else:
            answer = _wait(question["pid"], results)
        print(json.dumps(answer), flush=True)


def _fork(question: dict[str, Any], results: dict[int, int]) -> int:
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        results[pid] = read
        return pid
    os.close(read)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    if question["faults"]:
        os.environ["SWEEPAREA_FAULTS"] = question["faults"]
    if question["cwd"]:
        os.chdir(question["cwd"])
    os.write(write, json.dumps(_outcome(question)).encode())
    os._exit(0)


def _outcome(question: dict[str, Any]) -> dict[str, str]:
    module, _, name = question["function"].partition(":")
    try:
        function: Callable[..., object] = getattr(import_module(module), name)
        return {"state": "done", "text": str(function(*question["arguments"]))}
    except SweepAreaError as error:
        return {"state": "refused", "text": f"{type(error).__name__}: {error}"}
    except BaseException:
        return {"state": "broken", "text": traceback.format_exc()[-4000:]}


def _wait(pid: int, results: dict[int, int]) -> dict[str, str]:
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        return {"state": "stopped", "text": ""}
    with os.fdopen(results.pop(pid)) as pipe:
        text = pipe.read()
    if os.WIFSIGNALED(status):
        return {"state": "killed", "text": str(os.WTERMSIG(status))}
    return json.loads(text)


if __name__ == "__main__":
    _serve(sys.argv[1:])
