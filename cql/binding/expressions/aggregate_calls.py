"""Aggregates, GROUPING and window functions in an expression: columns of the nodes below it."""

from __future__ import annotations

from sqlglot import exp

from sweeparea.cql.binding.calls.aggregates import bind_aggregate
from sweeparea.cql.binding.calls.window_functions import bind_over
from sweeparea.cql.binding.expressions.walk import Walk
from sweeparea.cql.binding.scope.bound import Bound
from sweeparea.cql.functions import functions
from sweeparea.cql.functions.aggregates import GROUPING, is_aggregate
from sweeparea.cql.functions.calls import written_call
from sweeparea.cql.text.errors import BindError, TypeError_, beside, raise_all
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.sql.expressions import Expr


def around_call(walk: Walk, node: exp.Expr) -> None:
    """What stands around a call: FILTER, WITHIN GROUP, IGNORE NULLS."""
    call = written_call(node)
    if call is None or not is_aggregate(call.function):
        what = node.key.upper() if call is None else call.function.name
        raise TypeError_(
            f"{what} is no aggregate, so it takes no FILTER, WITHIN GROUP or IGNORE NULLS",
            walk.binder.place(node),
            "Leave it out",
        )
    aggregate(walk, node)


def aggregate(walk: Walk, node: exp.Expr) -> None:
    """A call of an aggregate: a column of the GROUP BY below, or of that of the query around."""
    binder, grouping, place = walk.binder, walk.binder.grouping, walk.binder.place(node)
    call = written_call(node)
    assert call is not None
    call.function.meta["bound"] = True
    if call.function.meta.get("user") is None:
        functions.refuse_aggregate(call.name, place)
    if call.name in GROUPING:
        _grouping(walk, node, call.arguments, call.name)
        return
    if grouping is None:
        around = binder.outer.aggregate(node) if binder.outer is not None else None
        if around is not None:
            walk.put(node, around)
            return
        raise BindError(
            f"the aggregate {call.name} cannot stand in {binder.where}",
            place,
            "Write a IN (1, 2), or a = ANY (SELECT ..)"
            if call.name in ("ANY", "SOME", "ALL", "EVERY")
            else "Use HAVING for conditions on aggregates"
            if binder.where == "WHERE"
            else "Aggregate in a subquery first",
        )
    inner = binder.derived(f"the argument of {call.name}", grouping=None, windows=None, aliases={})
    try:
        found = bind_aggregate(call, inner)
    except SweepAreaError as error:
        parts = [*call.arguments, call.filter, *(key.this for key in call.order)]
        raise_all(beside(error, inner.faults(parts)))
        raise
    if found.key not in grouping.calls:
        label = binder.source.splice(binder.span(node)).lower()
        grouping.calls[found.key] = (binder.new_column(label, found.type), found.call)
    walk.replace(node, binder.span(node), grouping.calls[found.key][0])


def _grouping(walk: Walk, node: exp.Expr, arguments: list[exp.Expr], name: str) -> None:
    """GROUPING(a), GROUPING_ID(a, b): whether the row's grouping set leaves a key out."""
    binder, grouping, place = walk.binder, walk.binder.grouping, walk.binder.place(node)
    if grouping is None or grouping.sets is None or grouping.id is None:
        raise TypeError_(
            f"{name} needs GROUP BY with GROUPING SETS, ROLLUP or CUBE", place, "Otherwise every key is grouped"
        )
    if name == "GROUPING" and len(arguments) != 1:
        raise TypeError_(f"GROUPING takes one argument, found {len(arguments)}", place, "Write GROUPING(a)")
    at = []
    for argument in arguments:
        canonical = binder.canonical(argument)
        position = grouping.position(canonical) if canonical else None
        if position is None:
            raise BindError(
                f"{name} takes expressions of GROUP BY, and {binder.source.splice(binder.span(argument))} is none",
                binder.place(argument),
                f"They are {', '.join(c.label for c, _, _ in grouping.keys)}",
            )
        at.append(position)
    count = len(grouping.keys)
    sql, type_ = f"`{grouping.id.id}`", "bigint"
    if name == "GROUPING":
        sql, type_ = f"CAST(shiftright({sql}, {count - 1 - at[0]}) & 1L AS TINYINT)", "tinyint"
    elif at and at != list(range(count)):
        bits = [f"(shiftright({sql}, {count - 1 - p}) & 1L) * {1 << (len(at) - 1 - i)}L" for i, p in enumerate(at)]
        sql = f"({' + '.join(bits)})"
    walk.put(node, Bound(Expr(sql, name, frozenset({grouping.id.id})), type_))


def over(walk: Walk, node: exp.Window) -> None:
    """A window function."""
    try:
        walk.put(node, bind_over(walk.binder, node))
    except SweepAreaError as error:
        if walk.binder.windows is None:
            raise  # what stands in a call that stands wrongly is no matter
        call, order = written_call(node.this), node.args.get("order")
        parts = [*(call.arguments if call is not None else ()), *(node.args.get("partition_by") or ())]
        parts += [key.this for key in (order.expressions if order is not None else ())]
        raise_all(beside(error, walk.binder.derived("OVER", windows=None).faults(parts)))
        raise
