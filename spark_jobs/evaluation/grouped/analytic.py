"""Window functions (OVER), by snapshot expansion, on Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sweeparea.operators.ordered.analytic import Analytic, WindowFunction
from sweeparea.operators.values.bag import BAG
from sweeparea.spark_jobs.evaluation.grouped.aggregate_sql import SqlCall, Value, value_of
from sweeparea.spark_jobs.evaluation.grouped.expansion import Expansion, Expansions, Users, typed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class AnalyticExpansion(Expansion):
    """Window functions of one PARTITION BY: ``OVER (PARTITION BY key, segment ..)``."""

    def __init__(self, node: Analytic, users: Users) -> None:
        super().__init__()
        self.users = users
        self.node = node
        self.keys = {f"__k{i}": e.sql for i, e in enumerate(node.calls[0][1].partition)}
        self.columns = {c.id: f"`{c.id}`" for c in node.input.columns}
        self._calls = [(column.id, self._call(call)) for column, call in node.calls]

    def _call(self, call: WindowFunction) -> SqlCall:
        over = [f"PARTITION BY {', '.join(self.segment)}"]
        if call.order:
            over.append(f"ORDER BY {self._order(call)}")
        over.append(call.frame)
        return SqlCall(
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
        names, calls = typed(self._calls, expanded)
        values = {name: _window_value(call) for name, call in zip(names, calls, strict=True)}
        shown = expanded.selectExpr(
            *(f"`{c.id}`" for c in self.node.input.columns),
            *(f"{value.sql} AS `{name}`" for name, value in values.items()),
            *BAG,
        )
        return self.finished(shown, values)


class Analytics(Expansions[Analytic]):
    """Window functions."""

    def expansion(self, node: Analytic) -> Expansion:
        return AnalyticExpansion(node, self.users)


def _window_value(call: SqlCall) -> Value:
    return _WRITTEN.get(call.function, value_of)(call)


def _as_it_is(call: SqlCall) -> Value:
    return Value(f"{call.function}({call.value}){call.over}")


def _own(call: SqlCall) -> Value:
    if call.condition is not None:
        return _as_it_is(call)
    nulls = " IGNORE NULLS" if call.ignore_nulls else ""
    return Value(f"{call.function}({', '.join(call.arguments)}){nulls}{call.over}")


def _edge(call: SqlCall) -> Value:
    """FIRST, LAST: the value beside a flag; a row that does not count is skipped, a NULL that counts is not."""
    if call.condition is None:
        return _own(call)
    kept = call.only(f"named_struct('v', {call.arguments[0]})", *_not_null(call))
    return Value(f"{call.function}({kept}) IGNORE NULLS{call.over}.v")


def _extremal(call: SqlCall) -> Value:
    value, by, *rest = call.arguments
    return Value(f"{call.function}({', '.join((value, call.only(by), *rest))}){call.over}")


def _joined(call: SqlCall) -> Value:
    items = f"collect_list(CAST({call.value} AS STRING)){call.over}"
    delimiter = call.arguments[1] if len(call.arguments) > 1 else "''"
    return Value(f"IF(size({items}) = 0, NULL, array_join({items}, {delimiter}))")


def _not_null(call: SqlCall) -> tuple[str, ...]:
    return (f"{call.arguments[0]} IS NOT NULL",) if call.ignore_nulls else ()


_WRITTEN: Mapping[str, Callable[[SqlCall], Value]] = {
    **dict.fromkeys(("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE"), _own),
    **dict.fromkeys(("LAG", "LEAD", "NTH_VALUE"), _own),
    **dict.fromkeys(("FIRST", "LAST"), _edge),
    **dict.fromkeys(("MAX_BY", "MIN_BY"), _extremal),
    **dict.fromkeys(("COLLECT_LIST", "COLLECT_SET"), _as_it_is),
    "LISTAGG": _joined,
}
"""Functions that are evaluated otherwise OVER a window than in a group: those of the order go over ranks as they are; a
list's elements come in the order of the frame, and MAX_BY has a second argument without ties
(cql/binding/calls/window_functions.py).
"""
