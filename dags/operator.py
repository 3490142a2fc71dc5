"""The one kind of task: it admits a stream, brings a continuous query or a group of them forward, replays a slice of a
query, maintains or alerts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from airflow.sdk import Asset, BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException, AirflowSkipException

from sweeparea.dags import lineage, tasks
from sweeparea.dags.connections import spark_of, storage_of
from sweeparea.dags.second_python import using
from sweeparea.dags.timetables import ends_now
from sweeparea.heartbeats import measures
from sweeparea.infra.dag_names import application_name, lineage_uri

UNTIL = "until"
"""The conf of a manual run of a query: an instant (UTC), or a tick, behind which it does not go."""
RELEASE = "release"
"""The conf of a run that admits: rows of the quarantine by their ``ids``, and values that are put right in them first
(``set``, by column), which it releases in place of admitting what is new.
"""
WAIT = timedelta(seconds=5)


class TaskAction(StrEnum):
    """What a task does."""

    ADMIT = "admit"
    PROCESS = "process"
    PROCESS_GROUP = "process_group"
    MAINTAIN = "maintain"
    ALERT = "alert"


class SweepAreaOperator(BaseOperator):
    """``action`` is admit (``subject``: a stream), process (``subject``: a query), process_group (``members``: queries,
    each with the DAG of its own; ``parallelism`` of them at a time), maintain or alert (all) of the application
    ``app``, a name or a path. ``spark``: a connection of Airflow's, to the Spark that computes; ``python``: the
    interpreter under which jobs run; ``storage``: a connection with the keys of the object store of the tables.

    The result is the job's summary. The DAG run decides between live and backfill: a run with a data interval that is
    not empty is a slice of a backfill, every other one is live, and then the job itself chooses the slice.
    """

    ui_color = "#e8f3ec"

    def __init__(
        self,
        *,
        app: str,
        subject: str,
        action: str,
        slice: timedelta | None = None,
        members: Mapping[str, str] | None = None,
        parallelism: int | None = None,
        spark: str | None = None,
        python: str | None = None,
        storage: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.app, self.subject, self.action, self.slice = app, subject, TaskAction(action), slice
        self.members, self.parallelism = dict(members or {}), parallelism
        self.spark, self.python, self.storage = spark, python, storage
        self.read_and_written: list[Any] = []

    def execute(self, context: Any) -> dict[str, Any]:
        name = application_name(self.app)
        with storage_of(self.storage), spark_of(self.spark, self.python) as interpreter, using(interpreter):
            before = lineage.commits(self.app, self._names) if lineage.wanted() else None
            try:
                report = self._run(context)
            except (AirflowSkipException, AirflowRescheduleException):
                raise
            except Exception:
                if measures.on():
                    measures.send_failure(name, self.subject)
                raise
            finally:
                if before is not None:
                    self.read_and_written = lineage.gathered(self.app, before)
        if self.action in (TaskAction.ADMIT, TaskAction.PROCESS) and measures.on():
            measures.send_report(name, self.subject, report)
        if self.action is not TaskAction.PROCESS_GROUP and (events := context.get("outlet_events")) is not None:
            for outlet in self.outlets:
                events[outlet].extra = report
        return report

    def _run(self, context: Any) -> dict[str, Any]:
        run = context["dag_run"]
        if self.action is not TaskAction.PROCESS:
            conf = self._conf(run, (RELEASE,) if self.action is TaskAction.ADMIT else ())
            if RELEASE in conf:
                return tasks.release(self.app, self.subject, conf[RELEASE])
            match self.action:
                case TaskAction.MAINTAIN:
                    return tasks.maintain(self.app)
                case TaskAction.ALERT:
                    return tasks.alert(self.app, context)
                case TaskAction.PROCESS_GROUP:
                    return self._group(context)
                case _:
                    return tasks.admit(self.app, self.subject)
        if run.data_interval_start == run.data_interval_end:
            return tasks.process(self.app, self.subject, self._conf(run, (UNTIL,)).get(UNTIL))
        self._conf(run, ())
        start, end = run.data_interval_start, run.data_interval_end
        self._keep_order(context["ti"], start)
        return tasks.backfill(self.app, self.subject, start, self._whole_slice(context["ti"], start, end))

    def _group(self, context: Any) -> dict[str, Any]:
        """What is due of the members. A member whose own DAG is at work, such as with a backfill, is left to it."""
        ti = context["ti"]

        def busy(query: str) -> bool:
            return ti.get_dr_count(dag_id=self.members[query], states=["queued", "running"]) > 0

        def done(query: str, report: dict[str, Any]) -> None:
            events, name = context.get("outlet_events"), f"{application_name(self.app)}.{query}"
            table = Asset(name, uri=lineage_uri(self.app, query))
            if events is not None:
                events[self.outlets[0]].add(table, extra=report)
            if measures.on():
                measures.send_report(application_name(self.app), query, report)

        return tasks.process_group(self.app, list(self.members), busy, done, self.parallelism)

    def _conf(self, run: Any, taken: Sequence[str]) -> dict[str, Any]:
        """What a person gave a run as conf. AirflowFailException where it has more than is ``taken``."""
        conf = dict(getattr(run, "conf", None) or {})
        unknown = [str(key) for key in conf if key not in taken]
        if unknown:
            may = "it takes none" if not taken else f"it takes {' and '.join(map(repr, taken))}"
            what = "A backfill" if run.data_interval_start != run.data_interval_end else f"A run of {self.dag_id}"
            raise AirflowFailException(
                f"{what} cannot do anything with {', '.join(map(repr, unknown))} of its conf: {may}."
            )
        return conf

    def _keep_order(self, ti: Any, start: datetime) -> None:
        """Slices of a backfill build on each other; Airflow starts up to ten at once and goes on past a failed one.

        ``depends_on_past`` would do neither: runs without a logical date ignore it, others can block each other for
        ever. A backfill's run is named after the end of its slice. Only a running predecessor is waited for: in a
        reversed backfill it is queued behind this run.
        """
        previous = [f"backfill__{start.isoformat()}"]
        if ti.get_dr_count(dag_id=self.dag_id, run_ids=previous, states=["running"]):
            raise AirflowRescheduleException(datetime.now(UTC) + WAIT)
        if ti.get_dr_count(dag_id=self.dag_id, run_ids=previous, states=["failed"]):
            raise AirflowFailException(
                f"The slice before {start.isoformat()} of {self.app}.{self.subject} has failed (run {previous[0]}), so "
                "this slice is not computed. Look at that run, then start a backfill over the rest with reprocessing "
                "of failed runs."
            )

    def _whole_slice(self, ti: Any, start: datetime, end: datetime) -> datetime:
        """The end of the slice, undoing a clip that an earlier backfill left behind.

        Airflow reuses the run of an earlier backfill that starts at the same instant together with its interval. Was
        that one the last of its range, then it is shorter than a slice, and the instants up to the next run would be
        left out. A slice that had not ended then is whole whenever it runs, as far as heartbeats are.
        """
        whole = start + self.slice if self.slice else end
        if ends_now(end):
            return whole
        if end < whole and ti.get_dr_count(dag_id=self.dag_id, logical_dates=[whole], states=["queued", "running"]):
            return whole
        return end

    def on_kill(self) -> None:
        tasks.interrupt()

    # -- what Airflow's OpenLineage provider asks for --------------------------------------------------------------

    @property
    def _names(self) -> list[str]:
        """Of which names this task reads and writes tables that lineage knows."""
        match self.action:
            case TaskAction.ADMIT | TaskAction.PROCESS:
                return [self.subject]
            case TaskAction.PROCESS_GROUP:
                return list(self.members)
            case _:
                return []

    def get_openlineage_facets_on_start(self) -> Any:
        """The tables, as far as they are known before the job."""
        return lineage.facets(lineage.declared(self.app, self._names))

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """Tables, columns, rows and verdicts of the run."""
        return lineage.facets(self.read_and_written)

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> Any:
        """As on success: what was committed before the failure stands."""
        return lineage.facets(self.read_and_written)
