"""Windows on Spark: those of time are maps, user-defined ones too; those in which later elements decide are sweeps
(``window_rows.py`` hands their rows over).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sweeparea.operators import bridge, reading, user
from sweeparea.operators.linear.scan import StreamScan
from sweeparea.operators.state.sweep import Sweep
from sweeparea.operators.values.bag import BAG, TS, N
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.operators.values.keys import needs_canonical
from sweeparea.operators.values.netting import gathered
from sweeparea.operators.windows import TimeWindow, UserWindow, window
from sweeparea.operators.windows.window import Window
from sweeparea.spark_jobs.evaluation.encode import Encoder
from sweeparea.spark_jobs.evaluation.runners.window_rows import WindowRows
from sweeparea.spark_jobs.evaluation.running import Bags, Runner, RunningSlice, ids_of
from sweeparea.spark_jobs.evaluation.sweeping import Sweeps
from sweeparea.spark_jobs.spark import frames, zone_guards
from sweeparea.spark_jobs.spark.frames import fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Windows(Runner[Window]):
    """Any window over a stream."""

    def __init__(self, slice: RunningSlice, bags: Bags, sweeps: Sweeps, encoder: Encoder) -> None:
        super().__init__(slice, bags)
        self.sweeps, self.encoder = sweeps, encoder

    def new(self, node: Window) -> DataFrame | None:
        if isinstance(node.spec, TimeWindow):
            return self._of_time(node, self._of_panes(node, self.bags.new(node.input)))
        return self._user(node) if isinstance(node.spec, UserWindow) else self._swept(node)

    def held(self, node: Window) -> DataFrame | None:
        return self.encoder.held(node, self._of_time(node, self.bags.past(node.input, node.spec.reach)))

    def pipe(self, node: Window) -> bridge.Pipe | None:
        """Windows of which each instant tells its interval are seen through where elements are read."""
        spec, below = node.spec, node.input
        if not isinstance(spec, TimeWindow) or id(below) in self.slice.once_computed:
            return None
        bounds = None if node.bounds is None else (node.bounds[0].id, node.bounds[1].id)
        if not reading.seen_by(spec, bounds is not None):
            return None
        if isinstance(below, StreamScan):
            return self.slice.reader.pipe(below, self.slice.partitions, spec, bounds)
        elements, names = self.bags.pipe(below), [*ids_of(below), *BAG]
        clock = self.slice.reader.time.clock
        through = partial(reading.through, window=spec, bounds=bounds, clock=clock)
        return None if elements is None else elements.mapped(through, names, [*names, *(bounds or ())])

    def empty(self, node: Window) -> DataFrame:
        below, instant = self.bags.empty(node.input), self.slice.reader.instant_sql
        if isinstance(node.spec, TimeWindow):
            return window.apply(node, below, instant)
        return below.selectExpr(*ids_of(node.input), *(f"{instant(TS)} AS {c.id}" for c in node.bounds or ()), *BAG)

    def _of_time(self, node: Window, stream: DataFrame | None) -> DataFrame | None:
        guard = partial(zone_guards.guarded_text, self.slice.spark)
        return None if stream is None else window.apply(node, stream, self.slice.reader.instant_sql, guard)

    def _of_panes(self, node: Window, stream: DataFrame | None) -> DataFrame | None:
        """Elements with equal values that lie in the same buckets as one row, before it becomes a row for each bucket.
        Only where equal values are the same: an expression above may tell 0.0 from -0.0.
        """
        pane = node.pane_sql(TS)
        if stream is None or pane is None or self.slice.partitions == 1:
            return stream
        ids = ids_of(node.input)
        rows = stream.selectExpr(*ids, f"{pane} AS {TS}", N)
        schema = pa.schema(fields(rows, rows.columns))
        if any(needs_canonical(f.type) for f in schema):
            return stream
        return frames.mapped(self.slice.spark, rows, bridge.CombineTask(gathered, schema), schema)

    def _swept(self, node: Window) -> DataFrame | None:
        op, rows = self.name(node), WindowRows(node)
        bag = self.bags.new(node.input)
        if bag is None and self.sweeps.idle(op, rows.partition):
            return None
        shown = rows.raw(bag if bag is not None else self.bags.empty(node.input))
        schema = pa.schema(fields(shown, shown.columns))
        record = [schema.field(c) for c in rows.ids]
        output = pa.schema([*record, *(pa.field(b, pa.int64()) for b in rows.bounds), *BAG_FIELDS])
        sweep = Sweep(tuple(rows.partition), schema, output, rows.due(self.slice.areas.lazily), rows.run())
        swept = self.sweeps.swept(op, None if bag is None else shown, sweep)
        bounds = zip(rows.bounds, node.bounds or (), strict=False)
        stamped = (f"{self.slice.reader.instant_sql(tick)} AS {column.id}" for tick, column in bounds)
        return swept.selectExpr(*rows.ids, *stamped, *BAG)

    def _user(self, node: Window) -> DataFrame | None:
        bag, rows = self.bags.new(node.input), WindowRows(node)
        if bag is None:
            return None
        shown = rows.raw(bag)
        schema = pa.schema(fields(shown, shown.columns))
        output = pa.schema([*(schema.field(c) for c in rows.ids), *BAG_FIELDS])
        task = bridge.MapTask(rows.function(self._registered), schema, output)
        return frames.mapped(self.slice.spark, shown, task, output)

    def _registered(self, name: str) -> Any:
        return user.loaded(next(f for f in self.slice.plan.functions if f.name == name))
