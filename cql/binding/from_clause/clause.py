"""FROM: names, subqueries, windows and joins, as one node and one scope.

Commas separate groups of joins; a group's ON sees only the group, as in Spark. Joins are in ``joins.py``.
"""

from __future__ import annotations

from sqlglot import exp

from sweeparea.cql.binding.from_clause import enrichment, entries, generators
from sweeparea.cql.binding.from_clause.joins import joined, kind_of
from sweeparea.cql.binding.from_clause.lateral import lateral
from sweeparea.cql.binding.from_clause.values import values
from sweeparea.cql.binding.from_clause.windowed_streams import window_over, window_over_query
from sweeparea.cql.binding.scope.inputs import SchemaKind
from sweeparea.cql.binding.scope.scopes import Entry, Item, Scope
from sweeparea.cql.binding.subqueries.correlation import ids
from sweeparea.cql.binding.subqueries.queries import BoundQuery, Cte, Queries
from sweeparea.cql.syntax.dialect.spans import span_of
from sweeparea.cql.syntax.windows.window_text import WindowText
from sweeparea.cql.text.errors import TypeError_, not_offered, raise_all
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.nodes import Join
from sweeparea.operators.sql.expressions import Column


class FromClause:
    """Binds the FROM clause of one SELECT."""

    def __init__(self, queries: Queries, env: dict[str, Cte]) -> None:
        self.queries = queries
        self.context = queries.context
        self.env = env

    def bind(self, first: exp.Expr, joins: list[exp.Expr]) -> Entry:
        groups: list[Entry] = []
        self._check_names(first, joins)
        current = self.entry(first)
        for join in joins:
            if generators.is_table_function(join.this):
                # LATERAL explode(..) sees all that stands before it
                groups, current = [], generators.joined(self.context, self._product([*groups, current]), join)
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
                        self.context.input(name, self.context.place(entry), list(self.env))
                    except SweepAreaError as error:
                        errors.append(error)
        raise_all(errors)

    def _comma(self, groups: list[Entry], current: Entry, join: exp.Expr) -> tuple[list[Entry], Entry]:
        entry = self.entry(join.this, joined=True)
        if not enrichment.is_non_retroactive(self.context, entry[0]):
            return [*groups, current], entry
        window = enrichment.stream_of(self.context, current, join, "inner")
        scope = current[1].beside(entry[1])
        scope.enriched |= ids(entry[0])
        return groups, (enrichment.enriched(window, entry[0], None), scope)

    def _product(self, groups: list[Entry]) -> Entry:
        node, scope = groups[0]
        for other, beside in groups[1:]:
            node, scope = Join(node, other), scope.beside(beside)
        return node, scope

    def _is_comma(self, join: exp.Expr) -> bool:
        span = span_of(join)
        return span is not None and self.context.source.text[span[0]] == ","

    # -- entries -----------------------------------------------------------------------------------------------------

    def entry(self, node: exp.Expr, joined: bool = False) -> Entry:
        """One entry of FROM, with the joins in its parentheses. ``joined``: it stands on the right side of a join."""
        if generators.is_table_function(node):
            bound = generators.in_from(self.context, node, None)
        elif isinstance(node, exp.Table):
            bound = self._table(node)
        elif isinstance(node, exp.Subquery):
            bound = self._subquery(node)
        elif isinstance(node, exp.Lateral):
            raise TypeError_(
                "LATERAL needs an entry before it, whose columns it sees",
                self.context.place(node),
                "Write FROM S, LATERAL (SELECT ..) t",
            )
        elif isinstance(node, exp.Unnest):
            raise not_offered("UNNEST", self.context.place(node), "Write LATERAL VIEW explode(array) t AS x")
        elif isinstance(node, exp.Values):
            bound = self._values(node)
        else:
            raise not_offered(
                f"{node.key.upper()} in FROM", self.context.place(node), "FROM has names, subqueries, VALUES and joins"
            )
        joins = node.args.get("joins") or []
        if enrichment.is_non_retroactive(self.context, bound[0]) and (joins or not joined):
            raise enrichment.misplaced(node.name, self.context.place(node))
        for join in joins:
            bound = self._join(bound, join)
        return bound

    def _values(self, node: exp.Values) -> Entry:
        alias, columns = entries.alias_of(node)
        if entries.window_of(self.context, node) is not None:
            raise TypeError_("a window needs a stream, not VALUES", self.context.place(node), "Leave the window out")
        bound = values(self.context, node)
        return bound.node, Scope.of(Item(alias, entries.renamed(self.context, bound.columns, columns, node)))

    def _table(self, node: exp.Table) -> Entry:
        entries.refuse_parts_of_entry(self.context, node)
        parts = [p.name for p in node.parts]
        alias, columns = entries.alias_of(node)
        window = entries.window_of(self.context, node)
        place = self.context.place(node)
        if len(parts) == 1 and parts[0].lower() in self.env:
            cte = self.env[parts[0].lower()]
            bound = self.context.nested(lambda: self.queries.named(cte), place)
            return self._query_entry(bound, alias or parts[0], list(cte.columns), columns, window, node)
        schema = self.context.input(".".join(parts), place, list(self.env))
        alias = alias or parts[-1]
        if schema.kind == SchemaKind.RELATION:
            if window is not None:
                raise TypeError_(
                    f"{schema.name} is a relation, and a window needs a stream",
                    self.context.source.place(window.span[0]),
                    f"Leave {window.text} out, or window the stream of its changes: "
                    f"ISTREAM(SELECT * FROM {schema.name}) {window.text}",
                )
            relation = self.context.relation_scan(schema, place)
            return relation, Scope.of(Item(alias, entries.renamed(self.context, relation.columns, columns, node)))
        scan = self.context.stream_scan(schema, place)
        named = entries.renamed(self.context, tuple(c for c, _ in scan.source), columns, node)
        node_, _, instant = window_over(
            self.context, scan, window, alias, named if entries.is_behind_alias(node) else None
        )
        return node_, Scope.of(Item(alias, named, instant, node_, self.context.sequence_of(scan)))

    def _subquery(self, node: exp.Subquery) -> Entry:
        entries.refuse_parts_of_entry(self.context, node)
        alias, columns = entries.alias_of(node)
        window = entries.window_of(self.context, node)
        if isinstance(node.this, exp.Table) or entries.is_entry(node.this):  # (a JOIN b ON ..)
            node_, scope = self.entry(node.this)
            if window is not None:
                raise TypeError_(
                    "a window needs a stream, not a join",
                    self.context.source.place(window.span[0]),
                    "Window each stream inside",
                )
            if alias is None and not columns:
                return node_, scope
            return node_, Scope.of(Item(alias, entries.renamed(self.context, tuple(scope.star), columns, node)))
        bound = self.queries.entry(node, self.env)
        return self._query_entry(bound, alias, [], columns, window, node)

    def _query_entry(
        self,
        bound: BoundQuery,
        alias: str | None,
        inner_names: list[str],
        outer_names: list[str],
        window: WindowText | None,
        node: exp.Expr,
    ) -> Entry:
        place = self.context.place(node)
        if bound.to_stream is None and window is None:
            named = entries.renamed(
                self.context, entries.renamed(self.context, bound.columns, inner_names, node), outer_names, node
            )
            return bound.node, Scope.of(Item(alias, named))

        def names(columns: tuple[Column, ...]) -> tuple[Column, ...]:
            inner = entries.renamed(self.context, columns, inner_names, node)
            return entries.renamed(self.context, inner, outer_names, node) if entries.is_behind_alias(node) else inner

        result, columns, instant = window_over_query(self.context, bound, window, place, alias, names)
        named = entries.renamed(
            self.context, entries.renamed(self.context, columns, inner_names, node), outer_names, node
        )
        return result, Scope.of(Item(alias, named, instant, result))

    # -- joins -------------------------------------------------------------------------------------------------------

    def _join(self, left: Entry, join: exp.Expr) -> Entry:
        if generators.is_table_function(join.this):
            return generators.joined(self.context, left, join)
        kind = kind_of(self.context, join)
        if isinstance(join.this, exp.Lateral):
            return lateral(self.queries, self.env, left, join, kind)
        return joined(self.queries, self.env, left, self.entry(join.this, joined=True), join, kind)
