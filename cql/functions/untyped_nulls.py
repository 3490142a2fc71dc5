"""NULL without a type (Spark's VOID) where rows are kept: no table holds it, so it is kept as the NULL of a type.

What an expression means does not change. ``NULL`` takes the type of what stands beside it, so wherever a column that is
NULL in every row is read, the word itself is read, and what holds such NULLs inside is given its own type again; only
the column that is stored gets a type of its own (STRING).
Plans get columns that can be stored in ``binding/stored_nulls.py``. Conditions are made BOOLEAN where they are bound
(``binding/expressions/walk.py``), arguments and keys where these are.
"""

from __future__ import annotations

import re

from sweeparea.cql.functions import types
from sweeparea.cql.functions.signatures import split_types
from sweeparea.operators.sql.expressions import Expr

VOID = "void"
STORED = "string"
"""The type that a NULL without one is stored with: the one that compares with most others."""
_INSIDE = re.compile(r"(?<![\w`.])void(?![\w`:])")


def typed(sql: Expr, type_: str = STORED) -> Expr:
    """An expression of type VOID as one of another type."""
    shown = type_ if "<" in type_ else type_.upper()  # names of fields stay as they are
    return Expr(f"CAST({sql.sql} AS {shown})", sql.text, sql.columns)


def is_inside(type_: str) -> bool:
    """Whether a NULL without a type is in values of a type, or all of them."""
    return _INSIDE.search(type_) is not None


def held(type_: str | None) -> str | None:
    """A type that a table can hold, where ``type_`` is none for the NULLs without a type inside it."""
    return None if type_ is None else _INSIDE.sub(STORED, type_)


def as_written(sql: str, type_: str, depth: int = 0) -> str:
    """SQL that gives a stored value its own type again, with NULLs without one: what stands beside it takes part of
    its type from there.
    """
    if type_ == VOID:
        return "NULL"
    if not is_inside(type_):
        return sql
    kind, element = type_.partition("<")[0], f"__v{depth}"
    if kind == "array":
        return f"transform({sql}, {element} -> {as_written(element, type_[6:-1], depth + 1)})"
    if kind == "map":  # a key is never NULL
        value = as_written(element, split_types(type_[4:-1])[1], depth + 1)
        return f"transform_values({sql}, (__k{depth}, {element}) -> {value})"
    parts = []
    for name, inner in types.fields(type_) or []:
        quoted, label = name.replace("`", "``"), name.replace("\\", "\\\\").replace("'", "\\'")
        parts.append(f"'{label}', {as_written(f'{sql}.`{quoted}`', inner, depth + 1)}")
    return f"IF({sql} IS NULL, NULL, named_struct({', '.join(parts)}))"
