"""Subqueries as joins: scalar values, marks (EXISTS and IN anywhere), semi and anti joins, lateral joins.

A value or mark is a global aggregate over the subquery, joined beside the outer rows. Where the subquery is correlated,
it is computed for all outer rows at once: by key columns where equality is all that correlates it (``keyed.py``), else
for a domain, the different values of the outer columns that it reads (``dependent_join.py``). The left join back is by
value; what it finds nothing for has an empty subquery, of which COUNT is 0. The outer rows appear in the plan once as
they are and, under a domain, once more as its distinct columns, however many subqueries there are.

Neumann & Kemper 2015; Kim 1982 for COUNT over an empty group; Galindo-Legaria & Joshi 2001 for semi and anti joins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sweeparea.cql.binding.expressions.quantified import Test, enclosed, negated
from sweeparea.cql.binding.subqueries.correlation import (
    FreeColumns,
    Peeled,
    has_one_row,
    identity,
    ids,
    members,
    peel,
    witnesses,
)
from sweeparea.cql.binding.subqueries.dependent_join import (
    DependentJoin,
    Domain,
    NewColumn,
    both,
    empty_is_known,
    or_empty,
    same,
)
from sweeparea.cql.binding.subqueries.keyed import KeyedPlan, Keying, equal, one_for_one
from sweeparea.cql.functions import types
from sweeparea.cql.rewrites.conditions import all_of, column, conjuncts, substitute
from sweeparea.cql.text.errors import Place
from sweeparea.operators.nodes import Aggregate, AggregateCall, Join, OneRow, Project, Select
from sweeparea.operators.plan.expressions import Column, Expr
from sweeparea.operators.plan.node import Node

Attach = Callable[[Node], Node]
"""Puts what a value needs beside the outer rows."""

TRUE = Expr("TRUE", "TRUE")


@dataclass(frozen=True)
class Subquery:
    """A bound subquery. ``outer`` are the columns of the query right around it that it reads; those of queries further
    out stay free."""

    node: Node
    columns: tuple[Column, ...]
    outer: tuple[Column, ...]
    place: Place

    @property
    def correlated(self) -> bool:
        return bool(self.outer)


class Decorrelation:
    """Makes plans of subqueries."""

    def __init__(self, new_column: NewColumn) -> None:
        self.new_column = new_column
        self._free = FreeColumns()

    def free(self, node: Node) -> frozenset[str]:
        return self._free.of(node)

    def _domain(self, plan: Node, subquery: Node, place: Place) -> DependentJoin:
        free = self.free(subquery)
        outer = tuple(c for c in plan.columns if c.id in free)
        source = domain_source(plan, frozenset(c.id for c in outer), may_fail(subquery))
        return DependentJoin(Domain(source, outer, self.new_column), self._free, place)

    def _keyed(self, node: Node, outer: tuple[Column, ...]) -> KeyedPlan | None:
        return Keying({c.id: c for c in outer}, self._free, self.new_column).of(node)

    def _beside(self, plan: Node, other: Node) -> Node:
        return other if isinstance(plan, OneRow) else Join(plan, other)

    # -- values --------------------------------------------------------------------------------------------------------

    def scalar(self, subquery: Subquery) -> tuple[Expr, Attach]:
        """The value of a scalar subquery: NULL of no row, an error of more than one."""
        peeled = peel(subquery.node, subquery.columns)
        if not has_one_row(peeled.node):
            value = self.new_column(subquery.columns[0].label, subquery.columns[0].type)
            call = AggregateCall("SINGLE_VALUE", column(subquery.columns[0]))
            peeled = Peeled(Aggregate(subquery.node, (), ((value, call),), global_=True), [column(value)])
        value, attach = self._values(peeled, subquery)
        return value, attach

    def exists(self, subquery: Subquery) -> tuple[Expr, Attach]:
        """Whether a subquery has a row."""
        peeled = peel(subquery.node, ())
        if has_one_row(peeled.node):
            guards = [Expr(f"coalesce({g.sql}, FALSE)", g.text, g.columns) for g in peeled.guards]
            return self._values(Peeled(peeled.node, [all_of(guards) or TRUE]), subquery)
        count = self.new_column("count(*)", "bigint")
        counted = Aggregate(witnesses(subquery.node), (), ((count, AggregateCall("COUNT")),), global_=True)
        found = Expr(f"`{count.id}` > 0L", "EXISTS", frozenset({count.id}))
        return self._values(Peeled(counted, [found]), subquery)

    def contains(self, values: list[tuple[Expr, str | None]], test: Test, subquery: Subquery) -> tuple[Expr, Attach]:
        """Whether a subquery has a row that passes a test against ``values`` (with their types), in three-valued logic:
        NULL where none does and one with NULL might."""
        found = self._look_up(values, subquery) if test.is_equality else self._extremes(values, test, subquery)
        if found is not None:
            return found
        node, theirs = members(subquery.node, subquery.columns)
        condition = test.of([v for v, _ in values], theirs)
        equals, unknown = self.new_column("equal", "bigint"), self.new_column("unknown", "bigint")
        counts = (
            (equals, f"IF({condition.sql}, 1, NULL)"),
            (unknown, f"IF(({condition.sql}) IS NULL, 1, NULL)"),
        )
        calls = tuple((c, AggregateCall("COUNT", Expr(sql, condition.text, condition.columns))) for c, sql in counts)
        result = Expr(
            f"CASE WHEN `{equals.id}` > 0L THEN TRUE WHEN `{unknown.id}` > 0L THEN NULL ELSE FALSE END",
            f"ANY ({condition.text})",
            frozenset({equals.id, unknown.id}),
        )
        return self._values(Peeled(Aggregate(node, (), calls, global_=True), [result]), subquery, correlated=True)

    def _look_up(self, values: list[tuple[Expr, str | None]], subquery: Subquery) -> tuple[Expr, Attach] | None:
        """``contains`` by equality alone: the distinct values of the subquery, and how many rows and NULLs it has."""
        if len(values) != 1:
            return None
        node, (theirs,) = members(subquery.node, subquery.columns)
        outer = frozenset(c.id for c in subquery.outer)
        [(value, type_)], own = values, subquery.columns[0]
        if theirs.columns & outer or not one_for_one(type_, own.type):
            return None
        keyed = self._keyed(node, subquery.outer)
        if keyed is None:
            return None
        keys = list(keyed.keys.items())
        labels = {o.id: o for o in subquery.outer}

        def grouped(more: tuple[tuple[Column, Expr], ...], calls: tuple[tuple[Column, AggregateCall], ...]):
            fresh = [self.new_column(c.label, c.type) for _, c in keys]
            own_keys = tuple((f, column(c)) for f, (_, c) in zip(fresh, keys, strict=True))
            made = Aggregate(keyed.node, (*own_keys, *more), calls, global_=not keys and not more)
            return made, [equal(column(labels[o]), column(f)) for f, (o, _) in zip(fresh, keys, strict=True)]

        found, rows, known = (
            self.new_column(n, t) for n, t in ((own.label, own.type), ("n", "bigint"), ("k", "bigint"))
        )
        distinct, matching = grouped(((found, theirs),), ())
        counts = ((rows, AggregateCall("COUNT")), (known, AggregateCall("COUNT", theirs)))
        totals, same_group = grouped((), counts)

        def attach(plan: Node) -> Node:
            plan = Join(plan, distinct, all_of([*matching, equal(enclosed(value), column(found))]), "left")
            return Join(plan, totals, all_of(same_group), "left") if keys else Join(plan, totals)

        sql = (
            f"CASE WHEN `{found.id}` IS NOT NULL THEN TRUE WHEN coalesce(`{rows.id}`, 0L) = 0L THEN FALSE "
            f"WHEN ({value.sql}) IS NULL OR `{known.id}` < `{rows.id}` THEN NULL ELSE FALSE END"
        )
        columns = frozenset({found.id, rows.id, known.id}) | value.columns
        return Expr(sql, f"{value.text} IN (SELECT {theirs.text} ..)", columns), attach

    def _extremes(
        self, values: list[tuple[Expr, str | None]], test: Test, subquery: Subquery
    ) -> tuple[Expr, Attach] | None:
        """``contains`` by an order: the greatest or least value of the subquery passes if any does."""
        [(value, type_)], own = values, subquery.columns[0]
        if not test.extremes or not _one_order(type_, own.type):
            return None
        node, (theirs,) = members(subquery.node, subquery.columns)
        made = [(self.new_column(f.lower(), own.type), AggregateCall(f, theirs)) for f in test.extremes]
        rows, known = self.new_column("n", "bigint"), self.new_column("k", "bigint")
        counts = ((rows, AggregateCall("COUNT")), (known, AggregateCall("COUNT", theirs)))
        passed = [test.of([value], [column(c)]) for c, _ in made]
        sql = (
            f"CASE WHEN {' OR '.join(p.sql for p in passed)} THEN TRUE WHEN `{rows.id}` = 0L THEN FALSE "
            f"WHEN ({value.sql}) IS NULL OR `{known.id}` < `{rows.id}` THEN NULL ELSE FALSE END"
        )
        columns = frozenset({rows.id, known.id}).union(*(p.columns for p in passed))
        result = Expr(sql, f"{value.text} {test.sign} ANY (SELECT {theirs.text} ..)", columns)
        return self._values(Peeled(Aggregate(node, (), (*made, *counts), global_=True), [result]), subquery)

    def _values(self, peeled: Peeled, subquery: Subquery, correlated: bool = False) -> tuple[Expr, Attach]:
        """The value of a plan with one row for each outer row, and how the plan gets beside them."""
        value = peeled.values[0]
        if peeled.guards:
            guard = all_of(peeled.guards)
            assert guard is not None
            value = Expr(f"CASE WHEN {guard.sql} THEN {value.sql} END", value.text, guard.columns | value.columns)
        below = peeled.node
        if not isinstance(below, Aggregate):
            return enclosed(value), lambda plan: plan
        if not subquery.correlated and not correlated:
            return enclosed(value), lambda plan: self._beside(plan, below)
        known = empty_is_known(below.calls)
        if known:
            value = substitute(value, {c.id: or_empty(c, call) for c, call in below.calls})
        return enclosed(value), lambda plan: self._joined_back(plan, below, known, subquery)

    def _joined_back(self, plan: Node, one: Aggregate, known: bool, subquery: Subquery) -> Node:
        """The outer rows, each beside its row of a global aggregate; NULLs where that has no input."""
        outer = tuple(c for c in plan.columns if c.id in self.free(one))
        if not outer:
            return self._beside(plan, one)
        # a key that no outer row has could hold more than one value: then there would be an error that no row asked for
        single = any(call.function == "SINGLE_VALUE" for _, call in one.calls)
        keyed = None if single or not known else self._keyed(one.input, outer)
        if keyed is not None and not any(e.columns & {c.id for c in outer} for e in one.expressions()):
            fresh = {o: self.new_column(c.label, c.type) for o, c in keyed.keys.items()}
            grouped = Aggregate(keyed.node, tuple((fresh[o], column(c)) for o, c in keyed.keys.items()), one.calls)
            names = {c.id: c for c in outer}
            return Join(plan, grouped, all_of(equal(column(names[o]), column(f)) for o, f in fresh.items()), "left")
        domain = self._domain(plan, one, subquery.place)
        if known:
            below, keys, values = domain.grouped(one)
            outputs = [(c, column(values[c.id])) for c, _ in one.calls]
            below = Project(below, (*outputs, *identity(list(keys.values()))))
        else:
            below, keys = domain.over_padded(one)
        return Join(plan, below, same([(column(o), column(keys[o.id])) for o in outer]), "left")

    # -- conjuncts -----------------------------------------------------------------------------------------------------

    def exists_join(self, plan: Node, subquery: Subquery, kind: str) -> Node:
        """The rows of ``plan`` for which a subquery has a row (``semi``) or none (``anti``)."""
        if has_one_row(peel(subquery.node, ()).node):
            mark, attach = self.exists(subquery)
            return Select(attach(plan), negated(mark) if kind == "anti" else mark)
        return self._matched(plan, witnesses(subquery.node), None, kind, subquery)

    def contains_join(self, plan: Node, values: list[Expr], subquery: Subquery, kind: str, test: Test) -> Node:
        """The rows of ``plan`` for whose ``values`` a row of the subquery passes the test (``semi``: IN, ANY), or none
        does (``anti``: NOT IN, ALL)."""
        node, theirs = members(subquery.node, subquery.columns)
        condition = test.of(values, theirs)
        if kind == "anti":  # what might be equal is not certain to be different
            condition = Expr(f"coalesce({condition.sql}, TRUE)", condition.text, condition.columns)
        return self._matched(plan, node, condition, kind, subquery)

    def _matched(self, plan: Node, node: Node, condition: Expr | None, kind: str, subquery: Subquery) -> Node:
        outer = frozenset(c.id for c in subquery.outer)
        if not self.free(node) & outer:
            return Join(plan, node, condition, kind)
        pulled = self._pulled(node, outer)
        if pulled is not None:
            below, conditions = pulled
            return Join(plan, below, all_of([*conditions, *([] if condition is None else [condition])]), kind)
        keyed = self._keyed(node, subquery.outer)
        names = {c.id: c for c in subquery.outer}
        if keyed is not None:
            matching = all_of(equal(column(names[o]), column(c)) for o, c in keyed.keys.items())
            return Join(plan, keyed.node, both(matching, condition), kind)
        below, inner = self._domain(plan, node, subquery.place).of(node)
        matching = same([(column(names[o]), column(c)) for o, c in inner.items()])
        return Join(plan, below, both(matching, condition), kind)

    def _pulled(self, node: Node, outer: frozenset[str]) -> tuple[Node, list[Expr]] | None:
        """A subquery without its conditions on the outer row, and these: what has a row under the conditions has one.
        None where they do not stand above all that would notice their absence."""
        if not self.free(node) & outer:
            return node, []
        if isinstance(node, Select):
            found = self._pulled(node.input, outer)
            if found is None:
                return None
            below, conditions = found
            parts = conjuncts(node.condition)
            stay = all_of(p for p in parts if not p.columns & outer)
            return (
                below if stay is None else Select(below, stay),
                [*conditions, *(p for p in parts if p.columns & outer)],
            )
        if isinstance(node, Project):
            found = self._pulled(node.input, outer)
            if found is None or any(e.columns & outer for _, e in node.outputs):
                return None
            below, conditions = found
            read = frozenset().union(*(c.columns for c in conditions))
            fresh = {c.id: self.new_column(c.label, c.type) for c in below.columns if c.id in read}
            kept = [(fresh[c.id], column(c)) for c in below.columns if c.id in read]
            by = {id_: column(c) for id_, c in fresh.items()}
            return Project(below, (*node.outputs, *kept)), [substitute(c, by) for c in conditions]
        if not isinstance(node, Join) or node.kind == "full":
            return None
        left = self._pulled(node.left, outer)
        if left is None:
            return None
        if node.kind == "inner":
            right = self._pulled(node.right, outer)
            if right is None:
                return None
            parts = conjuncts(node.condition)
            stay = all_of(p for p in parts if not p.columns & outer)
            pulled = [*left[1], *right[1], *(p for p in parts if p.columns & outer)]
            return Join(left[0], right[0], stay), pulled
        if self.free(node.right) & outer or node.reads & outer:
            return None
        return replace(node, left=left[0]), left[1]

    # -- joins with a subquery -----------------------------------------------------------------------------------------

    def lateral(self, plan: Node, subquery: Subquery, condition: Expr | None, kind: str) -> Node:
        """Each row of ``plan`` beside the rows of a subquery that sees its columns (``inner``, ``left``), or kept or
        dropped by whether there are any (``semi``, ``anti``)."""
        node = subquery.node
        outer = tuple(c for c in plan.columns if c.id in self.free(node))
        if not outer:
            return Join(plan, node, condition, kind)
        pulled = self._pulled(node, frozenset(c.id for c in outer))
        if pulled is not None:
            return Join(plan, pulled[0], both(all_of(pulled[1]), condition), kind)
        keyed = self._keyed(node, outer)
        if keyed is not None:
            names = {c.id: c for c in outer}
            matching = all_of(equal(column(names[o]), column(c)) for o, c in keyed.keys.items())
            return Join(plan, keyed.node, both(matching, condition), kind)
        below, inner = self._domain(plan, node, subquery.place).of(node)
        return Join(plan, below, both(same([(column(o), column(inner[o.id])) for o in outer]), condition), kind)

    def answers(
        self, plan: Node, attach: Attach, outer: frozenset[str], values: frozenset[str]
    ) -> tuple[Node, dict[str, Column]]:
        """Attached values as a relation of their own: for each combination of the columns ``outer`` of ``plan`` its
        ``values``, all under fresh ids. It has one row a combination."""
        attached = attach(plan)
        kept = [c for c in attached.columns if c.id in outer | values]
        fresh = {c.id: self.new_column(c.label, c.type) for c in kept}
        return Aggregate(attached, tuple((fresh[c.id], column(c)) for c in kept), ()), fresh


def _one_order(a: str | None, b: str | None) -> bool:
    """Whether values of two types compare as values of the second alone do, so that its extremes stand for all."""
    if a is None or b is None:
        return False
    return (types.family(a) == types.family(b)) and (a == b or types.family(a) != "other") and not b.startswith("map")


def may_fail(node: Node) -> bool:
    """Whether a subquery is an error for some outer rows: it must not be computed for rows that are not there."""
    return any(call.function == "SINGLE_VALUE" for n in node.walk() if isinstance(n, Aggregate) for _, call in n.calls)


def domain_source(plan: Node, outer: frozenset[str], exact: bool) -> Node:
    """A part of ``plan`` whose columns ``outer`` have at least the values that they have in ``plan``; ``exact``: just
    these. So a plan does not double with each subquery: what was put beside its rows before is left out.
    """
    if isinstance(plan, Join) and outer <= ids(plan.left):
        beside = plan.kind == "left" or (
            plan.kind == "inner" and has_one_row(plan.right) and (plan.condition is None or not exact)
        )
        if beside or (plan.kind in ("semi", "anti") and not exact):
            return domain_source(plan.left, outer, exact)
    if isinstance(plan, Select):
        below = domain_source(plan.input, outer, exact)
        if below is plan.input:
            return plan
        if plan.condition.columns <= ids(below):
            return Select(below, plan.condition)
        return plan if exact else below
    return plan


__all__ = ["Attach", "Decorrelation", "Subquery", "ids"]
