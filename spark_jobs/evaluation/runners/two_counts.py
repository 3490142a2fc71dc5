"""Difference, intersection and duplicate elimination over known expiry, on Spark: one sweep
(``operators/sweeps/two_counts.py``), which semi and anti joins use as well.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators.bridge import Pipe
from sweeparea.operators.linear import union_all
from sweeparea.operators.plan.node import Node
from sweeparea.operators.state import expiry_log
from sweeparea.operators.state.due import bag_due
from sweeparea.operators.state.sweep import Sweep
from sweeparea.operators.sweeps import two_counts
from sweeparea.operators.sweeps.existence import of_side
from sweeparea.operators.sweeps.set_operation import SetOperation
from sweeparea.operators.values.bag import BAG
from sweeparea.spark_jobs.evaluation.running import Bags, Runner, RunningSlice, ids_of
from sweeparea.spark_jobs.evaluation.sweeping import Sweeps
from sweeparea.spark_jobs.spark.frames import concatenated, fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TwoCounts:
    """The sweep of two bags with the columns of a node."""

    def __init__(self, slice: RunningSlice, bags: Bags, sweeps: Sweeps) -> None:
        self.slice, self.bags, self.sweeps = slice, bags, sweeps

    def swept(
        self,
        node: Node,
        operation: two_counts.Operation,
        given: tuple[DataFrame | None, DataFrame | None],
        known: tuple[bool, bool],
        source: Pipe | None = None,
        lie_by: frozenset[str] | None = None,
    ) -> DataFrame | None:
        """What a slice adds; of a duplicate elimination the second bag is empty. ``known``: whose ends are. ``source``:
        how the first bag, if there is no other, comes about without Spark SQL; ``lie_by``: as of ``Sweeps.swept``.
        """
        op, ids = self.slice.names[id(node)], ids_of(node)
        sides = [
            bag.selectExpr(*ids, *BAG, f"CAST({side} AS TINYINT) AS {two_counts.SIDE}")
            for side, bag in enumerate(given)
            if bag is not None
        ]
        if not sides and self.sweeps.idle(op, ids):
            return None
        if not (operation is two_counts.DISTINCT and sides):
            # the types of both inputs, whether or not they have rows now
            like = self.bags.empty(node).selectExpr(*ids, *BAG, f"CAST(0 AS TINYINT) AS {two_counts.SIDE}")
            sides = [like, *sides]
        schema = two_counts.rows_schema(fields(sides[0], ids))
        spec = two_counts.TwoCountsSpec(tuple(ids), operation, known, self.slice.edges.ahead(node))
        output = schema.remove(schema.get_field_index(two_counts.SIDE))
        # what is emitted ahead of time only has to go some time
        due = self.slice.areas.lazily(bag_due, expiry_log.reach(node)) if spec.ahead else bag_due
        sweep = Sweep(tuple(ids), schema, output, due, spec.sweep)
        piped = None if source is None else _first_side(source, schema)
        return self.sweeps.swept(op, concatenated(sides), sweep, piped, lie_by=lie_by)


def _first_side(source: Pipe, schema: pa.Schema) -> Pipe | None:
    names = [name for name in schema.names if name != two_counts.SIDE]
    return source.mapped(partial(of_side, schema=schema, side=two_counts.LEFT), names, schema.names)


class SetOperations(Runner[SetOperation]):
    """Differences and intersections."""

    def __init__(self, slice: RunningSlice, bags: Bags, counts: TwoCounts) -> None:
        super().__init__(slice, bags)
        self.counts = counts

    def new(self, node: SetOperation) -> DataFrame | None:
        given = [self.bags.new(part) for part in node.inputs]
        left, right = (None if bag is None else union_all.apply(node, [(i, bag)]) for i, bag in enumerate(given))
        return self.counts.swept(node, node.operation, (left, right), (self.known(node.left), self.known(node.right)))

    def empty(self, node: SetOperation) -> DataFrame:
        return union_all.apply(node, [(i, self.bags.empty(part)) for i, part in enumerate(node.inputs)])
