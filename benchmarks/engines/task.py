"""What an engine is told and what it says. Only Python's own library: the engines have environments of their own.

An engine's module has a class ``Engine`` with ``versions``, ``run`` and ``answer``. Its constructor takes a ``Source``
and gets everything ready: that is start-up, and part of no measured time.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol


@dataclasses.dataclass(frozen=True)
class Table:
    """A table on disk: its folder, and its columns as (name, kind) with kind ``integer``, ``text`` or ``instant``."""

    name: str
    folder: str
    columns: list[tuple[str, str]]
    time: str | None
    """The column with the event's instant; None for a table that does not change."""


@dataclasses.dataclass(frozen=True)
class Source:
    """All that is read, and where an engine may write."""

    tables: list[Table]
    begin: int
    end: int
    """Milliseconds since 1970 before which nothing and at which everything has happened."""
    scratch: str

    @staticmethod
    def of(told: dict[str, Any]) -> Source:
        """From its JSON form."""
        tables = [Table(**{**t, "columns": [tuple(c) for c in t["columns"]]}) for t in told["tables"]]
        return Source(tables, told["begin"], told["end"], told["scratch"])


@dataclasses.dataclass(frozen=True)
class Query:
    """A query in the engine's own language.

    ``answer`` are the columns that are compared, as (name, kind). ``reading`` says in DuckDB's SQL how they follow from
    the ``result`` of SweepArea and the tables, where they are no columns of it. In how many ``slices`` of time it is
    computed concerns SweepArea alone: Flink has none, and the others compute the whole anew for each.
    """

    name: str
    text: str
    answer: list[tuple[str, str]]
    reading: str = "SELECT * FROM result"
    slices: int = 1


@dataclasses.dataclass
class Ran:
    """A run: its seconds, the rows that it gave (None: not counted), and parts of the time by name."""

    seconds: float
    rows: int | None = None
    phases: dict[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Answer:
    """The bag of a query's rows in short: how many, and the sum of their digests (``digest.py``)."""

    rows: int
    digest: int


class Engine(Protocol):
    """What each engine's class does."""

    def versions(self) -> dict[str, str]:
        """Versions of what computes."""
        ...

    def run(self, query: Query) -> Ran:
        """Computes the query once."""
        ...

    def answer(self, query: Query) -> Answer:
        """Computes the query once and tells its answer."""
        ...
