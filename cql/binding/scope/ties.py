"""Complete orders: as written, then the record's columns, so that no two different rows are left in chance's order.

Semantics section 2: the total order goes over the columns left to right, ascending, NULL first. The record is what
``*`` stands for. A stream's instant is no part of it and comes last, where something that is computed reads it.
"""

from __future__ import annotations

from collections.abc import Iterable

from sweeparea.cql.binding.scope.scopes import Item, Scope
from sweeparea.operators.sql.expressions import Column, Expr, SortKey


def record_of(scope: Scope, reads: frozenset[str]) -> list[Column]:
    """The columns of a scope's record, those of declared sequences first, then the instants and window bounds among
    ``reads``. A VARIANT has no order and is left out.
    """
    known = {c.id: c for c in scope.star} | {c.id: c for i in scope.items for c in i.columns}
    sequences = [known[i.sequence] for i in scope.items if i.sequence in known]
    marks = [c for i in scope.items for c in (i.instant, *_bounds(i)) if c is not None and c.id in reads]
    columns = {c.id: c for c in (*sequences, *scope.star, *marks)}
    return [c for c in columns.values() if c.type != "variant"]


def _bounds(item: Item) -> tuple[Column, ...]:
    return () if item.window is None or item.window.bounds is None else item.window.bounds


def record_order(written: Iterable[SortKey], scope: Scope, reads: frozenset[str]) -> tuple[SortKey, ...]:
    """``written``, completed by the record of a scope, for a call whose values read just the columns ``reads``.

    Where all of these are among the keys, rows that still tie have equal values, so the order ends there and the rest
    of the record need not be kept for it.
    """
    written = tuple(written)
    order = completed(written, record_of(scope, reads))
    at = next((i for i in range(len(order) + 1) if reads <= _columns(order[:i])), len(order))
    return order[: max(at, len(written))]


def _columns(order: Iterable[SortKey]) -> frozenset[str]:
    """The columns by which an order sorts as they are."""
    return frozenset(i for key in order for i in key.expr.columns if key.expr.sql == f"`{i}`")


def completed(written: Iterable[SortKey], columns: Iterable[Column]) -> tuple[SortKey, ...]:
    """``written``, then those of the columns by which it does not order yet."""
    order = list(written)
    ordered = {key.expr.sql for key in order}
    for column in columns:
        expr = Expr(f"`{column.id}`", column.label, frozenset({column.id}))
        if expr.sql not in ordered:
            order.append(SortKey(expr))
            ordered.add(expr.sql)
    return tuple(order)
