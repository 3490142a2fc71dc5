"""Aggregates by snapshot expansion, on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeparea.operators.aggregates.call import AggregateCall
from sweeparea.operators.ordered.snapshot import PRESENT
from sweeparea.operators.sweeps.aggregate import Aggregate
from sweeparea.operators.values.bag import BAG
from sweeparea.spark_jobs.evaluation.grouped.aggregate_sql import SqlCall, value_of
from sweeparea.spark_jobs.evaluation.grouped.expansion import Expansion, Expansions, Users, typed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class AggregateExpansion(Expansion):
    """Any aggregates of a group: ``GROUP BY key, segment``."""

    def __init__(self, node: Aggregate, users: Users) -> None:
        super().__init__()
        self.users = users
        self.node, self.global_ = node, node.global_
        self.keys = {column.id: expr.sql for column, expr in node.keys}
        self._calls = [(column.id, self._call(call)) for column, call in node.calls]

    def _call(self, call: AggregateCall) -> SqlCall:
        given = [e for e in (call.argument, *call.extra) if e is not None]
        # constants stay where they are: percentages and delimiters must be literals to Spark
        arguments = [self.column(e) if e is call.argument or e.columns else f"({e.sql})" for e in given]
        tests = [f"`{PRESENT}`"] if self.global_ else []
        if call.filter is not None:
            tests.append(self.column(call.filter))
        ranked = call.order and call.function not in ("PERCENTILE_CONT", "PERCENTILE_DISC", "MODE")
        return SqlCall(
            call.function,
            tuple(arguments),
            (),
            " AND ".join(tests) or None,
            call.distinct,
            self.rank(call.order) if ranked else None,
            bool(call.order) and call.order[0].descending,
            call.ignore_nulls,
            user=self.users(call.function),
        )

    def evaluate(self, expanded: DataFrame) -> DataFrame:
        from pyspark.sql.functions import expr

        values = {name: value_of(call) for name, call in zip(*typed(self._calls, expanded), strict=True)}
        grouped = expanded.groupBy(*self.segment).agg(*(expr(f"{v.sql} AS `{name}`") for name, v in values.items()))
        shown = grouped.selectExpr(*(f"`{c.id}`" for c in self.node.columns), *BAG)
        return self.finished(shown, values)


class AggregateExpansions(Expansions[Aggregate]):
    """Aggregations that no sweep keeps up to date."""

    def expansion(self, node: Aggregate) -> Expansion:
        return AggregateExpansion(node, self.users)
