"""The Spark job of a slice in which the plan is evaluated and its rows become the files of the result tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators import bridge
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.operators.state.due import bag_due
from sweeparea.operators.state.sweep_area import SweepArea
from sweeparea.operators.sweeps import relation_to_stream
from sweeparea.operators.sweeps.quarantine import BROKEN
from sweeparea.operators.values.bag import BAG
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.quality import suites
from sweeparea.quality.slice_laws import SliceLaws
from sweeparea.spark_jobs.evaluation.areas import SweepAreas
from sweeparea.spark_jobs.evaluation.evaluate import Evaluation
from sweeparea.spark_jobs.slices.audit import counter_of
from sweeparea.spark_jobs.slices.beginning import Beginning
from sweeparea.spark_jobs.slices.place import SlicePlace
from sweeparea.spark_jobs.slices.result_tables import Line, ResultTables, result_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MATERIALIZE = "materialize"
"""The name of the SweepArea that holds a result's open rows and pending ends."""


@dataclass(frozen=True)
class Materialization:
    """How the results of a slice up to ``h1`` are computed: ``plan`` names the tables in ``place``, ``evaluation`` has
    it as this machine runs it; results are those after ``since``, computed beside others from ``beginning`` on.
    """

    spark: SparkSession
    plan: Plan
    place: SlicePlace
    since: int
    h1: int
    attempt: str
    evaluation: Evaluation
    areas: SweepAreas
    beginning: Beginning | None = None

    def run(self) -> tuple[list[Line], ResultTables]:
        """Runs the slice. Returns one line per staged file, and the result tables."""
        evaluation = self.evaluation
        plan = evaluation.slice.plan
        top = evaluation.new(plan.root)
        record = result_columns(self.plan, top if top is not None else evaluation.empty(plan.root))
        if self.beginning is not None:
            top = self.beginning.of(self.spark, plan, top)
        anew = self.beginning is not None
        results = ResultTables(self.plan, self.place, record, self.since, self.attempt, anew)
        staged = self._staged(top, record, results)
        if staged is None:
            return [], results
        with results.listing_open_rows():
            return [r.asDict() for r in staged.collect()], results

    def _staged(self, top: DataFrame | None, record: list[pa.Field], results: ResultTables) -> DataFrame | None:
        """The lines of the files that are staged; None where there is nothing to do."""
        evaluation, areas, tables = self.evaluation, self.areas, results.tables
        plan = evaluation.slice.plan
        ids = [c.id for c in plan.root.columns]
        # repetitions are looked at in every slice; what only comes and goes is left alone meanwhile
        keyed = ids and not (ResultKind.RSTREAM in tables or plan.emits_each)
        of = plan.root if self.beginning is None else None
        levels = "open" in tables or results.quarantine is not None
        net = of is not None and keyed and not levels and not areas.files(MATERIALIZE) and evaluation.net(of)
        if top is None and (areas.quiet(MATERIALIZE) if keyed else plan.emits_each or not areas.files(MATERIALIZE)):
            return None
        checks = [BROKEN] if plan.constraints else []
        schema = pa.schema([*record, *(pa.field(c, pa.string()) for c in checks), *BAG_FIELDS])
        if top is not None and checks:
            top = top.selectExpr(*ids, f"{suites.broken_sql(plan.constraints, suites.NEVER)} AS {BROKEN}", *BAG)
        elif top is not None:
            top = top.selectExpr(*ids, *BAG)
        task = self._tasks(results, schema, checks, bool(net))
        if plan.emits_each or net:  # no row has to meet another
            assert top is not None
            return evaluation.sweeps.passed(MATERIALIZE, of, top, schema, task(None), bridge.FILES_SCHEMA)
        if keyed:
            return evaluation.sweeps.through(MATERIALIZE, top, schema, ids, bag_due, task, bridge.FILES_SCHEMA, of)
        return evaluation.sweeps.through_whole(MATERIALIZE, top, schema, ids, task, bridge.FILES_SCHEMA)

    def _tasks(
        self, results: ResultTables, schema: pa.Schema, checks: list[str], net: bool
    ) -> Callable[[bridge.Target | SweepArea | None], bridge.MaterializeTask]:
        """Makes the task of a worker from where it keeps its SweepArea."""
        evaluation, tables = self.evaluation, results.tables
        plan = evaluation.slice.plan
        count = (
            evaluation.streams.row_count(MATERIALIZE, plan.every, plan.anchor) if ResultKind.RSTREAM in tables else None
        )
        spec = relation_to_stream.MaterializeSpec(
            columns=tuple(c.id for c in plan.root.columns),
            checks=tuple(checks),
            relation="open" in tables,
            istream=ResultKind.ISTREAM in tables,
            dstream=ResultKind.DSTREAM in tables,
            rstream=None if count is None else evaluation.rstreams[-1][1],
            most=evaluation.slice.most_rows,
            each=plan.emits_each,
            net=net,
        )
        targets = {key: bridge.Target(path, table, key) for key, (path, table) in tables.items()}
        judges = {key: counter_of(self.plan, key, self.since, self.h1) for key in tables}
        labels = {c.id: c.label for c in plan.root.columns}
        laws = SliceLaws(
            len(labels),
            self.since * plan.time.stored_scale,
            self.h1,
            {key: schema for key, (_, schema) in tables.items()},
            levels=spec.relation or spec.rstream is not None or results.quarantine is not None,
        )

        def task(area: bridge.Target | SweepArea | None) -> bridge.MaterializeTask:
            return bridge.MaterializeTask(
                spec, self.since, self.h1, plan.time.clock, schema, targets, judges, labels, self.attempt, area,
                count,
                anew=self.beginning is not None, quarantine=results.quarantine, laws=laws,
            )  # fmt: skip

        return task
