"""Queries: FROM, WHERE, GROUP BY, HAVING, SELECT, DISTINCT and UNION as plan nodes, in SQL's order of evaluation.

Each clause is one method; a clause or operator that comes later gets its own. What is not offered is refused by name in
``_refuse_*``, so that nothing of a text is silently ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from sweeparea.cql import types
from sweeparea.cql.context import Context
from sweeparea.cql.dialect import ToStream, span_of
from sweeparea.cql.errors import BindError, ParseError, Place, RefusedError, TypeError_, not_offered, raise_all
from sweeparea.cql.expressions import Binder, Bound, Grouping, column_expr, conjuncts, has_aggregate, star_columns
from sweeparea.cql.from_clause import FromClause
from sweeparea.cql.labels import label_of
from sweeparea.cql.rewrites import push_selection
from sweeparea.cql.scopes import Scope
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.logical import Aggregate, Column, Expr, Node, Project, Select, UnionAll

_SELECT_PARTS = {"expressions", "from_", "joins", "where", "group", "having", "distinct", "with_"}
_REFUSED_PARTS = {
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "windows": "the WINDOW clause",
    "qualify": "QUALIFY",
    "laterals": "LATERAL VIEW",
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
            return self._set_operation(node, env)
        if isinstance(node, exp.Values):
            raise not_offered("VALUES", self.place(node), "Put constants into a Delta table and declare it a RELATION")
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
            env[name] = Cte(cte.this, columns, dict(env))
        return env

    def _parenthesized(self, node: exp.Subquery, env: dict[str, Cte]) -> BoundQuery:
        self._refuse_parts(node, {"this", "alias", "with_"})
        bound = self.query(node.this, env)
        operator = node.meta.get("to_stream")
        return bound if operator is None else self._as_stream(bound, operator)

    def _as_stream(self, bound: BoundQuery, operator: ToStream) -> BoundQuery:
        place = self.source.place(operator.span[0])
        if bound.to_stream is not None:
            raise TypeError_(
                f"{operator.kind} needs a relation, but the query inside is already a stream ({bound.to_stream.kind})",
                place,
                "Leave one of the two out, or window the inner stream: FROM (..) [Range ..]",
            )
        if operator.kind == "RSTREAM":
            raise not_offered("RSTREAM", place, "Offered are ISTREAM and DSTREAM")
        return BoundQuery(bound.node, bound.columns, operator)

    def relation(self, node: exp.Expr, env: dict[str, Cte]) -> BoundQuery:
        """A query where a relation is needed: a stream without a window is read as Unbounded."""
        bound = self.query(node, env)
        if bound.to_stream is None:
            return bound
        window, columns, _ = self.context.window_over_stream(bound, None, self.place(node))
        return BoundQuery(window, columns)

    # -- set operations ----------------------------------------------------------------------------------------------

    def _set_operation(self, node: exp.SetOperation, env: dict[str, Cte]) -> BoundQuery:
        self._refuse_parts(node, {"this", "expression", "distinct", "with_"})
        if not isinstance(node, exp.Union):
            raise not_offered(
                node.key.upper() + ("" if node.args.get("distinct") else " ALL"), self.place(node.expression)
            )
        # a long chain leans to the left: walk down in a loop, not by recursion
        parts: list[exp.Expr] = []
        while (
            isinstance(node, exp.Union)
            and not node.args.get("distinct")
            and isinstance(node.this, exp.Union)
            and not node.this.args.get("distinct")
            and node.this.args.get("with_") is None
        ):
            self._refuse_parts(node, {"this", "expression", "distinct", "with_"})
            parts.append(node.expression)
            node = node.this
        self._refuse_parts(node, {"this", "expression", "distinct", "with_"})
        parts += [node.expression, node.this]
        bound = [self.relation(part, env) for part in reversed(parts)]
        first = bound[0]
        for other, tree in zip(bound[1:], list(reversed(parts))[1:], strict=True):
            if len(other.columns) != len(first.columns):
                raise TypeError_(
                    f"UNION needs as many columns on both sides, found {len(first.columns)} and {len(other.columns)}",
                    self.place(tree),
                    "Select the same number of columns in each part",
                )
        outputs = []
        for i, column in enumerate(first.columns):
            types_ = [b.columns[i].type for b in bound]
            self._check_union_types(types_, column.label, node)
            outputs.append(self.context.new_column(column.label, types.common(types_)))
        union: Node = UnionAll(tuple(b.node for b in bound), tuple(outputs))
        if node.args.get("distinct"):
            return self._distinct(union, tuple(outputs))
        return BoundQuery(union, tuple(outputs))

    def _check_union_types(self, types_: list[str | None], label: str, node: exp.Expr) -> None:
        known = {t for t in types_ if t is not None}
        groups = {types.family(t) for t in known} - {"other"}
        if len(groups) > 1:
            raise TypeError_(
                f"UNION cannot put {' and '.join(sorted(t.upper() for t in known))} into one column {label}",
                self.place(node.expression),
                "CAST them to one type",
            )

    def _distinct(self, node: Node, columns: tuple[Column, ...]) -> BoundQuery:
        keys = tuple((self.context.new_column(c.label, c.type), column_expr(c)) for c in columns)
        return BoundQuery(Aggregate(node, keys, ()), tuple(c for c, _ in keys))

    # -- SELECT ------------------------------------------------------------------------------------------------------

    def select(self, node: exp.Select, env: dict[str, Cte]) -> BoundQuery:
        self._refuse_parts(node, _SELECT_PARTS)
        projections, operator, distinct = self._projections(node)
        if operator is not None and operator.kind == "RSTREAM":
            raise not_offered("RSTREAM", self.source.place(operator.span[0]), "Offered are ISTREAM and DSTREAM")
        plan, scope = self._from(node, env)
        faults = _Faults()
        where = node.args.get("where")
        if where is not None:
            for tree in conjuncts(where.this):
                condition = faults.attempt(lambda t=tree: self._binder(scope, "WHERE").condition(t))
                if isinstance(condition, Expr):
                    plan = push_selection(plan, condition)
        items: list[exp.Expr] = []
        for projection in projections:
            faults.attempt(lambda p=projection: items.extend(self._expanded(p, scope)))
        group, having = node.args.get("group"), node.args.get("having")
        aggregated = group is not None or having is not None or any(has_aggregate(i) for i in items)
        if aggregated:
            plan, outputs = self._aggregated(plan, scope, items, group, having, faults)
        else:
            outputs = self._outputs(items, lambda aliases: self._binder(scope, "SELECT", None, aliases), faults)
        faults.check()
        if not outputs:
            raise BindError("the select list is empty", self.place(node), "Select at least one column")
        result = BoundQuery(Project(plan, tuple(outputs)), tuple(c for c, _ in outputs))
        if distinct:
            result = self._distinct(result.node, result.columns)
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
            raise not_offered(
                "SELECT without FROM", self.place(node), "A query needs a stream or relation to follow: write FROM .."
            )
        return FromClause(self, env).bind(node.args["from_"].this, node.args.get("joins") or [])

    def _binder(
        self, scope: Scope, where: str, grouping: Grouping | None = None, aliases: dict[str, Bound] | None = None
    ) -> Binder:
        return Binder(self.source, scope, self.context.new_column, where, grouping, aliases)

    def _expanded(self, item: exp.Expr, scope: Scope) -> list[exp.Expr]:
        """A select item; a star as the columns it stands for (marked, since they need no name resolution)."""
        star = isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))
        if isinstance(item, exp.Alias) and isinstance(item.this, exp.Star):
            raise ParseError("* cannot have an alias", self.place(item))
        if isinstance(item, exp.Aliases):
            raise not_offered("an alias of several names", self.place(item))
        if not star:
            return [item]
        expanded: list[exp.Expr] = []
        for column in star_columns(scope, item, self.place(item)):
            reference = exp.Column(this=exp.to_identifier(column.label, quoted=True))
            reference.meta["span"] = span_of(item)
            reference.meta["resolved"] = column
            expanded.append(reference)
        return expanded

    def _outputs(
        self, items: list[exp.Expr], binder: Callable[[dict[str, Bound]], Binder], faults: _Faults
    ) -> list[tuple[Column, Expr]]:
        outputs: list[tuple[Column, Expr]] = []
        aliases: dict[str, Bound] = {}
        for item in items:
            output = faults.attempt(lambda i=item: self._output(i, binder(aliases)))
            if isinstance(output, tuple):
                column, bound = output
                outputs.append((column, bound.expr))
                if isinstance(item, exp.Alias):
                    aliases.setdefault(column.label.lower(), bound)
        self.aliases = aliases
        return outputs

    def _output(self, item: exp.Expr, binder: Binder) -> tuple[Column, Bound]:
        resolved = item.meta.get("resolved")
        if isinstance(resolved, Column):
            bound = self._starred(item, resolved, binder)
            return self.context.new_column(resolved.label, bound.type), bound
        tree = item.this if isinstance(item, exp.Alias) else item
        if isinstance(tree, exp.Query):
            raise not_offered("a scalar subquery", self.place(tree), "Join the subquery instead")
        bound = binder.bind(tree)
        return self.context.new_column(label_of(item, self.source), bound.type), bound

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

    # -- GROUP BY and HAVING -----------------------------------------------------------------------------------------

    def _aggregated(
        self,
        plan: Node,
        scope: Scope,
        items: list[exp.Expr],
        group: exp.Expr | None,
        having: exp.Expr | None,
        faults: _Faults,
    ) -> tuple[Node, list[tuple[Column, Expr]]]:
        grouping, before = Grouping(), len(faults.errors)
        for tree in self._group_trees(group, items):
            faults.attempt(lambda t=tree: self._add_key(t, scope, items, grouping))
        if len(faults.errors) > before:
            faults.check()  # without its keys, whatever SELECT says of them would be called wrong
        outputs = self._outputs(items, lambda aliases: self._binder(scope, "SELECT", grouping, aliases), faults)
        aliases = self.aliases
        condition = None
        if having is not None:
            condition = faults.attempt(lambda: self._binder(scope, "HAVING", grouping, aliases).condition(having.this))
        faults.check()
        keys = tuple((column, expr) for column, expr, _ in grouping.keys)
        node: Node = Aggregate(plan, keys, tuple(grouping.calls.values()), global_=group is None)
        if isinstance(condition, Expr):
            node = Select(node, condition)
        return node, outputs

    def _group_trees(self, group: exp.Expr | None, items: list[exp.Expr]) -> list[exp.Expr]:
        if group is None:
            return []
        for part, name in (
            ("grouping_sets", "GROUPING SETS"),
            ("cube", "CUBE"),
            ("rollup", "ROLLUP"),
            ("totals", "WITH TOTALS"),
        ):
            if group.args.get(part):
                raise not_offered(name, self.place(group), "Unite one query for each grouping with UNION ALL")
        if group.args.get("all"):
            return [i for i in items if not has_aggregate(i)]
        return list(group.expressions)

    def _add_key(self, tree: exp.Expr, scope: Scope, items: list[exp.Expr], grouping: Grouping) -> None:
        if isinstance(tree, exp.Tuple):
            if not tree.expressions:
                raise not_offered("GROUP BY ()", self.place(tree), "Leave GROUP BY out: there is one group then")
            for part in tree.expressions:
                self._add_key(part, scope, items, grouping)
            return
        for kind, name in ((exp.Rollup, "ROLLUP"), (exp.Cube, "CUBE"), (exp.GroupingSets, "GROUPING SETS")):
            if isinstance(tree, kind):
                raise not_offered(name, self.place(tree), "Unite one query for each grouping with UNION ALL")
        target = self._group_target(tree, scope, items)
        if has_aggregate(target):
            raise BindError(
                "GROUP BY cannot contain an aggregate", self.place(tree), "Group by columns, and aggregate in SELECT"
            )
        resolved = target.meta.get("resolved")
        if isinstance(resolved, Column):
            bound, canonical = Bound(column_expr(resolved), resolved.type), (column_expr(resolved).sql,)
            label = resolved.label
        else:
            target = target.this if isinstance(target, exp.Alias) else target
            binder = self._binder(scope, "GROUP BY")
            bound = binder.bind(target)
            canonical = binder.canonical(target) or (bound.expr.sql,)
            label = label_of(target, self.source)
        if bound.type is not None and bound.type.startswith("map<"):
            raise TypeError_(
                f"GROUP BY cannot compare {bound.expr.text}, which is a MAP", self.place(tree), "Group by its entries"
            )
        if grouping.key_of(canonical) is None:
            grouping.keys.append((self.context.new_column(label, bound.type), bound.expr, canonical))

    def _group_target(self, tree: exp.Expr, scope: Scope, items: list[exp.Expr]) -> exp.Expr:
        """What GROUP BY means by an ordinal, a column or an alias of the select list."""
        if isinstance(tree, exp.Literal) and not tree.is_string and str(tree.this).isdigit():
            n = int(str(tree.this))
            if not 1 <= n <= len(items):
                raise BindError(
                    f"GROUP BY {n} is no position in the select list",
                    self.place(tree),
                    f"It has {len(items)} column{'s' if len(items) > 1 else ''}",
                )
            return items[n - 1]
        if isinstance(tree, exp.Column) and not tree.table and not scope.unqualified(tree.name):
            for item in items:
                if isinstance(item, exp.Alias) and item.alias.lower() == tree.name.lower():
                    return item
        return tree

    # -- what is not offered -----------------------------------------------------------------------------------------

    def _refuse_parts(self, node: exp.Expr, offered: set[str]) -> None:
        limit, order = node.args.get("limit"), node.args.get("order")
        if limit is not None and order is None:
            raise RefusedError(
                "LIMIT without ORDER BY is refused: which rows it keeps would be left to chance",
                self.place(limit),
                "Say which rows are wanted with ORDER BY .. LIMIT",
            )
        if limit is not None and order is not None:
            raise not_offered("ORDER BY .. LIMIT", self.place(order))
        if order is not None:
            raise not_offered(
                "ORDER BY without LIMIT", self.place(order), "A relation has no order: sort where it is read"
            )
        for name, value in node.args.items():
            if name in offered or not value:
                continue
            what = _REFUSED_PARTS.get(name, name.rstrip("_").replace("_", " ").upper())
            first = value[0] if isinstance(value, list) else value
            raise not_offered(
                what, self.place(first) if isinstance(first, exp.Expr) and span_of(first) else self.place(node)
            )
