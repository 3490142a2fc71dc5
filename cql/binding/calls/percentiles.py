"""MEDIAN, PERCENTILE, PERCENTILE_CONT, PERCENTILE_DISC and MODE."""

from __future__ import annotations

from sqlglot import exp

from sweeparea.cql.binding.calls.aggregate_binding import AggregateBinding, BoundAggregate
from sweeparea.cql.binding.scope.bound import Bound
from sweeparea.cql.text.errors import TypeError_
from sweeparea.operators.sql.expressions import Expr, SortKey


def median(it: AggregateBinding) -> BoundAggregate:
    [bound] = it.arguments()
    return it.make(it.result_type(bound), bound.expr, (Expr("0.5D", "0.5"),))


def percentile(it: AggregateBinding) -> BoundAggregate:
    value, *_ = bound = it.arguments()
    it.result_type(value, *bound[1:])
    share = it.constant(it.call.arguments[1], "the percentage")
    _check_share(it, it.call.arguments[1])
    extra = (share.expr, *(b.expr for b in bound[2:]))
    return it.make(_percentile_type(it, value, share), value.expr, extra)


def _percentile_type(it: AggregateBinding, value: Bound, share: Bound) -> str | None:
    if share.type is None or value.type is None:
        return None
    one = value.type if value.type.startswith("interval") else "double"
    return f"array<{one}>" if share.type.startswith("array") else one


def percentile_within(it: AggregateBinding) -> BoundAggregate:
    if len(it.call.order) != 1:
        raise TypeError_(
            f"{it.call.name} orders by one expression, found {len(it.call.order)}",
            it.inner.place(it.call.order[1] if it.call.order else it.call.node),
            f"Write {it.call.name}(0.5) WITHIN GROUP (ORDER BY x)",
        )
    share = it.constant(it.call.arguments[0], "the percentage")
    _check_share(it, it.call.arguments[0])
    value = it.inner.kept(it.call.order[0].this, type_="double")
    it.result_type(share, value)
    key = it.inner.sort_key(it.call.order[0])
    type_ = _percentile_type(it, value, share)
    return it.make(type_, value.expr, (share.expr,), (key,))


def _check_share(it: AggregateBinding, tree: exp.Expr) -> None:
    if isinstance(tree, exp.Neg) or (
        isinstance(tree, exp.Literal) and not tree.is_string and not 0 <= float(str(tree.this)) <= 1
    ):
        raise TypeError_(
            f"the percentage of {it.call.name} lies between 0 and 1", it.inner.place(tree), "The median is 0.5"
        )


def mode(it: AggregateBinding) -> BoundAggregate:
    """Of the most frequent values the least; with WITHIN GROUP the first in its order."""
    call = it.call
    given = call.order[0].this if call.within and len(call.order) == 1 and not call.arguments else None
    if given is None and (call.order or not 1 <= len(call.arguments) <= 2):
        raise TypeError_(
            "MODE takes one argument, or one expression in WITHIN GROUP (ORDER BY ..)",
            it.inner.place(call.node),
            "Write MODE(a)",
        )
    for tree in call.arguments[1:]:  # MODE(a, TRUE): the least of the most frequent values, which it is anyway
        it.constant(tree, "the second argument")
    value = it.value(given if given is not None else call.arguments[0])
    type_ = it.result_type(value)
    key = it.inner.sort_key(call.order[0]) if given is not None else SortKey(value.expr)
    return it.make(value.type or type_, value.expr, (), (key,))
