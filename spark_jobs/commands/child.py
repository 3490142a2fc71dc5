"""A job for a process under another Python, such as a task of Airflow's whose own environment has no Spark.

``python -m sweeparea.spark_jobs.commands.child SOCKET`` speaks in lines of JSON with who listens there. It is given::

    {"job": "process", "arguments": ["shop", "sales", null]}

and then answers to what it asks; it says::

    {"log": "..", "level": 20}                          a line of the log
    {"busy": "sales"}                                   a question, answered by {"answer": true or false}
    {"query": "sales", "report": {..}}                  of a group: one is through ({"query", "failed"}: has failed)
    {"result": {..}}                                    the end, or {"failed": {"type", "message", "usage"}}

SIGTERM, or the end of the connection, stops its Spark jobs, also on a server, and ends it.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import queue
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn, TextIO

from sweeparea.infra.errors import SweepAreaError, UsageError

JOBS = ("admit", "release", "process", "backfill", "maintain", "process_due")
ENDED = 143
"""The exit code after SIGTERM."""
LAST_WORDS = 10.0
"""Seconds within which Spark has to be told, before the process ends all the same."""


class Line:
    """The other end: what is written to it and what it answers."""

    def __init__(self, output: TextIO):
        self._output, self._lock = output, threading.Lock()
        self._answers: queue.Queue[Any] = queue.Queue()

    def say(self, message: dict[str, Any]) -> None:
        """Writes a message; a reader that has gone is noticed by ``listen``."""
        try:
            with self._lock:
                self._output.write(json.dumps(message, default=str) + "\n")
                self._output.flush()
        except OSError:
            pass

    def ask(self, message: dict[str, Any]) -> Any:
        """Writes a question and waits for its answer."""
        self.say(message)
        return self._answers.get()

    def listen(self, source: TextIO, gone: Callable[[], None]) -> None:
        """Takes answers, until there are no more; then ``gone``."""
        for line in source:
            self._answers.put(json.loads(line)["answer"])
        gone()


class _ToLine(logging.Handler):
    """Log records as messages."""

    def __init__(self, line: Line):
        super().__init__()
        self.line = line

    def emit(self, record: logging.LogRecord) -> None:
        self.line.say({"log": self.format(record), "level": record.levelno})


def end() -> None:
    """Stops what runs on a Spark server and ends this process; a Spark of this process ends with it. In the main
    thread, which runs the job.
    """
    from sweeparea.spark_jobs.spark.interrupting import interrupt

    last = threading.Timer(LAST_WORDS, os._exit, [ENDED])
    last.daemon = True
    last.start()
    try:
        interrupt(again=None)
    finally:
        os._exit(ENDED)


def _gone() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(LAST_WORDS)  # the main thread may be where no signal reaches it
    os._exit(ENDED)


def run(request: dict[str, Any], line: Line) -> dict[str, Any]:
    """Does what is asked for and returns the last message."""
    try:
        name, arguments = request["job"], request["arguments"]
        if name not in JOBS:
            raise UsageError(f"There is no job {name}: the two installations of SweepArea are of different versions.")
        return {"result": _call(name, arguments, line)}
    except SweepAreaError as error:
        return {"failed": failure(error)}
    except Exception as error:
        line.say({"log": traceback.format_exc(), "level": logging.ERROR})
        return {"failed": failure(error)}


def failure(error: Exception) -> dict[str, Any]:
    """An error as the other end makes it again."""
    if isinstance(error, SweepAreaError):
        return {"type": error.type, "message": str(error), "usage": isinstance(error, UsageError)}
    return {"type": "Error", "message": f"{type(error).__name__}: {error}", "usage": False}


def _call(name: str, arguments: list[Any], line: Line) -> Any:
    from sweeparea.spark_jobs.commands import jobs

    match name:
        case "release":
            from sweeparea.spark_jobs.admission.release.wanted_rows import WantedRows

            app, stream, wanted = arguments
            return jobs.release(app, stream, WantedRows(**{**wanted, "ids": tuple(wanted["ids"])}))
        case "backfill":
            app, query, first, last = arguments
            return jobs.backfill(app, query, dt.datetime.fromisoformat(first), dt.datetime.fromisoformat(last))
        case "process_due":
            app, queries, threads = arguments
            for query, outcome in jobs.process_due(app, queries, lambda query: line.ask({"busy": query}), threads):
                failed = isinstance(outcome, SweepAreaError)
                line.say({"query": query, **({"failed": failure(outcome)} if failed else {"report": outcome})})
            return {}
        case _:
            return getattr(jobs, name)(*arguments)


def main(address: str) -> int:
    """One job of whoever listens at ``address``."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(address)
    source = connection.makefile("r", encoding="utf-8")
    line = Line(connection.makefile("w", encoding="utf-8"))
    handler = _ToLine(line)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    signal.signal(signal.SIGTERM, lambda *_: end())
    request = json.loads(source.readline())
    threading.Thread(target=line.listen, args=(source, _gone), daemon=True).start()
    answer = run(request, line)
    line.say(answer)
    return 0 if "result" in answer else 1


def run_and_exit(address: str) -> NoReturn:
    """As ``main``; then the process ends: threads of gRPC or of a JVM's gateway must not hold back what is through."""
    code = main(address)
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    run_and_exit(sys.argv[1])
