"""GROUP BY: keys, grouping sets, and the aggregates that a select list and HAVING ask for above them.

ROLLUP, CUBE and GROUPING SETS are an aggregate over the union of one projection for each set, in which the keys outside
the set are NULL, beside a column that tells which those are, as Spark's Expand does it. So the set of no keys has a row
only where the input has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from sweeparea.cql.binding.scope.bound import column_expr
from sweeparea.operators.nodes import Aggregate, AggregateCall, Project, UnionAll
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column, Expr, SortKey

NewColumn = Callable[[str, str | None], Column]


@dataclass
class Groups:
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
            return column_expr(inputs[expr.sql][0])

        keys = [(new_column(c.label, c.type).as_of(c), e) for c, e, _ in self.keys]
        taken = [(column, _map_call(call, argument)) for column, call in calls]
        base = Project(plan, (*keys, *inputs.values()))
        repeated = len({frozenset(s) for s in self.sets}) < len(self.sets)
        parts = []
        for position, members in enumerate(self.sets):
            outputs = [
                (new_column(key.label, key.type), column_expr(key) if i in members else _null(key))
                for i, (key, _) in enumerate(keys)
            ]
            number = _grouping_id(len(keys), members)
            outputs.append((new_column(self.id.label, "bigint"), Expr(f"{number}L", str(number))))
            if repeated:  # a set that is written twice gives its groups twice
                outputs.append((new_column("position", "bigint"), Expr(f"{position}L", str(position))))
            outputs += [(new_column(c.label, c.type), column_expr(c)) for c, _ in inputs.values()]
            parts.append(Project(base, tuple(outputs)))
        united = tuple(new_column(c.label, c.type) for c in parts[0].columns)
        fixed = len(keys) + 1 + repeated
        renamed = {f"`{c.id}`": column_expr(u) for (c, _), u in zip(inputs.values(), united[fixed:], strict=True)}
        all_keys = [c for c, _, _ in self.keys] + [self.id]
        if repeated:
            all_keys.append(new_column("position", "bigint"))
        return Aggregate(
            UnionAll(tuple(parts), united),
            tuple((key, column_expr(u)) for key, u in zip(all_keys, united[:fixed], strict=True)),
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
