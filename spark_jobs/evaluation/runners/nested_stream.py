"""Streams inside a plan, and the instants of an Rstream, on Spark (``operators/sweeps/relation_to_stream.py``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators import bridge
from sweeparea.operators.plan.stream_kind import StreamKind
from sweeparea.operators.state.due import bag_due
from sweeparea.operators.state.sweep_area import SweepArea
from sweeparea.operators.sweeps import relation_to_stream
from sweeparea.operators.sweeps.relation_to_stream import RelationToStream
from sweeparea.operators.values.bag import BAG, TS
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.spark_jobs.evaluation.running import Bags, Runner, RunningSlice, ids_of
from sweeparea.spark_jobs.evaluation.sweeping import Sweeps
from sweeparea.spark_jobs.spark.frames import fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class NestedStreams(Runner[RelationToStream]):
    """Istream, Dstream and Rstream inside a plan. ``rstreams``: where each Rstream notes its number of rows, with its
    instants.
    """

    def __init__(self, slice: RunningSlice, bags: Bags, sweeps: Sweeps) -> None:
        super().__init__(slice, bags)
        self.sweeps = sweeps
        self.rstreams: list[tuple[bridge.RowCount, relation_to_stream.Every]] = []

    def empty(self, node: RelationToStream) -> DataFrame:
        instant = [f"{self.slice.reader.instant_sql(TS)} AS {node.instant.id}"] if node.instant else []
        return self.bags.empty(node.input).selectExpr(*ids_of(node.input), *instant, *BAG)

    def new(self, node: RelationToStream) -> DataFrame | None:
        """A stream inside a plan: Istream, Dstream or Rstream of the input, as elements ``[t, t+1)`` (Arasu 2003,
        section 5.1).
        """
        op, ids = self.name(node), [c.id for c in node.input.columns]
        bag, whole = self.bags.new(node.input), node.kind == StreamKind.RSTREAM
        if bag is None and self.sweeps.idle(op, [] if whole else ids):
            return None
        new = None if bag is None else bag.selectExpr(*ids, *BAG)
        schema = pa.schema([*fields(new if new is not None else self.bags.empty(node.input), ids), *BAG_FIELDS])
        count = self.row_count(op, node.every, node.anchor) if node.kind == StreamKind.RSTREAM else None
        spec = relation_to_stream.MaterializeSpec(
            columns=tuple(ids),
            istream=node.kind == StreamKind.ISTREAM,
            dstream=node.kind == StreamKind.DSTREAM,
            rstream=None if count is None else self.rstreams[-1][1],
            most=self.slice.most_rows,
        )

        def task(area: bridge.Target | SweepArea) -> bridge.StreamTask:
            return bridge.StreamTask(
                spec, node.kind, self.slice.h0, self.slice.h1, schema, area, self.slice.attempt, count
            )

        if whole:
            stream = self.sweeps.through_whole(op, new, schema, ids, task, schema)
        else:
            stream = self.sweeps.through(op, new, schema, ids, bag_due, task, schema, node.input)
        if node.instant is None:
            return stream
        return stream.selectExpr(*ids, f"{self.slice.reader.instant_sql(TS)} AS {node.instant.id}", *BAG)

    def row_count(self, op: str, every: int | None, anchor: int) -> bridge.RowCount:
        """Where an Rstream's sweep notes its number of rows; ``rstreams`` lists them with their instants."""
        count = bridge.RowCount(f"{self.slice.areas.spill}/rstream", op)
        self.rstreams.append((count, relation_to_stream.Every(every or 1, anchor)))
        return count
