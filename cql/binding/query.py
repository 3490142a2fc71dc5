"""Queries: FROM, WHERE, GROUP BY, HAVING, SELECT, DISTINCT and UNION as plan nodes, in SQL's order of evaluation.

Each clause is one method; a clause or operator that comes later gets its own. What is not offered is refused by name in
``_refuse_*``, so that nothing of a text is silently ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from sweeparea.cql.binding import set_operations
from sweeparea.cql.binding.expressions import generators
from sweeparea.cql.binding.expressions.binder import Binder, Bound, column_expr, star_columns
from sweeparea.cql.binding.expressions.grouping import Grouping
from sweeparea.cql.binding.expressions.window_functions import WindowCalls
from sweeparea.cql.binding.from_clause.clause import FromClause
from sweeparea.cql.binding.scope.context import Context
from sweeparea.cql.binding.scope.scopes import Item, Scope
from sweeparea.cql.binding.select import ordering
from sweeparea.cql.binding.select.select_list import SelectList
from sweeparea.cql.binding.subqueries.subqueries import Outer, Subqueries
from sweeparea.cql.syntax.dialect import ToStream, span_of
from sweeparea.cql.text.errors import BindError, ParseError, Place, TypeError_, not_offered, raise_all
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.nodes import Aggregate, OneRow
from sweeparea.operators.plan.expressions import Column
from sweeparea.operators.plan.node import Node

_SELECT_PARTS = {"expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "windows"}
_SELECT_PARTS |= {"qualify", "laterals"} | ordering.PARTS
_REFUSED_PARTS = {
    "sort": ("SORT BY", "A relation has no order: leave it out, or write ORDER BY .. LIMIT"),
    "cluster": ("CLUSTER BY", "A relation has no order: leave it out"),
    "distribute": ("DISTRIBUTE BY", "Leave it out: how rows are spread is the engine's matter"),
    "into": ("INTO", "The result has the query's name: CREATE CONTINUOUS QUERY name AS SELECT .."),
    "hint": ("a hint", "Leave it out: plans are chosen by the rewrites"),
    "kind": ("SELECT AS STRUCT", "Write SELECT struct(a, b) AS s"),
    "pivots": ("PIVOT", "Write SUM(x) FILTER (WHERE b = 'v') AS v for each column"),
    "sample": ("TABLESAMPLE", "Chance gives another answer each time. Filter by a column, such as a % 10 = 0"),
    "exclude": ("SELECT * EXCLUDE", "Write * EXCEPT (a)"),
    "operation_modifiers": ("this modifier of SELECT", "Leave it out"),
    "match": ("MATCH_RECOGNIZE", "Write joins of windows, or LAG and LEAD"),
    "connect": ("CONNECT BY", "Join the relation with itself, as deep as it goes"),
    "prewhere": ("PREWHERE", "Write WHERE"),
    "locks": ("FOR UPDATE", "Leave it out: nothing is locked"),
    "settings": ("SETTINGS", "Write CREATE CONTINUOUS QUERY .. WITH (name = value)"),
    "format": ("FORMAT", "Leave it out"),
    "options": ("OPTION", "Leave it out"),
    "by_name": ("a set operation BY NAME", "List the columns in one order in both parts"),
    "side": ("an outer set operation", "Write UNION, INTERSECT or EXCEPT, or an outer join"),
    "limit": ("LIMIT here", "Write it behind ORDER BY"),
    "laterals": ("LATERAL VIEW here", "Write it behind FROM"),
}
"""What each part is called, and the way out."""


@dataclass(frozen=True)
class Cte:
    """A named query of a WITH clause and what can be named inside it. Each use is bound anew."""

    query: exp.Expr
    columns: tuple[str, ...]
    env: dict[str, Cte]
    outer: Outer | None = None

    def bind(self, queries: QueryBinder) -> BoundQuery:
        """Bound where it is used, with the names that are known where it is written."""
        context = queries.context
        before, context.outer = context.outer, self.outer
        try:
            return queries.query(self.query, self.env)
        finally:
            context.outer = before


@dataclass(frozen=True)
class BoundQuery:
    """A bound query: the relation it means, its visible columns, and the operator if it is a stream."""

    node: Node
    columns: tuple[Column, ...]
    to_stream: ToStream | None = None


@dataclass
class _Faults:
    """Collects the faults of independent parts of one query, to tell them together."""

    errors: list[SweepAreaError] = field(default_factory=list)

    def attempt(self, action: Callable[[], object]) -> object | None:
        try:
            return action()
        except SweepAreaError as error:
            self.errors.append(error)
            return None

    def check(self) -> None:
        raise_all(self.errors)


class QueryBinder:
    """Binds queries of one text; nested ones by calling itself."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.source = context.source

    def place(self, node: exp.Expr) -> Place:
        span = span_of(node)
        return self.source.place(span[0] if span is not None else self.source.tokens[0].start)

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
            return set_operations.values(self, node)
        if isinstance(node, exp.Table):  # (A UNION ALL B) in FROM
            whole = exp.Select(expressions=[exp.Star()], from_=exp.From(this=node))
            whole.meta["span"] = span_of(node)
            return self.select(whole, env)
        raise not_offered(f"{node.key.upper()} as a query", self.place(node), "Write SELECT .. FROM ..")

    def _with(self, node: exp.Expr, env: dict[str, Cte]) -> dict[str, Cte]:
        with_ = node.args.get("with_")
        if with_ is None:
            return env
        if with_.args.get("recursive"):
            raise not_offered("WITH RECURSIVE", self.place(with_), "Join the relation with itself, as deep as it goes")
        env = dict(env)
        here: set[str] = set()
        for cte in with_.expressions:
            name = cte.alias.lower()
            if name in here:
                raise BindError(f"WITH names {cte.alias} twice", self.place(cte), "Give each query its own name")
            here.add(name)
            columns = tuple(c.name for c in (cte.args["alias"].args.get("columns") or []))
            env[name] = Cte(cte.this, columns, dict(env), self.context.outer)
        return env

    def _parenthesized(self, node: exp.Subquery, env: dict[str, Cte], in_from: bool = False) -> BoundQuery:
        joins = {"joins"} if in_from else set()  # those of an entry of FROM are its own to bind
        self._refuse_parts(node, {"this", "alias", "with_"} | joins | ordering.PARTS)
        bound = self.query(node.this, env)
        operator = node.meta.get("to_stream")
        if node.args.get("order") is not None or node.args.get("limit") is not None:
            return self._ordered(node, bound if operator is None else self._as_stream(bound, operator))
        return bound if operator is None else self._as_stream(bound, operator)

    def _as_stream(self, bound: BoundQuery, operator: ToStream) -> BoundQuery:
        place = self.source.place(operator.span[0])
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
                self.place(order),
                f"Write them inside: {bound.to_stream.kind}(SELECT .. ORDER BY .. LIMIT ..)",
            )
        binder = self._binder(Scope.of(Item(None, bound.columns)), "ORDER BY")
        columns, relation = ordering.order_over_columns(
            self.context, node, bound.node, bound.columns, binder, self.place
        )
        return BoundQuery(relation, columns)

    def relation(self, node: exp.Expr, env: dict[str, Cte]) -> BoundQuery:
        """A query where a relation is needed: a stream without a window is read as Unbounded."""
        bound = self.query(node, env)
        if bound.to_stream is None:
            return bound
        window, columns, _ = self.context.window_over_stream(bound, None, self.place(node))
        return BoundQuery(window, columns)

    def nested(self, node: exp.Expr, env: dict[str, Cte], around: Binder) -> tuple[BoundQuery, Outer]:
        """A subquery that sees the names at the place of ``around`` behind its own, and what it has used of them."""
        before, outer = self.context.outer, Outer(around)
        self.context.outer = outer
        try:
            return self.relation(node, env), outer
        finally:
            self.context.outer = before

    def _distinct(self, node: Node, columns: tuple[Column, ...]) -> BoundQuery:
        keys = tuple((self.context.new_column(c.label, c.type).as_of(c), column_expr(c)) for c in columns)
        return BoundQuery(Aggregate(node, keys, ()), tuple(c for c, _ in keys))

    # -- SELECT ------------------------------------------------------------------------------------------------------

    def select(self, node: exp.Select, env: dict[str, Cte]) -> BoundQuery:
        self._refuse_parts(node, _SELECT_PARTS)
        projections, operator, distinct = self._projections(node)
        plan, scope = self._from(node, env)
        faults = _Faults()
        for view in node.args.get("laterals") or []:
            plan, scope = generators.lateral_view(self, plan, scope, view)
        subqueries = Subqueries(self, env)
        where = node.args.get("where")
        if where is not None:
            plan = subqueries.filtered(plan, self._binder(scope, "WHERE", subqueries), where.this, faults.attempt)
        items: list[exp.Expr] = []
        for projection in projections:
            faults.attempt(lambda p=projection: items.extend(self._expanded(p, scope)))
        found, columns = SelectList(self, node, scope, items, distinct, faults, subqueries).bind(plan)
        result = BoundQuery(found, columns)
        return result if operator is None else self._as_stream(result, operator)

    def _projections(self, node: exp.Select) -> tuple[list[exp.Expr], ToStream | None, bool]:
        """The select list, with ``ISTREAM(a, b)`` around all of it taken off."""
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            raise not_offered(
                "DISTINCT ON", self.place(node), "Filter by ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) with QUALIFY"
            )
        items = list(node.expressions)
        if not items:
            raise ParseError("the select list is empty", self.place(node), "Write SELECT *, or name columns")
        calls = [i for i in items if isinstance(i, exp.Anonymous) and i.meta.get("to_stream") is not None]
        if not calls:
            return items, None, distinct is not None
        call = calls[0]
        if len(items) > 1:
            kind = call.meta["to_stream"].kind
            raise ParseError(
                f"{kind}(..) must hold the whole select list",
                self.place(call),
                f"Write SELECT {kind}(a, b) FROM .., with all columns inside",
            )
        if not call.expressions:
            raise ParseError(
                f"{call.name.upper()}() holds no columns", self.place(call), f"Write {call.name.upper()}(*)"
            )
        return list(call.expressions), call.meta["to_stream"], distinct is not None or bool(call.meta.get("distinct"))

    def _from(self, node: exp.Select, env: dict[str, Cte]) -> tuple[Node, Scope]:
        if node.args.get("from_") is None:
            return OneRow(), Scope()
        return FromClause(self, env).bind(node.args["from_"].this, node.args.get("joins") or [])

    def _binder(
        self,
        scope: Scope,
        where: str,
        subqueries: Subqueries | None = None,
        grouping: Grouping | None = None,
        aliases: dict[str, Bound] | None = None,
        windows: WindowCalls | None = None,
        aliases_first: bool = False,
    ) -> Binder:
        binder = Binder(self.source, scope, self.context.new_column, where, grouping, aliases, windows, aliases_first)
        binder.outer, binder.subqueries = self.context.outer, subqueries
        return binder

    def _expanded(self, item: exp.Expr, scope: Scope) -> list[exp.Expr]:
        """A select item; a star as the columns it stands for (marked, since they need no name resolution)."""
        star = isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))
        if isinstance(item, exp.Alias) and isinstance(item.this, exp.Star):
            raise ParseError("* cannot have an alias", self.place(item))
        if isinstance(item, exp.Aliases) and not generators.is_generator(item.this):
            raise TypeError_(
                "only a generator has several columns to name", self.place(item), "Write stack(1, a, b) AS (x, y)"
            )
        if not star:
            return [item]
        fields = generators.struct_star(scope, item, self._binder(scope, "SELECT"))
        if fields is not None:
            return fields
        expanded: list[exp.Expr] = []
        for column in star_columns(scope, item, self.place):
            reference = exp.Column(this=exp.to_identifier(column.label, quoted=True))
            reference.meta["span"] = span_of(item)
            reference.meta["resolved"] = column
            expanded.append(reference)
        return expanded

    # -- what is not offered -----------------------------------------------------------------------------------------

    def _refuse_parts(self, node: exp.Expr, offered: set[str]) -> None:
        for name, value in node.args.items():
            if name in offered or not value:
                continue
            if name == "kind" and isinstance(node, exp.SetOperation):
                name = "side"  # OUTER UNION
            what, hint = _REFUSED_PARTS.get(name, (name.rstrip("_").replace("_", " ").upper(), "Leave it out"))
            first = value[0] if isinstance(value, list) else value
            at = first if isinstance(first, exp.Expr) and span_of(first) is not None else node
            raise not_offered(what, self.place(at.expression if isinstance(at, exp.SetOperation) else at), hint)
