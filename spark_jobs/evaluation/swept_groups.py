"""Operators that sweep the rows of a group: aggregates, snapshot expansion, top-k, and streams inside a plan."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators import bridge
from sweeparea.operators.plan.logical import Aggregate, Node, RelationToStream, TopK
from sweeparea.operators.state.sweep_area import SweepArea, bag_due
from sweeparea.operators.sweeps import aggregate, relation_to_stream, snapshot
from sweeparea.operators.values.bag import BAG, TS
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.spark_jobs.evaluation.expansion import expansion_of
from sweeparea.spark_jobs.evaluation.grouping import Grouping
from sweeparea.spark_jobs.evaluation.keyed_rows import TopKRows
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.frames import concatenated, fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sweeparea.spark_jobs.evaluation.evaluate import Evaluation


class SweptGroups:
    """These operators' part of an ``Evaluation``."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._of = evaluation

    def aggregate(self, node: Aggregate) -> DataFrame | None:
        op, grouping = self._of.names[id(node)], Grouping(node)
        bag = self._of.new(node.input)
        if bag is None and self._of.sweeps.idle(op, grouping.keys) and not (node.global_ and self._of.reader.first):
            return None
        shown = grouping.raw(bag if bag is not None else self._of.shape.bag(node.input), list(BAG))
        types = {f.name: f.type for f in fields(shown, [*grouping.keys, *grouping.arguments])}
        spec = aggregate.AggregateSpec(
            keys=tuple((key, types[key]) for key in grouping.keys),
            calls=grouping.calls(types),
            global_=node.global_,
            expiry_known=self._of.edges.expiry_known(node.input),
            start=self._of.plan.start,
        )
        schema = aggregate.rows_schema(spec)
        rows = []
        if bag is not None:
            given = {*grouping.keys, *grouping.arguments, *BAG}
            # what no raw row has need not be sent; a whole SweepArea comes the same way, with all columns
            sent = pa.schema([f for f in schema if f.name in given or not grouping.keys])
            rows.append(_filled(shown, sent, {name: name for name in given}))
        if node.global_:  # a row that counts nothing, so that the sweep runs when nothing else has arrived
            rows.append(_filled(self._of.spark.range(1), schema, dict.fromkeys(BAG, "0L")))
        output = aggregate.delta_schema(spec)
        task = partial(self._of.sweeps.sweep_task, partial(aggregate.sweep, spec=spec), schema, output)
        new = concatenated(rows) if rows else None
        swept = self._of.sweeps.swept(op, new, schema, grouping.keys, bag_due, task, frames.ddl(output))
        return swept.selectExpr(*grouping.keys, *grouping.outputs(types), *BAG)

    def expand(self, node: Node) -> DataFrame | None:
        """What has no incremental operator, by snapshot expansion (``operators/sweeps/snapshot.py``)."""
        op, how = self._of.names[id(node)], expansion_of(node, self._of.plan.functions)
        [below], keys = node.inputs, list(how.keys)
        bag = self._of.new(below)
        if bag is None and self._of.sweeps.idle(op, keys) and not (how.global_ and self._of.reader.first):
            return None
        shown = how.raw(bag if bag is not None else self._of.shape.bag(below))
        schema = pa.schema(fields(shown, shown.columns))
        rows = [shown] if bag is not None else []
        if how.global_:  # a row that counts nothing, so that the expansion runs when nothing else has arrived
            rows.append(_filled(self._of.spark.range(1), schema, dict.fromkeys(BAG, "0L")))
        spec = how.spec(self._of.plan.start)
        output = snapshot.expanded_schema(schema, spec)
        new = concatenated(rows) if rows else None

        def task(area: bridge.Target | SweepArea) -> bridge.ExpandTask:
            return bridge.ExpandTask(spec, self._of.h0, self._of.h1, schema, output, area, self._of.attempt)

        return how.evaluate(self._of.sweeps.swept(op, new, schema, keys, bag_due, task, frames.ddl(output)))

    def top_k(self, node: TopK) -> DataFrame | None:
        op, how = self._of.names[id(node)], TopKRows(node)
        bag, keys = self._of.new(node.input), list(how.keys)
        if bag is None and self._of.sweeps.idle(op, keys):
            return None
        shown = how.raw(bag if bag is not None else self._of.shape.bag(node.input))
        schema = pa.schema(fields(shown, shown.columns))
        output = pa.schema([*(schema.field(c.id) for c in node.columns), *BAG_FIELDS])
        task = partial(self._of.sweeps.sweep_task, how.sweep(self._of.plan.start), schema, output)
        return self._of.sweeps.swept(
            op, None if bag is None else shown, schema, keys, bag_due, task, frames.ddl(output)
        )

    def nested_stream(self, node: RelationToStream) -> DataFrame | None:
        """A stream inside a plan: Istream, Dstream or Rstream of the input, as elements ``[t, t+1)`` (Arasu 2003,
        section 5.1).
        """
        op, ids = self._of.names[id(node)], [c.id for c in node.input.columns]
        bag, whole = self._of.new(node.input), node.kind == "rstream"
        if bag is None and self._of.sweeps.idle(op, [] if whole else ids):
            return None
        new = None if bag is None else bag.selectExpr(*ids, *BAG)
        schema = pa.schema([*fields(new if new is not None else self._of.shape.bag(node.input), ids), *BAG_FIELDS])
        count = self.row_count(op, node.every, node.anchor) if node.kind == "rstream" else None
        spec = relation_to_stream.MaterializeSpec(
            columns=tuple(ids),
            istream=node.kind == "istream",
            dstream=node.kind == "dstream",
            rstream=None if count is None else self._of.rstreams[-1][1],
            most=self._of.most_rows,
        )

        def task(area: bridge.Target | SweepArea) -> bridge.StreamTask:
            return bridge.StreamTask(spec, node.kind, self._of.h0, self._of.h1, schema, area, self._of.attempt, count)

        ddl = frames.ddl(schema)
        if whole:
            stream = self._of.sweeps.swept_whole(op, new, schema, ids, task, ddl)
        else:
            stream = self._of.sweeps.swept(op, new, schema, ids, bag_due, task, ddl, node.input)
        if node.instant is None:
            return stream
        return stream.selectExpr(*ids, f"{self._of.reader.instant_sql(TS)} AS {node.instant.id}", *BAG)

    def row_count(self, op: str, every: int | None, anchor: int) -> bridge.RowCount:
        """Where an Rstream's sweep notes its number of rows; ``rstreams`` lists them with their instants."""
        count = bridge.RowCount(f"{self._of.areas.spill}/rstream", op)
        self._of.rstreams.append((count, relation_to_stream.Every(every or 1, anchor)))
        return count


def _filled(frame: DataFrame, schema: pa.Schema, given: Mapping[str, str]) -> DataFrame:
    """``frame`` in the shape of a sweep's rows: given expressions, kind 0 (a raw row), NULL for the rest."""
    given = {"__kind": "0", **given}
    return frame.selectExpr(
        *(f"CAST({given.get(f.name, 'NULL')} AS {frames.spark_type(f.type)}) AS {f.name}" for f in schema)
    )
