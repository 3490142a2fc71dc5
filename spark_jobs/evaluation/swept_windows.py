"""Windows in which later elements decide, and user-defined ones (``sweep_windows.py`` hands their rows over)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sweeparea.operators import bridge, user
from sweeparea.operators.plan.logical import Window
from sweeparea.operators.values.bag import BAG
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.spark_jobs.evaluation.sweep_windows import WindowRows
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.frames import fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sweeparea.spark_jobs.evaluation.evaluate import Evaluation


class SweptWindows:
    """These windows' part of an ``Evaluation``."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._of = evaluation

    def swept(self, node: Window) -> DataFrame | None:
        op, rows = self._of.names[id(node)], WindowRows(node)
        bag = self._of.new(node.input)
        if bag is None and self._of.sweeps.idle(op, rows.partition):
            return None
        shown = rows.raw(bag if bag is not None else self._of.shape.bag(node.input))
        schema = pa.schema(fields(shown, shown.columns))
        record = [schema.field(c) for c in rows.ids]
        output = pa.schema([*record, *(pa.field(b, pa.int64()) for b in rows.bounds), *BAG_FIELDS])
        task = partial(self._of.sweeps.sweep_task, rows.sweep(), schema, output)
        given = None if bag is None else shown
        swept = self._of.sweeps.swept(
            op, given, schema, rows.partition, rows.due(self._of.areas.lazily), task, frames.ddl(output)
        )
        bounds = zip(rows.bounds, node.bounds or (), strict=False)
        stamped = (f"{self._of.reader.instant_sql(tick)} AS {column.id}" for tick, column in bounds)
        return swept.selectExpr(*rows.ids, *stamped, *BAG)

    def user(self, node: Window) -> DataFrame | None:
        bag, rows = self._of.new(node.input), WindowRows(node)
        if bag is None:
            return None
        shown = rows.raw(bag)
        schema = pa.schema(fields(shown, shown.columns))
        output = pa.schema([*(schema.field(c) for c in rows.ids), *BAG_FIELDS])
        task = bridge.MapTask(rows.function(self._registered), schema, output)
        return shown.mapInArrow(task, frames.ddl(output))

    def _registered(self, name: str) -> Any:
        return user.loaded(next(f for f in self._of.plan.functions if f.name == name))
