"""Aggregates that pick or list values: MAX_BY, MIN_BY, COLLECT_SET, FIRST, LAST, ANY_VALUE."""

from __future__ import annotations

from sqlglot import exp

from sweeparea.cql.binding.calls.aggregate_binding import AggregateBinding, BoundAggregate
from sweeparea.cql.text.errors import ParseError, TypeError_
from sweeparea.operators.nodes import AggregateCall
from sweeparea.operators.sql.expressions import SortKey


def by(it: AggregateBinding) -> BoundAggregate:
    """MAX_BY(x, y): x of the first row in the order (y descending, record)."""
    value, by, *rest = it.arguments()
    it.result_type(value, by, *rest)
    if rest:
        it.constant(it.call.arguments[2], "the number of rows")
    descending = it.call.name == "MAX_BY"
    key = SortKey(by.expr, descending, nulls_first=False)
    type_ = value.type if not rest or value.type is None else f"array<{value.type}>"
    return it.make(type_, value.expr, (by.expr, *(r.expr for r in rest)), (key,))


def collect_set(it: AggregateBinding) -> BoundAggregate:
    """COLLECT_SET: the list of the distinct values, in ascending order since Spark promises none."""
    [bound] = it.arguments()
    type_ = it.result_type(bound)
    call = AggregateCall("COLLECT_LIST", bound.expr, (), True, it.filter, (SortKey(bound.expr),))
    return BoundAggregate(call, type_ or (f"array<{bound.type}>" if bound.type else None))


def edge(it: AggregateBinding) -> BoundAggregate:
    """FIRST, LAST and ANY_VALUE, with IGNORE NULLS or ``first(a, true)``."""
    call = it.call
    ignore = bool(call.ignore_nulls)
    if len(call.arguments) == 2:
        flag = call.arguments[1]
        if not isinstance(flag, exp.Boolean):
            raise TypeError_(
                f"the second argument of {call.name} says TRUE or FALSE: whether NULLs are left out",
                it.inner.place(flag),
                f"Write {call.name}(a) IGNORE NULLS",
            )
        if call.ignore_nulls is not None:
            raise ParseError(
                f"{call.name} says twice what to do with NULLs", it.inner.place(flag), "Leave one of them out"
            )
        ignore = bool(flag.this)
    bound = it.value(call.arguments[0])
    return it.make(bound.type, bound.expr, (), it.order(), ignore)
