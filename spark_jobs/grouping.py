"""Grouping as the sweep sees it: SQL's aggregates broken into exact base aggregates, and put together again by Spark
SQL.

AVG(x) is the exact SUM(x) over COUNT(x) (semantics: that sum divided by the count); all else is a base aggregate
itself. Equal base aggregates are computed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators.logical import Aggregate, AggregateCall, Expr
from sweeparea.spark_jobs import frames
from sweeparea.spark_jobs.errors import ArgumentTypeError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Base:
    """A base aggregate: ``averaged`` is the SUM below an AVG, whose result is a DOUBLE also over integers."""

    function: str
    argument: Expr | None
    averaged: bool = False

    @property
    def text(self) -> str | None:
        """The argument as its author wrote it."""
        return None if self.argument is None else self.argument.text or self.argument.sql


class Grouping:
    """The base aggregates of an Aggregate node: ``bases[i]`` has its argument in column ``a{i}`` and its result in
    ``b{i}``.
    """

    def __init__(self, node: Aggregate) -> None:
        self.node = node
        self.keys = [c.id for c, _ in node.keys]
        self.bases: list[Base] = []
        for _, call in node.calls:
            for base in _split(call):
                if base not in self.bases:
                    self.bases.append(base)
        self.arguments = [f"a{i}" for i, base in enumerate(self.bases) if base.argument is not None]

    def raw(self, bag: DataFrame, extra: list[str]) -> DataFrame:
        """Keys, arguments and ``extra`` columns of the input. Text summed as a number is cast as Spark would."""
        keys = [f"({e.sql}) AS {c.id}" for c, e in self.node.keys]
        arguments = [
            f"{_as_number(base, bag)} AS a{i}" for i, base in enumerate(self.bases) if base.argument is not None
        ]
        return bag.selectExpr(*keys, *arguments, *extra)

    def result_types(self, types: Mapping[str, pa.DataType]) -> list[pa.DataType]:
        """Arrow types of ``b0``, ``b1``, .. from the arguments' types."""
        return [self._result_type(base, types.get(f"a{i}")) for i, base in enumerate(self.bases)]

    def _result_type(self, base: Base, argument: pa.DataType | None) -> pa.DataType:
        if base.function == "COUNT" or argument is None:
            return pa.int64()
        if base.function in ("MIN", "MAX"):
            if pa.types.is_map(argument):
                raise ArgumentTypeError(f"{base.function}({base.text}) is over a map; maps have no order in Spark SQL")
            return argument
        if base.function == "SINGLE_VALUE":
            return argument
        if pa.types.is_decimal(argument):
            return pa.decimal128(min(38, argument.precision + 10), argument.scale)
        if pa.types.is_floating(argument):
            return pa.float64()
        if pa.types.is_integer(argument):
            return pa.float64() if base.averaged else pa.int64()
        name = "AVG" if base.averaged else "SUM"
        raise ArgumentTypeError(
            f"{name}({base.text}) needs a number, but its argument is {frames.spark_type(argument).upper()}; "
            "cast it to a numeric type"
        )

    def outputs(self, types: Mapping[str, pa.DataType]) -> list[str]:
        """Spark SQL for the node's calls over ``b0``, ``b1``, .."""
        return [f"{self._final(call, types)} AS {column.id}" for column, call in self.node.calls]

    def _final(self, call: AggregateCall, types: Mapping[str, pa.DataType]) -> str:
        at = [self.bases.index(base) for base in _split(call)]
        if call.function != "AVG":
            return f"b{at[0]}"
        total, count = (f"b{i}" for i in at)
        argument = types[f"a{at[0]}"]
        if pa.types.is_decimal(argument):
            # Spark's type of AVG over DECIMAL(p, s)
            kind = f"DECIMAL({min(38, argument.precision + 4)}, {min(38, argument.scale + 4)})"
            return f"IF({count} = 0L, CAST(NULL AS {kind}), CAST({total} / CAST({count} AS DECIMAL(20, 0)) AS {kind}))"
        return f"IF({count} = 0L, CAST(NULL AS DOUBLE), {total} / CAST({count} AS DOUBLE))"


def _split(call: AggregateCall) -> tuple[Base, ...]:
    if call.function == "AVG":
        return Base("SUM", call.argument, averaged=True), Base("COUNT", call.argument)
    return (Base(call.function, call.argument),)


def _as_number(base: Base, bag: DataFrame) -> str:
    assert base.argument is not None
    sql = f"({base.argument.sql})"
    if base.function == "SUM" and bag.selectExpr(sql).schema[0].dataType.typeName() in ("string", "varchar", "char"):
        return f"CAST({sql} AS DOUBLE)"
    return sql
