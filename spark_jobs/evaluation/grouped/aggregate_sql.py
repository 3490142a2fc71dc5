"""An aggregate as native Spark SQL over the rows of one segment, such that its value is a function of their bag.

Most of Spark's aggregates are that already. The others are put differently: what depends on an order goes by the rows'
ranks in it (``snapshot.rank_column``), and what would round in the order of the rows is gathered as a list, to be
evaluated exactly afterwards (``Value.then``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from sweeparea.operators.aggregates import moments
from sweeparea.operators.aggregates.moments import Exact
from sweeparea.operators.user_code.user_aggregate import UserAggregate
from sweeparea.operators.values.lists import OfLists

_FLOATS = (pa.types.is_floating, pa.types.is_string, pa.types.is_large_string)


@dataclass(frozen=True)
class SqlCall:
    """One aggregate over columns of the rows.

    ``arguments`` are SQL, ``types`` their Arrow types; ``condition`` tells which rows count; ``rank`` is the column of
    the rows' ranks in the call's order; ``over`` an OVER clause, or nothing; ``user`` the
    registered aggregate, where it is one.
    """

    function: str
    arguments: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    condition: str | None = None
    distinct: bool = False
    rank: str | None = None
    descending: bool = False
    ignore_nulls: bool = False
    over: str = ""
    user: UserAggregate | None = None

    def only(self, sql: str, *conditions: str) -> str:
        """``sql`` where the row counts, else NULL."""
        tests = [c for c in (self.condition, *conditions) if c]
        return f"IF({' AND '.join(tests)}, {sql}, NULL)" if tests else sql

    @property
    def value(self) -> str:
        """The first argument where the row counts; of COUNT(*) a constant."""
        return self.only(self.arguments[0] if self.arguments else "1")


@dataclass(frozen=True)
class Value:
    """An aggregate's SQL. ``then``: it gives a list, of which this function makes the value."""

    sql: str
    then: OfLists | None = None


def value_of(call: SqlCall) -> Value:
    """The SQL of an aggregate call."""
    if call.user is not None:
        fields = ", ".join(f"'a{i}', {argument}" for i, argument in enumerate(call.arguments))
        return Value(_gathered(call, f"named_struct({fields})"), call.user)
    return _WRITTEN.get(call.function, _as_it_is)(call)


def _as_it_is(call: SqlCall) -> Value:
    """All others leave out NULLs of their first argument."""
    distinct = "DISTINCT " if call.distinct else ""
    return Value(f"{call.function}({distinct}{', '.join((call.value, *call.arguments[1:]))}){call.over}")


def _gathered(call: SqlCall, value: str) -> str:
    """The list of the values that count, in any order."""
    listed = f"collect_list({call.only(value)}){call.over}"
    return f"array_distinct({listed})" if call.distinct else listed


def _ordered(call: SqlCall, value: str) -> str:
    """The list of the values that count and are not NULL, in the call's order."""
    pair = call.only(f"named_struct('r', {call.rank}, 'v', {value})", f"({value}) IS NOT NULL")
    # rows of equal rank are equal; types without an order (maps) need a comparison of their own
    compare = ", (l, r) -> CAST(sign(l.r - r.r) AS INT)" if _has_map(call.types[0]) else ""
    listed = f"transform(array_sort(collect_list({pair}){call.over}{compare}), e -> e.v)"
    return f"array_distinct({listed})" if call.distinct else listed


def _has_map(t: pa.DataType) -> bool:
    return pa.types.is_map(t) or any(_has_map(t.field(i).type) for i in range(t.num_fields))


def _count(call: SqlCall) -> Value:
    if call.distinct:
        return Value(f"CAST(size(collect_set({call.value}){call.over}) AS BIGINT)")
    return Value(f"count({call.value}){call.over}")


def _total(call: SqlCall) -> Value:
    function, argument, over = call.function.removeprefix("TRY_"), call.types[0], call.over
    if any(test(argument) for test in _FLOATS):
        return Value(_gathered(call, f"CAST({call.arguments[0]} AS DOUBLE)"), Exact(function))
    distinct = "DISTINCT " if call.distinct else ""
    if function == "AVG" and pa.types.is_integer(argument):
        # Spark would round the running sum
        total = f"sum({distinct}CAST({call.value} AS DECIMAL(38, 0))){over}"
        count = f"count({distinct}{call.value}){over}"
        return Value(f"IF({count} = 0, CAST(NULL AS DOUBLE), CAST({total} AS DOUBLE) / CAST({count} AS DOUBLE))")
    return Value(f"{call.function}({distinct}{call.value}){over}")


def _single(call: SqlCall) -> Value:
    return Value(_gathered(call, f"CAST({call.arguments[0]} AS DOUBLE)"), Exact(call.function))


def _pair(call: SqlCall) -> Value:
    x, y = call.arguments
    there = f"({x}) IS NOT NULL AND ({y}) IS NOT NULL"
    pair = call.only(f"named_struct('x', CAST({x} AS DOUBLE), 'y', CAST({y} AS DOUBLE))", there)
    listed = f"collect_list({pair}){call.over}"
    return Value(f"array_distinct({listed})" if call.distinct else listed, Exact(call.function))


def _vector(call: SqlCall) -> Value:
    return Value(_gathered(call, call.arguments[0]), Exact(call.function))


def _edge(call: SqlCall) -> Value:
    """FIRST, LAST."""
    if call.rank is None:
        return _as_it_is(call)
    skipped = (f"{call.arguments[0]} IS NOT NULL",) if call.ignore_nulls else ()
    by = "min_by" if call.function == "FIRST" else "max_by"
    return Value(f"{by}({call.arguments[0]}, {call.only(call.rank, *skipped)}){call.over}")


def _extremal(call: SqlCall) -> Value:
    """MAX_BY(x, y [, k]): the rows are ranked by y, descending for MAX_BY, with a total order of their ties."""
    if call.rank is None:
        return _as_it_is(call)
    value, by = call.arguments[:2]
    number = call.arguments[2:]
    there = f"({by}) IS NOT NULL"
    if not number:
        return Value(f"min_by({value}, {call.only(call.rank, there)}){call.over}")
    pair = call.only(f"named_struct('r', {call.rank}, 'v', {value})", there)
    compare = ", (l, r) -> CAST(sign(l.r - r.r) AS INT)"
    listed = f"transform(array_sort(collect_list({pair}){call.over}{compare}), e -> e.v)"
    return Value(f"IF(size({listed}) = 0, NULL, slice({listed}, 1, {number[0]}))")


def _listed(call: SqlCall) -> Value:
    return _as_it_is(call) if call.rank is None else Value(_ordered(call, call.arguments[0]))


def _joined(call: SqlCall) -> Value:
    if call.rank is None:
        return _as_it_is(call)
    given = list(call.arguments[1:])
    kind = "BINARY" if pa.types.is_binary(call.types[0]) or pa.types.is_large_binary(call.types[0]) else "STRING"
    empty = f"CAST('' AS {kind})"
    delimiter = f"coalesce(CAST({given[0]} AS {kind}), {empty})" if given else empty
    items = _ordered(call, f"CAST({call.arguments[0]} AS {kind})")
    rest = f"slice({items}, 2, greatest(size({items}) - 1, 0))"
    folded = f"reduce({rest}, element_at({items}, 1), (a, b) -> a || {delimiter} || b)"
    if kind == "STRING":
        folded = f"array_join({items}, {delimiter})"
    return Value(f"IF(size({items}) = 0, NULL, {folded})")


def _one_alone(call: SqlCall) -> Value:
    """SINGLE_VALUE."""
    many = "raise_error('a scalar subquery gave more than one row')"
    value = f"max_by({call.arguments[0]}, {call.only('1')}){call.over}"
    return Value(f"IF(count({call.only('1')}){call.over} > 1, {many}, {value})")


def _percentile(call: SqlCall) -> Value:
    order = f"ORDER BY {call.value}{' DESC' if call.descending else ''}"
    return Value(f"{call.function}({call.arguments[1]}) WITHIN GROUP ({order}){call.over}")


def _mode(call: SqlCall) -> Value:
    if call.descending:
        return Value(f"mode() WITHIN GROUP (ORDER BY {call.value} DESC){call.over}")
    return Value(f"mode({call.value}, TRUE){call.over}")


_WRITTEN: Mapping[str, Callable[[SqlCall], Value]] = {
    "COUNT": _count,
    **dict.fromkeys(moments.SINGLES, _single),
    **dict.fromkeys(("SUM", "AVG", "TRY_SUM", "TRY_AVG"), _total),
    **dict.fromkeys(moments.PAIRS, _pair),
    **dict.fromkeys(moments.VECTORS, _vector),
    **dict.fromkeys(("FIRST", "LAST"), _edge),
    **dict.fromkeys(("MAX_BY", "MIN_BY"), _extremal),
    "COLLECT_LIST": _listed,
    "LISTAGG": _joined,
    "SINGLE_VALUE": _one_alone,
    **dict.fromkeys(("PERCENTILE_CONT", "PERCENTILE_DISC"), _percentile),
    "MODE": _mode,
}
"""Aggregates that are put differently than Spark has them."""
