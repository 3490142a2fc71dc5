"""The columns that a star stands for: ``*``, ``t.*``, ``* EXCEPT (a)``."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sweeparea.cql.binding.scope.scopes import Scope
from sweeparea.cql.text.errors import BindError, Place, listing, nearest, not_offered
from sweeparea.operators.sql.expressions import Column


def star_columns(scope: Scope, node: exp.Expr, place_of: Callable[[exp.Expr], Place]) -> list[Column]:
    """The columns of ``*``, ``t.*`` or ``* EXCEPT (a)``."""
    place = place_of(node)
    if isinstance(node, exp.Column):
        qualifier, star = node.table, node.this
        if node.args.get("db") is not None:
            raise not_offered("the fields of a struct as columns (a.b.*)", place)
        aliases = [i for i in scope.items if i.alias is not None and i.alias.lower() == qualifier.lower()]
        if not aliases and scope.unqualified(qualifier):
            raise not_offered(
                f"the fields of the struct {qualifier} as columns ({qualifier}.*)", place, "Name the fields"
            )
        columns = list(scope.item(qualifier, place).columns)
    else:
        star, columns = node, list(scope.star)
        if not scope.items:
            raise BindError("* needs a FROM", place)
    for excluded in star.args.get("except_") or []:
        name = excluded.name
        kept = [c for c in columns if c.label.lower() != name.lower()]
        if len(kept) == len(columns):
            labels = [c.label for c in columns]
            raise BindError(
                f"EXCEPT names {name}, which * does not have",
                place_of(excluded),
                nearest(name, labels) or f"It has {listing(labels)}",
            )
        columns = kept
    return columns
