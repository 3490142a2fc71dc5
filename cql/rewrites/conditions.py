"""Conditions as lists of conjuncts: taking them apart, putting them together, renaming their columns, and what they
say of NULL.

Expressions are texts (``logical.Expr``), cut by ``operators/sql/sql_text.py`` and never printed from a syntax tree.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.sql.sql_text import bare, parts, substituted, tokens


def conjunction(first: Expr | None, second: Expr) -> Expr:
    """Both conditions, in the order given."""
    if first is None:
        return second
    text = f"{_enclosed(first.text)} AND {_enclosed(second.text)}"
    return Expr(f"({first.sql}) AND ({second.sql})", text, first.columns | second.columns)


_NESTED = 500
"""Conditions up to which a conjunction is nested to the left. The text of a plan is part of its identity, so those that
are deployed keep it; longer ones stand side by side, which is as true and no deeper for being long."""


def all_of(conditions: Iterable[Expr]) -> Expr | None:
    """The conjunction of all, None of none: what ``conjunction`` makes of one after the other, in one step."""
    found = list(conditions)
    if len(found) < 2:
        return found[0] if found else None
    if len(found) > _NESTED:
        sql = " AND ".join(f"({c.sql})" for c in found)
    else:
        sql = "(" * (len(found) - 1) + found[0].sql + "".join(f") AND ({c.sql})" for c in found[1:])
    text = " AND ".join(_enclosed(c.text) for c in found)
    return Expr(sql, text, frozenset().union(*(c.columns for c in found)))


def conjuncts(condition: Expr | None) -> list[Expr]:
    """The parts of a condition that AND connects."""
    if condition is None:
        return []
    found, texts = parts(condition.sql), parts(condition.text)
    if len(found) == 1:
        return [condition]
    if len(texts) != len(found):
        texts = found
    return [
        Expr(sql, text, frozenset(c for c in condition.columns if f"`{c}`" in sql))
        for sql, text in zip(found, texts, strict=True)
    ]


def column(of: Column) -> Expr:
    """The expression that is just a column."""
    return Expr(f"`{of.id}`", of.label, frozenset({of.id}))


def column_of(expr: Expr) -> str | None:
    """The id of the column that an expression is, or None if it is more."""
    if len(expr.columns) != 1:
        return None
    (id_,) = expr.columns
    return id_ if bare(expr.sql) == f"`{id_}`" else None


def substitute(expr: Expr, by: Mapping[str, Expr]) -> Expr:
    """The expression over other columns: each id that ``by`` has replaced by its expression."""
    if not expr.columns & by.keys():
        return expr
    texts = {id_: new.sql if column_of(new) else f"({new.sql})" for id_, new in by.items() if id_ in expr.columns}
    columns = frozenset().union(*(by[c].columns if c in by else {c} for c in expr.columns))
    return Expr(substituted(expr.sql, texts), expr.text, columns)


def equality(condition: Expr) -> tuple[str, str] | None:
    """The two columns that a conjunct says are equal, or None."""
    node = tree(condition.sql)
    if not isinstance(node, exp.EQ):
        return None
    sides = node.this.unnest(), node.expression.unnest()
    if not all(isinstance(side, exp.Column) and len(side.parts) == 1 for side in sides):
        return None
    return sides[0].name, sides[1].name


@functools.lru_cache(8192)
def tree(sql: str) -> exp.Expr | None:
    """The syntax tree of an expression without parentheses around it, or None where there is none to be had."""
    try:
        return sqlglot.parse_one(sql, read="spark").unnest()
    except (SqlglotError, RecursionError):
        return None


# -- NULL --------------------------------------------------------------------------------------------------------------

_STRICT = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.Mod,
    exp.Neg,
    exp.Like,
    exp.Between,
    exp.Paren,
    exp.Not,
    exp.Cast,
    exp.Abs,
    exp.Upper,
    exp.Lower,
    exp.Length,
)
"""NULL if one of their operands is."""


def rejects_nulls(condition: Expr, of: frozenset[str]) -> bool:
    """Whether a condition cannot be TRUE where all columns ``of`` are NULL (Galindo-Legaria and Rosenthal 1997)."""
    node = tree(condition.sql) if condition.columns & of else None
    return node is not None and _never_true(node, of)


def _never_true(node: exp.Expr, of: frozenset[str]) -> bool:
    node = node.unnest()
    if isinstance(node, exp.And):
        return _never_true(node.this, of) or _never_true(node.expression, of)
    if isinstance(node, exp.Or):
        return _never_true(node.this, of) and _never_true(node.expression, of)
    if isinstance(node, exp.Not) and isinstance(node.this.unnest(), exp.Is):
        test = node.this.unnest()
        return isinstance(test.expression, exp.Null) and _null(test.this, of)
    return _null(node, of)


def _null(node: exp.Expr, of: frozenset[str]) -> bool:
    """Whether an expression is NULL where all columns ``of`` are."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        return node.name in of
    if isinstance(node, exp.Null):
        return True
    if isinstance(node, exp.And | exp.Or):
        return _null(node.this, of) and _null(node.expression, of)
    if isinstance(node, exp.In):
        return _null(node.this, of) and bool(node.expressions)
    if isinstance(node, exp.Between):
        return _null(node.this, of)
    if type(node) in _STRICT:
        return any(_null(child, of) for child in node.iter_expressions() if not isinstance(child, exp.DataType))
    return False


# -- equal values ------------------------------------------------------------------------------------------------------

_SAFE = (
    exp.EQ,
    exp.NEQ,
    exp.NullSafeEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Neg,
    exp.And,
    exp.Or,
    exp.Not,
    exp.Paren,
    exp.Is,
    exp.Null,
    exp.In,
    exp.Between,
    exp.Literal,
    exp.Boolean,
    exp.Column,
    exp.Identifier,
    exp.Abs,
)


def respects_equality(condition: Expr, types: Mapping[str, str | None]) -> bool:
    """Whether a condition is the same of equal values, so that a group of equal values is kept or dropped as a whole.

    Only floating point has equal values that are not alike (0.0 and -0.0): there it must be built from comparisons
    and sums alone. A column of unknown type may be floating point.
    """
    if all(exact(types.get(c)) for c in condition.columns):
        return True
    node = tree(condition.sql)
    return node is not None and all(type(n) in _SAFE for n in node.walk())


def exact(type_: str | None) -> bool:
    """Whether a known type has no equal values that differ."""
    return type_ is not None and "float" not in type_ and "double" not in type_ and not type_.startswith("map")


# -- texts -------------------------------------------------------------------------------------------------------------


def _enclosed(text: str) -> str:
    """A condition's text as it may stand beside AND."""
    return f"({text})" if _either(text) else text


def _either(text: str) -> bool:
    return any(token.depth == 0 and token.word == "OR" for token in tokens(text))


def split(condition: Expr, test: Callable[[Expr], bool]) -> tuple[list[Expr], list[Expr]]:
    """The conjuncts for which ``test`` holds, and the others."""
    found = conjuncts(condition)
    return [p for p in found if test(p)], [p for p in found if not test(p)]
