"""From the plan that the language binds to the one that runs: what an incremental operator can do after a rewriting.

* ``f(x) FILTER (WHERE c)`` of an aggregate that leaves out NULLs aggregates ``IF(c, x, NULL)``.
* COUNT, SUM and AVG of DISTINCT values, where all calls of the Aggregate are over one argument, aggregate a duplicate
  elimination (MIN and MAX do not mind): a change touches its values, not the whole group. Beside other calls the
  sweep of the group tells the values apart.
* Window functions over different PARTITION BY clauses become one Analytic node for each.

The lowered plan has the columns of the given one, and means the same at every instant (Law S4).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from sweeparea.operators.aggregates.names import OF_VALUES, ORDERED, SUMS_OF_POWERS
from sweeparea.operators.plan.logical import Aggregate, AggregateCall, Analytic, Column, Expr, Node, Plan, Project
from sweeparea.operators.plan.sharing import shared

_TOTALS = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})
_SKIP_NULLS = _TOTALS | SUMS_OF_POWERS | OF_VALUES | {"TRY_SUM", "TRY_AVG"}
INCREMENTAL_CALLS = _SKIP_NULLS | ORDERED | {"SINGLE_VALUE"}
"""Aggregates that a sweep keeps up to date by adding and taking away."""


def lowered(plan: Plan) -> Plan:
    """The plan as it runs."""
    root = shared(lower(plan.root))
    return plan if root is plan.root else dataclasses.replace(plan, root=root)


def lower(node: Node) -> Node:
    """A subplan as it runs."""
    node = node.with_inputs(tuple(lower(child) for child in node.inputs))
    return lower_one(node)


def lower_one(node: Node) -> Node:
    """One node as it runs; its inputs are left as they are."""
    match node:
        case Aggregate():
            return _distinct_first(_without_filters(node))
        case Analytic():
            return _by_partition(node)
    return node


def _without_filters(node: Aggregate) -> Aggregate:
    if not any(call.filter is not None and call.function in _SKIP_NULLS for _, call in node.calls):
        return node
    return dataclasses.replace(node, calls=tuple((column, _without_filter(call)) for column, call in node.calls))


def _without_filter(call: AggregateCall) -> AggregateCall:
    if call.filter is None or call.function not in _SKIP_NULLS:
        return call
    value = call.argument or Expr("1", "*")
    columns = value.columns | call.filter.columns
    argument = Expr(f"IF(({call.filter.sql}), ({value.sql}), NULL)", value.text, columns)
    return dataclasses.replace(call, argument=argument, filter=None)


def _distinct_first(node: Aggregate) -> Node:
    calls = [call for _, call in node.calls]
    if not any(call.distinct for call in calls):
        return node
    argument = calls[0].argument
    for call in calls:
        indifferent = call.function in ("MIN", "MAX")
        if call.function not in _TOTALS or not (call.distinct or indifferent) or call.argument != argument:
            return node
    assert argument is not None
    value = Column(f"{node.calls[0][0].id}_value", argument.text)
    below = tuple((dataclasses.replace(column, id=f"{column.id}_key"), expr) for column, expr in node.keys)
    distinct = Aggregate(node.input, (*below, (value, argument)), ())
    keys = tuple((column, _reference(key)) for (column, _), (key, _) in zip(node.keys, below, strict=True))
    above = tuple(
        (column, dataclasses.replace(call, argument=_reference(value), distinct=False)) for column, call in node.calls
    )
    return Aggregate(distinct, keys, above, node.global_)


def _reference(column: Column) -> Expr:
    return Expr(f"`{column.id}`", column.label, frozenset({column.id}))


def _by_partition(node: Analytic) -> Node:
    partitions = list(dict.fromkeys(call.partition for _, call in node.calls))
    if len(partitions) < 2:
        return node
    below: Node = node.input
    for partition in partitions:
        below = Analytic(below, tuple(entry for entry in node.calls if entry[1].partition == partition))
    return Project(below, _identity(node.columns))


def _identity(columns: Iterable[Column]) -> tuple[tuple[Column, Expr], ...]:
    return tuple((column, _reference(column)) for column in columns)
