"""FROM: names, subqueries, windows and joins, as one node and one scope.

Commas separate groups of joins; a group's ON sees only the group, as in Spark. Joins are in ``joins.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from sweeparea.cql.binding import set_operations
from sweeparea.cql.binding.expressions import generators
from sweeparea.cql.binding.from_clause import enrichment
from sweeparea.cql.binding.from_clause import joins as joins_
from sweeparea.cql.binding.scope.scopes import Item, Scope
from sweeparea.cql.binding.subqueries.correlation import ids
from sweeparea.cql.syntax.dialect import span_of
from sweeparea.cql.syntax.window_text import WindowText
from sweeparea.cql.text.errors import BindError, ParseError, TypeError_, listing, not_offered, raise_all
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.nodes import Join
from sweeparea.operators.plan.expressions import Column
from sweeparea.operators.plan.node import Node

if TYPE_CHECKING:
    from sweeparea.cql.binding.query import BoundQuery, Cte, QueryBinder

Bound = tuple[Node, Scope]

_TABLE_PARTS = {"this", "alias", "joins"}
_LATERAL = "Write it behind all of FROM"
_TRAVEL = "Write what is wanted of the past as a window, such as [Range INTERVAL 1 DAY]"
_REFUSED_TABLE = {
    "sample": ("TABLESAMPLE", "Chance gives another answer each time. Filter by a column, such as a % 10 = 0"),
    "pivots": ("PIVOT / UNPIVOT", "Write SUM(x) FILTER (WHERE b = 'v') AS v, or stack(..)"),
    "version": ("time travel (VERSION / TIMESTAMP AS OF)", _TRAVEL),
    "when": ("time travel", _TRAVEL),
    "hints": ("a table hint", "Leave it out"),
    "laterals": ("LATERAL VIEW", _LATERAL),
    "rows_from": ("ROWS FROM", "Write LATERAL VIEW"),
    "only": ("ONLY", "Leave it out"),
    "partition": ("PARTITION", "Write a condition in WHERE"),
    "ordinality": ("WITH ORDINALITY", "Write posexplode(..)"),
    "changes": ("CHANGES", "Write ISTREAM(SELECT ..) or DSTREAM(SELECT ..)"),
    "indexed": ("INDEXED BY", "Leave it out"),
}
"""What each part of an entry is called, and the way out."""


class FromClause:
    """Binds the FROM clause of one SELECT."""

    def __init__(self, queries: QueryBinder, env: dict[str, Cte]) -> None:
        self.queries = queries
        self.context = queries.context
        self.source = queries.source
        self.env = env

    def bind(self, first: exp.Expr, joins: list[exp.Expr]) -> Bound:
        groups: list[Bound] = []
        self._check_names(first, joins)
        current = self.entry(first)
        for join in joins:
            if generators.is_table_function(join.this):
                # LATERAL explode(..) sees all that stands before it
                groups, current = [], generators.joined(self.queries, self._product([*groups, current]), join)
            elif self._is_comma(join) and isinstance(join.this, exp.Lateral):
                groups, current = [], self._join(self._product([*groups, current]), join)
            elif self._is_comma(join):
                groups, current = self._comma(groups, current, join)
            else:
                current = self._join(current, join)
        return self._product([*groups, current])

    def _check_names(self, first: exp.Expr, joins: list[exp.Expr]) -> None:
        """BindError for all names of FROM that nothing has, before what is said of their columns."""
        errors: list[SweepAreaError] = []
        for entry in (first, *(join.this for join in joins)):
            if isinstance(entry, exp.Table) and not generators.is_table_function(entry):
                name = ".".join(part.name for part in entry.parts)
                if name.lower() not in self.env:
                    try:
                        self.context.input(name, self.queries.place(entry), list(self.env))
                    except SweepAreaError as error:
                        errors.append(error)
        raise_all(errors)

    def _comma(self, groups: list[Bound], current: Bound, join: exp.Expr) -> tuple[list[Bound], Bound]:
        entry = self.entry(join.this, joined=True)
        if not enrichment.is_non_retroactive(self.context, entry[0]):
            return [*groups, current], entry
        window = enrichment.stream_of(self, current, join, "inner")
        scope = current[1].beside(entry[1])
        scope.enriched |= ids(entry[0])
        return groups, (enrichment.enriched(window, entry[0], None), scope)

    def _product(self, groups: list[Bound]) -> Bound:
        node, scope = groups[0]
        for other, beside in groups[1:]:
            node, scope = Join(node, other), scope.beside(beside)
        return node, scope

    def _is_comma(self, join: exp.Expr) -> bool:
        span = span_of(join)
        return span is not None and self.source.text[span[0]] == ","

    # -- entries -----------------------------------------------------------------------------------------------------

    def entry(self, node: exp.Expr, joined: bool = False) -> Bound:
        """One entry of FROM, with the joins in its parentheses. ``joined``: it stands on the right side of a join."""
        if generators.is_table_function(node):
            bound = generators.in_from(self.queries, node, None)
        elif isinstance(node, exp.Table):
            bound = self._table(node)
        elif isinstance(node, exp.Subquery):
            bound = self._subquery(node)
        elif isinstance(node, exp.Lateral):
            raise TypeError_(
                "LATERAL needs an entry before it, whose columns it sees",
                self.queries.place(node),
                "Write FROM S, LATERAL (SELECT ..) t",
            )
        elif isinstance(node, exp.Unnest):
            raise not_offered("UNNEST", self.queries.place(node), "Write LATERAL VIEW explode(array) t AS x")
        elif isinstance(node, exp.Values):
            bound = self._values(node)
        else:
            raise not_offered(
                f"{node.key.upper()} in FROM", self.queries.place(node), "FROM has names, subqueries, VALUES and joins"
            )
        joins = node.args.get("joins") or []
        if enrichment.is_non_retroactive(self.context, bound[0]) and (joins or not joined):
            raise enrichment.misplaced(node.name, self.queries.place(node))
        for join in joins:
            bound = self._join(bound, join)
        return bound

    def _values(self, node: exp.Values) -> Bound:
        alias, columns = self.alias(node)
        if self.window(node) is not None:
            raise TypeError_("a window needs a stream, not VALUES", self.queries.place(node), "Leave the window out")
        bound = set_operations.values(self.queries, node)
        return bound.node, Scope.of(Item(alias, self.renamed(bound.columns, columns, node)))

    def _refuse(self, node: exp.Expr) -> None:
        for name, value in node.args.items():
            if value and name not in _TABLE_PARTS and name not in ("db", "catalog", "with_"):
                first = value[0] if isinstance(value, list) else value
                at = first if isinstance(first, exp.Expr) and span_of(first) is not None else node
                what, hint = _REFUSED_TABLE.get(name, (name.upper(), "Leave it out"))
                known = self.context.inputs.get(node.name.lower())
                if name == "version" and known is not None and known.kind == "relation":
                    hint = (
                        "Leave it out: a join reads a relation as it is at each instant; read a stream beside it [Now]"
                    )
                raise not_offered(what, self.queries.place(at), hint)

    def alias(self, node: exp.Expr) -> tuple[str | None, list[str]]:
        alias = node.args.get("alias")
        if not isinstance(alias, exp.TableAlias):
            return None, []
        return (alias.name or None), [c.name for c in alias.args.get("columns") or []]

    def window(self, node: exp.Expr) -> WindowText | None:
        """The window before or behind the alias."""
        alias = node.args.get("alias")
        before = node.meta.get("window")
        behind = alias.meta.get("window") if isinstance(alias, exp.Expr) else None
        if before is not None and behind is not None:
            raise ParseError(
                "a stream takes one window, found two",
                self.source.place(behind.span[0]),
                "Keep the one before or behind the alias",
            )
        return before or behind

    def _behind_alias(self, node: exp.Expr) -> bool:
        """Whether the window stands behind the alias, and so sees the names that this gives to the columns."""
        alias = node.args.get("alias")
        return isinstance(alias, exp.Expr) and alias.meta.get("window") is not None

    def _table(self, node: exp.Table) -> Bound:
        self._refuse(node)
        parts = [p.name for p in node.parts]
        alias, columns = self.alias(node)
        window = self.window(node)
        place = self.queries.place(node)
        if len(parts) == 1 and parts[0].lower() in self.env:
            cte = self.env[parts[0].lower()]
            bound = self.context.nested(lambda: cte.bind(self.queries), place)
            return self._query_entry(bound, alias or parts[0], list(cte.columns), columns, window, node)
        schema = self.context.input(".".join(parts), place, list(self.env))
        alias = alias or parts[-1]
        if schema.kind == "relation":
            if window is not None:
                raise TypeError_(
                    f"{schema.name} is a relation, and a window needs a stream",
                    self.source.place(window.span[0]),
                    f"Leave {window.text} out, or window the stream of its changes: "
                    f"ISTREAM(SELECT * FROM {schema.name}) {window.text}",
                )
            relation = self.context.relation_scan(schema, place)
            return relation, Scope.of(Item(alias, self.renamed(relation.columns, columns, node)))
        scan = self.context.stream_scan(schema, place)
        named = self.renamed(tuple(c for c, _ in scan.source), columns, node)
        node_, _, instant = self.context.window_over(scan, window, alias, named if self._behind_alias(node) else None)
        return node_, Scope.of(Item(alias, named, instant, node_, self.context.sequence_of(scan)))

    def _subquery(self, node: exp.Subquery) -> Bound:
        self._refuse(node)
        alias, columns = self.alias(node)
        window = self.window(node)
        if isinstance(node.this, exp.Table) or _is_entry(node.this):  # (a JOIN b ON ..)
            node_, scope = self.entry(node.this)
            if window is not None:
                raise TypeError_(
                    "a window needs a stream, not a join",
                    self.source.place(window.span[0]),
                    "Window each stream inside",
                )
            if alias is None and not columns:
                return node_, scope
            return node_, Scope.of(Item(alias, self.renamed(tuple(scope.star), columns, node)))
        bound = self.queries._parenthesized(node, self.queries._with(node, self.env), in_from=True)
        return self._query_entry(bound, alias, [], columns, window, node)

    def _query_entry(
        self,
        bound: BoundQuery,
        alias: str | None,
        inner_names: list[str],
        outer_names: list[str],
        window: WindowText | None,
        node: exp.Expr,
    ) -> Bound:
        place = self.queries.place(node)
        if bound.to_stream is None and window is None:
            named = self.renamed(self.renamed(bound.columns, inner_names, node), outer_names, node)
            return bound.node, Scope.of(Item(alias, named))

        def names(columns: tuple[Column, ...]) -> tuple[Column, ...]:
            inner = self.renamed(columns, inner_names, node)
            return self.renamed(inner, outer_names, node) if self._behind_alias(node) else inner

        result, columns, instant = self.context.window_over_stream(bound, window, place, alias, names)
        named = self.renamed(self.renamed(columns, inner_names, node), outer_names, node)
        return result, Scope.of(Item(alias, named, instant, result))

    def renamed(self, columns: tuple[Column, ...], names: list[str], node: exp.Expr) -> tuple[Column, ...]:
        """``AS x(a, b)``: the same columns under other labels."""
        if not names:
            return columns
        if len(names) != len(columns):
            raise BindError(
                f"the alias names {len(names)} column{'s' * (len(names) != 1)}, but there"
                f" {'is' if len(columns) == 1 else 'are'} {len(columns)}",
                self.queries.place(node),
                f"Name each of {listing(c.label for c in columns)}",
            )
        return tuple(replace(c, label=n) for c, n in zip(columns, names, strict=True))

    # -- joins -------------------------------------------------------------------------------------------------------

    def _join(self, left: Bound, join: exp.Expr) -> Bound:
        if generators.is_table_function(join.this):
            return generators.joined(self.queries, left, join)
        return joins_.bind(self, left, join)


def _is_entry(node: exp.Expr) -> bool:
    """Whether a subquery in parentheses is an entry of FROM: a name, or one with an alias, a window or joins."""
    if isinstance(node, exp.Subquery) and (isinstance(node.this, exp.Table) or _is_entry(node.this)):
        return True
    named = node.args.get("alias") is not None or node.meta.get("window") is not None
    return isinstance(node, exp.Subquery) and (named or bool(node.args.get("joins")))
