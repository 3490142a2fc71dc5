"""LAG, LEAD and values at the edges of frames on Spark (``operators/ordered/navigation.py``)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators.bridge import Pipe
from sweeparea.operators.ordered import navigation
from sweeparea.operators.ordered.navigation import (
    Navigation,
    NavigationSpec,
    default_column,
    reference_of,
    value_column,
)
from sweeparea.operators.state.sweep import Sweep
from sweeparea.operators.state.sweep_area import bag_due
from sweeparea.operators.values.bag import BAG
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.spark_jobs.evaluation.grouped.keyed_rows import KeyedRows, lie_by
from sweeparea.spark_jobs.evaluation.running import Bags, Runner, RunningSlice
from sweeparea.spark_jobs.evaluation.sweeping import Sweeps
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.frames import fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class NavigationRows(KeyedRows):
    """The rows of one node's sweep; ``values`` are the types of its calls."""

    def __init__(self, node: Navigation, values: list[pa.Field]) -> None:
        super().__init__()
        self.node, self.values = node, values
        call = node.calls[0][1]
        self.keys = {f"__k{i}": e.sql for i, e in enumerate(call.partition)}
        self.columns = {c.id: f"`{c.id}`" for c in node.input.columns}
        self.rank(call.order)
        self.references = []
        for i, ((_, each), value) in enumerate(zip(node.calls, values, strict=True)):
            reference = reference_of(each)
            assert reference is not None
            type_ = frames.spark_type(value.type)
            self.columns[value_column(i)] = f"CAST(({each.arguments[0].sql}) AS {type_})"
            if reference.default:
                self.columns[default_column(i)] = f"CAST(({each.arguments[2].sql}) AS {type_})"
            self.references.append((value.name, reference))

    def swept(self, start: int) -> NavigationSpec:
        shown = tuple(c.id for c in self.node.input.columns)
        return NavigationSpec(self.spec(start), shown, tuple(self.references))


class Navigations(Runner[Navigation]):
    """Values of other rows."""

    def __init__(self, slice: RunningSlice, bags: Bags, sweeps: Sweeps) -> None:
        super().__init__(slice, bags)
        self.sweeps = sweeps

    def empty(self, node: Navigation) -> DataFrame:
        kept = (f"`{column.id}`" for column in node.input.columns)
        return self.bags.empty(node.input).selectExpr(*kept, *_values(node), *BAG)

    def new(self, node: Navigation) -> DataFrame | None:
        empty = self.bags.empty(node.input)
        typed = empty.selectExpr(*_values(node))
        how = NavigationRows(node, fields(typed, typed.columns))
        op, keys, bag = self.name(node), list(how.keys), self.bags.new(node.input)
        if bag is None and self.sweeps.idle(op, keys):
            return None
        shown = how.raw(bag if bag is not None else empty)
        schema = pa.schema(fields(shown, shown.columns))
        output = pa.schema([*(schema.field(c.id) for c in node.input.columns), *how.values, *BAG_FIELDS])
        run = partial(navigation.sweep, spec=how.swept(self.slice.plan.start))
        sweep = Sweep(tuple(keys), schema, output, bag_due, run)
        source = None if bag is None else how.source(self.bags.pipe(node.input))
        return self.sweeps.swept(op, None if bag is None else shown, sweep, source)

    def pipe(self, node: Navigation) -> Pipe | None:
        return self.sweeps.pipe(self.name(node))

    def spread_by(self, node: Navigation) -> frozenset[str] | None:
        return lie_by(self.sweeps, self.name(node), node.calls[0][1].partition, node.input)


def _values(node: Navigation) -> list[str]:
    return [f"{call.sql} AS `{column.id}`" for column, call in node.calls]
