"""GROUP BY bound: its keys and grouping sets (``scope/grouping.py`` holds what is met)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

from sqlglot import exp

from sweeparea.cql.binding.scope.binder import Binder
from sweeparea.cql.binding.scope.bound import column_expr
from sweeparea.cql.binding.scope.grouping import Groups
from sweeparea.cql.binding.scope.scopes import Scope
from sweeparea.cql.functions.aggregates import has_aggregate
from sweeparea.cql.syntax.dialect.spans import span_of
from sweeparea.cql.syntax.labels import label_of
from sweeparea.cql.text.errors import BindError, RefusedError, TypeError_
from sweeparea.cql.text.source_text import SourceText
from sweeparea.operators.sql.expressions import Column

MAX_SETS = 1024
"""Grouping sets of one query: each is a part of a union."""
_SETS = (exp.GroupingSets, exp.Rollup, exp.Cube)


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
        self.grouping = Groups()

    def bind(self, group: exp.Expr | None) -> Groups:
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
            expr, type_, label, char = column_expr(resolved), resolved.type, resolved.label, resolved.char
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
