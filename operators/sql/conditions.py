"""Join conditions taken apart: equalities of one side with the other, what one side alone decides, and the rest.

A condition is Spark SQL text over column ids; ``sql_text.py`` cuts it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sweeparea.operators.sql.expressions import Expr
from sweeparea.operators.sql.sql_text import bare, parts, tokens

_EQUALS = {"=": False, "==": False, "<=>": True}
_LOOSER = {"<", ">", "<=", ">=", "<>", "!=", "->", "!"}
_WORDS = {"OR", "AND", "NOT", "IS", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "ANY", "SOME", "ALL", "ESCAPE"}


@dataclass(frozen=True)
class Equality:
    """``left = right``, of the join's left and right columns; ``null_safe``: ``left <=> right``."""

    left: Expr
    right: Expr
    null_safe: bool = False


@dataclass(frozen=True)
class Condition:
    """Parts that AND connects. ``left`` and ``right`` read one side's columns only, ``rest`` is everything else."""

    equalities: tuple[Equality, ...] = ()
    left: tuple[Expr, ...] = ()
    right: tuple[Expr, ...] = ()
    rest: tuple[Expr, ...] = ()


def take_apart(condition: Expr | None, left: Iterable[str], right: Iterable[str]) -> tuple[Condition, ...]:
    """The alternatives of a join's condition: it is true where one of them is. ``left``, ``right``: the column ids.

    There is one, but for the condition of NOT IN: ``coalesce(x = y, TRUE)`` is true where x = y, where x is NULL and
    where y is NULL, and each of these can be looked up where the whole could only be tried pair by pair.

    >>> one, = take_apart(Expr("a = b AND c > 1 AND a < d", columns=frozenset("abcd")), "ac", "bd")
    >>> [(e.left.sql, e.right.sql) for e in one.equalities], one.left[0].sql, one.rest[0].sql
    ([('a', 'b')], 'c > 1', 'a < d')
    >>> [len(c.equalities) for c in take_apart(Expr("coalesce(a = b, TRUE)", columns=frozenset("ab")), "a", "b")]
    [1, 0, 0]
    """
    sides = frozenset(left), frozenset(right)
    found = [] if condition is None else _conjuncts(condition)
    if condition is not None and frozenset().union(*(p.columns for p in found)) != condition.columns:
        return (Condition(rest=(condition,)),)  # a column that was not found: nothing may be said of the parts
    assumed = [(i, equal) for i, part in enumerate(found) if (equal := _true_if_unknown(part, sides))]
    if len(assumed) != 1:
        return (_sorted(found, sides),)
    i, equal = assumed[0]
    others = found[:i] + found[i + 1 :]
    both = Expr(f"({equal.left.sql}) = ({equal.right.sql})", columns=equal.left.columns | equal.right.columns)
    nulls = [Expr(f"({e.sql}) IS NULL", columns=e.columns) for e in (equal.left, equal.right)]
    return tuple(_sorted([*others, alternative], sides) for alternative in (both, *nulls))


def conjunction(parts: Iterable[Expr]) -> Expr | None:
    """All of the parts; None of none."""
    parts = tuple(parts)
    if not parts:
        return None
    return Expr(" AND ".join(f"({p.sql})" for p in parts), columns=frozenset().union(*(p.columns for p in parts)))


def _sorted(parts: Iterable[Expr], sides: tuple[frozenset[str], frozenset[str]]) -> Condition:
    equalities: list[Equality] = []
    left: list[Expr] = []
    right: list[Expr] = []
    rest: list[Expr] = []
    for part in parts:
        if part.columns <= sides[1]:
            right.append(part)
        elif part.columns <= sides[0]:
            left.append(part)
        elif found := _equality(part.sql, part.columns, sides):
            equalities.append(found)
        else:
            rest.append(part)
    return Condition(tuple(equalities), tuple(left), tuple(right), tuple(rest))


def _conjuncts(condition: Expr) -> list[Expr]:
    return [_part(sql, condition.columns) for sql in parts(condition.sql)]


def _part(sql: str, columns: frozenset[str]) -> Expr:
    # a field of a struct that is called like a column counts as that column: then a part is less simple than it could
    # be, never wrong
    return Expr(sql.strip(), columns=frozenset(t.text.strip("`") for t in tokens(sql)) & columns)


def _equality(sql: str, columns: frozenset[str], sides: tuple[frozenset[str], frozenset[str]]) -> Equality | None:
    sql = bare(sql)
    top = [t for t in tokens(sql) if t.depth == 0]
    signs = [t for t in top if t.text in _EQUALS]
    if len(signs) != 1 or any(t.text in _LOOSER or t.word in _WORDS for t in top):
        return None
    sign = signs[0]
    a, b = (_part(bare(side), columns) for side in (sql[: sign.start], sql[sign.end :]))
    for one, other in ((a, b), (b, a)):
        if one.columns and other.columns and one.columns <= sides[0] and other.columns <= sides[1]:
            return Equality(one, other, _EQUALS[sign.text])
    return None


def _true_if_unknown(part: Expr, sides: tuple[frozenset[str], frozenset[str]]) -> Equality | None:
    """The equality of ``coalesce(.. = .., TRUE)``."""
    found = tokens(bare(part.sql))
    if [t.word for t in found[:2]] != ["COALESCE", "("] or [t.word for t in found[-3:]] != [",", "TRUE", ")"]:
        return None
    if any(t.text == "," and t.depth == 1 for t in found[2:-3]) or any(t.depth == 0 for t in found[2:-1]):
        return None
    inner = bare(part.sql)[found[1].end : found[-3].start]
    equal = _equality(inner, part.columns, sides)
    return None if equal is None or equal.null_safe else equal
