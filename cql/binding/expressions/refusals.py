"""What does not belong into an expression."""

from __future__ import annotations

from sqlglot import exp

from sweeparea.cql.binding.expressions.walk import Walk
from sweeparea.cql.text.errors import ParseError


def star(walk: Walk, node: exp.Expr) -> None:
    raise ParseError(f"* does not belong into an expression of {walk.binder.where}", walk.binder.place(node))


def parameter(walk: Walk, node: exp.Expr) -> None:
    raise walk.refused("a parameter marker or variable", node, "Write the value itself")


def distinct(walk: Walk, node: exp.Expr) -> None:
    raise ParseError("DISTINCT belongs behind SELECT or into an aggregate", walk.binder.place(node))
