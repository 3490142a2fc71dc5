"""COUNT and what becomes one: COUNT_IF, REGR_COUNT; and the averages of pairs."""

from __future__ import annotations

from sqlglot import exp

from sweeparea.cql.binding.calls.aggregate_binding import AggregateBinding, BoundAggregate
from sweeparea.cql.binding.scope.bound import Bound
from sweeparea.cql.syntax.trees import is_star
from sweeparea.cql.text.errors import TypeError_
from sweeparea.operators.nodes import AggregateCall
from sweeparea.operators.sql.expressions import Expr


def count(it: AggregateBinding) -> BoundAggregate:
    call, arguments = it.call, it.call.arguments
    if not arguments:
        raise TypeError_("COUNT needs an argument", it.inner.place(call.node), "Write COUNT(*)")
    star = len(arguments) == 1 and isinstance(arguments[0], exp.Star) and not arguments[0].args.get("except_")
    if star and not call.distinct:
        return it.make("bigint", None)
    if len(arguments) == 1 and not is_star(arguments[0]):
        bound = it.value(arguments[0])
        if call.distinct:
            _comparable(it, bound)
        return it.make("bigint", bound.expr)
    # COUNT(a, b) and COUNT(t.*) count the rows in which none of them is NULL
    parts = [it.part(a, b) for a in arguments for b in it.inner.bind_all(a)]
    if not parts:
        raise TypeError_("COUNT needs an argument", it.inner.place(arguments[0]))
    test = " OR ".join(f"({b.expr.sql}) IS NULL" for b in parts)
    value = "1"
    if call.distinct:
        for part in parts:
            _comparable(it, part)
        value = f"struct({', '.join(f'({b.expr.sql}) AS f{i}' for i, b in enumerate(parts))})"
    columns = frozenset().union(*(b.expr.columns for b in parts))
    text = ", ".join(b.expr.text for b in parts)
    return it.make("bigint", Expr(f"IF({test}, NULL, {value})", text, columns))


def _comparable(it: AggregateBinding, bound: Bound) -> None:
    if bound.type is not None and bound.type.startswith("variant"):
        raise TypeError_(
            f"DISTINCT cannot compare {bound.expr.text}, which is a VARIANT",
            it.inner.place(it.call.node),
            "CAST it to a type with an order",
        )


def count_if(it: AggregateBinding) -> BoundAggregate:
    [bound] = it.arguments()
    it.result_type(bound)
    sql = bound.expr.sql if bound.type in (None, "boolean") else f"CAST({bound.expr.sql} AS BOOLEAN)"
    return it.make("bigint", Expr(f"IF({sql}, 1, NULL)", bound.expr.text, bound.expr.columns))


def _pair(it: AggregateBinding) -> tuple[Expr, Expr, frozenset[str]]:
    y, x = it.arguments()
    it.result_type(y, x)
    return y.expr, x.expr, y.expr.columns | x.expr.columns


def regr_count(it: AggregateBinding) -> BoundAggregate:
    y, x, columns = _pair(it)
    sql = f"IF(({y.sql}) IS NULL OR ({x.sql}) IS NULL, NULL, 1)"
    return _named(it, "COUNT", "bigint", Expr(sql, f"{y.text}, {x.text}", columns))


def regr_average(it: AggregateBinding) -> BoundAggregate:
    y, x, columns = _pair(it)
    shown, other = (x, y) if it.call.name == "REGR_AVGX" else (y, x)
    sql = f"IF(({other.sql}) IS NULL, NULL, CAST(({shown.sql}) AS DOUBLE))"
    return _named(it, "AVG", "double", Expr(sql, shown.text, columns))


def _named(it: AggregateBinding, function: str, type_: str | None, argument: Expr) -> BoundAggregate:
    made = it.make(type_, argument).call
    return BoundAggregate(AggregateCall(function, made.argument, (), made.distinct, made.filter), type_)
