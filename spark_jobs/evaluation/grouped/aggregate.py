"""Aggregation on Spark: SQL's aggregates broken into base aggregates, swept, and put together again
(``operators/sweeps/aggregate.py``, ``grouping.py``).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators import bridge
from sweeparea.operators.aggregates.averages import averaged
from sweeparea.operators.bridge import Pipe
from sweeparea.operators.sweeps import aggregate, counted_values, distinct
from sweeparea.operators.sweeps.aggregate import Aggregate
from sweeparea.operators.values.bag import BAG
from sweeparea.spark_jobs.evaluation import computing
from sweeparea.spark_jobs.evaluation.grouped.aggregate_expansion import AggregateExpansions
from sweeparea.spark_jobs.evaluation.grouped.expansion import users_of
from sweeparea.spark_jobs.evaluation.grouped.grouping import Grouping
from sweeparea.spark_jobs.evaluation.runners.two_counts import TwoCounts
from sweeparea.spark_jobs.evaluation.running import Bags, Runner, RunningSlice, filled
from sweeparea.spark_jobs.evaluation.sweeping import Sweeps
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.frames import concatenated, fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Aggregates(Runner[Aggregate]):
    """Aggregations, duplicate elimination among them."""

    def __init__(self, slice: RunningSlice, bags: Bags, sweeps: Sweeps, counts: TwoCounts) -> None:
        super().__init__(slice, bags)
        self.sweeps, self.counts = sweeps, counts
        self.expansions = AggregateExpansions(slice, bags, sweeps)
        self.users = users_of(slice.plan.functions)
        self._types: dict[int, dict[str, pa.DataType]] = {}
        """Of the arguments of each aggregation that a sweep keeps up to date."""

    def _grouping(self, node: Aggregate) -> Grouping:
        return Grouping(node.keys, node.calls, users=self.users)

    def new(self, node: Aggregate) -> DataFrame | None:
        if self._is_interval_distinct(node):
            return self._distinct(node)
        return self._aggregate(node) if node.expansion is None else self.expansions.new(node)

    def _distinct(self, node: Aggregate) -> DataFrame | None:
        """Duplicate elimination where every end is known: it emits intervals, never a negative tuple."""
        keys = [f"({e.sql}) AS {c.id}" for c, e in node.keys]
        bag = self.bags.new(node.input)
        left = None if bag is None else bag.selectExpr(*keys, *BAG)
        source, lie_by = (None, None) if bag is None else self._lying(node)
        return self.counts.swept(node, distinct.operation(), (left, None), (True, True), source, lie_by)

    def _lying(self, node: Aggregate) -> tuple[Pipe | None, frozenset[str] | None]:
        """How the distinct rows' keys come about, and the keys by which they lie, if a sweep has brought equal ones
        together.
        """
        lie_by, names = self.bags.spread_by(node.input), {expr.bare: column.id for column, expr in node.keys}
        below = self.bags.pipe(node.input)
        if below is None or not lie_by or not lie_by <= names.keys():
            return None, None
        chosen = {column.id: expr.bare for column, expr in node.keys} | {name: name for name in BAG}
        return below.renamed(chosen), frozenset(names[c] for c in lie_by)

    def _is_interval_distinct(self, node: Aggregate) -> bool:
        """Whether this is a duplicate elimination over known expiry."""
        return node.is_distinct and self.known(node.input)

    def empty(self, node: Aggregate) -> DataFrame:
        if node.expansion is not None:
            return self.expansions.empty(node)
        grouping = self._grouping(node)
        raw = grouping.raw(self.bags.empty(node.input), list(BAG))
        types = {f.name: f.type for f in fields(raw, raw.columns)}
        bases = [
            f"CAST(NULL AS {frames.spark_type(result)}) AS b{i}"
            for i, result in enumerate(grouping.result_types(types))
        ]
        return raw.selectExpr(*grouping.keys, *bases, *BAG).selectExpr(*grouping.keys, *grouping.outputs(types), *BAG)

    def pipe(self, node: Aggregate) -> Pipe | None:
        made, types = self.sweeps.pipe(self.name(node)), self._types.get(id(node))
        if self._is_interval_distinct(node):
            return made
        finished = None if made is None or types is None else self._grouping(node).finished(types)
        if made is None or finished is None:
            return None
        columns, averages = finished
        if averages:
            task = bridge.ExtendTask(partial(averaged, averages=averages))
            names = list(made.columns)
            made = made.behind(task, names, [*names, *(name for name, _, _ in averages)])
        return made.renamed(columns | {name: name for name in BAG})

    def net(self, node: Aggregate) -> bool:
        swept = not self._is_interval_distinct(node) and node.expansion is None
        return swept and self._grouping(node).plain is not None

    def spread_by(self, node: Aggregate) -> frozenset[str] | None:
        spread = self.sweeps.spreads(self.name(node)) and node.expansion is None
        return frozenset(column.id for column, _ in node.keys) if spread else None

    def _source(self, node: Aggregate, grouping: Grouping, bag: DataFrame) -> Pipe | None:
        """How the sweep's rows come about where keys and arguments are columns as they are, or Arrow computes them."""
        below = self.bags.pipe(node.input)
        if below is None:
            return None
        arguments = {f"a{i}": sql for i, sql in grouping.given(bag).items()}
        wanted = {column.id: expr.sql for column, expr in node.keys} | arguments
        renamed = computing.renamed(below, wanted)
        if renamed is not None:
            return renamed
        given = frames.comparable_types(bag, [column.id for column in node.input.columns])
        return computing.behind(below, wanted, given, self._types[id(node)])

    def _aggregate(self, node: Aggregate) -> DataFrame | None:
        op, grouping = self.name(node), self._grouping(node)
        bag = self.bags.new(node.input)
        if bag is None and self.sweeps.idle(op, grouping.keys) and not (node.global_ and self.slice.reader.first):
            return None
        shown = grouping.raw(bag if bag is not None else self.bags.empty(node.input), list(BAG))
        types = {f.name: f.type for f in fields(shown, [*grouping.keys, *grouping.arguments])}
        self._types[id(node)] = types
        spec = aggregate.AggregateSpec(
            keys=tuple((key, types[key]) for key in grouping.keys),
            calls=grouping.calls(types),
            global_=node.global_,
            expiry_known=self.known(node.input),
            start=self.slice.plan.start,
        )
        schema = aggregate.rows_schema(spec)
        rows, source = [], None
        if bag is not None:
            source = self._source(node, grouping, bag)
            given = {*grouping.keys, *grouping.arguments, *BAG}
            # what no raw row has need not be sent; a whole SweepArea comes the same way, with all columns
            combines = self.slice.partitions > 1 and node.combines(self.slice.edges)
            sent = pa.schema([f for f in schema if f.name in given or not (grouping.keys or combines)])
            raw = computed = filled(self.slice.spark, shown, sent, {name: name for name in given})
            if combines:
                first = bridge.TRIED if node.of_distinct else 0
                task = bridge.CombineTask(partial(aggregate.combined, spec=spec, h0=self.slice.h0), schema, first)
                raw = frames.mapped(self.slice.spark, raw, task, schema)
                source = (source or Pipe.of(computed, self.slice.partitions)).behind(task, sent.names, schema.names)
            rows.append(raw)
        if node.global_:  # a row that counts nothing, so that the sweep runs when nothing else has arrived
            rows.append(filled(self.slice.spark, self.slice.spark.range(1), schema, dict.fromkeys(BAG, "0L")))
        sweep = counted_values.sweep_of(spec)
        swept = self.sweeps.swept(op, concatenated(rows) if rows else None, sweep, source)
        return swept.selectExpr(*grouping.keys, *grouping.outputs(types), *BAG)
