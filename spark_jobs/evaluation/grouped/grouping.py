"""Grouping as the sweep sees it: SQL's aggregates broken into base aggregates (``operators/aggregates/calls.py``), and
put together again by Spark SQL.

AVG(x) is the exact SUM(x) over COUNT(x) (semantics: that sum divided by the count); LAST, MAX_BY and MIN_BY are FIRST
in other orders; percentiles of an array are one each. All else is a base aggregate itself. Equal base aggregates are
computed once, and those over one argument share its state where it is the same.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators.aggregates.call import AggregateCall
from sweeparea.operators.aggregates.calls import BaseCall
from sweeparea.operators.aggregates.moment_sums import powers_of
from sweeparea.operators.aggregates.moments import PAIRS
from sweeparea.operators.aggregates.names import ORDERED, SUMS_OF_POWERS, TOTALS
from sweeparea.operators.sql.expressions import Column, Expr, SortKey
from sweeparea.operators.user_code.user_aggregate import UserAggregate
from sweeparea.operators.values.order import OrderKey
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.deferred import types_of
from sweeparea.spark_jobs.spark.errors import ArgumentTypeError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Users = Callable[[str], UserAggregate | None]
"""The user's aggregate of a name, if it is one."""
_AVERAGES = {"AVG": "SUM", "TRY_AVG": "TRY_SUM"}
_PERCENTILES = {"PERCENTILE": "PERCENTILE", "PERCENTILE_CONT": "PERCENTILE", "PERCENTILE_DISC": "PERCENTILE_DISC"}
_BITS = ("BIT_AND", "BIT_OR", "BIT_XOR")
_STATES: Mapping[str, object] = {
    **dict.fromkeys(_PERCENTILES.values(), "numbers"),  # text among them is cast
    **dict.fromkeys(("MODE", *_BITS), "values"),
    **{function: powers_of(function) for function in SUMS_OF_POWERS},
    **dict.fromkeys(TOTALS, "sum"),
    "USER": "rows",
}
"""What is kept, where it does not depend on what is made of it."""
_DISTINCT_STATES = {**dict.fromkeys(TOTALS, "numbers"), "COUNT": "values"}
_NUMBER = r"(\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)D?"


@dataclass(frozen=True)
class Base:
    """A base aggregate: ``averaged`` is the SUM below an AVG, whose result is a DOUBLE also over integers.

    ``argument`` is the author's expression, ``sql`` what the sweep gets of it, where that differs.
    """

    function: str
    argument: Expr | None
    averaged: bool = False
    distinct: bool = False
    sql: str | None = None
    share: float = 0.5
    descending: bool = False
    order: tuple[OrderKey, ...] = ()
    user: UserAggregate | None = None

    @property
    def text(self) -> str | None:
        """The argument as its author wrote it."""
        return None if self.argument is None else self.argument.text or self.argument.sql

    @property
    def given(self) -> str:
        """SQL of the argument's column."""
        assert self.argument is not None
        return self.sql or f"({self.argument.sql})"

    @property
    def state(self) -> tuple:
        """Bases of one state share it: values and sums do not depend on what is made of them. What may yet be the first
        of an order does: FIRST and LAST, or MAX_BY and MIN_BY, forget different elements.
        """
        own = _STATES.get(self.function, (self.function, self.order))
        kept = _DISTINCT_STATES.get(self.function, own) if self.distinct else own
        return kept, self.distinct, self.given


class Grouping:
    """The base aggregates of an aggregation: ``bases[i]`` has its argument in column ``a{i}``, or where it shares
    state in that of base ``columns[i]``, and its result in ``b{i}``, or what stands for ``b``: ``result``.
    """

    def __init__(
        self,
        keys: Sequence[tuple[Column, Expr]],
        calls: Sequence[tuple[Column, AggregateCall]],
        result: str = "b",
        users: Users | None = None,
    ) -> None:
        self._keys, self._calls, self._result = keys, calls, result
        self.keys = [c.id for c, _ in keys]
        self.bases: list[Base] = []
        self._split = [_split(call, users) for _, call in calls]
        for base in (base for bases in self._split for base in bases):
            if base not in self.bases:
                self.bases.append(base)
        of = self._holders()
        self.columns = [None if j == i else j for i, j in enumerate(of)]
        self.arguments = [f"a{i}" for i, j in enumerate(of) if i == j and self.bases[i].argument is not None]

    def _holders(self) -> list[int | None]:
        """The base that keeps each one's state: a SUM keeps the COUNT of its argument too."""
        known: dict[tuple, int] = {}
        for i, base in enumerate(self.bases):
            if base.argument is not None:
                known.setdefault(base.state, i)
        found: list[int | None] = []
        for i, base in enumerate(self.bases):
            own = None if base.argument is None else known[base.state]
            if base.function == "COUNT" and own is not None and not base.distinct:
                own = known.get(("sum", False, base.given), own)
            found.append(i if own is None else own)
        return found

    def raw(self, bag: DataFrame, extra: list[str]) -> DataFrame:
        """Keys, arguments and ``extra`` columns of the input. Text summed as a number is cast as Spark would."""
        keys = [f"({e.sql}) AS {c.id}" for c, e in self._keys]
        arguments = [f"{sql} AS a{i}" for i, sql in self.given(bag).items()]
        return bag.selectExpr(*keys, *arguments, *extra)

    def given(self, bag: DataFrame) -> dict[int, str]:
        """SQL of the arguments, by the numbers of their columns."""
        return {i: _as_number(base, bag) for i, base in enumerate(self.bases) if self._holds(i)}

    def _holds(self, i: int) -> bool:
        return f"a{i}" in self.arguments

    def calls(self, types: Mapping[str, pa.DataType]) -> tuple[BaseCall, ...]:
        """The base aggregates as the sweep takes them, from the arguments' types."""
        return tuple(
            BaseCall(
                f"{self._result}{i}",
                base.function,
                result,
                base.text,
                self._argument_type(i, types),
                base.distinct,
                base.share,
                base.descending,
                base.order,
                self.columns[i],
                base.user,
            )
            for i, (base, result) in enumerate(zip(self.bases, self.result_types(types), strict=True))
        )

    def _argument_type(self, i: int, types: Mapping[str, pa.DataType]) -> pa.DataType | None:
        return types.get(f"a{i if self.columns[i] is None else self.columns[i]}")

    def result_types(self, types: Mapping[str, pa.DataType]) -> list[pa.DataType]:
        """Arrow types of ``b0``, ``b1``, .. from the arguments' types."""
        return [self._result_type(base, self._argument_type(i, types)) for i, base in enumerate(self.bases)]

    def _result_type(self, base: Base, argument: pa.DataType | None) -> pa.DataType:
        found = pa.int64() if argument is None else _RESULTS[base.function](base, argument)
        if found is not None:
            return found
        name = "AVG" if base.averaged else base.function
        raise ArgumentTypeError(
            f"{name}({base.text}) needs a {'whole ' if name.startswith('BIT_') else ''}number, but its argument is "
            f"{frames.spark_type(argument).upper()}; cast it to a numeric type"
        )

    def outputs(self, types: Mapping[str, pa.DataType]) -> list[str]:
        """Spark SQL for the node's calls over ``b0``, ``b1``, .."""
        calls = zip(self._calls, self._split, strict=True)
        return [f"{self._final(call, bases, types)} AS {column.id}" for (column, call), bases in calls]

    @property
    def plain(self) -> dict[str, str] | None:
        """The node's columns by the sweep's that they are; None where one is computed of several, or one of the
        sweep's is not shown.
        """
        at = [self.bases.index(bases[0]) if len(bases) == 1 else -1 for bases in self._split]
        if any(call.extra and _is_array(call.extra[0]) for _, call in self._calls if call.function in _PERCENTILES):
            return None
        if set(at) != set(range(len(self.bases))):
            return None
        shown = zip(self._calls, at, strict=True)
        return {key: key for key in self.keys} | {column.id: f"{self._result}{i}" for (column, _), i in shown}

    def finished(self, types: Mapping[str, pa.DataType]) -> tuple[dict[str, str], list[tuple[str, str, str]]] | None:
        """(the node's columns by what they are: the sweep's, or averages; averages by their sums and counts), where no
        other Spark SQL stands between; None: it does.
        """
        columns, averages = {key: key for key in self.keys}, []
        for (column, call), bases in zip(self._calls, self._split, strict=True):
            at = [self.bases.index(base) for base in bases]
            if call.function in _AVERAGES:
                argument = self._argument_type(at[0], types)
                if argument is not None and pa.types.is_decimal(argument):
                    return None
                name = f"avg{len(averages)}"
                averages.append((name, *(f"{self._result}{i}" for i in at)))
                columns[column.id] = name
            elif len(at) == 1 and not (call.function in _PERCENTILES and _is_array(call.extra[0])):
                columns[column.id] = f"{self._result}{at[0]}"
            else:
                return None
        return columns, averages

    def _final(self, call: AggregateCall, bases: tuple[Base, ...], types: Mapping[str, pa.DataType]) -> str:
        at = [self.bases.index(base) for base in bases]
        if call.function in _PERCENTILES and _is_array(call.extra[0]):
            listed = f"array({', '.join(f'{self._result}{i}' for i in at)})"
            return f"IF({self._result}{at[0]} IS NULL, NULL, {listed})" if at else "array()"
        if call.function not in _AVERAGES:
            return f"{self._result}{at[0]}"
        total, count = (f"{self._result}{i}" for i in at)
        argument = self._argument_type(at[0], types)
        if argument is not None and pa.types.is_decimal(argument):
            # Spark's type of AVG over DECIMAL(p, s)
            kind = f"DECIMAL({min(38, argument.precision + 4)}, {min(38, argument.scale + 4)})"
            return f"IF({count} = 0L, CAST(NULL AS {kind}), CAST({total} / CAST({count} AS DECIMAL(20, 0)) AS {kind}))"
        return f"IF({count} = 0L, CAST(NULL AS DOUBLE), {total} / CAST({count} AS DOUBLE))"


def _same(base: Base, argument: pa.DataType) -> pa.DataType:
    return argument


def _double(base: Base, argument: pa.DataType) -> pa.DataType:
    return pa.float64()


def _with_an_order(base: Base, argument: pa.DataType) -> pa.DataType:
    if pa.types.is_map(argument):
        raise ArgumentTypeError(f"{base.function}({base.text}) is over a map; maps have no order in Spark SQL")
    return argument


def _is_number(argument: pa.DataType) -> bool:
    return any(test(argument) for test in (pa.types.is_decimal, pa.types.is_floating, pa.types.is_integer))


def _sum_type(base: Base, argument: pa.DataType) -> pa.DataType | None:
    if pa.types.is_decimal(argument):
        return pa.decimal128(min(38, argument.precision + 10), argument.scale)
    if not _is_number(argument):
        return None
    return pa.float64() if base.averaged or pa.types.is_floating(argument) else pa.int64()


_RESULTS: Mapping[str, Callable[[Base, pa.DataType], pa.DataType | None]] = {
    "COUNT": lambda base, argument: pa.int64(),
    "USER": lambda base, argument: None if base.user is None else base.user.type,
    **dict.fromkeys(SUMS_OF_POWERS, _double),
    "FIRST": lambda base, argument: argument.field("v").type,
    **dict.fromkeys(("MIN", "MAX"), _with_an_order),
    **dict.fromkeys(("SINGLE_VALUE", "MODE"), _same),
    **dict.fromkeys(_PERCENTILES.values(), lambda base, argument: pa.float64() if _is_number(argument) else None),
    **dict.fromkeys(_BITS, lambda base, argument: argument if pa.types.is_integer(argument) else None),
    **dict.fromkeys(TOTALS, _sum_type),
}
"""Results' types of the base aggregates, from their arguments'; None: it is none that they take."""


def _split(call: AggregateCall, users: Users | None) -> tuple[Base, ...]:
    if call.running:
        return _rows(call, None if users is None else users(call.function))
    if call.argument is None:
        return (Base(call.function, None),)
    return _SPLIT[call.function](call, call.argument)


def _rows(call: AggregateCall, user: UserAggregate | None) -> tuple[Base, ...]:
    assert call.argument is not None
    fields = [f"'a{i}', ({e.sql})" for i, e in enumerate(call.given)]
    given = f"named_struct({', '.join(fields)})"
    shown = dataclasses.replace(call.argument, text=", ".join(e.text or e.sql for e in call.given))
    sql = given if call.filter is None else f"IF(({call.filter.sql}), {given}, NULL)"
    return (Base("USER", shown, distinct=call.distinct, sql=sql, user=user),)


def _itself(call: AggregateCall, argument: Expr) -> tuple[Base, ...]:
    return (Base(call.function, argument, distinct=call.distinct),)


def _whatever_is_distinct(call: AggregateCall, argument: Expr) -> tuple[Base, ...]:
    return (Base(call.function, argument),)


def _average(call: AggregateCall, argument: Expr) -> tuple[Base, ...]:
    total = Base(_AVERAGES[call.function], argument, averaged=True, distinct=call.distinct)
    return total, Base("COUNT", argument, distinct=call.distinct)


def _pair(call: AggregateCall, argument: Expr) -> tuple[Base, ...]:
    [second] = call.extra
    parts = f"named_struct('x', CAST(({argument.sql}) AS DOUBLE), 'y', CAST(({second.sql}) AS DOUBLE))"
    either = f"({argument.sql}) IS NULL OR ({second.sql}) IS NULL"
    shown = dataclasses.replace(argument, text=f"{argument.text or argument.sql}, {second.text or second.sql}")
    return (Base(call.function, shown, distinct=call.distinct, sql=f"IF({either}, NULL, {parts})"),)


def _of_doubles(call: AggregateCall, argument: Expr) -> tuple[Base, ...]:
    return (Base(call.function, argument, distinct=call.distinct, sql=f"CAST(({argument.sql}) AS DOUBLE)"),)


def _descending(call: AggregateCall) -> bool:
    return bool(call.order) and call.order[0].descending


def _percentile(call: AggregateCall, argument: Expr) -> tuple[Base, ...]:
    base = Base(_PERCENTILES[call.function], argument, distinct=call.distinct, descending=_descending(call))
    return tuple(dataclasses.replace(base, share=share) for share in _shares(call))


def _mode(call: AggregateCall, argument: Expr) -> tuple[Base, ...]:
    return (Base(call.function, argument, distinct=call.distinct, descending=_descending(call)),)


def _first(call: AggregateCall, argument: Expr) -> tuple[Base, ...]:
    tests = [f"({call.filter.sql})"] if call.filter is not None else []
    if call.ignore_nulls:
        tests.append(f"({argument.sql}) IS NOT NULL")
    if call.function in ("MAX_BY", "MIN_BY"):
        tests.append(f"({call.extra[0].sql}) IS NOT NULL")
    # the first by the reverse order is the last
    keys = [_reversed(key) for key in call.order] if call.function == "LAST" else list(call.order)
    fields = [f"'o{i}', ({key.expr.sql})" for i, key in enumerate(keys)]
    fields.append(f"'v', ({argument.sql})")
    row = f"named_struct({', '.join(fields)})"
    order = tuple(OrderKey(f"o{i}", key.descending, key.nulls_first) for i, key in enumerate(keys))
    return (Base("FIRST", argument, sql=f"IF({' AND '.join(tests)}, {row}, NULL)" if tests else row, order=order),)


_SPLIT: Mapping[str, Callable[[AggregateCall, Expr], tuple[Base, ...]]] = {
    **dict.fromkeys(("COUNT", *TOTALS, *_BITS), _itself),
    **dict.fromkeys(("MIN", "MAX", "SINGLE_VALUE"), _whatever_is_distinct),
    **dict.fromkeys(_AVERAGES, _average),
    **dict.fromkeys(ORDERED, _first),
    **dict.fromkeys(SUMS_OF_POWERS, _of_doubles),
    **dict.fromkeys(PAIRS, _pair),
    **dict.fromkeys(_PERCENTILES, _percentile),
    "MODE": _mode,
}
"""The base aggregates of each aggregate that a sweep keeps up to date."""


def _reversed(key: SortKey) -> SortKey:
    return dataclasses.replace(key, descending=not key.descending, nulls_first=not key.nulls_first)


def _is_array(share: Expr) -> bool:
    return isinstance(_constant(share.sql), list)


def _shares(call: AggregateCall) -> list[float]:
    found = _constant(call.extra[0].sql)
    shares = [share for share in (found if isinstance(found, list) else [found]) if share is not None]
    if any(not 0.0 <= share <= 1.0 for share in shares) or found is None or len(shares) < _size(found):
        raise ArgumentTypeError(
            f"the percentage of {call.function} lies between 0 and 1, but {call.extra[0].text or call.extra[0].sql}"
            f" is {found}; the median is 0.5"
        )
    return shares


def _size(found: float | list[float | None]) -> int:
    return len(found) if isinstance(found, list) else 1


def _constant(sql: str) -> float | list[float | None] | None:
    """The value of a percentage, or of an array of them."""
    plain = re.fullmatch(_NUMBER, sql.strip("() "))
    if plain:
        return float(plain[1])
    from pyspark.sql import SparkSession

    [[value]] = SparkSession.active().sql(f"SELECT {sql}").collect()
    if isinstance(value, list):
        return [None if v is None else float(v) for v in value]
    return None if value is None else float(value)


def _as_number(base: Base, bag: DataFrame) -> str:
    if base.function not in (*TOTALS, *_PERCENTILES):
        return base.given
    kind = types_of(bag.selectExpr(f"{base.given} AS given"))["given"]
    if (kind if isinstance(kind, str) else kind.typeName()) in ("string", "varchar", "char"):
        return f"CAST({base.given} AS DOUBLE)"
    return base.given
