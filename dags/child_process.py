"""The process of a job under another Python than the task's, or under spark-submit.

It speaks with the task through a socket that only this user can reach (``spark_jobs/commands/child.py``); what it
prints goes into the task's log. It ends when it is stopped, and by itself when the task has gone, however that ended.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from sweeparea import __version__
from sweeparea.infra import machine
from sweeparea.infra.errors import SetupError, SweepAreaError

CHILD = ("-m", "sweeparea.spark_jobs.commands.child")
SUBMITTED = """\
import sys
from pyspark.sql import SparkSession
from sweeparea.spark_jobs.commands.child import run_and_exit
SparkSession.builder.getOrCreate()
run_and_exit(sys.argv[1])
"""
"""What spark-submit runs: a job finds the Spark of its process and works in a session of its own beside."""
GRACE = 12.0
"""Seconds that a job has after SIGTERM to stop what it runs on a server."""
LAST_LINES = 15
"""So many lines of what it printed are told of a process that ended without a word."""
log = logging.getLogger(__name__)
_OF_AIRFLOW = (
    "AIRFLOW",
    "_AIRFLOW",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONUSERBASE",
    "VIRTUAL_ENV",
    "__PYVENV_LAUNCHER__",
)
"""What variables begin with that are Airflow's or its Python's: secrets, and the way to its packages."""
running: set[subprocess.Popen[str]] = set()
"""The processes of jobs of this task that have not ended."""


@dataclass(frozen=True)
class Interpreter:
    """Who runs a job: a Python, or a spark-submit that starts one and so brings the Spark of its cluster. ``master``
    is given to spark-submit.
    """

    python: str | None = None
    spark_submit: str | None = None
    master: str | None = None

    @property
    def program(self) -> str:
        """What is started, in words."""
        return f"The Python {self.python}" if self.spark_submit is None else self.spark_submit

    def command(self, address: str, folder: str) -> list[str]:
        """What to run, so that the job answers at ``address``; ``folder`` may take a file."""
        if self.spark_submit is None:
            assert self.python is not None
            return [self.python, *CHILD, address]
        script = os.path.join(folder, "job.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(SUBMITTED)
        master = ["--master", self.master] if self.master else []
        return [self.spark_submit, *master, "--deploy-mode", "client", "--name", "sweeparea", script, address]

    @property
    def variables(self) -> dict[str, str]:
        """Which Python spark-submit takes for the driver and, unless its settings say otherwise, for workers."""
        if self.spark_submit is None or self.python is None:
            return {}
        return {"PYSPARK_DRIVER_PYTHON": self.python, "PYSPARK_PYTHON": self.python}


class Child:
    """The process of a job, connected; it ends with the block, and with it what it runs."""

    def __init__(self, interpreter: Interpreter):
        self.interpreter = interpreter
        self._last: deque[str] = deque(maxlen=LAST_LINES)

    def __enter__(self) -> Self:
        with tempfile.TemporaryDirectory(prefix="sweeparea-") as folder, socket.socket(socket.AF_UNIX) as listening:
            address = os.path.join(folder, "job")
            listening.bind(address)  # only this user can reach it
            listening.listen(1)
            self._process = self._start(address, folder)
            running.add(self._process)
            try:
                connection = self._accept(listening)
            except BaseException:
                self._stop()
                raise
        # the connection itself ends with what is made of it
        with connection:
            self.lines, self._output = connection.makefile("r", encoding="utf-8"), connection.makefile("w")
        return self

    def _start(self, address: str, folder: str) -> subprocess.Popen[str]:
        try:
            process = subprocess.Popen(
                self.interpreter.command(address, folder),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment(os.environ) | self.interpreter.variables,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise SetupError(
                f"{self.interpreter.program}, under which tasks are to run, cannot be started here:"
                f" {error.strerror or error}. Make an environment with sweeparea[spark] there on every machine that"
                f" runs tasks, or name another (setting python, the connection's extra, SWEEPAREA_TASK_PYTHON)."
            ) from error
        self._telling = threading.Thread(target=self._tell, args=(process,), daemon=True)
        self._telling.start()
        return process

    def _accept(self, listening: socket.socket) -> socket.socket:
        listening.settimeout(0.2)
        while True:
            try:
                connection = listening.accept()[0]
            except TimeoutError:
                if self._process.poll() is None:
                    continue
                raise self.ended() from None
            connection.settimeout(None)
            return connection

    def _tell(self, process: subprocess.Popen[str]) -> None:
        """What it and its JVM print, into the log."""
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self._last.append(line.rstrip())
                log.info("%s", line.rstrip())

    def write(self, message: dict[str, Any]) -> None:
        """Sends a message; where nobody takes it, why shows when the next one is read."""
        with contextlib.suppress(OSError):
            self._output.write(json.dumps(message) + "\n")
            self._output.flush()

    def ended(self) -> SweepAreaError:
        """The error of a process that has ended before it was through."""
        code = self._process.wait()
        self._telling.join(1)
        told, program = "".join(f"\n{line}" for line in self._last), self.interpreter.program
        if any("No module named" in line for line in self._last):
            return SetupError(
                f"{program} has not what jobs need: install sweeparea[spark] {__version__} in its environment.{told}"
            )
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return SweepAreaError(f"The process of the job under {program} {how} before it was through.{told}")

    def _stop(self) -> None:
        running.discard(self._process)
        try:
            self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            try:
                self._process.wait(GRACE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._telling.join(1)

    def __exit__(self, *_: object) -> None:
        for file in (self.lines, self._output):  # it ends by itself when nobody listens
            with contextlib.suppress(OSError):
                file.close()
        self._stop()


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child: this one's, without what is Airflow's and its Python's."""
    ours = machine.python_environment(given)
    return {name: value for name, value in ours.items() if not name.startswith(_OF_AIRFLOW)}
