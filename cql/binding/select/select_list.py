"""One SELECT above its FROM and WHERE: groups, window functions, the select list, DISTINCT, ORDER BY and LIMIT."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sqlglot import exp

from sweeparea.cql.binding.calls.window_functions import named_windows
from sweeparea.cql.binding.expressions.registry import binder_at
from sweeparea.cql.binding.from_clause import generators
from sweeparea.cql.binding.scope.binder import Binder
from sweeparea.cql.binding.scope.bound import Bound, column_expr
from sweeparea.cql.binding.scope.context import Context
from sweeparea.cql.binding.scope.grouping import Groups
from sweeparea.cql.binding.scope.scopes import Item, Scope
from sweeparea.cql.binding.scope.ties import record_of
from sweeparea.cql.binding.scope.window_calls import WindowCalls
from sweeparea.cql.binding.select import ordering
from sweeparea.cql.binding.select.group_by import GroupBy
from sweeparea.cql.binding.subqueries.subqueries import Subqueries
from sweeparea.cql.functions.aggregates import has_aggregate
from sweeparea.cql.syntax.labels import label_of
from sweeparea.cql.text.errors import BindError, TypeError_
from sweeparea.cql.text.faults import Faults
from sweeparea.operators.nodes import Aggregate, Project, Select
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column, Expr, SortKey


class SelectList:
    """One SELECT above its FROM and WHERE, in SQL's order: groups, HAVING, window functions, QUALIFY, the select list,
    DISTINCT, ORDER BY and LIMIT. All are bound before anything is built, since each may ask for aggregates.
    """

    def __init__(
        self,
        context: Context,
        node: exp.Select,
        scope: Scope,
        items: list[exp.Expr],
        distinct: bool,
        faults: Faults,
        subqueries: Subqueries,
    ) -> None:
        self.context, self.node, self.scope, self.items = context, node, scope, items
        self.subqueries = subqueries
        self.distinct, self.faults = distinct, faults
        self.source, self.place = context.source, context.place
        self.aliases: dict[str, Bound] = {}
        self.outputs: list[tuple[Column, Expr, exp.Expr | None]] = []
        self.generated: generators.Generated | None = None
        self.distinct_columns: tuple[Column, ...] = ()
        self.grouping = self._groups()
        self.windows = WindowCalls()

    def _groups(self) -> Groups | None:
        args = self.node.args
        group, having = args.get("group"), args.get("having")
        parts = [*self.items, args.get("qualify"), args.get("order")]
        if group is None and having is None and not any(has_aggregate(p) for p in parts if p is not None):
            return None
        before = len(self.faults.errors)
        binder = binder_at(self.context, self.scope, "GROUP BY", self.subqueries)
        grouping = GroupBy(self.source, self.scope, self.items, binder, self.faults.attempt).bind(group)
        grouping.faulty = len(self.faults.errors) > before
        return grouping

    def _binder(self, where: str, windows: bool = True, aliases_first: bool = False) -> Binder:
        return replace(
            binder_at(self.context, self.scope, where, self.subqueries),
            grouping=self.grouping,
            aliases=self.aliases,
            windows=self.windows if windows else None,
            aliases_first=aliases_first,
        )

    def bind(self, plan: Node) -> tuple[Node, tuple[Column, ...]]:
        """The SELECT over ``plan``, which is its FROM and WHERE, and its columns."""
        args, attempt = self.node.args, self.faults.attempt
        named = attempt(lambda: named_windows(args.get("windows") or [], self._binder("WINDOW")))
        self.windows.named = named or {}
        for item in self.items:
            attempt(partial(self._output, item))
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
        if having is not None:
            plan = Select(plan, having)
        hidden = [] if cut is None else sorting.hidden
        used = [e for _, e, _ in self.outputs] + ([] if self.distinct else [e for _, e in hidden])
        used += [] if qualify is None else [qualify]
        if self.generated is not None:  # as in Spark, window functions see the rows that a generator makes
            plan = self.generated.over(plan)
        if self.windows.calls:
            plan = self.windows.build(plan, self._record(used))
        if qualify is not None:
            plan = Select(plan, qualify)
        return self._cut(plan, keys, hidden, cut)

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
        self.distinct_columns = tuple(self.context.new_column(c.label, c.type).as_of(c) for c, _, _ in self.outputs)
        shown = [(new, e, tree) for new, (_, e, tree) in zip(self.distinct_columns, self.outputs, strict=True)]
        above = binder_at(self.context, Scope.of(Item(None, self.distinct_columns)), "ORDER BY")
        return ordering.SelectOrder(shown, binder, self.faults.attempt, above)

    def _cut(
        self, plan: Node, keys: list[SortKey], hidden: list[tuple[Column, Expr]], cut: ordering.Cut | None
    ) -> tuple[Node, tuple[Column, ...]]:
        outputs = tuple((c, e) for c, e, _ in self.outputs)
        columns = tuple(c for c, _ in outputs)
        if cut is None and self.node.args.get("order") is not None:
            ordering.note_order(self.context)
        if self.distinct:
            renewed = self.distinct_columns
            keys_ = tuple((new, column_expr(c)) for new, c in zip(renewed, columns, strict=True))
            result: Node = Aggregate(Project(plan, outputs), keys_, ())
            if cut is None:
                return result, renewed
            columns, top = ordering.cut_over(self.context, result, renewed, keys, hidden, cut)
            return top, columns
        result = Project(plan, (*outputs, *hidden))
        if cut is None:
            return result, columns
        top = ordering.top_k(result, columns, keys, cut)
        if hidden:
            columns, top = ordering.without_hidden(self.context, top, columns)
        return top, columns

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
            made = self.context.new_column(label, bound.type)
            made = made if item.meta.get("field") is not None else made.as_of(resolved)
            self.outputs.append((made, bound.expr, None))
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
        column = column if bound.char is None else replace(column, char=bound.char)
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
