"""Window functions: ``f(..) OVER (PARTITION BY .. ORDER BY .. frame)`` become calls of Analytic nodes.

Which of several equal rows comes first must not be left to chance, yet equal rows are *peers* in a RANGE frame, which a
completed order would tear apart. So (semantics section 4):

* ROW_NUMBER, NTILE, LAG, LEAD and all that runs over a ROWS frame or the whole partition get the complete order.
* RANK, DENSE_RANK, PERCENT_RANK, CUME_DIST and RANGE frames keep the order as written.
* A function of the order over a RANGE frame (LAST_VALUE, COLLECT_LIST, ..) is computed from a ROW_NUMBER over the
  complete order: LAST_VALUE(x) is MAX_BY(x, number), whose frame keeps its peers.

A call that reads another call's result stands in an Analytic node above.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sweeparea.cql.binding.calls.aggregates import bind_aggregate, count_error
from sweeparea.cql.binding.calls.frames import Frame, frame_of
from sweeparea.cql.binding.scope.binder import Binder
from sweeparea.cql.binding.scope.bound import Bound
from sweeparea.cql.binding.scope.window_calls import WindowCalls
from sweeparea.cql.functions.aggregates import AGGREGATES, Over
from sweeparea.cql.functions.calls import WrittenCall, written_call
from sweeparea.cql.functions.functions import WINDOW_ONLY
from sweeparea.cql.functions.untyped_nulls import VOID
from sweeparea.cql.text.errors import BindError, ParseError, RefusedError, TypeError_, nearest
from sweeparea.operators.nodes import AggregateCall, WindowFunction
from sweeparea.operators.plan.plan import UserKind
from sweeparea.operators.sql.expressions import Expr, SortKey

_RANKS = {"RANK": "int", "DENSE_RANK": "int", "PERCENT_RANK": "double", "CUME_DIST": "double"}
_COUNTS = {"ROW_NUMBER": (0,), "NTILE": (0, 1), "LAG": (1, 2, 3), "LEAD": (1, 2, 3), "NTH_VALUE": (2,)} | dict.fromkeys(
    _RANKS, (0,)
)
_WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


def named_windows(trees: list[exp.Window], binder: Binder) -> dict[str, exp.Window]:
    """The windows of a WINDOW clause by name."""
    found: dict[str, exp.Window] = {}
    for tree in trees:
        name = tree.this.name.lower()
        if name in found:
            raise BindError(f"WINDOW names {tree.this.name} twice", binder.place(tree), "Give each its own name")
        found[name] = tree
    return found


def bind_over(binder: Binder, node: exp.Window) -> Bound:
    """The value of a window function: an expression over columns of Analytic nodes."""
    call = written_call(node.this)
    if call is None:
        raise ParseError("OVER belongs behind a function", binder.place(node), "Write SUM(a) OVER (PARTITION BY b)")
    if binder.windows is None:
        raise BindError(
            f"the window function {call.name} cannot stand in {binder.where}",
            binder.place(node),
            "Compute it in a subquery, or filter by it with QUALIFY",
        )
    return _OverCall(binder, binder.windows, node, call).bind()


class _OverCall:
    """One window function being bound."""

    def __init__(self, binder: Binder, windows: WindowCalls, node: exp.Window, call: WrittenCall) -> None:
        self.binder, self.windows, self.node, self.call = binder, windows, node, call
        self.name = call.name
        self.place = binder.place(node)
        self.label = binder.source.splice(binder.span(node)).lower()
        self.inner = binder.derived(f"the argument of {self.name}", windows=None)
        self.partition, self.order, self.frame = self._specification()

    # -- what stands in OVER -----------------------------------------------------------------------------------------

    def _specification(self) -> tuple[tuple[Expr, ...], tuple[SortKey, ...], Frame]:
        partition, order, spec = self._merged(self.node, set())
        inside = self.binder.derived("PARTITION BY", windows=None)
        keys = tuple(self._comparable(inside.bind(tree), tree) for tree in partition)
        sort = self.binder.derived("ORDER BY of OVER", windows=None)
        bound = [(sort.sort_key(tree), tree) for tree in order]
        types = [sort.bind(tree.this).type for _, tree in bound]
        return keys, tuple(key for key, _ in bound), frame_of(spec, types, self.binder, self.node)

    def _comparable(self, bound: Bound, tree: exp.Expr) -> Expr:
        if bound.type is not None and (bound.type.startswith("map<") or bound.type == "variant"):
            raise TypeError_(
                f"PARTITION BY cannot compare {bound.expr.text}, which is a {bound.type.split('<')[0].upper()}",
                self.binder.place(tree),
                "Partition by its entries",
            )
        return self.binder.kept(tree, bound).expr

    def _merged(
        self, window: exp.Window, seen: set[str]
    ) -> tuple[list[exp.Expr], list[exp.Expr], exp.WindowSpec | None]:
        """Partition, order and frame of a window, with those of the named one that it starts from."""
        partition = list(window.args.get("partition_by") or [])
        order = list(window.args["order"].expressions) if window.args.get("order") else []
        spec = window.args.get("spec")
        base = window.args.get("alias")
        if window.args.get("first") is not None and window.args.get("first") is False:
            raise RefusedError("a window's FROM LAST is not offered", self.place, "Order descending instead")
        if base is None:
            return partition, order, spec
        name = base.name
        tree = self.windows.named.get(name.lower())
        if tree is None or name.lower() in seen:
            known = [t.this.name for t in self.windows.named.values()]
            raise BindError(
                f"there is no window {name}" if tree is None else f"window {name} is defined by itself",
                self.place,
                nearest(name, known) or "Define it: WINDOW w AS (PARTITION BY .. ORDER BY ..)",
            )
        base_partition, base_order, base_spec = self._merged(tree, seen | {name.lower()})
        if (partition and base_partition) or (order and base_order) or (base_spec is not None and (order or spec)):
            raise BindError(
                f"OVER says again what window {name} fixes already", self.place, "Write the whole window in OVER"
            )
        return partition or base_partition, order or base_order, spec or base_spec

    # -- the call ----------------------------------------------------------------------------------------------------

    def bind(self) -> Bound:
        if self.call.name in WINDOW_ONLY:
            return self._window_only()
        user = self.call.function.meta.get("user")
        if self.name not in AGGREGATES and (user is None or user.kind != UserKind.AGGREGATE):
            raise TypeError_(
                f"{self.call.function.name} is neither a window function nor an aggregate, so it takes no OVER",
                self.place,
                "Leave OVER out",
            )
        if self.call.distinct:
            raise RefusedError(
                f"{self.name}(DISTINCT ..) OVER is not offered: Spark SQL has no DISTINCT in window functions",
                self.place,
                "Aggregate in a subquery with GROUP BY, and join it",
            )
        if self.call.within and (self.order or self.frame.written):
            raise TypeError_(
                f"{self.name} with WITHIN GROUP takes neither ORDER BY nor a frame in OVER",
                self.place,
                "Write OVER (PARTITION BY ..)",
            )
        if user is not None:
            self.call.function.meta["bound"] = True
        bound = bind_aggregate(self.call, self.inner, over=True)
        return self._aggregate(bound.call, bound.type)

    def _add(self, call: WindowFunction, complete: bool, type_: str | None) -> Expr:
        column = self.windows.add(call, complete, self.label, type_, self.binder.new_column)
        return Expr(f"`{column.id}`", self.binder.source.splice(self.binder.span(self.node)), frozenset({column.id}))

    def _window_only(self) -> Bound:
        name, arguments = self.name, self.call.arguments
        if self.call.distinct or self.call.filter is not None or self.call.order:
            raise TypeError_(
                f"{name} takes neither DISTINCT nor FILTER nor an order of its own", self.place, "It belongs to rows"
            )
        if self.call.ignore_nulls is not None and name not in ("LAG", "LEAD", "NTH_VALUE"):
            raise TypeError_(f"{name} does not take IGNORE NULLS or RESPECT NULLS", self.place, "Leave it out")
        if len(arguments) not in _COUNTS[name]:
            raise count_error(name, _COUNTS[name], arguments, self.binder, self.node)
        if not self.order and name != "NTH_VALUE":
            raise TypeError_(
                f"{name} needs ORDER BY in OVER", self.place, f"Write {name}(..) OVER (PARTITION BY a ORDER BY b)"
            )
        if self.frame.written and name != "NTH_VALUE":
            raise TypeError_(f"{name} takes no frame: it looks at the whole partition", self.place, "Leave it out")
        bound = [self.inner.bind(a) for a in arguments]
        others = [b.type for b in bound[2:] if b.type not in (None, VOID)]
        bound[:1] = [b.typed(*others) for b in bound[:1]]
        call = WindowFunction(
            name, tuple(b.expr for b in bound), self.partition, self.order, ignore_nulls=bool(self.call.ignore_nulls)
        )
        if name in _RANKS:
            return Bound(self._add(call, False, _RANKS[name]), _RANKS[name])
        if name == "ROW_NUMBER":
            return Bound(self._add(call, True, "int"), "int")
        if name == "NTILE":
            if not arguments:
                call = replace(call, arguments=(Expr("1", "1"),))
            self._positive(arguments[:1])
            return Bound(self._add(call, True, "int"), "int")
        if name == "NTH_VALUE":
            self._positive(arguments[1:])
            return self._edge(replace(call, ignore_nulls=bool(self.call.ignore_nulls)), bound[0].type)
        self._constant(arguments[1:2])
        types = {b.type for b in (bound[0], *bound[2:])} - {VOID}
        type_ = types.pop() if len(types) == 1 else None
        return Bound(self._add(call, True, type_), type_)

    def _constant(self, trees: list[exp.Expr]) -> None:
        for tree in trees:
            bound = self.inner.bind(tree)
            if bound.expr.columns or bound.type not in (None, "int", "smallint", "tinyint"):
                raise TypeError_(
                    f"the offset of {self.name} must be a constant whole number, found {bound.expr.text}",
                    self.binder.place(tree),
                    "Write a number",
                )

    def _positive(self, trees: list[exp.Expr]) -> None:
        self._constant(trees)
        for tree in trees:
            if isinstance(tree, exp.Neg) or (isinstance(tree, exp.Literal) and str(tree.this) == "0"):
                raise TypeError_(f"{self.name} counts from 1", self.binder.place(tree), "Write a positive number")

    # -- aggregates --------------------------------------------------------------------------------------------------

    def _aggregate(self, call: AggregateCall, type_: str | None) -> Bound:
        arguments = (() if call.argument is None else (call.argument,)) + call.extra
        plain = WindowFunction(
            call.function,
            arguments,
            self.partition,
            self.order,
            self.frame.text,
            call.filter,
            ignore_nulls=call.ignore_nulls,
            running=call.running,
        )
        over = AGGREGATES[call.function].over if call.function in AGGREGATES else Over.PLAIN
        if over == Over.ASCENDING and call.order[0].descending:
            raise RefusedError(
                f"{self.name} in descending order is not offered OVER a window",
                self.place,
                "Order ascending, and take 1 minus the percentage" if self.name != "MODE" else "Order ascending",
            )
        if over == Over.REFUSED:
            raise RefusedError(
                f"{self.name} OVER a window is not offered: its sum depends on the order of the rows",
                self.place,
                "Aggregate in a subquery with GROUP BY, and join it",
            )
        if call.function == "COLLECT_LIST" and call.distinct:  # COLLECT_SET, in ascending order
            column = self._add(replace(plain, function="COLLECT_SET"), self.frame.rows, type_)
            return Bound(replace(column, sql=f"array_sort({column.sql})"), type_)
        if over == Over.EXTREMAL:
            return self._by(call, plain, type_)
        if over == Over.EDGE:
            return self._edge(plain, type_)
        if over == Over.LIST:
            return self._list(call, plain, type_)
        return Bound(self._add(plain, self.frame.rows, type_), type_)

    def _edge(self, call: WindowFunction, type_: str | None) -> Bound:
        """FIRST, LAST, NTH_VALUE: of the frame's rows in the complete order."""
        frame = self.frame
        if frame.whole:
            return Bound(self._add(replace(call, frame=_WHOLE), True, type_), type_)
        if frame.rows:
            return Bound(self._add(replace(call, frame=frame.text), True, type_), type_)
        if call.function == "FIRST" and not call.ignore_nulls and frame.from_start and call.filter is None:
            # every such frame holds the partition's first row
            text = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
            return Bound(self._add(replace(call, frame=text), True, type_), type_)
        value, number = call.arguments[0], self._number()
        if call.function == "NTH_VALUE":
            items = self._numbered(replace(call, frame=frame.text), value, number, call.ignore_nulls)
            return Bound(replace(items, sql=f"try_element_at({items.sql}, {call.arguments[1].sql})"), type_)
        by = number
        if call.ignore_nulls:
            by = Expr(f"IF(({value.sql}) IS NULL, NULL, {number.sql})", number.text, value.columns | number.columns)
        function = "MIN_BY" if call.function == "FIRST" else "MAX_BY"
        picked = replace(call, function=function, arguments=(value, by), frame=frame.text, ignore_nulls=False)
        return Bound(self._add(picked, False, type_), type_)

    def _list(self, call: AggregateCall, plain: WindowFunction, type_: str | None) -> Bound:
        """COLLECT_LIST and LISTAGG: their elements stand in the complete order."""
        frame = self.frame
        if frame.whole:
            order = call.order or self.order
            return Bound(self._add(replace(plain, order=order, frame=_WHOLE), True, type_), type_)
        if call.order:
            raise TypeError_(
                f"{self.name} has an order of its own and one in OVER",
                self.place,
                "Keep one of them: OVER (PARTITION BY ..) leaves the order to the aggregate",
            )
        if frame.rows:
            return Bound(self._add(plain, True, type_), type_)
        value = plain.arguments[0]
        items = self._numbered(plain, value, self._number(), True)
        if call.function == "LISTAGG":
            delimiter = plain.arguments[1].sql if len(plain.arguments) > 1 else "''"
            text = f"IF(size({items.sql}) = 0, NULL, array_join({items.sql}, {delimiter}))"
            return Bound(replace(items, sql=text), type_)
        return Bound(items, type_)

    def _by(self, call: AggregateCall, plain: WindowFunction, type_: str | None) -> Bound:
        """MAX_BY, MIN_BY: of equal rows the first in the complete order."""
        value, by, *rest = plain.arguments
        number = self._number()
        sign = "-" if call.function == "MAX_BY" else ""
        sql = f"IF(({by.sql}) IS NULL, NULL, struct(({by.sql}) AS y, {sign}{number.sql} AS n))"
        ranked = Expr(sql, by.text, by.columns | number.columns)
        return Bound(self._add(replace(plain, arguments=(value, ranked, *rest)), self.frame.rows, type_), type_)

    def _number(self) -> Expr:
        """The row's number in its partition by the complete order."""
        call = WindowFunction("ROW_NUMBER", (), self.partition, self.order)
        column = self.windows.add(call, True, "row_number", "int", self.binder.new_column)
        return Expr(f"`{column.id}`", "row_number", frozenset({column.id}))

    def _numbered(self, call: WindowFunction, value: Expr, number: Expr, skip: bool) -> Expr:
        """The values of the frame as an array in the complete order; ``skip``: without NULLs."""
        sql = f"struct({number.sql} AS n, ({value.sql}) AS v)"
        if skip:
            sql = f"IF(({value.sql}) IS NULL, NULL, {sql})"
        pair = Expr(sql, value.text, value.columns | number.columns)
        gathered = self._add(replace(call, function="COLLECT_LIST", arguments=(pair,), ignore_nulls=False), False, None)
        return replace(gathered, sql=f"array_sort({gathered.sql}).v")
