"""Queries: FROM, WHERE, GROUP BY, HAVING, SELECT, DISTINCT and UNION as plan nodes, in SQL's order of evaluation.

Each clause is one method; a clause or operator that comes later gets its own. What is not offered is refused by name in
``refused_parts.py``, so that nothing of a text is silently ignored.
"""

from __future__ import annotations

from sqlglot import exp

from sweeparea.cql.binding import set_operations
from sweeparea.cql.binding.expressions.registry import binder_at
from sweeparea.cql.binding.from_clause import generators
from sweeparea.cql.binding.from_clause.clause import FromClause
from sweeparea.cql.binding.from_clause.conditions import filtered
from sweeparea.cql.binding.from_clause.values import values
from sweeparea.cql.binding.from_clause.windowed_streams import window_over_query
from sweeparea.cql.binding.refused_parts import refuse_parts
from sweeparea.cql.binding.scope.binder import Binder
from sweeparea.cql.binding.scope.context import Context
from sweeparea.cql.binding.scope.scopes import Item, Scope
from sweeparea.cql.binding.scope.stars import star_columns
from sweeparea.cql.binding.select import ordering
from sweeparea.cql.binding.select.select_list import SelectList
from sweeparea.cql.binding.subqueries.decorrelate import Decorrelation
from sweeparea.cql.binding.subqueries.outer import Outer
from sweeparea.cql.binding.subqueries.queries import BoundQuery, Cte
from sweeparea.cql.binding.subqueries.subqueries import Subqueries
from sweeparea.cql.syntax.dialect.spans import span_of
from sweeparea.cql.syntax.dialect.streams import ToStream
from sweeparea.cql.text.errors import BindError, ParseError, TypeError_, not_offered
from sweeparea.cql.text.faults import Faults
from sweeparea.operators.nodes import OneRow
from sweeparea.operators.plan.node import Node

_SELECT_PARTS = ordering.PARTS | set(
    "expressions from_ joins where group having distinct with_ windows qualify laterals".split()  # noqa: SIM905
)


class QueryBinder:
    """Binds queries of one text; nested ones by calling itself."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.decorrelation = Decorrelation(context.new_column)

    # -- query forms -------------------------------------------------------------------------------------------------

    def query(self, node: exp.Expr, env: dict[str, Cte]) -> BoundQuery:
        """Any query: SELECT, a set operation, one in parentheses, ISTREAM(..)."""
        env = self._with(node, env)
        if isinstance(node, exp.Select):
            return self.select(node, env)
        if isinstance(node, exp.Subquery):
            return self._parenthesized(node, env)
        if isinstance(node, exp.SetOperation):
            return self._ordered(node, set_operations.bind(self, node, env))
        if isinstance(node, exp.Values):
            return values(self.context, node)
        if isinstance(node, exp.Table):  # (A UNION ALL B) in FROM
            whole = exp.Select(expressions=[exp.Star()], from_=exp.From(this=node))
            whole.meta["span"] = span_of(node)
            return self.select(whole, env)
        raise not_offered(f"{node.key.upper()} as a query", self.context.place(node), "Write SELECT .. FROM ..")

    def _with(self, node: exp.Expr, env: dict[str, Cte]) -> dict[str, Cte]:
        with_ = node.args.get("with_")
        if with_ is None:
            return env
        if with_.args.get("recursive"):
            raise not_offered(
                "WITH RECURSIVE", self.context.place(with_), "Join the relation with itself, as deep as it goes"
            )
        env = dict(env)
        here: set[str] = set()
        for cte in with_.expressions:
            name = cte.alias.lower()
            if name in here:
                raise BindError(
                    f"WITH names {cte.alias} twice", self.context.place(cte), "Give each query its own name"
                )
            here.add(name)
            columns = tuple(c.name for c in (cte.args["alias"].args.get("columns") or []))
            env[name] = Cte(cte.this, columns, dict(env), self.context.outer)
        return env

    def entry(self, node: exp.Subquery, env: dict[str, Cte]) -> BoundQuery:
        """A query in parentheses that is an entry of FROM."""
        return self._parenthesized(node, self._with(node, env), in_from=True)

    def named(self, cte: Cte) -> BoundQuery:
        """A query of WITH, bound where it is used, with the names that are known where it is written."""
        before, self.context.outer = self.context.outer, cte.outer
        try:
            return self.query(cte.query, cte.env)
        finally:
            self.context.outer = before

    def _parenthesized(self, node: exp.Subquery, env: dict[str, Cte], in_from: bool = False) -> BoundQuery:
        joins = {"joins"} if in_from else set()  # those of an entry of FROM are its own to bind
        refuse_parts(self.context, node, {"this", "alias", "with_"} | joins | ordering.PARTS)
        bound = self.query(node.this, env)
        operator = node.meta.get("to_stream")
        if node.args.get("order") is not None or node.args.get("limit") is not None:
            return self._ordered(node, bound if operator is None else self._as_stream(bound, operator))
        return bound if operator is None else self._as_stream(bound, operator)

    def _as_stream(self, bound: BoundQuery, operator: ToStream) -> BoundQuery:
        place = self.context.source.place(operator.span[0])
        if bound.to_stream is not None:
            raise TypeError_(
                f"{operator.kind} needs a relation, but the query inside is already a stream ({bound.to_stream.kind})",
                place,
                "Leave one of the two out, or window the inner stream: FROM (..) [Range ..]",
            )
        return BoundQuery(bound.node, bound.columns, operator)

    def _ordered(self, node: exp.Expr, bound: BoundQuery) -> BoundQuery:
        """A query with the ORDER BY and LIMIT written behind it."""
        if not any(node.args.get(part) is not None for part in ordering.PARTS):
            return bound
        if bound.to_stream is not None:
            order = next(node.args[part] for part in ("order", "limit", "offset") if node.args.get(part) is not None)
            raise TypeError_(
                "ORDER BY and LIMIT need a relation, but the query before is a stream",
                self.context.place(order),
                f"Write them inside: {bound.to_stream.kind}(SELECT .. ORDER BY .. LIMIT ..)",
            )
        binder = binder_at(self.context, Scope.of(Item(None, bound.columns)), "ORDER BY")
        columns, relation = ordering.order_over_columns(
            self.context, node, bound.node, bound.columns, binder, self.context.place
        )
        return BoundQuery(relation, columns)

    def relation(self, node: exp.Expr, env: dict[str, Cte]) -> BoundQuery:
        """A query where a relation is needed: a stream without a window is read as Unbounded."""
        bound = self.query(node, env)
        if bound.to_stream is None:
            return bound
        window, columns, _ = window_over_query(self.context, bound, None, self.context.place(node))
        return BoundQuery(window, columns)

    def nested(self, node: exp.Expr, env: dict[str, Cte], around: Binder) -> tuple[BoundQuery, Outer]:
        """A subquery that sees the names at the place of ``around`` behind its own, and what it has used of them."""
        before, outer = self.context.outer, Outer(around)
        self.context.outer = outer
        try:
            return self.relation(node, env), outer
        finally:
            self.context.outer = before

    # -- SELECT ------------------------------------------------------------------------------------------------------

    def select(self, node: exp.Select, env: dict[str, Cte]) -> BoundQuery:
        refuse_parts(self.context, node, _SELECT_PARTS)
        projections, operator, distinct = self._projections(node)
        plan, scope = self._from(node, env)
        faults = Faults()
        for view in node.args.get("laterals") or []:
            plan, scope = generators.lateral_view(self.context, plan, scope, view)
        subqueries = Subqueries(self, env)
        where = node.args.get("where")
        if where is not None:
            plan = filtered(
                subqueries, plan, binder_at(self.context, scope, "WHERE", subqueries), where.this, faults.attempt
            )
        items: list[exp.Expr] = []
        for projection in projections:
            faults.attempt(lambda p=projection: items.extend(self._expanded(p, scope)))
        found, columns = SelectList(self.context, node, scope, items, distinct, faults, subqueries).bind(plan)
        result = BoundQuery(found, columns)
        return result if operator is None else self._as_stream(result, operator)

    def _projections(self, node: exp.Select) -> tuple[list[exp.Expr], ToStream | None, bool]:
        """The select list, with ``ISTREAM(a, b)`` around all of it taken off."""
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            raise not_offered(
                "DISTINCT ON",
                self.context.place(node),
                "Filter by ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) with QUALIFY",
            )
        items = list(node.expressions)
        if not items:
            raise ParseError("the select list is empty", self.context.place(node), "Write SELECT *, or name columns")
        calls = [i for i in items if isinstance(i, exp.Anonymous) and i.meta.get("to_stream") is not None]
        if not calls:
            return items, None, distinct is not None
        call = calls[0]
        if len(items) > 1:
            kind = call.meta["to_stream"].kind
            raise ParseError(
                f"{kind}(..) must hold the whole select list",
                self.context.place(call),
                f"Write SELECT {kind}(a, b) FROM .., with all columns inside",
            )
        if not call.expressions:
            raise ParseError(
                f"{call.name.upper()}() holds no columns", self.context.place(call), f"Write {call.name.upper()}(*)"
            )
        return list(call.expressions), call.meta["to_stream"], distinct is not None or bool(call.meta.get("distinct"))

    def _from(self, node: exp.Select, env: dict[str, Cte]) -> tuple[Node, Scope]:
        if node.args.get("from_") is None:
            return OneRow(), Scope()
        return FromClause(self, env).bind(node.args["from_"].this, node.args.get("joins") or [])

    def _expanded(self, item: exp.Expr, scope: Scope) -> list[exp.Expr]:
        """A select item; a star as the columns it stands for (marked, since they need no name resolution)."""
        star = isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))
        if isinstance(item, exp.Alias) and isinstance(item.this, exp.Star):
            raise ParseError("* cannot have an alias", self.context.place(item))
        if isinstance(item, exp.Aliases) and not generators.is_generator(item.this):
            raise TypeError_(
                "only a generator has several columns to name",
                self.context.place(item),
                "Write stack(1, a, b) AS (x, y)",
            )
        if not star:
            return [item]
        fields = generators.struct_star(scope, item, binder_at(self.context, scope, "SELECT"))
        if fields is not None:
            return fields
        expanded: list[exp.Expr] = []
        for column in star_columns(scope, item, self.context.place):
            reference = exp.Column(this=exp.to_identifier(column.label, quoted=True))
            reference.meta["span"] = span_of(item)
            reference.meta["resolved"] = column
            expanded.append(reference)
        return expanded
