"""What the binder knows of the inputs that a query may name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from sweeparea.operators.sql.expressions import Column
from sweeparea.operators.time.domain import TimeDomain


class SchemaKind(StrEnum):
    """What an input of a query, or its result, is."""

    STREAM = "stream"
    RELATION = "relation"


@dataclass(frozen=True)
class InputSchema:
    """What the binder knows of an input: a registered stream or relation, or another query's result.

    ``columns`` are (name, Spark type or None) without bookkeeping columns; ``time`` is
    what a tick of it means. ``derived`` marks results of queries (their chronon is fixed), ``static`` relations that
    never change, ``sequence_by`` the column that orders a stream's elements of one instant, ``chars`` the
    columns that hold CHAR values with the types that they are declared as, ``char(5)`` or ``array<char(5)>``.
    """

    name: str
    kind: SchemaKind
    columns: tuple[tuple[str, str | None], ...]
    time: TimeDomain = field(default_factory=TimeDomain)
    retroactive: bool = True
    derived: bool = False
    static: bool = False
    sequence_by: str | None = None
    chars: tuple[tuple[str, str], ...] = ()

    def column(self, made: Column, name: str) -> Column:
        """``made`` for the column ``name``, with what a comparison must know of it."""
        return replace(made, char=dict(self.chars).get(name))
