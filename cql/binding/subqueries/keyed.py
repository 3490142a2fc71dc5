"""A correlated subquery whose correlation is equality of columns: computed for all keys at once, without a domain.

Where a subquery depends on the outer row by conditions ``inner = outer`` alone, its rows for one outer row are those of
one value of ``inner``. So the conditions are left out, the inner columns become keys that every operator above keeps
apart (as in ``dependent_join.py``), and the join with the outer query compares them (Neumann & Kemper 2015, section
3.4).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sweeparea.cql.binding.subqueries.correlation import FreeColumns, identity
from sweeparea.cql.binding.subqueries.dependent_join import NewColumn, both
from sweeparea.cql.functions import decimals, types
from sweeparea.cql.rewrites.conditions import all_of, column, conjuncts, equality, exact, substitute
from sweeparea.operators.nodes import (
    Aggregate,
    Analytic,
    Difference,
    Generate,
    Intersect,
    Join,
    Project,
    Select,
    TopK,
    UnionAll,
)
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column, Expr

Keys = dict[str, Column]
"""For the id of an outer column the inner column that equals it."""


@dataclass(frozen=True)
class KeyedPlan:
    """A plan without the outer columns asked for, and the keys by which it is joined with the outer query."""

    node: Node
    keys: Keys


def equal(a: Expr, b: Expr) -> Expr:
    return Expr(f"{a.sql} = {b.sql}", f"{a.text} = {b.text}", a.columns | b.columns)


def one_for_one(a: str | None, b: str | None) -> bool:
    """Whether a value of one type equals at most one value of the other, so that groups of the one are groups of the
    other. A number equals several of its texts, a double several integers beyond 2^53."""
    if a is None or b is None or a.startswith("map"):
        return False
    if a == b:
        return True
    whole = [t in types.INTEGRAL or decimals.decimal_of(t) is not None for t in (a, b)]
    return all(whole) or {a, b} <= {"tinyint", "smallint", "int", "double"}


class Keying:
    """Makes plans keyed. ``wanted``: the columns of the outer query that are to be replaced, by their ids."""

    def __init__(self, wanted: dict[str, Column], free: FreeColumns, new_column: NewColumn) -> None:
        self.wanted, self.new_column = wanted, new_column
        self._ids = frozenset(wanted)
        self._free = free

    def of(self, node: Node) -> KeyedPlan | None:
        """The plan with its keys; None where it depends on the outer row in another way than by equality."""
        if not self._free.of(node) & self._ids:
            return KeyedPlan(node, {})
        match node:
            case Select():
                conditions = conjuncts(node.condition)
                below = node.input
                while isinstance(below, Select):
                    conditions += conjuncts(below.condition)
                    below = below.input
                base = self.of(below)
                return None if base is None else self._selected(base, conditions)
            case Project():
                base = self.of(node.input)
                mapped = self._mapped(node, base)
                if base is None or not isinstance(mapped, Project):
                    return None
                keys, added = self._renewed(base.keys)
                return KeyedPlan(Project(base.node, (*mapped.outputs, *added)), keys)
            case Join():
                return self._join(node)
            case Aggregate() if node.keys or not node.global_:
                base = self.of(node.input)
                mapped = self._mapped(node, base)
                if base is None or not isinstance(mapped, Aggregate):
                    return None
                keys, added = self._renewed(base.keys)
                return KeyedPlan(replace(mapped, input=base.node, keys=(*mapped.keys, *added)), keys)
            case UnionAll() | Difference() | Intersect():
                return self._set_operation(node)
            case TopK() | Analytic() | Generate():
                return self._partitioned(node)
            case _:
                return None

    # -- columns of the outer query in expressions ---------------------------------------------------------------------

    def renamed(self, expr: Expr, keys: Keys) -> Expr | None:
        """An expression over the keys instead of the outer columns; None if there is none for one of them."""
        outer = expr.columns & self._ids
        for id_ in outer:
            # = makes values equal that are not alike, such as numbers of different types
            if id_ not in keys or keys[id_].type != self.wanted[id_].type or not exact(keys[id_].type):
                return None
        return substitute(expr, {id_: column(keys[id_]) for id_ in outer})

    def _mapped(self, node: Node, base: KeyedPlan | None) -> Node | None:
        if base is None:
            return None
        found = {e: self.renamed(e, base.keys) for e in node.expressions()}
        if any(e is None for e in found.values()):
            return None
        return node.map_expressions(lambda e: found[e] or e)

    def _renewed(self, keys: Keys) -> tuple[Keys, list[tuple[Column, Expr]]]:
        """The keys under fresh columns, and the outputs that make these."""
        fresh = {id_: self.new_column(c.label, c.type) for id_, c in keys.items()}
        return fresh, [(fresh[id_], column(c)) for id_, c in keys.items()]

    # -- the nodes -----------------------------------------------------------------------------------------------------

    def _selected(self, base: KeyedPlan, conditions: Iterable[Expr]) -> KeyedPlan | None:
        """``base`` under conditions: equalities with the outer row become keys."""
        keys, plain, later = dict(base.keys), [], []
        inner_columns = {c.id: c for c in base.node.columns}
        for condition in conditions:
            found = self._key(condition, inner_columns) if condition.columns & self._ids else None
            if found is None:
                later.append(condition)
            elif found[0] in keys:
                plain.append(equal(column(keys[found[0]]), column(found[1])))
            else:
                keys[found[0]] = found[1]
        for condition in later:
            changed = self.renamed(condition, keys)
            if changed is None:
                return None
            plain.append(changed)
        node, condition = base.node, all_of(plain)
        if condition is None:
            return KeyedPlan(node, keys)
        if isinstance(node, Join) and node.kind == JoinKind.INNER:
            return KeyedPlan(replace(node, condition=both(node.condition, condition)), keys)
        return KeyedPlan(Select(node, condition), keys)

    def _key(self, condition: Expr, inner: dict[str, Column]) -> tuple[str, Column] | None:
        """The outer and the inner column of ``inner = outer``."""
        sides = equality(condition)
        for a, b in (sides, sides[::-1]) if sides is not None else ():
            if a in self.wanted and b in inner and one_for_one(self.wanted[a].type, inner[b].type):
                return a, inner[b]
        return None

    def _join(self, node: Join) -> KeyedPlan | None:
        left, right = self.of(node.left), self.of(node.right)
        if left is None or right is None or node.kind == JoinKind.FULL:
            return None
        if node.kind != JoinKind.INNER and not right.keys.keys() <= left.keys.keys():
            return None  # what a left row has no partner in is a matter of its own outer rows
        matching = all_of(equal(column(left.keys[i]), column(c)) for i, c in right.keys.items() if i in left.keys)
        if node.kind == JoinKind.INNER:
            base = KeyedPlan(Join(left.node, right.node, matching), {**right.keys, **left.keys})
            return self._selected(base, conjuncts(node.condition))
        own = None if node.condition is None else self.renamed(node.condition, left.keys)
        if own is None and node.condition is not None:
            return None
        return KeyedPlan(Join(left.node, right.node, both(matching, own), node.kind), left.keys)

    def _partitioned(self, node: TopK | Analytic | Generate) -> KeyedPlan | None:
        base = self.of(node.input)
        mapped = self._mapped(node, base)
        if base is None or mapped is None:
            return None
        within = tuple(column(c) for c in base.keys.values())
        mapped = mapped.with_inputs((base.node,))
        if isinstance(mapped, TopK):
            mapped = replace(mapped, keys=(*mapped.keys, *within))
        elif isinstance(mapped, Analytic):
            calls = tuple((c, replace(f, partition=(*f.partition, *within))) for c, f in mapped.calls)
            mapped = replace(mapped, calls=calls)
        return KeyedPlan(mapped, base.keys)

    def _set_operation(self, node: UnionAll | Difference | Intersect) -> KeyedPlan | None:
        parts: list[KeyedPlan] = []
        for part in node.inputs:
            keyed = self.of(part)
            if keyed is None or (parts and keyed.keys.keys() != parts[0].keys.keys()):
                return None
            parts.append(keyed)
        keys: Keys = {}
        for id_, first in parts[0].keys.items():
            if len({p.keys[id_].type for p in parts}) > 1:
                return None
            keys[id_] = self.new_column(first.label, first.type)
        made = tuple(
            Project(p.node, identity([*part.columns, *(p.keys[id_] for id_ in keys)]))
            for p, part in zip(parts, node.inputs, strict=True)
        )
        outputs = (*node.outputs, *keys.values())
        if isinstance(node, UnionAll):
            return KeyedPlan(UnionAll(made, outputs), keys)
        return KeyedPlan(replace(node, left=made[0], right=made[1], outputs=outputs), keys)
