"""A bound expression: its text over the ids of columns, and its type."""

from __future__ import annotations

from dataclasses import dataclass

from sweeparea.cql.functions.untyped_nulls import STORED, VOID, held, typed
from sweeparea.operators.sql.expressions import Column, Expr


@dataclass(frozen=True)
class Bound:
    """A bound expression and its type, where that is certain; ``char`` is the declared type where it is just a
    column that holds CHAR values."""

    expr: Expr
    type: str | None
    char: str | None = None

    def typed(self, type_: str = STORED) -> Bound:
        """The same, as a NULL of ``type_`` where it is one without a type: what is kept must have one, and so must
        what is inside an array, map or struct.
        """
        kept = type_ if self.type == VOID else held(self.type)
        return self if kept is None or kept == self.type else Bound(typed(self.expr, kept), kept)


def quoted(column: Column) -> str:
    return f"`{column.id}`"


def quoted_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def column_expr(column: Column, text: str | None = None) -> Expr:
    """The expression that is just a column."""
    return Expr(quoted(column), text if text is not None else column.label, frozenset({column.id}))
