"""One call of an aggregate while it is bound: its arguments, its type, and the order of its rows."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sweeparea.cql.binding.scope.binder import Binder
from sweeparea.cql.binding.scope.bound import Bound
from sweeparea.cql.binding.scope.ties import record_order
from sweeparea.cql.functions import decimals, signatures
from sweeparea.cql.functions.aggregates import KnownAggregate
from sweeparea.cql.functions.calls import WrittenCall
from sweeparea.cql.functions.untyped_nulls import STORED, VOID
from sweeparea.cql.text.errors import TypeError_
from sweeparea.operators.nodes import AggregateCall
from sweeparea.operators.sql.expressions import Expr, SortKey

_SUMS = ("SUM", "AVG", "TRY_SUM", "TRY_AVG")


@dataclass
class BoundAggregate:
    """A call that is bound, with the type of its result where that is certain."""

    call: AggregateCall
    type: str | None

    @property
    def key(self) -> tuple[str, ...]:
        """Calls of one key have one value."""
        call = self.call
        parts = [call.function, str(call.distinct), str(call.ignore_nulls)]
        parts += [e.sql if e is not None else "*" for e in (call.argument, *call.extra, call.filter)]
        parts += [f"{k.expr.sql} {k.descending} {k.nulls_first}" for k in call.order]
        return tuple(parts)


@dataclass
class AggregateBinding:
    """The parts of a call. ``inner`` binds arguments over single rows of the input; ``over``: it has an OVER clause,
    whose order is not the aggregate's own."""

    call: WrittenCall
    known: KnownAggregate
    inner: Binder
    filter: Expr | None
    over: bool

    def arguments(self) -> list[Bound]:
        """The arguments, each as ``value`` gives it."""
        return [self.value(a, at) for at, a in enumerate(self.call.arguments)]

    def value(self, tree: exp.Expr, at: int = 0) -> Bound:
        """An argument; a NULL without a type is one of the first type that the function takes there."""
        bound = self.inner.bind(tree)
        if bound.type != VOID or self.call.function.meta.get("user") is not None:
            return self.part(tree, bound)
        count = max(len(self.call.arguments), at + 1)
        kinds, before, behind = ("string", "double", "boolean", "bigint"), [None] * at, [None] * (count - at - 1)
        taken = [k for k in kinds if not signatures.refusal(self.call.name, [*before, k, *behind])]
        return bound.typed(taken[0] if taken else STORED)

    def part(self, tree: exp.Expr, bound: Bound) -> Bound:
        """An argument that is bound already, as it is kept."""
        return bound.typed() if self.over else self.inner.kept(tree, bound)

    def order(self) -> tuple[SortKey, ...]:
        """The order that is written in the call."""
        return tuple(self.inner.sort_key(key) for key in self.call.order)

    def result_type(self, *arguments: Bound) -> str | None:
        """The result's type; TypeError_ where Spark is certain to refuse the arguments."""
        name, function = self.call.name, self.known.function
        found = [a.type for a in arguments]
        refusal = signatures.refusal(name, found)
        if refusal is None and function in _SUMS and found[0] is not None and found[0].startswith("timestamp"):
            refusal = 0, ""  # Spark would sum seconds since 1970
        if refusal is not None:
            at, families = refusal
            bound = arguments[at]
            if function in _SUMS:
                families = "numbers"
            elif name in ("MIN", "MAX"):
                families = "types that have an order"
            raise TypeError_(
                f"{name} cannot take {bound.expr.text}, which is of type {(bound.type or '').upper()}",
                self.inner.place(self.call.node),
                f"It takes {families}",
            )
        decimal = decimals.decimal_sum(function, found[0]) if found else None
        return decimal or signatures.result(name, found)

    def make(
        self,
        type_: str | None,
        argument: Expr | None,
        extra: tuple[Expr, ...] = (),
        order: tuple[SortKey, ...] = (),
        ignore_nulls: bool = False,
    ) -> BoundAggregate:
        """The call under its one name; the order of what depends on one is completed."""
        known, distinct = self.known, self.call.distinct and not self.known.idle_distinct
        if known.ordered and not self.over:
            if distinct:  # equal values are one: only the value itself is there to order by
                order = self._distinct_order(argument, order)
            else:
                reads = [e for e in (argument, *extra) if e is not None]
                order = record_order(order, self.inner.scope, frozenset().union(*(e.columns for e in reads)))
        call = AggregateCall(known.function, argument, extra, distinct, self.filter, order, ignore_nulls)
        return BoundAggregate(call, type_)

    def _distinct_order(self, argument: Expr | None, order: tuple[SortKey, ...]) -> tuple[SortKey, ...]:
        assert argument is not None
        if any(key.expr.sql != argument.sql for key in order):
            raise TypeError_(
                f"{self.call.name}(DISTINCT ..) can be ordered by its argument {argument.text} alone",
                self.inner.place(self.call.order[0]),
                "Equal values are one here, so no other column of theirs is left",
            )
        return order[:1] or (SortKey(argument),)

    def constant(self, tree: exp.Expr, what: str) -> Bound:
        """An argument that must be the same for all rows."""
        bound = self.inner.bind(tree)
        if bound.expr.columns:
            raise TypeError_(
                f"{what} of {self.call.name} must be a constant, found {bound.expr.text}",
                self.inner.place(tree),
                "Write a literal",
            )
        return bound
