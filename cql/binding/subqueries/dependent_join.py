"""The dependent join: a plan computed once for each row of a domain (Neumann & Kemper 2015, section 3).

The plan's free columns are replaced by columns of the domain, which is pushed down until nothing below depends on it.
The result is an ordinary plan whose rows carry the row of the domain that they belong to. Each operator is made to work
within one row of the domain: groups, partitions and limits take its columns as keys, and an aggregate over all rows
gets its row back where it has no input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sweeparea.cql.binding.subqueries.correlation import FreeColumns, identity, ids
from sweeparea.cql.functions.aggregates import AGGREGATES
from sweeparea.cql.rewrites.conditions import all_of, column, substitute
from sweeparea.cql.text.errors import Place, TypeError_
from sweeparea.operators.nodes import (
    Aggregate,
    AggregateCall,
    Analytic,
    Difference,
    Enrich,
    Generate,
    Intersect,
    Join,
    OneRow,
    Project,
    RelationToStream,
    Select,
    TopK,
    UnionAll,
    Window,
)
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column, Expr

NewColumn = Callable[[str, str | None], Column]


def empty_is_known(calls: tuple[tuple[Column, AggregateCall], ...]) -> bool:
    """Whether it is known of all calls what they give over no rows. Of a user's aggregate it is not."""
    return all(_empty(call) is not None for _, call in calls)


def _empty(call: AggregateCall) -> str | None:
    known = AGGREGATES.get(call.function)
    return known.empty if known is not None else "NULL" if call.function == "SINGLE_VALUE" else None


def or_empty(value: Column, call: AggregateCall) -> Expr:
    """An aggregate's value where a left join has found none."""
    empty = _empty(call)
    if empty in (None, "NULL"):
        return column(value)
    return Expr(f"coalesce(`{value.id}`, {empty})", value.label, frozenset({value.id}))


def same(pairs: list[tuple[Expr, Expr]]) -> Expr | None:
    """All pairs are equal, NULL like any value."""
    return all_of(Expr(f"{a.sql} <=> {b.sql}", f"{a.text} <=> {b.text}", a.columns | b.columns) for a, b in pairs)


def both(first: Expr | None, second: Expr | None) -> Expr | None:
    return all_of(e for e in (first, second) if e is not None)


@dataclass(frozen=True)
class Domain:
    """The rows for which a subquery is computed: the different values of ``free``, columns of ``plan``."""

    plan: Node
    free: tuple[Column, ...]
    new_column: NewColumn

    def rows(self) -> tuple[Node, dict[str, Column]]:
        """The domain as a plan with fresh columns, and which of them stands for which free column."""
        names = {c.id: self.new_column(c.label, c.type) for c in self.free}
        return Aggregate(self.plan, tuple((names[c.id], column(c)) for c in self.free), ()), names


Dependent = tuple[Node, dict[str, Column]]
"""A plan, and its column for each free one."""


class DependentJoin:
    """Joins plans with one domain. ``place``: of the subquery, for errors."""

    def __init__(self, domain: Domain, free: FreeColumns, place: Place) -> None:
        self.domain, self.place = domain, place
        self.new_column = domain.new_column
        self._free = free
        self._wanted = frozenset(c.id for c in domain.free)

    def of(self, node: Node) -> Dependent:
        """The rows of ``node`` for each row of the domain. Raises TypeError_ where a free column stands below a window
        or a relation-to-stream operator, or below one that no rule here takes apart."""
        if not self._depends(node):
            rows, names = self.domain.rows()
            return (rows if isinstance(node, OneRow) else Join(rows, node)), names
        match node:
            case Select():
                below, names = self.of(node.input)
                condition = self._renamed(node.condition, names)
                if isinstance(below, Join) and below.kind == JoinKind.INNER:
                    return replace(below, condition=both(below.condition, condition)), names
                return Select(below, condition), names
            case Project():
                below, names = self.of(node.input)
                outputs = tuple((c, self._renamed(e, names)) for c, e in node.outputs)
                return Project(below, (*outputs, *identity(list(names.values())))), names
            case Join():
                return self._join(node)
            case Aggregate():
                return self._aggregate(node)
            case UnionAll():
                parts, outputs, names = self._parts(node, node.parts)
                return UnionAll(parts, outputs), names
            case Difference() | Intersect():
                (left, right), outputs, names = self._parts(node, (node.left, node.right))
                return replace(node, left=left, right=right, outputs=outputs), names
            case Generate():
                below, names = self.of(node.input)
                return replace(node, input=below, generator=self._renamed(node.generator, names)), names
            case Analytic():
                below, names = self.of(node.input)
                mapped = node.map_expressions(lambda e: self._renamed(e, names))
                keys = tuple(column(c) for c in names.values())
                calls = tuple((c, replace(f, partition=(*f.partition, *keys))) for c, f in mapped.calls)
                return Analytic(below, calls), names
            case TopK():
                below, names = self.of(node.input)
                mapped = node.map_expressions(lambda e: self._renamed(e, names))
                return replace(mapped, input=below, keys=(*mapped.keys, *map(column, names.values()))), names
            case Window() | RelationToStream() | Enrich():
                raise below_a_window(self.place)
            case _:
                raise below_an_operator(node, self.place)

    def _depends(self, node: Node) -> bool:
        return bool(self._free.of(node) & self._wanted)

    def _renamed(self, expr: Expr, names: Mapping[str, Column]) -> Expr:
        return substitute(expr, {f: column(c) for f, c in names.items()})

    def _join(self, node: Join) -> Dependent:
        left_depends, right_depends = self._depends(node.left), self._depends(node.right)
        if node.kind == JoinKind.INNER and not left_depends and right_depends:
            right, names = self.of(node.right)
            condition = None if node.condition is None else self._renamed(node.condition, names)
            return Join(node.left, right, condition), names
        # what a left row has no partner in is a matter of its row of the domain, so the left side carries the domain
        left, names = self.of(node.left)
        condition = None if node.condition is None else self._renamed(node.condition, names)
        if not right_depends and node.kind != JoinKind.FULL:
            return Join(left, node.right, condition, node.kind), names
        right, others = self.of(node.right)
        matching = same([(column(names[f]), column(others[f])) for f in names])
        joined = Join(left, right, both(matching, condition), node.kind)
        if node.kind != JoinKind.FULL:
            return joined, names
        merged = {f: self.new_column(c.label, c.type) for f, c in names.items()}
        outputs = [
            (merged[f], Expr(f"coalesce(`{names[f].id}`, `{others[f].id}`)", merged[f].label,
                             frozenset({names[f].id, others[f].id})))
            for f in merged
        ]  # fmt: skip
        kept = identity([c for c in joined.columns if c.id in ids(node.left) | ids(node.right)])
        return Project(joined, (*kept, *outputs)), merged

    def _aggregate(self, node: Aggregate) -> Dependent:
        if node.global_ and not node.keys:
            return self._one_row(node)
        below, names = self.of(node.input)
        mapped = node.map_expressions(lambda e: self._renamed(e, names))
        keys = {f: self.new_column(c.label, c.type) for f, c in names.items()}
        added = tuple((keys[f], column(names[f])) for f in names)
        return replace(mapped, input=below, keys=(*mapped.keys, *added)), keys

    def _one_row(self, node: Aggregate) -> Dependent:
        """An aggregate over all rows has a row for each row of the domain, also for those without input."""
        if not empty_is_known(node.calls):
            return self.over_padded(node)
        grouped, keys, values = self.grouped(node)
        rows, names = self.domain.rows()
        joined = Join(rows, grouped, same([(column(names[f]), column(keys[f])) for f in names]), JoinKind.LEFT)
        outputs = [(c, or_empty(values[c.id], call)) for c, call in node.calls]
        return Project(joined, (*outputs, *identity(list(names.values())))), names

    def grouped(self, node: Aggregate) -> tuple[Node, dict[str, Column], dict[str, Column]]:
        """An aggregate over all rows, as groups by the domain: the plan, its column for each free one, and its column
        for each of the calls'. A row of the domain without input has no group."""
        below, names = self.of(node.input)
        keys = {f: self.new_column(c.label, c.type) for f, c in names.items()}
        values = {c.id: self.new_column(c.label, c.type) for c, _ in node.calls}
        mapped = node.map_expressions(lambda e: self._renamed(e, names))
        calls = tuple((values[c.id], call) for c, call in mapped.calls)
        plan = Aggregate(below, tuple((keys[f], column(names[f])) for f in names), calls)
        return plan, keys, values

    def over_padded(self, node: Aggregate) -> Dependent:
        """As ``of``, for aggregates of which it is not known what they give over no rows: each row of the domain gets
        a row of NULLs where it has no input, and filters keep the aggregates from seeing it."""
        below, inner = self.of(node.input)
        present = self.new_column("present", "boolean")
        marked = Project(below, (*identity(below.columns), (present, Expr("TRUE", "TRUE"))))
        rows, names = self.domain.rows()
        padded = Join(rows, marked, same([(column(names[f]), column(inner[f])) for f in names]), JoinKind.LEFT)
        keys = {f: self.new_column(c.label, c.type) for f, c in names.items()}
        mapped = node.map_expressions(lambda e: self._renamed(e, names))
        calls = tuple(
            (c, replace(call, filter=both(Expr(f"`{present.id}`", "present", frozenset({present.id})), call.filter)))
            for c, call in mapped.calls
        )
        return Aggregate(padded, tuple((keys[f], column(names[f])) for f in names), calls), keys

    def _parts(
        self, node: UnionAll | Difference | Intersect, parts: tuple[Node, ...]
    ) -> tuple[tuple[Node, ...], tuple[Column, ...], dict[str, Column]]:
        """Operands of a set operation, whose columns go by position: the domain's columns come last."""
        made: list[Node] = []
        for part in parts:
            below, names = self.of(part)
            made.append(Project(below, identity([*part.columns, *names.values()])))
        added = {c.id: self.new_column(c.label, c.type) for c in self.domain.free}
        return tuple(made), (*node.outputs, *added.values()), added


def below_a_window(place: Place) -> TypeError_:
    return TypeError_(
        "a subquery cannot refer to the query around it from below a window or a relation-to-stream operator: a stream "
        "is one and the same for all rows",
        place,
        "Window the stream first, and put the condition into the WHERE of the query over the windowed stream",
    )


def below_an_operator(node: Node, place: Place) -> TypeError_:
    return TypeError_(
        f"a subquery cannot refer to the query around it from below {type(node).__name__}: how that is computed for "
        "each row of the query around is not known",
        place,
        "Write the condition above it, in the WHERE of the subquery, or as a join",
    )
