"""ORDER BY with LIMIT and OFFSET: which rows a relation keeps, as TopK.

A relation has no order, so ORDER BY alone changes nothing and is noted. The keys see the select list's names first,
then the columns of FROM, as in Spark; what is not in the select list is computed beside it and left out again above.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from sweeparea.cql.binding.scope.binder import Binder
from sweeparea.cql.binding.scope.bound import Bound, column_expr
from sweeparea.cql.binding.scope.context import Context
from sweeparea.cql.binding.scope.ties import completed
from sweeparea.cql.syntax.dialect.spans import span_of
from sweeparea.cql.text.constants import number_of
from sweeparea.cql.text.errors import BindError, CqlErrors, Place, RefusedError, TypeError_
from sweeparea.operators.nodes import Project, TopK
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column, Expr, SortKey

PARTS = {"order", "limit", "offset"}
"""The parts of a query that this module reads."""

PlaceOf = Callable[[exp.Expr], Place]


@dataclass(frozen=True)
class Cut:
    """LIMIT and OFFSET: at most ``limit`` rows (None: all) from ``offset`` on."""

    limit: int | None
    offset: int = 0


def cut_of(node: exp.Expr, place: PlaceOf) -> Cut | None:
    """The rows that a query keeps; None: all. RefusedError for LIMIT or OFFSET without ORDER BY."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is None and offset is None:
        return None
    count = None
    if isinstance(limit, exp.Fetch):
        count = _constant(limit.args.get("count") or exp.Literal.number(1), "FETCH", limit, place)
    elif limit is not None and not (isinstance(limit.expression, exp.Var) and limit.expression.name.upper() == "ALL"):
        count = _constant(limit.expression, "LIMIT", limit, place)
    skip = 0 if offset is None else _constant(offset.expression, "OFFSET", offset, place)
    if count is None and skip == 0:
        return None
    if node.args.get("order") is None:
        word, at = ("LIMIT", limit) if count is not None else ("OFFSET", offset)
        assert isinstance(at, exp.Expr)
        raise RefusedError(
            f"{word} without ORDER BY is refused: which rows it keeps would be left to chance",
            place(at),
            f"Say which rows are wanted with ORDER BY .. {word}",
        )
    return Cut(count, skip)


def _constant(tree: exp.Expr, what: str, node: exp.Expr, place: PlaceOf) -> int:
    at = place(tree) if span_of(tree) is not None else place(node)
    number = number_of(tree)
    if number is None or number.denominator != 1:
        raise TypeError_(f"{what} must be a constant whole number", at, f"Write {what} 10")
    value = number.numerator
    if value < 0:
        raise TypeError_(f"{what} cannot be negative, found {value}", at, f"Write {what} 10")
    if value > 2**31 - 1:
        raise TypeError_(f"{what} is at most 2147483647, found {value}", at, "Leave it out to keep all rows")
    return value


class SelectOrder:
    """ORDER BY of one SELECT: keys over its output columns and, hidden beside them, over its input.

    ``outputs`` are the select list's columns with the trees that they come from; ``binder`` binds over the input, with
    the select list's names first. ``above`` binds over the output columns where DISTINCT leaves nothing else.
    """

    def __init__(
        self,
        outputs: list[tuple[Column, Expr, exp.Expr | None]],
        binder: Binder,
        attempt: Callable[[Callable[[], object]], object],
        above: Binder | None = None,
    ) -> None:
        self.outputs, self.binder, self.attempt, self.above = outputs, binder, attempt, above
        self.hidden: list[tuple[Column, Expr]] = []

    def keys(self, order: exp.Expr) -> list[SortKey]:
        keys: list[SortKey] = []
        for ordered in order.expressions:
            if _is_all(ordered.this):
                keys += [self.binder.sort_key(ordered, column_bound(c)) for c, _, _ in self.outputs]
                continue
            key = self.attempt(lambda o=ordered: self.binder.sort_key(o, self._bound(o.this)))
            if isinstance(key, SortKey):
                keys.append(key)
        return keys

    def _bound(self, tree: exp.Expr) -> Bound:
        found = self._output(tree)
        if found is not None:
            return column_bound(found)
        bound = self._over_input(tree)
        same = next((c for c, e, _ in self.outputs if bound is not None and e.sql == bound.expr.sql), None)
        if same is not None:
            return column_bound(same)
        if self.above is not None:
            bound = self._over_outputs(tree, self.above)
        assert bound is not None
        if not bound.expr.columns:
            return bound
        column = self.binder.new_column(bound.expr.text, bound.type)
        self.hidden.append((column, bound.expr))
        return Bound(column_expr(column, bound.expr.text), bound.type)

    def _over_input(self, tree: exp.Expr) -> Bound | None:
        """A key over the input; None where it has a fault and the output columns are to be tried."""
        try:
            return self.binder.bind(tree)
        except (BindError, CqlErrors):
            if self.above is None:
                raise
            return None

    def _over_outputs(self, tree: exp.Expr, above: Binder) -> Bound:
        try:
            return above.bind(tree)
        except BindError as error:
            if "is unknown" not in error.message:
                raise
            raise BindError(
                f"ORDER BY {above.source.splice(above.span(tree))} is not in the select list, and DISTINCT leaves "
                "nothing else to order by",
                above.place(tree),
                "Add it to the select list",
            ) from None

    def _output(self, tree: exp.Expr) -> Column | None:
        """The output column that an ordinal, a name or an expression of the select list means."""
        at = ordinal(tree, len(self.outputs), self.binder)
        if at is not None:
            return self.outputs[at][0]
        if isinstance(tree, exp.Column) and not tree.table:
            named = [(c, e) for c, e, _ in self.outputs if c.label.lower() == tree.name.lower()]
            if len({e.sql for _, e in named}) > 1:
                raise BindError(
                    f"ORDER BY {tree.name} is ambiguous: the select list has {len(named)} columns of that name",
                    self.binder.place(tree),
                    "Give them aliases of their own",
                )
            if named:
                return named[0][0]
        canonical = self.binder.canonical(tree)
        for column, _, item in self.outputs:
            if item is not None and canonical is not None and self.binder.canonical(item) == canonical:
                return column
        return None


def column_bound(column: Column) -> Bound:
    return Bound(column_expr(column), column.type)


def ordinal(tree: exp.Expr, count: int, binder: Binder) -> int | None:
    """``ORDER BY 2``: the position in the select list, from 0; None if the tree is no number."""
    if not isinstance(tree, exp.Literal) or tree.is_string or not str(tree.this).isdigit():
        return None
    n = int(str(tree.this))
    if not 1 <= n <= count:
        raise BindError(
            f"ORDER BY {n} is no position in the select list",
            binder.place(tree),
            f"It has {count} column{'s' if count > 1 else ''}",
        )
    return n - 1


def _is_all(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Var) and tree.name.upper() == "ALL"


def top_k(node: Node, columns: tuple[Column, ...], keys: list[SortKey], cut: Cut) -> Node:
    """The rows that a cut keeps of ``node``; ``columns`` are its record, which breaks ties."""
    return TopK(node, completed(keys, columns), cut.limit, cut.offset)


def order_over_columns(
    context: Context, node: exp.Expr, relation: Node, columns: tuple[Column, ...], binder: Binder, place: PlaceOf
) -> tuple[tuple[Column, ...], Node]:
    """ORDER BY and LIMIT behind a query whose output columns are all that can be named: a set operation, or one in
    parentheses. The columns and the relation."""
    order, cut = node.args.get("order"), cut_of(node, place)
    if order is None:
        return columns, relation
    outputs: list[tuple[Column, Expr, exp.Expr | None]] = [(c, column_expr(c), None) for c in columns]
    sorting = SelectOrder(outputs, binder, lambda action: action())
    keys = sorting.keys(order)
    if cut is None:
        note_order(context)
        return columns, relation
    return cut_over(context, relation, columns, keys, sorting.hidden, cut)


def cut_over(
    context: Context,
    relation: Node,
    columns: tuple[Column, ...],
    keys: list[SortKey],
    hidden: list[tuple[Column, Expr]],
    cut: Cut,
) -> tuple[tuple[Column, ...], Node]:
    """The rows that a cut keeps by keys over ``columns`` and over ``hidden``, which is computed from them."""
    if not hidden:
        return columns, top_k(relation, columns, keys, cut)
    fresh = {c.id: context.new_column(c.label, c.type).as_of(c) for c in columns}
    above = Project(relation, (*((fresh[c.id], column_expr(c)) for c in columns), *hidden))
    kept = tuple(fresh[c.id] for c in columns)
    return without_hidden(context, top_k(above, kept, [renewed(key, fresh) for key in keys], cut), kept)


def renewed(key: SortKey, columns: Mapping[str, Column]) -> SortKey:
    """A key that is a column, under the column's new id."""
    found = next((columns[i] for i in key.expr.columns if i in columns), None)
    if found is None:
        return key
    return replace(key, expr=column_expr(found, key.expr.text))


def without_hidden(context: Context, node: Node, columns: tuple[Column, ...]) -> tuple[tuple[Column, ...], Node]:
    """``node`` with just some of its columns, as fresh ones."""
    outputs = tuple((context.new_column(c.label, c.type).as_of(c), column_expr(c)) for c in columns)
    return tuple(c for c, _ in outputs), Project(node, outputs)


def note_order(context: Context) -> None:
    context.note("ORDER BY without LIMIT changes nothing: a relation has no order; sort where it is read")
