"""ORDER BY .. LIMIT, and rows cut by their numbers, on Spark (``operators/ordered/top_k.py``)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators import bridge
from sweeparea.operators.bridge import Pipe
from sweeparea.operators.ordered import top_k
from sweeparea.operators.ordered.top_k import TopK, TopKSpec
from sweeparea.operators.state.due import bag_due
from sweeparea.operators.state.sweep import Sweep
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import BAG
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.spark_jobs.evaluation.grouped.keyed_rows import KeyedRows, lie_by
from sweeparea.spark_jobs.evaluation.running import Bags, Runner, RunningSlice
from sweeparea.spark_jobs.evaluation.sweeping import Sweeps
from sweeparea.spark_jobs.spark.frames import fields, mapped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TopKRows(KeyedRows):
    """The rows of a top-k, and its sweep (``operators/ordered/top_k.py``)."""

    def __init__(self, node: TopK) -> None:
        super().__init__()
        self.node = node
        self.keys = {f"__k{i}": e.sql for i, e in enumerate(node.keys)}
        self.columns = {c.id: f"`{c.id}`" for c in node.input.columns}
        self.rank(node.order)

    def top(self, start: int, known: bool) -> TopKSpec:
        node = self.node
        numbers = tuple((column.id, function) for column, function in node.numbers)
        return TopKSpec(self.spec(start), node.limit, node.offset, node.by, node.peers, numbers, expiry_known=known)


class TopKs(Runner[TopK]):
    """The first rows of each group."""

    def __init__(self, slice: RunningSlice, bags: Bags, sweeps: Sweeps) -> None:
        super().__init__(slice, bags)
        self.sweeps = sweeps

    def empty(self, node: TopK) -> DataFrame:
        numbers = (f"CAST(NULL AS INT) AS `{column.id}`" for column, _ in node.numbers)
        kept = (f"`{column.id}`" for column in node.input.columns)
        return self.bags.empty(node.input).selectExpr(*kept, *numbers, *BAG)

    def new(self, node: TopK) -> DataFrame | None:
        op, how = self.name(node), TopKRows(node)
        bag, keys = self.bags.new(node.input), list(how.keys)
        if bag is None and self.sweeps.idle(op, keys):
            return None
        shown = how.raw(bag if bag is not None else self.bags.empty(node.input))
        schema = pa.schema(fields(shown, shown.columns))
        numbers = (pa.field(column.id, pa.int32()) for column, _ in node.numbers)
        output = pa.schema([*(schema.field(c.id) for c in node.input.columns), *numbers, *BAG_FIELDS])
        spec = how.top(self.slice.plan.start, self.known(node.input))
        carried = partial(top_k.carried, spec=spec) if spec.limited else None
        run, shared = partial(top_k.sweep, spec=spec), partial(top_k.shared_sweep, spec=spec)
        sweep = Sweep(tuple(keys), schema, output, bag_due, run, carried, shared=shared)
        if bag is None:
            return self.sweeps.swept(op, None, sweep)
        rows, source = self._shortened(node, spec, schema, shown, how.source(self.bags.pipe(node.input)))
        return self.sweeps.swept(op, rows, sweep, source)

    def _shortened(
        self, node: TopK, spec: TopKSpec, schema: pa.Schema, rows: DataFrame, source: Pipe | None
    ) -> tuple[DataFrame, Pipe | None]:
        """The sweep's rows, of several workers each without those that others of it outdo (``top_k.shortened``)."""
        combines = node.combines(self.slice.edges)
        if self.slice.partitions == 1 or not (combines or (node.shortens and self.bags.net(node.input))):
            return rows, source
        until = INF if combines else self.slice.h1
        task = bridge.CombineTask(partial(top_k.shortened, spec=spec, until=until), schema, bridge.TRIED)
        if source is None:
            return mapped(self.slice.spark, rows, task, schema), None
        source = source.behind(task, schema.names, schema.names)
        return mapped(self.slice.spark, source.given, source.task, schema), source

    def pipe(self, node: TopK) -> Pipe | None:
        return self.sweeps.pipe(self.name(node))

    def spread_by(self, node: TopK) -> frozenset[str] | None:
        return lie_by(self.sweeps, self.name(node), node.keys, node.input)
