"""GROUP BY: keys, grouping sets, and the aggregates that a select list and HAVING ask for above them.

ROLLUP, CUBE and GROUPING SETS are an aggregate over the union of one projection for each set, in which the keys outside
the set are NULL, beside a column that tells which those are, as Spark's Expand does it. So the set of no keys has a row
only where the input has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

from sqlglot import exp

from sweeparea.cql.binding.expressions.aggregates import has_aggregate
from sweeparea.cql.syntax.dialect import span_of
from sweeparea.cql.syntax.labels import label_of
from sweeparea.cql.text.errors import BindError, RefusedError, TypeError_
from sweeparea.operators.nodes import Aggregate, AggregateCall, Project, UnionAll
from sweeparea.operators.plan.expressions import Column, Expr, SortKey
from sweeparea.operators.plan.node import Node

if TYPE_CHECKING:
    from sweeparea.cql.binding.expressions.binder import Binder
    from sweeparea.cql.binding.scope.scopes import Scope
    from sweeparea.cql.text.source_text import SourceText

MAX_SETS = 1024
"""Grouping sets of one query: each is a part of a union."""

NewColumn = Callable[[str, str | None], Column]
_SETS = (exp.GroupingSets, exp.Rollup, exp.Cube)


def _column_expr(column: Column) -> Expr:
    return Expr(f"`{column.id}`", column.label, frozenset({column.id}))


@dataclass
class Grouping:
    """GROUP BY while the select list and HAVING are bound: the keys, and the aggregates met so far.

    ``sets`` are the grouping sets as positions of keys, None for a plain GROUP BY; ``id`` is then the column that holds
    a set's GROUPING_ID. ``all_rows``: there is no GROUP BY, so all rows are one group, also where there is none.
    ``faulty``: a key could not be bound, so any column may have been meant to be one.
    """

    keys: list[tuple[Column, Expr, tuple[str, ...]]] = field(default_factory=list)
    calls: dict[tuple[str, ...], tuple[Column, AggregateCall]] = field(default_factory=dict)
    sets: list[tuple[int, ...]] | None = None
    id: Column | None = None
    all_rows: bool = False
    faulty: bool = False

    def key_of_column(self, column: Column) -> Column | None:
        return column if self.faulty else self.key_of((f"`{column.id}`",))

    def key_of(self, canonical: tuple[str, ...]) -> Column | None:
        at = self.position(canonical)
        return None if at is None else self.keys[at][0]

    def position(self, canonical: tuple[str, ...]) -> int | None:
        return next((i for i, (_, _, other) in enumerate(self.keys) if other == canonical), None)

    @property
    def columns(self) -> list[Column]:
        """What tells one group's row from another's."""
        return [c for c, _, _ in self.keys] + ([self.id] if self.id is not None else [])

    # -- the plan ----------------------------------------------------------------------------------------------------

    def build(self, plan: Node, new_column: NewColumn) -> Node:
        """The aggregate over ``plan``, with all calls that have been met."""
        calls = tuple(self.calls.values())
        if self.sets is None:
            return Aggregate(plan, tuple((c, e) for c, e, _ in self.keys), calls, global_=self.all_rows)
        return self._over_sets(plan, calls, new_column)

    def _over_sets(self, plan: Node, calls: tuple[tuple[Column, AggregateCall], ...], new_column: NewColumn) -> Node:
        assert self.sets is not None
        assert self.id is not None
        # aggregates see a key's own value, also in the sets without it: keys and arguments are columns of their own
        inputs: dict[str, tuple[Column, Expr]] = {}

        def argument(expr: Expr) -> Expr:
            if expr.sql not in inputs:
                inputs[expr.sql] = (new_column(expr.text, None), expr)
            return _column_expr(inputs[expr.sql][0])

        keys = [(new_column(c.label, c.type).as_of(c), e) for c, e, _ in self.keys]
        taken = [(column, _map_call(call, argument)) for column, call in calls]
        base = Project(plan, (*keys, *inputs.values()))
        repeated = len({frozenset(s) for s in self.sets}) < len(self.sets)
        parts = []
        for position, members in enumerate(self.sets):
            outputs = [
                (new_column(key.label, key.type), _column_expr(key) if i in members else _null(key))
                for i, (key, _) in enumerate(keys)
            ]
            number = _grouping_id(len(keys), members)
            outputs.append((new_column(self.id.label, "bigint"), Expr(f"{number}L", str(number))))
            if repeated:  # a set that is written twice gives its groups twice
                outputs.append((new_column("position", "bigint"), Expr(f"{position}L", str(position))))
            outputs += [(new_column(c.label, c.type), _column_expr(c)) for c, _ in inputs.values()]
            parts.append(Project(base, tuple(outputs)))
        united = tuple(new_column(c.label, c.type) for c in parts[0].columns)
        fixed = len(keys) + 1 + repeated
        renamed = {f"`{c.id}`": _column_expr(u) for (c, _), u in zip(inputs.values(), united[fixed:], strict=True)}
        all_keys = [c for c, _, _ in self.keys] + [self.id]
        if repeated:
            all_keys.append(new_column("position", "bigint"))
        return Aggregate(
            UnionAll(tuple(parts), united),
            tuple((key, _column_expr(u)) for key, u in zip(all_keys, united[:fixed], strict=True)),
            tuple((column, _map_call(call, lambda e: renamed[e.sql])) for column, call in taken),
        )


def _grouping_id(count: int, members: Iterable[int]) -> int:
    """A bit for each key, the first key's the highest; 1: the key is not in the set."""
    return sum(1 << (count - 1 - i) for i in range(count) if i not in set(members))


def _null(column: Column) -> Expr:
    if column.type is not None:
        return Expr(f"CAST(NULL AS {column.type})", "NULL")
    return Expr(f"IF(FALSE, `{column.id}`, NULL)", "NULL", frozenset({column.id}))


def _map_call(call: AggregateCall, change: Callable[[Expr], Expr]) -> AggregateCall:
    """The call over other expressions; constants stay."""

    def changed(expr: Expr) -> Expr:
        return change(expr) if expr.columns else expr

    return replace(
        call,
        argument=None if call.argument is None else changed(call.argument),
        extra=tuple(changed(e) for e in call.extra),
        filter=None if call.filter is None else changed(call.filter),
        order=tuple(SortKey(changed(k.expr), k.descending, k.nulls_first) for k in call.order),
    )


class GroupBy:
    """Binds one GROUP BY clause. ``attempt`` runs a step and keeps its fault for later."""

    def __init__(
        self,
        source: SourceText,
        scope: Scope,
        items: list[exp.Expr],
        binder: Binder,
        attempt: Callable[[Callable[[], object]], object],
    ) -> None:
        self.source, self.scope, self.items, self.binder = source, scope, items, binder
        self.attempt = attempt
        self.grouping = Grouping()

    def bind(self, group: exp.Expr | None) -> Grouping:
        grouping = self.grouping
        if group is None:
            grouping.all_rows = True
            return grouping
        if group.args.get("all"):
            trees = [i for i in self.items if not has_aggregate(i)]
            for tree in trees:
                self.attempt(lambda t=tree: self._key(t))
            grouping.all_rows = not trees
            return grouping
        lists: list[list[tuple[int, ...]]] = []
        for tree in group.expressions:
            self.attempt(lambda t=tree: lists.append(self._sets(t)))
        sets = [*group.args.get("grouping_sets", []), *group.args.get("cube", []), *group.args.get("rollup", [])]
        for tree in sets:
            self.attempt(lambda t=tree: self._trailing(t, group, lists))
        found = [i for i in group.expressions if isinstance(i, _SETS)] or sets
        combined = [tuple(dict.fromkeys(i for part in choice for i in part)) for choice in product(*lists)]
        if not found:
            grouping.all_rows = not grouping.keys
            return grouping
        if len(combined) > MAX_SETS:
            raise RefusedError(
                f"GROUP BY has {len(combined):,} grouping sets, and more than {MAX_SETS:,} are not offered",
                self.binder.place(group),
                "Name the sets that are wanted: GROUPING SETS ((a, b), (a), ())",
            )
        grouping.sets = combined
        grouping.id = self.binder.new_column("grouping_id()", "bigint")
        return grouping

    def _trailing(self, tree: exp.Expr, group: exp.Expr, lists: list[list[tuple[int, ...]]]) -> None:
        """``GROUP BY a, b WITH ROLLUP`` and ``GROUP BY a, b GROUPING SETS (..)``: the sets of the keys written before;
        behind a comma, or alone, they are one more element."""
        if not tree.expressions:
            count = len(self.grouping.keys)
            lists[:] = [
                _rollup([(i,) for i in range(count)])
                if isinstance(tree, exp.Rollup)
                else self._cube([(i,) for i in range(count)], tree)
            ]
            return
        before = len(self.grouping.keys)
        found = self._sets(tree)
        if group.expressions and not self._behind_comma(tree):
            if len(self.grouping.keys) > before:
                column = self.grouping.keys[before][0]
                raise BindError(
                    f"{column.label} in GROUPING SETS is not among the expressions of GROUP BY",
                    self.binder.place(tree),
                    "Add it to GROUP BY, or leave the expressions before GROUPING SETS out",
                )
            lists[:] = [found]
        else:
            lists.append(found)

    def _behind_comma(self, tree: exp.Expr) -> bool:
        span = span_of(tree)
        if span is None:
            return False
        words = [t.text.upper() for t in self.source.tokens if t.start < span[0]]
        while words and words[-1] in ("(", "SETS", "GROUPING", "ROLLUP", "CUBE", "GROUPING SETS"):
            words.pop()
        return bool(words) and words[-1] == ","

    # -- sets --------------------------------------------------------------------------------------------------------

    def _sets(self, tree: exp.Expr) -> list[tuple[int, ...]]:
        """The sets that an element of GROUP BY stands for."""
        if isinstance(tree, exp.GroupingSets):
            return [s for part in tree.expressions for s in self._sets(part)]
        if isinstance(tree, exp.Rollup):
            return _rollup([self._members(part) for part in tree.expressions])
        if isinstance(tree, exp.Cube):
            return self._cube([self._members(part) for part in tree.expressions], tree)
        return [self._members(tree)]

    def _cube(self, members: list[tuple[int, ...]], tree: exp.Expr) -> list[tuple[int, ...]]:
        if 2 ** len(members) > MAX_SETS:
            raise RefusedError(
                f"CUBE of {len(members)} columns has {2 ** len(members):,} grouping sets, and more than {MAX_SETS:,} "
                "are not offered",
                self.binder.place(tree),
                "Name the sets that are wanted: GROUPING SETS ((a, b), (a), ())",
            )
        count = len(members)
        masks = sorted(range(2**count), reverse=True)
        return [
            tuple(i for at, part in enumerate(members) if mask >> (count - 1 - at) & 1 for i in part) for mask in masks
        ]

    def _members(self, tree: exp.Expr) -> tuple[int, ...]:
        if isinstance(tree, exp.Tuple):
            return tuple(i for part in tree.expressions for i in self._members(part))
        if isinstance(tree, exp.Paren) and isinstance(tree.this, exp.Tuple):
            return self._members(tree.this)
        return (self._key(tree),)

    # -- keys --------------------------------------------------------------------------------------------------------

    def _key(self, tree: exp.Expr) -> int:
        """The position of a key, which is new or known already."""
        target = self._target(tree)
        if has_aggregate(target):
            raise BindError(
                "GROUP BY cannot contain an aggregate",
                self.binder.place(tree),
                "Group by columns, and aggregate in SELECT",
            )
        resolved = target.meta.get("resolved")
        if isinstance(resolved, Column):
            expr, type_, label, char = _column_expr(resolved), resolved.type, resolved.label, resolved.char
            canonical: tuple[str, ...] = (expr.sql,)
        else:
            target = target.this if isinstance(target, exp.Alias) else target
            bound = self.binder.kept(target)
            expr, type_, char = bound.expr, bound.type, bound.char
            canonical = self.binder.canonical(target) or (expr.sql,)
            label = label_of(target, self.source)
        if type_ == "variant":
            raise TypeError_(
                f"GROUP BY cannot compare {expr.text}, which is a VARIANT",
                self.binder.place(tree),
                "CAST it to a type with an order",
            )
        at = self.grouping.position(canonical)
        if at is None:
            at = len(self.grouping.keys)
            key = replace(self.binder.new_column(label, type_), char=char)
            self.grouping.keys.append((key, expr, canonical))
        return at

    def _target(self, tree: exp.Expr) -> exp.Expr:
        """What GROUP BY means by an ordinal, a column or an alias of the select list."""
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if isinstance(tree, exp.Literal) and not tree.is_string and str(tree.this).isdigit():
            n = int(str(tree.this))
            if not 1 <= n <= len(self.items):
                raise BindError(
                    f"GROUP BY {n} is no position in the select list",
                    self.binder.place(tree),
                    f"It has {len(self.items)} column{'s' if len(self.items) > 1 else ''}",
                )
            return self.items[n - 1]
        if isinstance(tree, exp.Column) and not tree.table and not self.scope.unqualified(tree.name):
            for item in self.items:
                if isinstance(item, exp.Alias) and item.alias.lower() == tree.name.lower():
                    return item
        return tree


def _rollup(members: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    return [tuple(i for part in members[:length] for i in part) for length in range(len(members), -1, -1)]
