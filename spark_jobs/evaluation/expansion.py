"""Snapshot expansion on Spark: what each kind of node needs of its rows, and its SQL over one segment after another.

``operators/sweeps/snapshot.py`` says what is done and why it is exact. Here a node's keys, arguments and orders become columns
of the rows (``raw``), and its SQL is evaluated once over the expanded rows, with the segment as a grouping of its own
(``evaluate``): ``GROUP BY`` for aggregates, ``PARTITION BY`` for window functions.
"""

from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators import bridge, user
from sweeparea.operators.plan.logical import Aggregate, AggregateCall, Analytic, Node, UserFunction, WindowFunction
from sweeparea.operators.sweeps.snapshot import PRESENT, rank_column
from sweeparea.operators.user_code.user_aggregate import UserAggregate
from sweeparea.operators.values import lists
from sweeparea.operators.values.bag import BAG
from sweeparea.spark_jobs.evaluation.aggregate_sql import Call, Value, value_of
from sweeparea.spark_jobs.evaluation.keyed_rows import KeyedRows
from sweeparea.spark_jobs.spark import frames
from sweeparea.tables.log.schema import ddl_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Users = Callable[[str], UserAggregate | None]
"""The user's aggregate of a name, if it is one."""


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


class AggregateExpansion(Expansion):
    """Any aggregates of a group: ``GROUP BY key, segment``."""

    def __init__(self, node: Aggregate, users: Users) -> None:
        super().__init__()
        self.users = users
        self.node, self.global_ = node, node.global_
        self.keys = {column.id: expr.sql for column, expr in node.keys}
        self._calls = [(column.id, self._call(call)) for column, call in node.calls]

    def _call(self, call: AggregateCall) -> Call:
        given = [e for e in (call.argument, *call.extra) if e is not None]
        # constants stay where they are: percentages and delimiters must be literals to Spark
        arguments = [self.column(e) if e is call.argument or e.columns else f"({e.sql})" for e in given]
        tests = [f"`{PRESENT}`"] if self.global_ else []
        if call.filter is not None:
            tests.append(self.column(call.filter))
        ranked = call.order and call.function not in ("PERCENTILE_CONT", "PERCENTILE_DISC", "MODE")
        return Call(
            call.function,
            tuple(arguments),
            (),
            " AND ".join(tests) or None,
            call.distinct,
            self.rank(call.order) if ranked else None,
            bool(call.order) and call.order[0].descending,
            call.ignore_nulls,
            user=self.users(call.function),
        )

    def evaluate(self, expanded: DataFrame) -> DataFrame:
        from pyspark.sql.functions import expr

        values = {name: value_of(typed) for name, typed in zip(*_typed(self._calls, expanded), strict=True)}
        grouped = expanded.groupBy(*self.segment).agg(*(expr(f"{v.sql} AS `{name}`") for name, v in values.items()))
        shown = grouped.selectExpr(*(f"`{c.id}`" for c in self.node.columns), *BAG)
        return self.finished(shown, values)


class AnalyticExpansion(Expansion):
    """Window functions of one PARTITION BY: ``OVER (PARTITION BY key, segment ..)``."""

    def __init__(self, node: Analytic, users: Users) -> None:
        super().__init__()
        self.users = users
        self.node = node
        self.keys = {f"__k{i}": e.sql for i, e in enumerate(node.calls[0][1].partition)}
        self.columns = {c.id: f"`{c.id}`" for c in node.input.columns}
        self._calls = [(column.id, self._call(call)) for column, call in node.calls]

    def _call(self, call: WindowFunction) -> Call:
        over = [f"PARTITION BY {', '.join(self.segment)}"]
        if call.order:
            over.append(f"ORDER BY {self._order(call)}")
        over.append(call.frame)
        return Call(
            call.function,
            tuple(f"({e.sql})" for e in call.arguments),
            (),
            None if call.filter is None else f"({call.filter.sql})",
            call.distinct,
            ignore_nulls=call.ignore_nulls,
            over=f" OVER ({' '.join(over)})",
            user=self.users(call.function),
        )

    def _order(self, call: WindowFunction) -> str:
        """Ranks order like the values do, and equal ones are peers; only offsets of a RANGE need the value itself."""
        if call.frame.upper().startswith("RANGE") and re.search(r"\d|INTERVAL|\(", call.frame, re.IGNORECASE):
            [key] = call.order
            nulls = "FIRST" if key.nulls_first else "LAST"
            return f"({key.expr.sql}) {'DESC' if key.descending else 'ASC'} NULLS {nulls}"
        return self.rank(call.order)

    def evaluate(self, expanded: DataFrame) -> DataFrame:
        names, calls = _typed(self._calls, expanded)
        values = {name: _window_value(call) for name, call in zip(names, calls, strict=True)}
        shown = expanded.selectExpr(
            *(f"`{c.id}`" for c in self.node.input.columns),
            *(f"{value.sql} AS `{name}`" for name, value in values.items()),
            *BAG,
        )
        return self.finished(shown, values)


def users_of(functions: Iterable[UserFunction]) -> Users:
    """The users' aggregates among a plan's functions, by their names."""
    known = {f.name.lower(): f for f in functions if f.kind == "aggregate"}

    def find(name: str) -> UserAggregate | None:
        f = known.get(name.lower())
        return None if f is None else UserAggregate(f.name, user.loaded(f), frames.arrow_type(f.type))

    return find


def expansion_of(node: Node, functions: Iterable[UserFunction] = ()) -> Expansion:
    """How a node runs by snapshot expansion; ``functions`` are the plan's."""
    users = users_of(functions)
    match node:
        case Aggregate():
            return AggregateExpansion(node, users)
        case Analytic():
            return AnalyticExpansion(node, users)
    raise TypeError(f"no snapshot expansion of {type(node).__name__}")


_RANKS = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE"})
_OWN = _RANKS | {"LAG", "LEAD", "NTH_VALUE", "FIRST", "LAST"}
"""Functions of the order, which Spark evaluates over ranks as they are."""


def _window_value(call: Call) -> Value:
    # a list's elements come in the order of the frame, and MAX_BY has a second argument without ties (cql/binding/select/analytic.py)
    if call.function not in (*_OWN, "COLLECT_LIST", "COLLECT_SET", "LISTAGG", "MAX_BY", "MIN_BY"):
        return value_of(call)
    if call.function in _OWN and call.condition is None:
        nulls = " IGNORE NULLS" if call.ignore_nulls else ""
        return Value(f"{call.function}({', '.join(call.arguments)}){nulls}{call.over}")
    if call.function in ("MAX_BY", "MIN_BY"):
        value, by, *rest = call.arguments
        return Value(f"{call.function}({', '.join((value, call.only(by), *rest))}){call.over}")
    if call.function == "LISTAGG":
        items = f"collect_list(CAST({call.value} AS STRING)){call.over}"
        delimiter = call.arguments[1] if len(call.arguments) > 1 else "''"
        return Value(f"IF(size({items}) = 0, NULL, array_join({items}, {delimiter}))")
    if call.function in ("FIRST", "LAST"):
        # the value beside a flag: a row that does not count is skipped, a NULL that counts is not
        kept = call.only(f"named_struct('v', {call.arguments[0]})", *_not_null(call))
        return Value(f"{call.function}({kept}) IGNORE NULLS{call.over}.v")
    return Value(f"{call.function}({call.value}){call.over}")


def _not_null(call: Call) -> tuple[str, ...]:
    return (f"{call.arguments[0]} IS NOT NULL",) if call.ignore_nulls else ()


def _typed(calls: Sequence[tuple[str, Call]], frame: DataFrame) -> tuple[list[str], list[Call]]:
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
