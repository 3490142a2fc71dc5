"""Jobs under another Python than Airflow's, whose environment has what Spark needs and Airflow's may not have.

``SET python = '/opt/sweeparea/bin/python'`` (or ``WITH``, or an argument of ``application_dags``), ``python`` in the
extra of a connection that ``spark`` names, or the variable SWEEPAREA_TASK_PYTHON names it; the connection goes first,
the variable last. The task then starts ``spark_jobs/commands/child.py`` there, whose log is the task's, and which ends
with it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sweeparea.dags.child_process import Child, Interpreter, running
from sweeparea.infra.errors import SweepAreaError, UsageError

if TYPE_CHECKING:
    from sweeparea.spark_jobs.admission.release.wanted_rows import WantedRows

VARIABLE = "SWEEPAREA_TASK_PYTHON"
log = logging.getLogger(__name__)
_chosen: ContextVar[Interpreter | None] = ContextVar("sweeparea_second_python", default=None)


@contextmanager
def using(interpreter: Interpreter | str | None) -> Iterator[None]:
    """Inside, jobs run under an interpreter; None: as SWEEPAREA_TASK_PYTHON says, else in this process."""
    chosen = interpreter or os.environ.get(VARIABLE) or None
    token = _chosen.set(Interpreter(chosen) if isinstance(chosen, str) else chosen)
    try:
        yield
    finally:
        _chosen.reset(token)


def jobs() -> Any:
    """The jobs by name: the module ``spark_jobs.commands.jobs``, or ``Jobs`` under the interpreter that is chosen."""
    interpreter = _chosen.get()
    if interpreter is not None:
        return Jobs(interpreter)
    from sweeparea.spark_jobs.commands import jobs as here

    return here


def end() -> None:
    """Ends what runs under a second Python, and what that runs on a Spark server."""
    for child in list(running):
        child.terminate()


class Jobs:
    """The jobs of ``spark_jobs.commands.jobs`` as tasks call them, each in a process of its own. They raise what the
    jobs raise, and SetupError where it cannot run them.
    """

    def __init__(self, interpreter: Interpreter):
        self.interpreter = interpreter

    def admit(self, app: str, name: str) -> dict[str, Any]:
        return self._result("admit", app, name)

    def release(self, app: str, name: str, wanted: WantedRows) -> dict[str, Any]:
        return self._result("release", app, name, asdict(wanted))

    def process(self, app: str, query: str, until: str | None = None) -> dict[str, Any]:
        return self._result("process", app, query, until)

    def backfill(self, app: str, query: str, start: datetime, end: datetime) -> dict[str, Any]:
        return self._result("backfill", app, query, start.isoformat(), end.isoformat())

    def maintain(self, app: str) -> dict[str, Any]:
        return self._result("maintain", app)

    def process_due(
        self, app: str, queries: Sequence[str], busy: Callable[[str], bool], threads: int | None = None
    ) -> Iterator[tuple[str, dict[str, Any] | SweepAreaError]]:
        for message in self._messages("process_due", [app, list(queries), threads], busy):
            if "query" in message:
                yield message["query"], _error(message["failed"]) if "failed" in message else message["report"]

    def _result(self, job: str, *arguments: Any) -> dict[str, Any]:
        return next(m["result"] for m in self._messages(job, arguments, lambda _: False) if "result" in m)

    def _messages(self, job: str, arguments: Sequence[Any], busy: Callable[[str], bool]) -> Iterator[dict[str, Any]]:
        """What a job says, without its log; raises how it failed."""
        with Child(self.interpreter) as child:
            child.write({"job": job, "arguments": arguments})
            for text in child.lines:
                message = json.loads(text)
                if "log" in message:
                    log.log(message["level"], "%s", message["log"])
                elif "busy" in message:
                    child.write({"answer": busy(message["busy"])})
                elif "failed" in message and "query" not in message:
                    raise _error(message["failed"])
                else:
                    yield message
                    if "result" in message:
                        return
            raise child.ended()


def _error(failed: Mapping[str, Any]) -> SweepAreaError:
    """The error that a job failed with: of a class that says as much of it as tasks ask for."""
    error = (UsageError if failed["usage"] else SweepAreaError)(failed["message"])
    error.type = failed["type"]
    return error
