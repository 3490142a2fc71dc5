"""What a subquery can name of the query around it."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from sweeparea.cql.binding.scope.binder import Binder
from sweeparea.cql.binding.scope.bound import Bound
from sweeparea.cql.binding.scope.scopes import Scope
from sweeparea.cql.text.errors import BindError, Place
from sweeparea.operators.sql.expressions import Column


@dataclass
class Outer:
    """What a subquery can name of the query around it, at the place where it stands; and through that query's own
    binder of those further out. ``used`` are the columns of this query that have been named."""

    binder: Binder
    used: dict[str, Column] = field(default_factory=dict)

    def resolve(self, names: list[str], place: Place) -> tuple[Column, int]:
        """The column of a name and how many of its parts name it. BindError if it is unknown here too."""
        binder = self.binder
        if not binder.scope.has(names) and binder.outer is not None:
            return binder.outer.resolve(names, place)
        column, used = binder.scope.resolve(names, place)
        if binder.grouping is not None:
            key = binder.grouping.key_of_column(column)
            if key is None:
                raise BindError(
                    f"column {'.'.join(names)} of the query around is neither grouped nor inside an aggregate",
                    place,
                    "Add it to GROUP BY there",
                )
            column = key
        self.used[column.id] = column
        return column, used

    def scopes(self) -> list[Scope]:
        """What can be named here, from the nearest query outwards."""
        return [self.binder.scope, *(self.binder.outer.scopes() if self.binder.outer is not None else [])]

    def knows(self, names: list[str]) -> bool:
        return self.binder.scope.has(names) or (self.binder.outer is not None and self.binder.outer.knows(names))

    def aggregate(self, node: exp.Expr) -> Bound | None:
        """An aggregate in a subquery's WHERE whose columns are all of the query around, which groups: it is that
        query's own."""
        binder = self.binder
        columns = [[p.name for p in c.parts] for c in node.find_all(exp.Column)]
        if binder.grouping is None or not columns or not all(binder.scope.has(names) for names in columns):
            return None
        bound = binder.bind(node)
        called = {c.id: c for c, _ in binder.grouping.calls.values()}
        self.used |= {id_: called[id_] for id_ in bound.expr.columns if id_ in called}
        return bound
