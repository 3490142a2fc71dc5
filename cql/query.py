"""Queries: FROM, WHERE, GROUP BY, HAVING, SELECT, DISTINCT and UNION as plan nodes, in SQL's order of evaluation.

Each clause is one method; a clause or operator that comes later gets its own. What is not offered is refused by name in
``_refuse_*``, so that nothing of a text is silently ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from sweeparea.cql import generators, ordering, set_operations
from sweeparea.cql.aggregates import has_aggregate
from sweeparea.cql.analytic import WindowCalls, named_windows
from sweeparea.cql.context import Context
from sweeparea.cql.dialect import ToStream, span_of
from sweeparea.cql.errors import BindError, ParseError, Place, TypeError_, not_offered, raise_all
from sweeparea.cql.expressions import Binder, Bound, column_expr, star_columns
from sweeparea.cql.from_clause import FromClause
from sweeparea.cql.grouping import GroupBy, Grouping
from sweeparea.cql.labels import label_of
from sweeparea.cql.scopes import Item, Scope
from sweeparea.cql.subqueries import Outer, Subqueries
from sweeparea.cql.ties import record_of
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.logical import Aggregate, Column, Expr, Node, OneRow, Project, Select, SortKey

_SELECT_PARTS = {"expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "windows"}
_SELECT_PARTS |= {"qualify", "laterals"} | ordering.PARTS
_REFUSED_PARTS = {
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "into": "INTO",
    "hint": "a hint",
    "kind": "SELECT AS STRUCT",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "exclude": "SELECT * EXCLUDE",
    "operation_modifiers": "this modifier of SELECT",
    "match": "MATCH_RECOGNIZE",
    "connect": "CONNECT BY",
    "prewhere": "PREWHERE",
    "locks": "FOR UPDATE",
    "settings": "SETTINGS",
    "format": "FORMAT",
    "options": "OPTION",
}


@dataclass(frozen=True)
class Cte:
    """A named query of a WITH clause and what can be named inside it. Each use is bound anew."""

    query: exp.Expr
    columns: tuple[str, ...]
    env: dict[str, Cte]
    outer: Outer | None = None

    def bind(self, queries: QueryBinder) -> BoundQuery:
        """Bound where it is used, with the names that are known where it is written."""
        before, queries.outer = queries.outer, self.outer
        try:
            return queries.query(self.query, self.env)
        finally:
            queries.outer = before


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
        self.outer: Outer | None = None

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
        if isinstance(node, exp.Table):
            raise ParseError(
                "a query is expected here, found a name", self.place(node), f"Write SELECT * FROM {node.name}"
            )
        raise not_offered(f"{node.key.upper()} as a query", self.place(node), "Write SELECT .. FROM ..")

    def _with(self, node: exp.Expr, env: dict[str, Cte]) -> dict[str, Cte]:
        with_ = node.args.get("with_")
        if with_ is None:
            return env
        if with_.args.get("recursive"):
            raise not_offered("WITH RECURSIVE", self.place(with_))
        env = dict(env)
        here: set[str] = set()
        for cte in with_.expressions:
            name = cte.alias.lower()
            if name in here:
                raise BindError(f"WITH names {cte.alias} twice", self.place(cte), "Give each query its own name")
            here.add(name)
            columns = tuple(c.name for c in (cte.args["alias"].args.get("columns") or []))
            env[name] = Cte(cte.this, columns, dict(env), self.outer)
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
        before, outer = self.outer, Outer(around)
        self.outer = outer
        try:
            return self.relation(node, env), outer
        finally:
            self.outer = before

    def _distinct(self, node: Node, columns: tuple[Column, ...]) -> BoundQuery:
        keys = tuple((self.context.new_column(c.label, c.type), column_expr(c)) for c in columns)
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
        result = _Select(self, node, scope, items, distinct, faults, subqueries).bind(plan)
        return result if operator is None else self._as_stream(result, operator)

    def _projections(self, node: exp.Select) -> tuple[list[exp.Expr], ToStream | None, bool]:
        """The select list, with ``ISTREAM(a, b)`` around all of it taken off."""
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            raise not_offered("DISTINCT ON", self.place(node))
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
        binder.outer, binder.subqueries = self.outer, subqueries
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
        for column in star_columns(scope, item, self.place(item)):
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
            what = _REFUSED_PARTS.get(name, name.rstrip("_").replace("_", " ").upper())
            first = value[0] if isinstance(value, list) else value
            raise not_offered(
                what, self.place(first) if isinstance(first, exp.Expr) and span_of(first) else self.place(node)
            )


class _Select:
    """One SELECT above its FROM and WHERE, in SQL's order: groups, HAVING, window functions, QUALIFY, the select list,
    DISTINCT, ORDER BY and LIMIT. All are bound before anything is built, since each may ask for aggregates.
    """

    def __init__(
        self,
        queries: QueryBinder,
        node: exp.Select,
        scope: Scope,
        items: list[exp.Expr],
        distinct: bool,
        faults: _Faults,
        subqueries: Subqueries,
    ) -> None:
        self.queries, self.node, self.scope, self.items = queries, node, scope, items
        self.subqueries = subqueries
        self.distinct, self.faults = distinct, faults
        self.context, self.source, self.place = queries.context, queries.source, queries.place
        self.aliases: dict[str, Bound] = {}
        self.outputs: list[tuple[Column, Expr, exp.Expr | None]] = []
        self.generated: generators.Generated | None = None
        self.distinct_columns: tuple[Column, ...] = ()
        self.grouping = self._groups()
        self.windows = WindowCalls()

    def _groups(self) -> Grouping | None:
        args = self.node.args
        group, having = args.get("group"), args.get("having")
        parts = [*self.items, args.get("qualify"), args.get("order")]
        if group is None and having is None and not any(has_aggregate(p) for p in parts if p is not None):
            return None
        before = len(self.faults.errors)
        binder = self.queries._binder(self.scope, "GROUP BY", self.subqueries)
        grouping = GroupBy(self.source, self.scope, self.items, binder, self.faults.attempt).bind(group)
        if len(self.faults.errors) > before:
            self.faults.check()  # without its keys, whatever SELECT says of them would be called wrong
        return grouping

    def _binder(self, where: str, windows: bool = True, aliases_first: bool = False) -> Binder:
        calls = self.windows if windows else None
        return self.queries._binder(
            self.scope, where, self.subqueries, self.grouping, self.aliases, calls, aliases_first
        )

    def bind(self, plan: Node) -> BoundQuery:
        args, attempt = self.node.args, self.faults.attempt
        named = attempt(lambda: named_windows(args.get("windows") or [], self._binder("WINDOW")))
        self.windows.named = named if isinstance(named, dict) else {}
        for item in self.items:
            attempt(lambda i=item: self._output(i))
        having = qualify = None
        if args.get("having") is not None:
            having = attempt(lambda: self._binder("HAVING", windows=False).condition(args["having"].this))
        if args.get("qualify") is not None:
            qualify = attempt(lambda: self._binder("QUALIFY").condition(args["qualify"].this))
        cut = attempt(lambda: ordering.cut_of(self.node, self.place))
        sorting = self._sorting()
        keys = [] if args.get("order") is None else sorting.keys(args["order"])
        self.faults.check()
        if not self.outputs:
            raise BindError("the select list is empty", self.place(self.node), "Select at least one column")
        plan = self.subqueries.attach(plan)
        if self.grouping is not None:
            plan = self.subqueries.attach(self.grouping.build(plan, self.context.new_column), grouped=True)
        if isinstance(having, Expr):
            plan = Select(plan, having)
        hidden = sorting.hidden if isinstance(cut, ordering.Cut) else []
        used = [e for _, e, _ in self.outputs] + ([] if self.distinct else [e for _, e in hidden])
        used += [e for e in (qualify,) if isinstance(e, Expr)]
        if self.generated is not None:  # as in Spark, window functions see the rows that a generator makes
            plan = self.generated.over(plan)
        if self.windows.calls:
            plan = self.windows.build(plan, self._record(used))
        if isinstance(qualify, Expr):
            plan = Select(plan, qualify)
        return self._cut(plan, keys, hidden, cut if isinstance(cut, ordering.Cut) else None)

    def _record(self, used: list[Expr]) -> list[Column]:
        """What tells rows apart for window functions: the groups' keys, else the record of FROM."""
        made = [] if self.generated is None else list(self.generated.columns)
        if self.grouping is not None:
            return [*self.grouping.columns, *made]
        return [*record_of(self.scope, self.windows.reads.union(*(e.columns for e in used))), *made]

    def _sorting(self) -> ordering.SelectOrder:
        binder = self._binder("ORDER BY", aliases_first=True)
        if not self.distinct:
            return ordering.SelectOrder(self.outputs, binder, self.faults.attempt)
        self.distinct_columns = tuple(self.context.new_column(c.label, c.type) for c, _, _ in self.outputs)
        shown = [(new, e, tree) for new, (_, e, tree) in zip(self.distinct_columns, self.outputs, strict=True)]
        above = self.queries._binder(Scope.of(Item(None, self.distinct_columns)), "ORDER BY")
        return ordering.SelectOrder(shown, binder, self.faults.attempt, above)

    def _cut(
        self, plan: Node, keys: list[SortKey], hidden: list[tuple[Column, Expr]], cut: ordering.Cut | None
    ) -> BoundQuery:
        outputs = tuple((c, e) for c, e, _ in self.outputs)
        columns = tuple(c for c, _ in outputs)
        if cut is None and self.node.args.get("order") is not None:
            ordering.note_order(self.context)
        if self.distinct:
            renewed = self.distinct_columns
            keys_ = tuple((new, column_expr(c)) for new, c in zip(renewed, columns, strict=True))
            result: Node = Aggregate(Project(plan, outputs), keys_, ())
            if cut is None:
                return BoundQuery(result, renewed)
            columns, top = ordering.cut_over(self.context, result, renewed, keys, hidden, cut)
            return BoundQuery(top, columns)
        result = Project(plan, (*outputs, *hidden))
        if cut is None:
            return BoundQuery(result, columns)
        top = ordering.top_k(result, columns, keys, cut)
        if hidden:
            columns, top = ordering.without_hidden(self.context, top, columns)
        return BoundQuery(top, columns)

    # -- the select list ---------------------------------------------------------------------------------------------

    def _output(self, item: exp.Expr) -> None:
        binder = self._binder("SELECT")
        tree = item.this if isinstance(item, exp.Alias | exp.Aliases) else item
        resolved = item.meta.get("resolved")
        if isinstance(resolved, Column):
            bound, label = self._starred(item, resolved, binder), resolved.label
            if item.meta.get("field") is not None:  # of a struct's star
                path, label, type_ = item.meta["field"]
                sql = path.replace(f"`{resolved.id}`", bound.expr.sql, 1)
                bound = Bound(Expr(sql, label, bound.expr.columns), type_)
            self.outputs.append((self.context.new_column(label, bound.type), bound.expr, None))
            return
        if generators.is_generator(tree):
            if self.generated is not None:
                raise TypeError_(
                    "a select list has one generator at most", self.place(item), "Put the other into LATERAL VIEW"
                )
            self.generated = generators.in_select(binder, item)
            for column in self.generated.columns:
                self.outputs.append((self.context.new_column(column.label, column.type), column_expr(column), None))
            return
        bound = binder.bind(tree)
        column = self.context.new_column(label_of(item, self.source), bound.type)
        self.outputs.append((column, bound.expr, tree))
        if isinstance(item, exp.Alias):
            self.aliases.setdefault(column.label.lower(), bound)

    def _starred(self, item: exp.Expr, column: Column, binder: Binder) -> Bound:
        if binder.grouping is None:
            return Bound(column_expr(column), column.type)
        key = binder.grouping.key_of_column(column)
        if key is None:
            raise BindError(
                f"column {column.label} of * is neither grouped nor inside an aggregate",
                self.place(item),
                "Name the columns of GROUP BY instead of *",
            )
        return Bound(column_expr(key, column.label), key.type)
