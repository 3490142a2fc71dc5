"""One case: its inputs, its application, its steps and its result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sweeparea.infra.errors import DataError, SweepAreaError
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.stream_kind import ResultKind, StreamKind
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.spark_jobs.admission.judging.stage import next_seq
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.cases.application import ReplayApplication
from sweeparea.spark_jobs.cases.rows import sorted_rows
from sweeparea.spark_jobs.cases.shape import member, shaped, text
from sweeparea.spark_jobs.cases.source import CaseSource
from sweeparea.spark_jobs.declarations.analysis import Checking, analyzer
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.spark import json_values
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import write_file
from sweeparea.tables.publication.info import SourceInfo, laid_over
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MICROSECOND = TimeDomain(TimeKind.TIMESTAMP, 1)
KEPT_OUT = "kept_out"
"""The member of a result with the rows that constraints keep out: the record, and by which constraint and why."""
RESULT = "query"
"""The name of a case's last query, unless its input or another query has that name."""


class Case:
    """One case: its inputs, its application and its result."""

    def __init__(self, case: dict[str, Any], folder: Path, spark: SparkSession) -> None:
        self.spark, self.folder, self.case = spark, folder, case
        self.time = MICROSECOND if str(case.get("time", "BIGINT")).upper() == "TIMESTAMP" else TimeDomain()
        self.sources = {
            name: CaseSource(name, kind, spec, spec.get(member, []) if isinstance(spec, dict) else [], self.time)
            for kind, member, group in (
                (NameKind.STREAM, "rows", "streams"),
                (NameKind.RELATION, "changes", "relations"),
            )
            for name, spec in shaped(case.get(group), dict, f"The member {group}").items()
        }
        queries = [
            tuple(text(member(q, part, f"Number {i} of queries"), f"Its {part}") for part in ("name", "query"))
            for i, q in enumerate(shaped(case.get("queries"), list, "The member queries"), start=1)
        ]
        taken = {*self.sources, *(name for name, _ in queries)}
        self.name = next(n for n in (RESULT, *(f"{RESULT}_{i}" for i in range(len(taken) + 1))) if n not in taken)
        self.queries = [*queries, (self.name, text(member(case, "query", "The case"), "The query"))]
        self.start = self._tick(case.get("start_at", 0))
        self.rstream = self._rstream(case.get("rstream"))
        self.sampled: str | None = None

    def _tick(self, given: Any) -> int:
        if isinstance(given, str) and self.time.kind == TimeKind.TIMESTAMP:
            return json_values.micros_of(given)
        if isinstance(given, bool) or not isinstance(given, int):
            raise DataError(f"{given!r} is no tick.")
        return given

    def _rstream(self, given: Any) -> tuple[int, int] | None:
        """Every and anchor, in ticks, of the Rstream that the result shows beside the query's own type."""
        if given is None:
            return None
        given = shaped(given, dict, "rstream")
        every, anchor = self._tick(given.get("every", 1)), self._tick(given.get("anchor", 0))
        if every < 1:
            raise DataError(f"rstream: every is {every}, but must be a positive number of ticks.")
        return every, anchor

    def run(self) -> dict[str, Any]:
        application = self._application()
        heartbeats = self.steps()
        for source in self.sources.values():
            source.check_arrivals(len(heartbeats))
        plan = application.plans.plan(self.name)  # errors of the text before anything runs
        if self.rstream is not None:
            if plan.stream == StreamKind.RSTREAM and self.rstream != (plan.every or 1, plan.anchor):
                # the query's own RSTREAM has other instants: the same query once more
                self.sampled = f"{self.name}_sampled"
                self.queries.append((self.sampled, self.case["query"]))
            application = self._application({self.sampled or self.name: self.rstream})
            plan = application.plans.plan(self.name)
        for source in self.sources.values():
            source.deliver(0)
        for k, step in enumerate(heartbeats, start=1):
            for name, heartbeat in step.items():
                if heartbeat is not None:
                    self._admit(application, self.sources[name], heartbeat)
            for name, _ in self.queries:
                self._process(application, name)
            for source in self.sources.values():
                source.deliver(k)
        late = [source for source in self.sources.values() if source.has_late]
        for source in late:
            assert source.heartbeat is not None
            self._admit(application, source, source.heartbeat)
        for name, _ in self.queries if late else ():
            self._process(application, name)
        return self._result(application, plan)

    def _process(self, application: ReplayApplication, query: str) -> None:
        try:
            process(application, query, self.spark)
        except SweepAreaError as error:
            if error.type == "TypeError":
                application.check_types(query, Checking(analyzer(self.spark), lambda: self.spark))
            raise

    def steps(self) -> list[dict[str, int | None]]:
        """For each step the heartbeat of every input that advances in it."""
        given = member(self.case, "heartbeats", "The case")
        if isinstance(given, dict):
            unknown = [n for n in given if n not in self.sources]
            if unknown:
                raise DataError(f"heartbeats are given for {', '.join(unknown)}, which the case does not declare.")
            given = {name: shaped(v, list, f"heartbeats of {name}") for name, v in given.items()}
            length = max((len(v) for v in given.values()), default=0)
            return [
                {name: None if k >= len(v) or v[k] is None else self._tick(v[k]) for name, v in given.items()}
                for k in range(length)
            ]
        return [dict.fromkeys(self.sources, self._tick(h)) for h in shaped(given, list, "heartbeats")]

    def _application(self, rstreams: dict[str, tuple[int, int]] | None = None) -> ReplayApplication:
        application = ReplayApplication(
            self.folder, self.sources, self.queries, self.start, self.case, self.time, rstreams
        )
        application.analyze = analyzer(self.spark)
        return application

    def _admit(self, application: Application, source: CaseSource, heartbeat: int) -> None:
        before = source.heartbeat
        rows = source.advance(heartbeat)
        if source.kind == NameKind.RELATION:
            source.check_net(rows)
        registration = application.registry.registration(source.name, application.ledger.head().get(source.name))
        publication = Publication(str(self.folder), application.ledger, source.name, source.kind, registration)
        attempt = publication.begin()
        path = application.layout.admitted(source.name)
        DeltaLog(path).create(
            source.schema, name=source.name, description=f"{source.kind} of a case", configuration=None
        )
        if rows.num_rows:
            seq = next_seq(publication)
            stamped = rows.set_column(rows.num_columns - 2, "__seq", pa.array([seq] * rows.num_rows, pa.int64()))
            publication.stage(
                path, adds=[write_file(stamped.cast(source.schema), path, attempt, f"seq-{seq}")], removes=[]
            )
        info = publication.previous.info if publication.previous else {}
        ticks = rows.column("__tick").to_pylist()
        first = min(ticks, default=None)
        if before is not None and first is not None and first <= before:
            info = laid_over(info, SourceInfo(correction_seq=next_seq(publication)))
        publication.commit(committed=heartbeat, pins={}, info=info)

    def _result(self, application: Application, plan: Plan) -> dict[str, Any]:
        labels = [c.label for c in plan.root.columns]
        found: dict[str, Any] = {"columns": labels}

        def rows(name: str, columns: int = len(labels)) -> list[list[Any]]:
            table = DeltaLog(application.layout.result(name))
            return sorted_rows(table.read(), columns, self.time) if table.exists() else []

        for what in plan.materialize:
            if what == ResultKind.QUARANTINE:
                found[KEPT_OUT] = rows(plan.table(what), len(labels) + 2)
            else:
                found[what] = rows(plan.table(what))
        if plan.stream:
            found["stream"] = found[plan.stream]
        if self.sampled is not None:
            found["rstream"] = rows(self.sampled)
        if self.rstream is None:
            found.pop("rstream", None)
        quarantined = [row for source in self.sources.values() for row in source.quarantine]
        if quarantined:
            found["quarantine"] = quarantined
        return found
