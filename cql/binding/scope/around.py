"""What a subquery asks of the query around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sqlglot import exp

from sweeparea.cql.binding.scope.bound import Bound
from sweeparea.cql.binding.scope.scopes import Scope
from sweeparea.cql.text.errors import Place
from sweeparea.operators.sql.expressions import Column


class QueryAround(Protocol):
    """What can be named of the query around, at the place where the subquery stands, and of those further out."""

    @property
    def used(self) -> Mapping[str, Column]:
        """The columns of the query around that have been named, by id."""
        ...

    def knows(self, names: list[str]) -> bool:
        """Whether a dotted name means something there."""
        ...

    def resolve(self, names: list[str], place: Place) -> tuple[Column, int]:
        """The column of a name and how many of its parts name it. BindError if it is unknown there too."""
        ...

    def scopes(self) -> list[Scope]:
        """What can be named there, from the nearest query outwards."""
        ...

    def aggregate(self, node: exp.Expr) -> Bound | None:
        """An aggregate that is the query's around, or None where it is the subquery's own."""
        ...
