"""Aggregates of frames on Spark (``operators/ordered/framed.py``): broken into base aggregates and put together again
as those of groups (``grouping.py``).
"""

from __future__ import annotations

import dataclasses
import re
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators.aggregates.call import AggregateCall
from sweeparea.operators.ordered import framed
from sweeparea.operators.ordered.analytic import Analytic
from sweeparea.operators.ordered.framed import (
    OF_ROWS,
    FrameBound,
    Framed,
    FramedCall,
    FramedSpec,
    FrameEdge,
    Pick,
    PlacedFrame,
    WrittenFrame,
    frame_of,
    rows_behind,
)
from sweeparea.operators.ordered.window_function import WindowFunction, whole_number
from sweeparea.operators.sql.expressions import Column, Expr, SortKey
from sweeparea.operators.state.due import bag_due
from sweeparea.operators.state.sweep import Sweep
from sweeparea.operators.user_code.user_aggregate import UserAggregate
from sweeparea.operators.values.bag import BAG
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.spark_jobs.evaluation.grouped.analytic import AnalyticExpansion
from sweeparea.spark_jobs.evaluation.grouped.expansion import Expansion, Expansions
from sweeparea.spark_jobs.evaluation.grouped.grouping import Grouping, Users
from sweeparea.spark_jobs.evaluation.grouped.keyed_rows import KeyedRows, lie_by
from sweeparea.spark_jobs.evaluation.running import Bags, Runner, RunningSlice
from sweeparea.spark_jobs.evaluation.sweeping import Sweeps
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.errors import ArgumentTypeError, UnheldTypeError
from sweeparea.spark_jobs.spark.frames import fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COLUMN = re.compile(r"\(`?([A-Za-z_][A-Za-z0-9_]*)`?\)")


class FramedRows(KeyedRows):
    """The rows of one node's sweep, its calls, and the node's columns from what it puts out."""

    def __init__(self, node: Framed, empty: DataFrame, users: Users) -> None:
        super().__init__()
        self.node, self._empty = node, empty
        self.keys = {f"__k{i}": e.sql for i, e in enumerate(node.calls[0][1].partition)}
        self.columns = {c.id: f"`{c.id}`" for c in node.input.columns}
        self.rank(node.order)
        self.calls: list[FramedCall] = []
        self.values: list[pa.Field] = []
        self._shown: dict[str, str] = {}
        frames_: dict[PlacedFrame, list[tuple[Column, WindowFunction]]] = {}
        for column, call in node.calls:
            frame = self._frame(call)
            if call.running:
                self._user(column, call, frame, users(call.function))
            elif call.function in OF_ROWS:
                self._pick(column, call, frame)
            else:
                frames_.setdefault(frame, []).append((column, call))
        for i, (frame, calls) in enumerate(frames_.items()):
            self._aggregate(f"__b{i}_", frame, calls)

    # -- frames --------------------------------------------------------------------------------------------------------

    def _frame(self, call: WindowFunction) -> PlacedFrame:
        written = frame_of(call)
        assert written is not None
        if written.whole:
            return PlacedFrame(False, None, None)
        if not written.rows:
            low, high = self._reached(call, written)
            return PlacedFrame(False, low, high, len(call.order))
        low, high = (None if edge is None else rows_behind(edge) for edge in (written.low, written.high))
        return PlacedFrame(True, low, high)

    def _reached(
        self, call: WindowFunction, written: WrittenFrame
    ) -> tuple[int | FrameBound | None, int | FrameBound | None]:
        if not written.offsets:
            return None if written.low is None else 0, None if written.high is None else 0
        [key] = call.order
        # whether keys and offsets go together is Spark's to say
        over = f"ORDER BY {key.expr.sql}{' DESC' if key.descending else ''} {call.frame}"
        [kind, _] = self._empty.selectExpr(key.expr.sql, f"COUNT(1) OVER ({over})").schema
        type_ = kind.dataType.simpleString()
        return self._bound(key, written.low, type_), self._bound(key, written.high, type_)

    def _bound(self, key: SortKey, edge: FrameEdge | None, kind: str) -> int | FrameBound | None:
        """The column of the keys where frames begin or end: NULL where that is past what the type holds."""
        if edge is None or not edge.offset:
            return None if edge is None else 0
        numeric = kind.partition("(")[0] not in ("date", "timestamp", "timestamp_ntz")
        offset = f"CAST(({edge.offset}) AS {kind})" if numeric else f"({edge.offset})"
        added = "try_subtract" if edge.preceding != key.descending else "try_add"
        sql = f"try_cast({added}(({key.expr.sql}), {offset}) AS {kind})"
        return FrameBound(self.column(Expr(sql)).strip("`"), edge.preceding)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _aggregate(self, result: str, frame: PlacedFrame, calls: list[tuple[Column, WindowFunction]]) -> None:
        grouping = Grouping((), [(column, _in_a_group(call)) for column, call in calls], result)
        given = {i: self.column(Expr(_plain(sql))).strip("`") for i, sql in grouping.given(self._empty).items()}
        shown = self._empty.selectExpr(*(f"({self.columns[name]}) AS a{i}" for i, name in given.items()))
        types = {field.name: field.type for field in fields(shown, shown.columns)}
        for i, call in enumerate(grouping.calls(types)):
            argument = None if call.argument is None else given[i if call.column is None else call.column]
            self.calls.append(FramedCall(call.output, frame, call, argument))
            self.values.append(pa.field(call.output, call.type))
        self._shown |= {c.id: sql for (c, _), sql in zip(calls, grouping.outputs(types), strict=True)}

    def _pick(self, column: Column, call: WindowFunction, frame: PlacedFrame) -> None:
        value, *more = call.arguments
        typed = self._empty.selectExpr(f"{call.sql} AS value")
        [field] = fields(typed, typed.columns)
        kind = frames.spark_type(field.type)
        tests = [f"({call.filter.sql})"] if call.filter is not None else []
        tests += [f"({value.sql}) IS NOT NULL"] if call.ignore_nulls else []
        counted = self.column(Expr(f"coalesce({' AND '.join(tests)}, FALSE)"))
        names = [self.column(Expr(f"CAST(({e.sql}) AS {kind})")).strip("`") for e in (value, *more[1:])]
        skip, last = 0, call.function == "LAST"
        if call.function == "NTH_VALUE":
            skip = (whole_number(more[0]) or 1) - 1
        elif call.function in ("LAG", "LEAD"):
            offset = (1 if not more else whole_number(more[0]) or 1) * (-1 if call.function == "LAG" else 1)
            last, skip = offset < 0, abs(offset) - 1
            frame = PlacedFrame(True, None, -1) if last else PlacedFrame(True, 1, None)
        name = f"__p{len(self.calls)}"
        default = names[1] if len(names) > 1 else None
        self.calls.append(FramedCall(name, frame, Pick(names[0], counted.strip("`"), skip, last, default)))
        self.values.append(pa.field(name, field.type))
        self._shown[column.id] = f"{name} AS {column.id}"

    def _user(self, column: Column, call: WindowFunction, frame: PlacedFrame, user: UserAggregate | None) -> None:
        assert user is not None
        fields_ = [f"'a{i}', ({e.sql})" for i, e in enumerate(call.arguments)]
        given = f"named_struct({', '.join(fields_)})"
        argument = self.column(Expr(given if call.filter is None else f"IF(({call.filter.sql}), {given}, NULL)"))
        name = f"__u{len(self.calls)}"
        self.calls.append(FramedCall(name, frame, user, argument.strip("`")))
        self.values.append(pa.field(name, user.type))
        self._shown[column.id] = f"{name} AS {column.id}"

    def swept(self, start: int) -> FramedSpec:
        shown = tuple(c.id for c in self.node.input.columns)
        return FramedSpec(self.spec(start), shown, tuple(self.calls))

    @property
    def outputs(self) -> list[str]:
        """The node's columns, as SQL over what the sweep puts out."""
        kept = (f"`{c.id}`" for c in self.node.input.columns)
        return [*kept, *(self._shown[column.id] for column, _ in self.node.calls), *BAG]


class Frames(Runner[Framed]):
    """Aggregates of frames. Those over values that no table holds, as intervals, are expanded."""

    def __init__(self, slice: RunningSlice, bags: Bags, sweeps: Sweeps) -> None:
        super().__init__(slice, bags)
        self.sweeps = sweeps
        self.expansions = _Expanded(slice, bags, sweeps)
        self.users = self.expansions.users

    def _rows(self, node: Framed) -> FramedRows | None:
        try:
            return FramedRows(node, self.bags.empty(node.input), self.users)
        except (ArgumentTypeError, UnheldTypeError):
            return None

    def empty(self, node: Framed) -> DataFrame:
        how = self._rows(node)
        if how is None:
            return self.expansions.empty(node)
        kept = (f"`{c.id}`" for c in node.input.columns)
        values = (f"CAST(NULL AS {frames.spark_type(f.type)}) AS {f.name}" for f in how.values)
        return self.bags.empty(node.input).selectExpr(*kept, *values, *BAG).selectExpr(*how.outputs)

    def new(self, node: Framed) -> DataFrame | None:
        how = self._rows(node)
        if how is None:
            return self.expansions.new(node)
        op, keys, bag = self.name(node), list(how.keys), self.bags.new(node.input)
        if bag is None and self.sweeps.idle(op, keys):
            return None
        shown = how.raw(bag if bag is not None else self.bags.empty(node.input))
        schema = pa.schema(fields(shown, shown.columns))
        output = pa.schema([*(schema.field(c.id) for c in node.input.columns), *how.values, *BAG_FIELDS])
        run = partial(framed.sweep, spec=how.swept(self.slice.plan.start))
        sweep = Sweep(tuple(keys), schema, output, bag_due, run)
        source = None if bag is None else how.source(self.bags.pipe(node.input))
        return self.sweeps.swept(op, None if bag is None else shown, sweep, source).selectExpr(*how.outputs)

    def spread_by(self, node: Framed) -> frozenset[str] | None:
        return lie_by(self.sweeps, self.name(node), node.calls[0][1].partition, node.input)


class _Expanded(Expansions[Framed]):
    """Aggregates of frames by snapshot expansion."""

    def expansion(self, node: Framed) -> Expansion:
        return AnalyticExpansion(Analytic(node.input, node.calls), self.users)


def _in_a_group(call: WindowFunction) -> AggregateCall:
    """The call as one of an aggregation."""
    argument, extra = (*call.arguments, None)[0], call.arguments[1:]
    found = AggregateCall(call.function, argument, extra, filter=call.filter)
    if call.function in ("MAX_BY", "MIN_BY"):
        # by a number the rows of one instant differ (binding/calls/window_functions.py), not those of several
        assert argument is not None
        return dataclasses.replace(found, order=(SortKey(extra[0], call.function == "MAX_BY"), SortKey(argument)))
    return found.without_filter()


def _plain(sql: str) -> str:
    """``sql``, or the column that stands in brackets."""
    found = _COLUMN.fullmatch(sql)
    return sql if found is None else f"`{found[1]}`"
