"""Aggregates: a call as its author wrote it becomes an ``AggregateCall`` under one name for each meaning.

Several of Spark's aggregates are others in disguise and become those, as Spark's own analyzer does it: COUNT_IF and
REGR_COUNT a COUNT, EVERY a MIN, MEDIAN a PERCENTILE. What depends on the order of the rows gets a complete order: as
written, then the record's columns from left to right (``scope/ties.py``), so that the answer is a function of the bag.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sweeparea.cql.binding.calls import counts, ordered_values, percentiles
from sweeparea.cql.binding.calls.aggregate_binding import AggregateBinding, BoundAggregate
from sweeparea.cql.binding.scope.binder import Binder
from sweeparea.cql.functions import user_functions
from sweeparea.cql.functions.aggregates import AGGREGATES, KnownAggregate, is_aggregate
from sweeparea.cql.functions.calls import WrittenCall
from sweeparea.cql.syntax.trees import is_star, own_nodes
from sweeparea.cql.text.errors import BindError, RefusedError, TypeError_
from sweeparea.operators.nodes import AggregateCall
from sweeparea.operators.sql.expressions import SortKey


def bind_aggregate(call: WrittenCall, inner: Binder, over: bool = False) -> BoundAggregate:
    """The aggregate of a call. ``inner`` binds arguments over single rows of the input; ``over``: it has an OVER
    clause, whose order is not the aggregate's own.

    Raises ParseError, BindError, TypeError_ or RefusedError.
    """
    user = call.function.meta.get("user")
    if user is not None:
        call.function.meta["bound"] = True
    known = AGGREGATES[call.name] if user is None else KnownAggregate(user.name, ordered=True)
    _check_parts(call, known, inner)
    filter_ = None
    if call.filter is not None:
        filter_ = inner.derived(where=f"FILTER of {call.name}").condition(call.filter)
    return _bound(AggregateBinding(call, known, inner, filter_, over))


def _check_parts(call: WrittenCall, known: KnownAggregate, inner: Binder) -> None:
    place, name = inner.place(call.node), call.name
    nested = next((n for a in (*call.arguments, *call.order) for n in own_nodes(a) if is_aggregate(n)), None)
    if nested is not None and inner.grouping is None and not isinstance(nested.parent, exp.Window):
        raise BindError(
            f"the aggregate {nested.name.upper()} cannot stand inside the aggregate {name}",
            inner.place(nested),
            "Aggregate in a subquery first",
        )
    if call.limit is not None:
        raise RefusedError(
            f"{name} with LIMIT inside is not offered", place, "Take a part of the array: slice(.., 1, n)"
        )
    if call.ignore_nulls is not None and not known.nulls:
        words = "IGNORE NULLS" if call.ignore_nulls else "RESPECT NULLS"
        raise TypeError_(f"{name} does not take {words}", place, "FIRST, LAST, ANY_VALUE, NTH_VALUE, LAG and LEAD do")
    if call.order and known.within == "no":
        words = "WITHIN GROUP (ORDER BY ..)" if call.within else "ORDER BY"
        raise TypeError_(f"{name} does not take {words}: its value does not depend on an order", place, "Leave it out")
    if known.within == "must" and not call.within:
        raise TypeError_(
            f"{name} needs WITHIN GROUP (ORDER BY ..)", place, f"Write {name}(0.5) WITHIN GROUP (ORDER BY x)"
        )


def count_error(name: str, wanted: tuple[int, ...], found: list[exp.Expr], inner: Binder, node: exp.Expr) -> TypeError_:
    """The error of a call with the wrong number of arguments."""
    words = {0: "no argument", 1: "one argument", 2: "two arguments", 3: "three arguments"}
    number = " or ".join(words[n] for n in wanted)
    shown = "*" if len(found) == 1 and is_star(found[0]) else str(len(found))
    example = ", ".join("abc"[: max(wanted[0], 1)]) if wanted[-1] else ""
    return TypeError_(f"{name} takes {number}, found {shown}", inner.place(node), f"Write {name}({example})")


_SPECIAL: dict[str, Callable[[AggregateBinding], BoundAggregate]] = {
    "COUNT": counts.count,
    "COUNT_IF": counts.count_if,
    "REGR_COUNT": counts.regr_count,
    "REGR_AVGX": counts.regr_average,
    "REGR_AVGY": counts.regr_average,
    "MEDIAN": percentiles.median,
    "PERCENTILE": percentiles.percentile,
    "PERCENTILE_CONT": percentiles.percentile_within,
    "PERCENTILE_DISC": percentiles.percentile_within,
    "MODE": percentiles.mode,
    "MAX_BY": ordered_values.by,
    "MIN_BY": ordered_values.by,
    "COLLECT_SET": ordered_values.collect_set,
}
"""The aggregates that are more than a function of their arguments."""


def _bound(it: AggregateBinding) -> BoundAggregate:
    name, arguments = it.call.name, it.call.arguments
    if it.call.function.meta.get("user") is not None:
        return _user(it, it.call.function.meta["user"].type)
    if name != "COUNT" and (len(arguments) not in it.known.counts or any(is_star(a) for a in arguments)):
        raise count_error(name, it.known.counts, arguments, it.inner, it.call.node)
    if name in _SPECIAL:
        return _SPECIAL[name](it)
    if it.known.function in ("FIRST", "LAST"):
        return ordered_values.edge(it)
    return _plain(it)


def _plain(it: AggregateBinding) -> BoundAggregate:
    bound = it.arguments()
    if it.known.function == "LISTAGG" and len(bound) > 1:
        it.constant(it.call.arguments[1], "the delimiter")
    type_ = it.result_type(*bound)
    return it.make(type_, bound[0].expr, tuple(b.expr for b in bound[1:]), it.order())


def _user(it: AggregateBinding, type_: str) -> BoundAggregate:
    """A user's aggregate: its rows come in the order of its arguments, so that it is a function of the bag."""
    bound = [it.part(a, b) for a in it.call.arguments for b in it.inner.bind_all(a)]
    if not bound:
        raise TypeError_(
            f"the aggregate {it.known.function} needs an argument",
            it.inner.place(it.call.node),
            f"Write {it.known.function}(a)",
        )
    argument, *extra = (b.expr for b in bound)
    order = () if it.over else tuple(SortKey(e) for e in (argument, *extra))
    distinct = it.call.distinct
    user, place = it.call.function.meta["user"], it.inner.place(it.call.node)
    running = user_functions.is_running(user, [b.type for b in bound], place)
    call = AggregateCall(it.known.function, argument, tuple(extra), distinct, it.filter, order, running=running)
    return BoundAggregate(call, type_)
