"""Lists of columns behind the name of a table, ``AS v(a, b)``."""

from __future__ import annotations

from sqlglot import exp


def without_column_types(select: exp.Expr) -> exp.Expr:
    """A query without the types in ``AS v(a INT, b)``: refused today, and left out by the versions that took them, so
    that a deployed text is to be read without them.
    """
    if not any(isinstance(node.parent, exp.TableAlias) for node in select.find_all(exp.ColumnDef)):
        return select
    select = select.copy()
    for node in list(select.find_all(exp.ColumnDef)):
        if isinstance(node.parent, exp.TableAlias):
            node.replace(node.this)
    return select
