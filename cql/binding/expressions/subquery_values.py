"""Subqueries in an expression: values that are put beside the rows."""

from __future__ import annotations

from sqlglot import exp

from sweeparea.cql.binding.expressions.walk import Walk
from sweeparea.cql.text.errors import RefusedError, TypeError_


def subquery(walk: Walk, node: exp.Expr) -> None:
    """A scalar subquery, EXISTS (..) or IN (..): a value that is put beside the rows."""
    binder = walk.binder
    if binder.subqueries is None:
        raise RefusedError(
            f"a subquery in {binder.where} is not offered: it would need other rows than the one at hand",
            binder.place(node),
            "Compute it in the query, or join it in FROM",
        )
    walk.put(node, binder.subqueries.value(binder, node))


def exists(walk: Walk, node: exp.Expr) -> None:
    if isinstance(node.this, exp.Query):
        subquery(walk, node)
    else:
        walk.children(node)


def quantified(walk: Walk, node: exp.Expr) -> None:
    if isinstance(node.this, exp.Query):
        word = "ALL" if isinstance(node, exp.All) else "ANY"
        raise TypeError_(
            f"{word} of a subquery belongs right of a comparison",
            walk.binder.place(node),
            f"Write a > {word} (SELECT ..); for LIKE and others write EXISTS (SELECT .. WHERE ..)",
        )
    walk.children(node)
