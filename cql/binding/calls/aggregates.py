"""Aggregates: a call as its author wrote it becomes an ``AggregateCall`` under one name for each meaning.

Several of Spark's aggregates are others in disguise and become those, as Spark's own analyzer does it: COUNT_IF and
REGR_COUNT a COUNT, EVERY a MIN, MEDIAN a PERCENTILE. What depends on the order of the rows gets a complete order: as
written, then the record's columns from left to right (``ties.py``), so that the answer is a function of the bag.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from sweeparea.cql.binding.scope.binder import Binder
from sweeparea.cql.binding.scope.bound import Bound
from sweeparea.cql.binding.scope.ties import record_order
from sweeparea.cql.functions import signatures, types
from sweeparea.cql.functions.aggregates import AGGREGATES, KnownAggregate, is_aggregate
from sweeparea.cql.functions.calls import Call
from sweeparea.cql.functions.untyped_nulls import STORED, VOID
from sweeparea.cql.syntax.trees import is_star, own_nodes
from sweeparea.cql.text.errors import BindError, ParseError, RefusedError, TypeError_
from sweeparea.operators.nodes import AggregateCall
from sweeparea.operators.plan.expressions import Expr, SortKey

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


def bind_aggregate(call: Call, inner: Binder, over: bool = False) -> BoundAggregate:
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
    return _Binding(call, known, inner, filter_, over).bind()


def _check_parts(call: Call, known: KnownAggregate, inner: Binder) -> None:
    place, name = inner.place(call.node), call.name
    nested = next((n for a in (*call.arguments, *call.order) for n in own_nodes(a) if is_aggregate(n)), None)
    if nested is not None and inner.grouping is None and not isinstance(nested.parent, exp.Window):
        raise BindError(
            f"the aggregate {nested.name.upper()} cannot stand inside the aggregate {name}",
            inner.place(nested),
            "KnownAggregate in a subquery first",
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


@dataclass
class _Binding:
    """One call being bound: its parts, and a method for each aggregate that is more than a function of its
    arguments."""

    call: Call
    known: KnownAggregate
    inner: Binder
    filter: Expr | None
    over: bool
    special: dict[str, Callable[[], BoundAggregate]] = field(default_factory=dict)

    def bind(self) -> BoundAggregate:
        name = self.call.name
        special = {
            "COUNT": self._count,
            "COUNT_IF": self._count_if,
            "REGR_COUNT": self._regr_count,
            "REGR_AVGX": self._regr_average,
            "REGR_AVGY": self._regr_average,
            "MEDIAN": self._median,
            "PERCENTILE": self._percentile,
            "PERCENTILE_CONT": self._percentile_within,
            "PERCENTILE_DISC": self._percentile_within,
            "MODE": self._mode,
            "MAX_BY": self._by,
            "MIN_BY": self._by,
            "COLLECT_SET": self._set,
        }
        if self.call.function.meta.get("user") is not None:
            return self._user(self.call.function.meta["user"].type)
        if name != "COUNT" and (
            len(self.call.arguments) not in self.known.counts or any(is_star(a) for a in self.call.arguments)
        ):
            raise count_error(name, self.known.counts, self.call.arguments, self.inner, self.call.node)
        if name in special:
            return special[name]()
        if self.known.function in ("FIRST", "LAST"):
            return self._edge()
        return self._plain()

    # -- parts -------------------------------------------------------------------------------------------------------

    def _arguments(self) -> list[Bound]:
        return [self._value(a, at) for at, a in enumerate(self.call.arguments)]

    def _value(self, tree: exp.Expr, at: int = 0) -> Bound:
        """An argument; a NULL without a type is one of the first type that the function takes there."""
        bound = self.inner.bind(tree)
        if bound.type != VOID or self.call.function.meta.get("user") is not None:
            return self._part(tree, bound)
        count = max(len(self.call.arguments), at + 1)
        kinds, before, behind = ("string", "double", "boolean", "bigint"), [None] * at, [None] * (count - at - 1)
        taken = [k for k in kinds if not signatures.refusal(self.call.name, [*before, k, *behind])]
        return bound.typed(taken[0] if taken else STORED)

    def _part(self, tree: exp.Expr, bound: Bound) -> Bound:
        return bound.typed() if self.over else self.inner.kept(tree, bound)

    def _order(self) -> tuple[SortKey, ...]:
        return tuple(self.inner.sort_key(key) for key in self.call.order)

    def _type(self, *arguments: Bound) -> str | None:
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
        decimal = types.decimal_sum(function, found[0]) if found else None
        return decimal or signatures.result(name, found)

    def _make(
        self,
        type_: str | None,
        argument: Expr | None,
        extra: tuple[Expr, ...] = (),
        order: tuple[SortKey, ...] = (),
        ignore_nulls: bool = False,
    ) -> BoundAggregate:
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

    def _constant(self, tree: exp.Expr, what: str) -> Bound:
        """An argument that must be the same for all rows."""
        bound = self.inner.bind(tree)
        if bound.expr.columns:
            raise TypeError_(
                f"{what} of {self.call.name} must be a constant, found {bound.expr.text}",
                self.inner.place(tree),
                "Write a literal",
            )
        return bound

    # -- the aggregates ----------------------------------------------------------------------------------------------

    def _plain(self) -> BoundAggregate:
        bound = self._arguments()
        if self.known.function == "LISTAGG" and len(bound) > 1:
            self._constant(self.call.arguments[1], "the delimiter")
        type_ = self._type(*bound)
        return self._make(type_, bound[0].expr, tuple(b.expr for b in bound[1:]), self._order())

    def _user(self, type_: str) -> BoundAggregate:
        """A user's aggregate: its rows come in the order of its arguments, so that it is a function of the bag."""
        bound = [self._part(a, b) for a in self.call.arguments for b in self.inner.bind_all(a)]
        if not bound:
            raise TypeError_(
                f"the aggregate {self.known.function} needs an argument",
                self.inner.place(self.call.node),
                f"Write {self.known.function}(a)",
            )
        argument, *extra = (b.expr for b in bound)
        order = () if self.over else tuple(SortKey(e) for e in (argument, *extra))
        distinct = self.call.distinct
        call = AggregateCall(self.known.function, argument, tuple(extra), distinct, self.filter, order)
        return BoundAggregate(call, type_)

    def _count(self) -> BoundAggregate:
        call, arguments = self.call, self.call.arguments
        if not arguments:
            raise TypeError_("COUNT needs an argument", self.inner.place(call.node), "Write COUNT(*)")
        star = len(arguments) == 1 and isinstance(arguments[0], exp.Star) and not arguments[0].args.get("except_")
        if star and not call.distinct:
            return self._make("bigint", None)
        if len(arguments) == 1 and not is_star(arguments[0]):
            bound = self._value(arguments[0])
            if call.distinct:
                self._comparable(bound)
            return self._make("bigint", bound.expr)
        # COUNT(a, b) and COUNT(t.*) count the rows in which none of them is NULL
        parts = [self._part(a, b) for a in arguments for b in self.inner.bind_all(a)]
        if not parts:
            raise TypeError_("COUNT needs an argument", self.inner.place(arguments[0]))
        test = " OR ".join(f"({b.expr.sql}) IS NULL" for b in parts)
        value = "1"
        if call.distinct:
            for part in parts:
                self._comparable(part)
            value = f"struct({', '.join(f'({b.expr.sql}) AS f{i}' for i, b in enumerate(parts))})"
        columns = frozenset().union(*(b.expr.columns for b in parts))
        text = ", ".join(b.expr.text for b in parts)
        return self._make("bigint", Expr(f"IF({test}, NULL, {value})", text, columns))

    def _comparable(self, bound: Bound) -> None:
        if bound.type is not None and bound.type.startswith("variant"):
            raise TypeError_(
                f"DISTINCT cannot compare {bound.expr.text}, which is a VARIANT",
                self.inner.place(self.call.node),
                "CAST it to a type with an order",
            )

    def _count_if(self) -> BoundAggregate:
        [bound] = self._arguments()
        self._type(bound)
        sql = bound.expr.sql if bound.type in (None, "boolean") else f"CAST({bound.expr.sql} AS BOOLEAN)"
        return self._make("bigint", Expr(f"IF({sql}, 1, NULL)", bound.expr.text, bound.expr.columns))

    def _pair(self) -> tuple[Expr, Expr, frozenset[str]]:
        y, x = self._arguments()
        self._type(y, x)
        return y.expr, x.expr, y.expr.columns | x.expr.columns

    def _regr_count(self) -> BoundAggregate:
        y, x, columns = self._pair()
        sql = f"IF(({y.sql}) IS NULL OR ({x.sql}) IS NULL, NULL, 1)"
        return self._named("COUNT", "bigint", Expr(sql, f"{y.text}, {x.text}", columns))

    def _regr_average(self) -> BoundAggregate:
        y, x, columns = self._pair()
        shown, other = (x, y) if self.call.name == "REGR_AVGX" else (y, x)
        sql = f"IF(({other.sql}) IS NULL, NULL, CAST(({shown.sql}) AS DOUBLE))"
        return self._named("AVG", "double", Expr(sql, shown.text, columns))

    def _named(self, function: str, type_: str | None, argument: Expr) -> BoundAggregate:
        made = self._make(type_, argument).call
        return BoundAggregate(AggregateCall(function, made.argument, (), made.distinct, made.filter), type_)

    def _median(self) -> BoundAggregate:
        [bound] = self._arguments()
        return self._make(self._type(bound), bound.expr, (Expr("0.5D", "0.5"),))

    def _percentile(self) -> BoundAggregate:
        value, *_ = bound = self._arguments()
        self._type(value, *bound[1:])
        share = self._constant(self.call.arguments[1], "the percentage")
        self._check_share(self.call.arguments[1])
        extra = (share.expr, *(b.expr for b in bound[2:]))
        return self._make(self._percentile_type(value, share), value.expr, extra)

    def _percentile_type(self, value: Bound, share: Bound) -> str | None:
        if share.type is None or value.type is None:
            return None
        one = value.type if value.type.startswith("interval") else "double"
        return f"array<{one}>" if share.type.startswith("array") else one

    def _percentile_within(self) -> BoundAggregate:
        if len(self.call.order) != 1:
            raise TypeError_(
                f"{self.call.name} orders by one expression, found {len(self.call.order)}",
                self.inner.place(self.call.order[1] if self.call.order else self.call.node),
                f"Write {self.call.name}(0.5) WITHIN GROUP (ORDER BY x)",
            )
        share = self._constant(self.call.arguments[0], "the percentage")
        self._check_share(self.call.arguments[0])
        value = self.inner.kept(self.call.order[0].this, type_="double")
        self._type(share, value)
        key = self.inner.sort_key(self.call.order[0])
        type_ = self._percentile_type(value, share)
        return self._make(type_, value.expr, (share.expr,), (key,))

    def _check_share(self, tree: exp.Expr) -> None:
        if isinstance(tree, exp.Neg) or (
            isinstance(tree, exp.Literal) and not tree.is_string and not 0 <= float(str(tree.this)) <= 1
        ):
            raise TypeError_(
                f"the percentage of {self.call.name} lies between 0 and 1", self.inner.place(tree), "The median is 0.5"
            )

    def _mode(self) -> BoundAggregate:
        """Of the most frequent values the least; with WITHIN GROUP the first in its order."""
        call = self.call
        given = call.order[0].this if call.within and len(call.order) == 1 and not call.arguments else None
        if given is None and (call.order or not 1 <= len(call.arguments) <= 2):
            raise TypeError_(
                "MODE takes one argument, or one expression in WITHIN GROUP (ORDER BY ..)",
                self.inner.place(call.node),
                "Write MODE(a)",
            )
        for tree in call.arguments[1:]:  # MODE(a, TRUE): the least of the most frequent values, which it is anyway
            self._constant(tree, "the second argument")
        value = self._value(given if given is not None else call.arguments[0])
        type_ = self._type(value)
        key = self.inner.sort_key(call.order[0]) if given is not None else SortKey(value.expr)
        return self._make(value.type or type_, value.expr, (), (key,))

    def _by(self) -> BoundAggregate:
        """MAX_BY(x, y): x of the first row in the order (y descending, record)."""
        value, by, *rest = self._arguments()
        self._type(value, by, *rest)
        if rest:
            self._constant(self.call.arguments[2], "the number of rows")
        descending = self.call.name == "MAX_BY"
        key = SortKey(by.expr, descending, nulls_first=False)
        type_ = value.type if not rest or value.type is None else f"array<{value.type}>"
        return self._make(type_, value.expr, (by.expr, *(r.expr for r in rest)), (key,))

    def _set(self) -> BoundAggregate:
        """COLLECT_SET: the list of the distinct values, in ascending order since Spark promises none."""
        [bound] = self._arguments()
        type_ = self._type(bound)
        call = AggregateCall("COLLECT_LIST", bound.expr, (), True, self.filter, (SortKey(bound.expr),))
        return BoundAggregate(call, type_ or (f"array<{bound.type}>" if bound.type else None))

    def _edge(self) -> BoundAggregate:
        """FIRST, LAST and ANY_VALUE, with IGNORE NULLS or ``first(a, true)``."""
        call = self.call
        ignore = bool(call.ignore_nulls)
        if len(call.arguments) == 2:
            flag = call.arguments[1]
            if not isinstance(flag, exp.Boolean):
                raise TypeError_(
                    f"the second argument of {call.name} says TRUE or FALSE: whether NULLs are left out",
                    self.inner.place(flag),
                    f"Write {call.name}(a) IGNORE NULLS",
                )
            if call.ignore_nulls is not None:
                raise ParseError(
                    f"{call.name} says twice what to do with NULLs", self.inner.place(flag), "Leave one of them out"
                )
            ignore = bool(flag.this)
        bound = self._value(call.arguments[0])
        return self._make(bound.type, bound.expr, (), self._order(), ignore)
