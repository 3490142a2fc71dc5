"""FROM: names, subqueries, windows and joins, as one node and one scope.

Commas separate groups of joins; a group's ON sees only the group, as in Spark. Further kinds of joins become methods
beside ``_join``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from sweeparea.cql.dialect import span_of
from sweeparea.cql.errors import BindError, ParseError, TypeError_, not_offered
from sweeparea.cql.expressions import Binder, column_expr, conjuncts
from sweeparea.cql.rewrites import push_selection
from sweeparea.cql.scopes import Item, Scope, only
from sweeparea.cql.window_text import WindowText
from sweeparea.operators.logical import Column, Expr, Join, Node

if TYPE_CHECKING:
    from sweeparea.cql.query import BoundQuery, Cte, QueryBinder

Bound = tuple[Node, Scope]

_TABLE_PARTS = {"this", "alias", "joins"}
_REFUSED_TABLE = {
    "sample": "TABLESAMPLE",
    "pivots": "PIVOT / UNPIVOT",
    "version": "time travel (VERSION / TIMESTAMP AS OF)",
    "when": "time travel",
    "hints": "a table hint",
    "laterals": "LATERAL VIEW",
    "rows_from": "ROWS FROM",
    "only": "ONLY",
    "partition": "PARTITION",
    "ordinality": "WITH ORDINALITY",
    "changes": "CHANGES",
    "indexed": "INDEXED BY",
}


class FromClause:
    """Binds the FROM clause of one SELECT."""

    def __init__(self, queries: QueryBinder, env: dict[str, Cte]) -> None:
        self.queries = queries
        self.context = queries.context
        self.source = queries.source
        self.env = env

    def bind(self, first: exp.Expr, joins: list[exp.Expr]) -> Bound:
        groups: list[Bound] = []
        current = self._entry(first)
        for join in joins:
            if self._is_comma(join):
                groups.append(current)
                current = self._entry(join.this)
            else:
                current = self._join(current, join)
        groups.append(current)
        node, scope = groups[0]
        for other, beside in groups[1:]:
            node, scope = Join(node, other), scope.beside(beside)
        return node, scope

    def _is_comma(self, join: exp.Expr) -> bool:
        span = span_of(join)
        return span is not None and self.source.text[span[0]] == ","

    # -- entries -----------------------------------------------------------------------------------------------------

    def _entry(self, node: exp.Expr) -> Bound:
        if isinstance(node, exp.Table):
            bound = self._table(node)
        elif isinstance(node, exp.Subquery):
            bound = self._subquery(node)
        elif isinstance(node, exp.Lateral):
            raise not_offered("LATERAL", self.queries.place(node))
        elif isinstance(node, exp.Unnest):
            raise not_offered("UNNEST", self.queries.place(node))
        elif isinstance(node, exp.Values):
            raise not_offered(
                "VALUES in FROM", self.queries.place(node), "Put constants into a Delta table and declare it a RELATION"
            )
        else:
            raise not_offered(f"{node.key.upper()} in FROM", self.queries.place(node))
        for join in node.args.get("joins") or []:
            bound = self._join(bound, join)
        return bound

    def _refuse(self, node: exp.Expr) -> None:
        for name, value in node.args.items():
            if value and name not in _TABLE_PARTS and name not in ("db", "catalog", "with_"):
                first = value[0] if isinstance(value, list) else value
                at = first if isinstance(first, exp.Expr) and span_of(first) is not None else node
                raise not_offered(_REFUSED_TABLE.get(name, name.upper()), self.queries.place(at))

    def _alias(self, node: exp.Expr) -> tuple[str | None, list[str]]:
        alias = node.args.get("alias")
        if not isinstance(alias, exp.TableAlias):
            return None, []
        return (alias.name or None), [c.name for c in alias.args.get("columns") or []]

    def _window(self, node: exp.Expr) -> WindowText | None:
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

    def _table(self, node: exp.Table) -> Bound:
        self._refuse(node)
        if isinstance(node.this, exp.Func):
            raise not_offered(f"the table function {node.this.name or node.this.key}", self.queries.place(node))
        parts = [p.name for p in node.parts]
        alias, columns = self._alias(node)
        window = self._window(node)
        place = self.queries.place(node)
        if len(parts) == 1 and parts[0].lower() in self.env:
            cte = self.env[parts[0].lower()]
            bound = self.context.nested(lambda: self.queries.query(cte.query, cte.env), place)
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
            return relation, Scope.of(Item(alias, self._renamed(relation.columns, columns, node)))
        scan = self.context.stream_scan(schema, place)
        named = self._renamed(tuple(c for c, _ in scan.source), columns, node)
        node_, _, instant = self.context.window_over(scan, window, alias)
        return node_, Scope.of(Item(alias, named, instant))

    def _subquery(self, node: exp.Subquery) -> Bound:
        self._refuse(node)
        alias, columns = self._alias(node)
        window = self._window(node)
        if isinstance(node.this, exp.Table):  # (a JOIN b ON ..)
            node_, scope = self._entry(node.this)
            if window is not None:
                raise TypeError_(
                    "a window needs a stream, not a join",
                    self.source.place(window.span[0]),
                    "Window each stream inside",
                )
            if alias is None and not columns:
                return node_, scope
            return node_, Scope.of(Item(alias, self._renamed(tuple(scope.star), columns, node)))
        bound = self.queries._parenthesized(node, self.queries._with(node, self.env))
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
            named = self._renamed(self._renamed(bound.columns, inner_names, node), outer_names, node)
            return bound.node, Scope.of(Item(alias, named))
        result, columns, instant = self.context.window_over_stream(bound, window, place, alias)
        named = self._renamed(self._renamed(columns, inner_names, node), outer_names, node)
        return result, Scope.of(Item(alias, named, instant))

    def _renamed(self, columns: tuple[Column, ...], names: list[str], node: exp.Expr) -> tuple[Column, ...]:
        """``AS x(a, b)``: the same columns under other labels."""
        if not names:
            return columns
        if len(names) != len(columns):
            raise BindError(
                f"the alias names {len(names)} columns, but there are {len(columns)}", self.queries.place(node)
            )
        return tuple(replace(c, label=n) for c, n in zip(columns, names, strict=True))

    # -- joins -------------------------------------------------------------------------------------------------------

    def _join(self, left: Bound, join: exp.Expr) -> Bound:
        self._refuse_join(join)
        right = self._entry(join.this)
        node, scope = Join(left[0], right[0]), left[1].beside(right[1])
        on, using = join.args.get("on"), join.args.get("using")
        natural = str(join.args.get("method") or "").upper() == "NATURAL"
        if on is not None:
            joined: Node = node
            for tree in conjuncts(on):
                condition = Binder(self.source, scope, self.context.new_column, "ON").condition(tree)
                joined = push_selection(joined, condition)
            return joined, scope
        if using or natural:
            names = [u.name for u in using] if using else self._shared(left[1], right[1])
            return self._using(node, left[1], right[1], names, join)
        return node, scope

    def _shared(self, left: Scope, right: Scope) -> list[str]:
        theirs = {c.label.lower() for c in right.star}
        return [c.label for c in left.star if c.label.lower() in theirs]

    def _using(self, node: Join, left: Scope, right: Scope, names: list[str], join: exp.Expr) -> Bound:
        place = self.queries.place(join)
        pairs: list[tuple[Column, Column]] = []
        for name in names:
            sides: list[Column] = []
            for side, scope in (("left", left), ("right", right)):
                found = [(i, c) for i, c in scope.unqualified(name) if c is not i.instant]
                if not found:
                    known = ", ".join(dict.fromkeys(c.label for c in scope.star))
                    raise BindError(
                        f"USING names {name}, which the {side} side of the join lacks", place, f"It has {known}"
                    )
                sides.append(only(found, name, place))
            pairs.append((sides[0], sides[1]))
        scope = left.beside(right)
        scope.hidden |= {r.id for _, r in pairs}
        shared = {c.id for pair in pairs for c in pair}
        scope.star = [left_ for left_, _ in pairs] + [c for c in scope.star if c.id not in shared]
        if not pairs:
            return node, scope
        sql = " AND ".join(f"{column_expr(a).sql} = {column_expr(b).sql}" for a, b in pairs)
        text = f"USING ({', '.join(names)})"
        return replace(node, condition=Expr(sql, text, frozenset(shared))), scope

    def _refuse_join(self, join: exp.Expr) -> None:
        side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
        method = str(join.args.get("method") or "").upper()
        if side or kind not in ("", "INNER", "CROSS"):
            name = " ".join(w for w in (method, side, kind) if w)
            raise not_offered(f"{name} JOIN", self.queries.place(join), "Offered are inner and cross joins")
        if method not in ("", "NATURAL"):
            raise not_offered(f"{method} JOIN", self.queries.place(join))
        for name, value in join.args.items():
            if value and name not in ("this", "on", "using", "kind", "side", "method", "joins"):
                raise not_offered(f"JOIN with {name.upper()}", self.queries.place(join))
