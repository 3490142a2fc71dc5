"""Columns and scalar expressions: Spark SQL text over column ids, never re-implemented here."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sweeparea.operators.base.stored_names import stored


@dataclass(frozen=True)
class Column:
    """A column of a node's output.

    ``id`` is its name inside the engine (``c0``, ``c1``, .. unique in the plan), ``label`` what the author wrote,
    ``type`` the Spark type as DDL text (``bigint``, ``decimal(10,2)``), or None where only Spark's analysis can tell.
    ``char`` is the declared type of a column that holds CHAR values (``char(5)``, ``array<char(5)>``): these are
    padded, and so is what it is compared with.
    """

    id: str
    label: str
    type: str | None = None
    char: str | None = field(default=None, compare=False, repr=False)

    def as_of(self, other: Column | None) -> Column:
        """This column, known to hold CHAR values where ``other``, whose values it has, does."""
        return self if other is None or other.char is None else dataclasses.replace(self, char=other.char)


@dataclass(frozen=True)
class Expr:
    """A scalar expression: Spark SQL text over column ids, and the text as its author wrote it (for explain)."""

    sql: str
    text: str = ""
    columns: frozenset[str] = frozenset()

    @property
    def words(self) -> str:
        """What explain shows: the author's text, where there is one."""
        return self.text or self.sql

    @property
    def bare(self) -> str:
        """The id of the column that this is; of any other expression a text that is no column's id."""
        return self.sql.strip().strip("`")


def reference(column: Column, text: str | None = None) -> Expr:
    """The expression that is just a column.

    >>> reference(Column("c1", "v"))
    Expr(sql='`c1`', text='v', columns=frozenset({'c1'}))
    """
    return Expr(f"`{column.id}`", column.label if text is None else text, frozenset({column.id}))


def kept_as_they_are(columns: Iterable[Column]) -> tuple[tuple[Column, Expr], ...]:
    """Outputs of a projection that keeps columns as they are."""
    return tuple((column, reference(column)) for column in columns)


@dataclass(frozen=True)
class Part:
    """Base of what a node holds beside columns and expressions: values of which some fields are expressions."""

    @property
    def reads(self) -> frozenset[str]:
        """The ids of all columns that it refers to."""
        return frozenset().union(*(expr.columns for expr in expressions_in(self)))


@stored("SortKey", "expr", "descending", "nulls_first")
@dataclass(frozen=True)
class SortKey(Part):
    """One key of an ORDER BY. Defaults are Spark's: ascending with NULL first, descending with NULL last."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = True


def expressions_in(value: object) -> Iterator[Expr]:
    """The expressions in a field of a node, in order."""
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from expressions_in(part)
    elif isinstance(value, Part):
        for each in dataclasses.fields(value):
            yield from expressions_in(getattr(value, each.name))


def with_expressions(value: Any, change: Callable[[Expr], Expr]) -> Any:
    """A field of a node with each of its expressions changed."""
    if isinstance(value, Expr):
        return change(value)
    if isinstance(value, tuple):
        return tuple(with_expressions(part, change) for part in value)
    if isinstance(value, Part):
        changed = {f.name: with_expressions(getattr(value, f.name), change) for f in dataclasses.fields(value)}
        return dataclasses.replace(value, **changed)
    return value
