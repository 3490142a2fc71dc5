"""Where results begin that are computed beside published ones: behind an instant up to which these stand.

Operators are warmed up with inputs from before it, so that they know what is valid there; what they say of those
instants themselves is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import BAG, TE, TS, N
from sweeparea.quality import suites
from sweeparea.spark_jobs.evaluation.only import Only
from sweeparea.spark_jobs.slices.history import History
from sweeparea.spark_jobs.spark import frames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Beginning:
    """Results begin after ``since``. ``published``: the tables of histories (the relation, the quarantine), whose
    levels are open there; none where they are not kept, or where nothing is to be shown of this slice. ``only``: of
    some keys. ``stands``: up to where published results stand, if that is later than ``since``: what ends up to there
    is nothing that a later slice shows.
    """

    since: int
    published: tuple[History, ...] = ()
    only: Only | None = None
    stands: int | None = None

    def of(self, spark: SparkSession, plan: Plan, rows: DataFrame | None) -> DataFrame | None:
        """The slice's rows of the plan's root from ``since`` on, and the levels that are open there."""
        ids = [c.id for c in plan.root.columns]
        parts = [] if rows is None else [self._clipped(plan, rows.selectExpr(*ids, *BAG))]
        for published in self.published:
            levels = published.levels(spark, self.since)
            if levels is not None:
                named = (f"{frames.quoted(c.label)} AS {c.id}" for c in plan.root.columns)
                levels = levels.selectExpr(*named, f"__from AS {TS}", f"{INF}L AS {TE}", f"1L AS {N}")
                parts.append(levels if self.only is None else self.only.of(levels, self.only.key.column))
        return frames.concatenated(parts) if parts else None

    def _clipped(self, plan: Plan, rows: DataFrame) -> DataFrame:
        levels = ResultKind.RSTREAM in plan.materialize and ResultKind.RELATION not in plan.materialize
        # where levels are counted from here on, a later slice needs the ends as well
        stands = self.since if self.stands is None or levels else self.stands
        later = f"{TS} > {stands}L"
        if plan.emits_each:
            return rows.where(later)
        across = f"NOT ({later}) AND {TE} > {stands}L"
        # what is valid already shows when it ends
        parts = [
            (TS, TE, N, later),
            (TE, f"{INF}L", f"-{N}", f"{across} AND {TE} < {INF}L"),
        ]
        if levels:
            # the levels of what is kept out are those that the quarantine's own table holds
            kept = [c for c in plan.constraints if c.on_violation == "quarantine"]
            stand = [f"coalesce({suites.tried(c.condition.sql, suites.NEVER)}, 2) = 0" for c in kept]
            parts.append((f"{stands}L", f"{INF}L", N, " AND ".join([across, *stand])))
        # in one pass: a plan that is evaluated twice would stage what its sweeps carry twice
        named = (
            f"named_struct('{TS}', {start}, '{TE}', {end}, '{N}', {n}, 'shown', {shown})"
            for start, end, n, shown in parts
        )
        pieces = f"inline(array({', '.join(named)}))"
        ids = [c.id for c in plan.root.columns]
        return rows.selectExpr(*ids, pieces).where("shown").selectExpr(*ids, *BAG)
