"""``SweepAreaProcessOperator``: a task in a DAG of one's own that brings a continuous query forward."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from os import PathLike
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowRescheduleException, AirflowSkipException

from sweeparea.dags import tasks
from sweeparea.dags.connections import spark_of, storage_of
from sweeparea.dags.second_python import using
from sweeparea.dags.waiting import look, opened, require_reached, text_of, trigger_of


class SweepAreaProcessOperator(BaseOperator):
    """Processes ``query`` of ``application`` up to its inputs' heartbeats, or up to ``until`` if that is earlier.

    ``application`` is the folder of ``.cql`` files, or the name of one under ``queries/``, perhaps with ``@env``;
    ``until`` an instant (UTC without a zone), a tick where time is BIGINT, or a template of these.
    With ``wait`` the task first waits until the inputs are known up to ``until``: without a worker where it is
    ``deferrable``, else by being scheduled again every ``poll`` seconds. ``spark``, ``python`` and ``storage`` are as
    the settings of these names. A run that finds nothing to do succeeds, or is skipped with ``skip_if_idle``.

    Its XCom is the job's report. It may run beside the query's own DAG: of two runs one commits, the other is tried
    again and finds nothing to do.
    """

    template_fields = ("application", "query", "until")
    ui_color = "#e8f3ec"

    def __init__(
        self,
        *,
        application: str | PathLike[str],
        query: str,
        until: str | int | datetime | None = None,
        wait: bool = False,
        deferrable: bool = True,
        poll: float = 10.0,
        skip_if_idle: bool = False,
        spark: str | None = None,
        python: str | None = None,
        storage: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if wait and until is None:
            raise ValueError(f"{self.task_id}: wait=True needs until=.., the instant that its inputs have to reach.")
        self.application, self.query, self.until = str(application), query, text_of(until)
        self.wait, self.deferrable, self.poll, self.skip_if_idle = wait, deferrable, poll, skip_if_idle
        self.spark, self.python, self.storage = spark, python, storage

    def execute(self, context: Any) -> dict[str, Any]:
        if self.wait:
            self._wait()
        return self._process()

    def execute_complete(self, context: Any, event: Any = None) -> dict[str, Any]:
        """The trigger has fired: the inputs are there."""
        require_reached(event)
        return self._process()

    def _wait(self) -> None:
        """Returns when the inputs are there; defers or reschedules the task where they are not."""
        application = opened(self.application, self.query)
        trigger = trigger_of(application, self.query, str(self.until), self.poll, of_inputs=True)
        with storage_of(self.storage):
            found = look(trigger)
        if trigger.reached(found):
            return
        self.log.info("Waiting for the inputs of %s up to %s: it is %s.", self.query, self.until, found.words)
        if self.deferrable:
            self.defer(trigger=trigger, method_name="execute_complete", timeout=self.execution_timeout)
        raise AirflowRescheduleException(datetime.now(UTC) + timedelta(seconds=self.poll))

    def _process(self) -> dict[str, Any]:
        with storage_of(self.storage), spark_of(self.spark, self.python) as interpreter, using(interpreter):
            report = tasks.catch_up(self.application, self.query, self.until)
        if self.skip_if_idle and not tasks.has_worked(report):
            raise AirflowSkipException(f"Nothing to do for {self.query}.")
        return report

    def on_kill(self) -> None:
        tasks.interrupt()
