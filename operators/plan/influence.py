"""How a column makes a difference to another one, in the words of OpenLineage's column lineage facet.

Of direct influences the later is the stronger: what is made of a sum is made by aggregation, whatever is done to the
sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from sweeparea.operators.sql.expressions import Expr

Ids = frozenset[str]


class Influence(StrEnum):
    """IDENTITY to AGGREGATION: the value is made of it (direct). JOIN to WINDOW: it decides which rows there are, or
    which of them a value is made of (indirect).
    """

    IDENTITY = "IDENTITY"
    TRANSFORMATION = "TRANSFORMATION"
    AGGREGATION = "AGGREGATION"
    JOIN = "JOIN"
    GROUP_BY = "GROUP_BY"
    FILTER = "FILTER"
    SORT = "SORT"
    WINDOW = "WINDOW"

    @property
    def direct(self) -> bool:
        """Whether a value is made of it."""
        return self in _STRENGTH


_STRENGTH = {Influence.IDENTITY: 0, Influence.TRANSFORMATION: 1, Influence.AGGREGATION: 2}


def through(later: Influence, earlier: Influence) -> Influence:
    """The influence of what goes into a column by ``earlier``, on what that column goes into by ``later``.

    >>> print(through(Influence.IDENTITY, Influence.AGGREGATION), through(Influence.TRANSFORMATION, Influence.WINDOW))
    AGGREGATION WINDOW
    >>> print(through(Influence.JOIN, Influence.AGGREGATION))
    JOIN
    """
    if not later.direct:
        return later
    return max(later, earlier, key=_STRENGTH.__getitem__) if earlier.direct else earlier


@dataclass(frozen=True)
class Made:
    """A column that a node makes: the ids of the input columns that go into its value, and ``how``; ``beside``: those
    that decide which rows the value is made of. ``time``: the instants of the rows go into it as well.
    """

    column: str
    of: Ids
    how: Influence = Influence.TRANSFORMATION
    beside: tuple[tuple[Influence, Ids], ...] = ()
    time: bool = False


def made_by(column: str, expr: Expr) -> Made:
    """A column that is an expression.

    >>> made_by("c1", Expr("`c0`", "v", frozenset({"c0"}))).how, made_by("c1", Expr("1")).of
    (<Influence.IDENTITY: 'IDENTITY'>, frozenset())
    """
    return Made(column, expr.columns, Influence.IDENTITY if expr.bare in expr.columns else Influence.TRANSFORMATION)


def read_by(expressions: Iterable[Expr]) -> Ids:
    """The ids of the columns that any of the expressions refers to."""
    return frozenset().union(*(expr.columns for expr in expressions))
