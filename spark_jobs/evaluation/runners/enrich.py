"""The join of a stream with a non-retroactive relation, on Spark (``operators/sweeps/enrich.py``)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators.plan.node import Node
from sweeparea.operators.state.due import bag_due
from sweeparea.operators.state.sweep import Sweep
from sweeparea.operators.sweeps import enrich
from sweeparea.operators.sweeps.enrich import Enrich
from sweeparea.operators.sweeps.join import JoinKind
from sweeparea.operators.values.bag import BAG
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.spark_jobs.evaluation.running import Bags, Runner, RunningSlice, ids_of
from sweeparea.spark_jobs.evaluation.sweeping import Sweeps
from sweeparea.spark_jobs.spark.frames import fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Enriches(Runner[Enrich]):
    """New elements with the history of the relation that reaches into the slice."""

    def __init__(self, slice: RunningSlice, bags: Bags, sweeps: Sweeps) -> None:
        super().__init__(slice, bags)
        self.sweeps = sweeps

    def new(self, node: Enrich) -> DataFrame | None:
        relation = self._contents(node.relation, f"hold_{self.name(node)}")
        stream = self.bags.new(node.stream)
        if not node.stream.readable_again:
            stream = self.bags.drained(stream)
        if stream is None or (relation is None and node.kind != JoinKind.LEFT):
            return None
        return enrich.apply(node, stream, relation if relation is not None else self.bags.empty(node.relation))

    def empty(self, node: Enrich) -> DataFrame:
        return enrich.apply(node, self.bags.empty(node.stream), self.bags.empty(node.relation))

    def _contents(self, node: Node, op: str) -> DataFrame | None:
        """The intervals of a relation's history that reach into the slice."""
        if node.settled(self.slice.static) and node.readable_again:
            return self.bags.new(node) if self.slice.reader.first else self.bags.held(node)
        ids, bag = ids_of(node), self.bags.new(node)
        if bag is None and not self.slice.areas.files(op):
            return None
        new = None if bag is None else bag.selectExpr(*ids, *BAG)
        schema = pa.schema([*fields(new if new is not None else self.bags.empty(node), ids), *BAG_FIELDS])
        sweep = Sweep(tuple(ids), schema, schema, bag_due, partial(enrich.intervals, columns=ids))
        return self.bags.drained(self.sweeps.swept_whole(op, new, sweep))
