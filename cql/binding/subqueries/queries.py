"""Queries inside queries: what is bound of them, and what FROM, subqueries and set operations ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from sweeparea.cql.binding.scope.around import QueryAround
from sweeparea.cql.binding.scope.binder import Binder
from sweeparea.cql.binding.scope.context import Context
from sweeparea.cql.binding.subqueries.decorrelate import Decorrelation
from sweeparea.cql.syntax.dialect.streams import ToStream
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column


@dataclass(frozen=True)
class BoundQuery:
    """A bound query: the relation it means, its visible columns, and the operator if it is a stream."""

    node: Node
    columns: tuple[Column, ...]
    to_stream: ToStream | None = None


@dataclass(frozen=True)
class Cte:
    """A named query of a WITH clause and what can be named inside it. Each use is bound anew."""

    query: exp.Expr
    columns: tuple[str, ...]
    env: dict[str, Cte]
    outer: QueryAround | None = None


class Queries(Protocol):
    """Binds the queries inside a query. ``env`` are the queries of WITH that can be named."""

    context: Context
    decorrelation: Decorrelation

    def relation(self, node: exp.Expr, env: dict[str, Cte]) -> BoundQuery:
        """A query where a relation is needed."""
        ...

    def entry(self, node: exp.Subquery, env: dict[str, Cte]) -> BoundQuery:
        """A query in parentheses that is an entry of FROM."""
        ...

    def named(self, cte: Cte) -> BoundQuery:
        """A query of WITH, where it is used."""
        ...

    def nested(self, node: exp.Expr, env: dict[str, Cte], around: Binder) -> tuple[BoundQuery, QueryAround]:
        """A subquery that sees the names at the place of ``around`` behind its own, and what it has used of them."""
        ...
