"""Snapshot expansion on Spark: what each kind of node needs of its rows, and its SQL over one segment after another.

``operators/ordered/snapshot.py`` says what is done and why it is exact. Here a node's keys, arguments and orders become
columns of the rows (``raw``), and its SQL is evaluated once over the expanded rows, with the segment as a grouping of
its own (``evaluate``): ``GROUP BY`` for aggregates, ``PARTITION BY`` for window functions.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from sweeparea.operators import bridge, user
from sweeparea.operators.ordered import snapshot
from sweeparea.operators.ordered.snapshot import PRESENT, rank_column
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import UserFunction, UserKind
from sweeparea.operators.state.due import bag_due
from sweeparea.operators.state.sweep_area import SweepArea
from sweeparea.operators.user_code.user_aggregate import UserAggregate
from sweeparea.operators.values import lists
from sweeparea.operators.values.bag import BAG
from sweeparea.spark_jobs.evaluation.grouped.aggregate_sql import SqlCall, Value
from sweeparea.spark_jobs.evaluation.grouped.grouping import Users
from sweeparea.spark_jobs.evaluation.grouped.keyed_rows import KeyedRows
from sweeparea.spark_jobs.evaluation.running import Bags, Runner, RunningSlice, filled
from sweeparea.spark_jobs.evaluation.sweeping import Sweeps
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.frames import concatenated, fields
from sweeparea.tables.log.schema import ddl_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Expansion(KeyedRows, ABC):
    """How one node runs by snapshot expansion: its rows, and its SQL over the expanded ones."""

    def expanded(self, bag: DataFrame) -> DataFrame:
        """The rows of a bag in the shape of expanded ones: for their types."""
        ranks = (f"0L AS {rank_column(i)}" for i in range(len(self.orders)))
        present = [f"TRUE AS {PRESENT}"] if self.global_ else []
        names = (f"`{name}`" for name in (*self.keys, *self.columns))
        return self.raw(bag).selectExpr(*names, *ranks, *present, *BAG)

    @abstractmethod
    def evaluate(self, expanded: DataFrame) -> DataFrame:
        """The node's bag from the expanded rows."""

    @property
    def segment(self) -> list[str]:
        """The columns that tell segments apart."""
        return [*self.keys, *BAG]

    def finished(self, frame: DataFrame, values: Mapping[str, Value]) -> DataFrame:
        """``frame`` with the lists among its ``values`` evaluated."""
        functions = {name: value.then for name, value in values.items() if value.then is not None}
        if not functions:
            return frame
        given = _schema(frame)
        output = lists.finished_schema(given, functions)
        task = bridge.MapTask(partial(lists.finish, functions=functions), given, output)
        return frame.mapInArrow(task, frames.ddl(output))


def users_of(functions: Iterable[UserFunction]) -> Users:
    """The users' aggregates among a plan's functions, by their names."""
    known = {f.name.lower(): f for f in functions if f.kind == UserKind.AGGREGATE}

    def find(name: str) -> UserAggregate | None:
        f = known.get(name.lower())
        return None if f is None else UserAggregate(f.name, user.loaded(f), frames.arrow_type(f.type))

    return find


def typed(calls: Sequence[tuple[str, SqlCall]], frame: DataFrame) -> tuple[list[str], list[SqlCall]]:
    """The calls with their arguments' types: one analysis."""
    given = [(i, sql) for i, (_, call) in enumerate(calls) for sql in call.arguments]
    kinds = frame.selectExpr(*(f"{sql} AS t{at}" for at, (_, sql) in enumerate(given))).schema if given else []
    types: dict[int, list[pa.DataType]] = {}
    for (i, _), field in zip(given, kinds, strict=True):
        kind = ddl_type(field.dataType)
        types.setdefault(i, []).append(pa.null() if kind == "void" else _arrow(kind))
    typed = [dataclasses.replace(call, types=tuple(types.get(i, ()))) for i, (_, call) in enumerate(calls)]
    return [name for name, _ in calls], typed


def _arrow(kind: str) -> pa.DataType:
    from sweeparea.infra.errors import SweepAreaError

    try:
        return frames.arrow_type(kind)
    except SweepAreaError:
        return pa.null()  # a type that no table holds: an interval, say


def _schema(frame: DataFrame) -> pa.Schema:
    return pa.schema(frames.fields(frame, frame.columns))


X = TypeVar("X", bound=Node)


class Expansions(Runner[X]):
    """Nodes of one kind without an incremental operator, by snapshot expansion (``operators/ordered/snapshot.py``)."""

    def __init__(self, slice: RunningSlice, bags: Bags, sweeps: Sweeps) -> None:
        super().__init__(slice, bags)
        self.sweeps = sweeps
        self.users = users_of(slice.plan.functions)

    @abstractmethod
    def expansion(self, node: X) -> Expansion:
        """How the node runs."""

    def empty(self, node: X) -> DataFrame:
        how = self.expansion(node)
        return how.evaluate(how.expanded(self.bags.empty(node.inputs[0])))

    def new(self, node: X) -> DataFrame | None:
        op, how = self.name(node), self.expansion(node)
        [below], keys = node.inputs, list(how.keys)
        bag = self.bags.new(below)
        if bag is None and self.sweeps.idle(op, keys) and not (how.global_ and self.slice.reader.first):
            return None
        shown = how.raw(bag if bag is not None else self.bags.empty(below))
        schema = pa.schema(fields(shown, shown.columns))
        rows = [shown] if bag is not None else []
        if how.global_:  # a row that counts nothing, so that the expansion runs when nothing else has arrived
            rows.append(filled(self.slice.spark, self.slice.spark.range(1), schema, dict.fromkeys(BAG, "0L")))
        spec = how.spec(self.slice.plan.start)
        output = snapshot.expanded_schema(schema, spec)
        new = concatenated(rows) if rows else None

        def task(area: bridge.Target | SweepArea) -> bridge.ExpandTask:
            return bridge.ExpandTask(spec, self.slice.h0, self.slice.h1, schema, output, area, self.slice.attempt)

        return how.evaluate(self.sweeps.through(op, new, schema, keys, bag_due, task, output))
