"""The binder of expressions at one place of a query: what can be named there, and what is asked of an expression there.

``Binder.bind`` gives an ``Expr`` whose text is the author's, with each column replaced by its quoted id. The walk over
an expression's tree is handed in (``expressions/``), so that what a call or a clause asks of a binder lies below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from sqlglot import exp

from sweeparea.cql.binding.scope.around import QueryAround
from sweeparea.cql.binding.scope.bound import Bound, column_expr, quoted
from sweeparea.cql.binding.scope.grouping import Groups
from sweeparea.cql.binding.scope.scopes import Scope, parts_of
from sweeparea.cql.binding.scope.stars import star_columns
from sweeparea.cql.binding.scope.window_bounds import bound_column
from sweeparea.cql.binding.scope.window_calls import WindowCalls
from sweeparea.cql.functions import functions, types
from sweeparea.cql.functions.argument_checks import comparison
from sweeparea.cql.functions.untyped_nulls import STORED, typed
from sweeparea.cql.syntax.dialect.spans import span_of
from sweeparea.cql.syntax.trees import has_subquery, is_star
from sweeparea.cql.text.errors import BindError, ParseError, Place, TypeError_, raise_all
from sweeparea.cql.text.source_text import Replacement, SourceText, Span
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.sql.expressions import Column, Expr, SortKey

NewColumn = Callable[[str, str | None], Column]


class TakesSubqueries(Protocol):
    """What takes the subqueries met in an expression."""

    def value(self, binder: Binder, node: exp.Expr) -> Bound:
        """What stands in the expression for a subquery."""
        ...


Walk = Callable[["Binder", exp.Expr, Span, bool], Bound]
"""Binds a tree, of which the characters are given; True: it stands where a condition is needed."""


@dataclass(eq=False)
class Binder:
    """Binds expressions at one place of a query.

    ``where`` names the place for errors (WHERE, SELECT, ..). ``aliases`` are select-list aliases that may be used once
    no column has the name (Spark's lateral aliases, and HAVING), or before (``aliases_first``: ORDER BY). ``windows``
    takes the window functions met; None: there may be none. ``outer`` is what can be named of the queries around,
    ``subqueries`` takes the subqueries met; None: there may be none. ``walk`` goes through a tree (``expressions/``).
    """

    source: SourceText
    scope: Scope
    new_column: NewColumn
    where: str
    walk: Walk
    grouping: Groups | None = None
    aliases: dict[str, Bound] = field(default_factory=dict)
    windows: WindowCalls | None = None
    aliases_first: bool = False
    outer: QueryAround | None = None
    subqueries: TakesSubqueries | None = None

    def derived(self, where: str, **changes: Any) -> Binder:
        """The same binder for another place, with some of its fields changed."""
        return replace(self, where=where, **changes)

    # -- the two ways in ---------------------------------------------------------------------------------------------

    def bind(self, node: exp.Expr, span: Span | None = None, condition: bool = False) -> Bound:
        """The expression of a tree. Raises the faults of all its parts. ``condition``: a NULL without a type is one of
        BOOLEAN.
        """
        return self.walk(self, node, span or self.span(node), condition)

    def condition(self, node: exp.Expr) -> Expr:
        """As ``bind``, for WHERE, ON and HAVING: TypeError where the type is known and not BOOLEAN. A STRING that AND
        connects with a BOOLEAN is one, as in Spark, though it is bound alone.
        """
        bound = self.bind(node, condition=True)
        if bound.type == "string" and self._beside_boolean(node):
            return typed(bound.expr, "boolean")
        if bound.type not in (None, "boolean"):
            raise TypeError_(
                f"{self.where} needs a condition, but {bound.expr.text} is of type {bound.type.upper()}",
                self.place(node),
                comparison(bound.expr.text, bound.type),
            )
        return bound.expr

    def _beside_boolean(self, node: exp.Expr) -> bool:
        """Whether AND connects a part of WHERE or ON with a BOOLEAN, or with what may be one."""
        above = node.parent
        while isinstance(above, exp.Paren):
            node, above = above, above.parent
        if not isinstance(above, exp.And):
            return False
        other = (above.expression if above.this is node else above.this).unnest()
        if has_subquery(other) or isinstance(other, exp.And):
            return types.of(other, {}) in (None, "boolean")
        try:
            return self.bind(other).type in (None, "boolean")
        except SweepAreaError:
            return False  # it is told where that part is bound

    def conditions(self, nodes: Iterable[exp.Expr]) -> list[Expr]:
        """As ``condition`` for each of several; raises the faults of all of them."""
        found: list[Expr] = []
        faults: list[SweepAreaError] = []
        for node in nodes:
            try:
                found.append(self.condition(node))
            except SweepAreaError as error:
                faults.append(error)
        raise_all(faults)
        return found

    def faults(self, nodes: Iterable[exp.Expr | None]) -> list[SweepAreaError]:
        """What is wrong with expressions, to be told beside another fault of what they stand in."""
        found: list[SweepAreaError] = []
        for node in nodes:
            try:
                if node is not None and not is_star(node):
                    self.bind(node)
            except SweepAreaError as error:
                found.append(error)
        return found

    def bind_all(self, node: exp.Expr) -> list[Bound]:
        """As ``bind``; a star gives all columns that it stands for."""
        if is_star(node):
            return [Bound(column_expr(c), c.type, c.char) for c in star_columns(self.scope, node, self.place)]
        return [self.bind(node)]

    def kept(self, node: exp.Expr, bound: Bound | None = None, type_: str = STORED) -> Bound:
        """An expression by which rows are remembered, a NULL without a type as one of ``type_``; ``bound`` where it is
        bound already. TypeError_ where no table holds its type.
        """
        bound = bound or self.bind(node)
        if bound.type is not None and (unheld := types.unheld(bound.type)):
            told = f"{bound.expr.text} is of type {bound.type.upper()}, which no table holds"
            hint = "Take a number instead, as timestampdiff(SECOND, a, b) or datediff(b, a) give it"
            hint = hint if unheld == "interval" else "CAST it, or take the parts of it that are needed"
            raise TypeError_(f"{told}, and rows are remembered by it", self.place(node), hint)
        return bound.typed(type_)

    def sort_key(self, node: exp.Expr, bound: Bound | None = None) -> SortKey:
        """A key of an ORDER BY; ``bound`` is its expression where that is known already."""
        bound = self.kept(node.this, bound)
        if bound.type is not None and (bound.type.startswith("map<") or bound.type == "variant"):
            raise TypeError_(
                f"{self.where} cannot compare {bound.expr.text}, which is a {bound.type.split('<')[0].upper()}",
                self.place(node.this),
                "Order by a part of it",
            )
        return SortKey(bound.expr, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    # -- helpers -----------------------------------------------------------------------------------------------------

    def span(self, node: exp.Expr) -> Span:
        span = span_of(node)
        if span is None:
            first = self.source.tokens[0].start if self.source.tokens else 0
            raise ParseError(f"this part of {self.where} cannot be read", self.source.place(first))
        return span

    def place(self, node: exp.Expr) -> Place:
        return self.source.place(self.span(node)[0])

    def text(self, node: exp.Expr) -> str:
        """An expression as its author wrote it."""
        return self.source.splice(self.span(node))

    def span_of_parts(self, column: exp.Column, parts: list[exp.Identifier]) -> Span:
        """The characters of the first parts of a dotted name. The parser does not say where a literal among them
        stands."""
        whole, first, last = self.span(column), span_of(parts[0]), span_of(parts[-1])
        if last is None and len(parts) == len(parts_of(column)):
            return whole
        if first is None or last is None:
            raise ParseError("this name cannot be read", self.source.place(whole[0]), "Put its parts into backticks")
        return first[0], last[1]

    def canonical(self, node: exp.Expr) -> tuple[str, ...] | None:
        """What equal expressions over the input share, or None where a name does not resolve there."""
        replacements: list[Replacement] = []
        try:
            # equal texts of subqueries at one place mean the same
            for column in node.walk(prune=lambda n: isinstance(n, exp.Query) or _is_window_bound(n)):
                if isinstance(column, exp.Anonymous) and _is_window_bound(column):
                    bound = bound_column(column, self.scope, self.place(column))
                    replacements.append(Replacement(self.span(column), quoted(bound)))
                if not isinstance(column, exp.Column):
                    continue
                parts = parts_of(column)
                if len(parts) != len(column.parts):
                    return None
                names, place = [p.name for p in parts], self.place(column)
                if self.outer is not None and not self.scope.has(names):
                    found, used = self.outer.resolve(names, place)
                else:
                    found, used = self.scope.resolve(names, place)
                replacements.append(Replacement(self.span_of_parts(column, parts[:used]), quoted(found)))
            return self.source.canonical(self.span(node), replacements)
        except (BindError, TypeError_):
            return None


def _is_window_bound(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() in functions.WINDOW_BOUNDS
