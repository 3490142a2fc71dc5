"""A suite: tables on disk, and queries over them in each engine's language, beside each other in one folder a query.

``<queries>/q5/flink.sql`` is q5 in Flink's SQL, ``sweeparea.cql`` ours; an engine without a file of its own takes
``spark.sql``, where that is its SQL too. A file that begins with ``-- cannot:`` says
why its engine cannot express the query. Ours may be a whole statement with ``{name}`` in it, and ``sweeparea.sql``
beside it says how its answer is read. ``<queries>/answers.toml`` says which columns of an answer are compared, and as
what.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from benchmarks.engines.digest import DUCKDB
from benchmarks.engines.task import Query, Table

CANNOT = "-- cannot:"


@dataclass(frozen=True)
class Suite:
    """``label`` tells the size of the data; all happens between ``begin`` and ``end``, milliseconds since 1970, which
    SweepArea cuts into so many ``slices``.
    """

    name: str
    label: str
    tables: list[Table]
    begin: int
    end: int
    folder: Path
    slices: int = 1

    def queries(self) -> dict[str, list[tuple[str, str]]]:
        """Names of the queries, and the columns of their answers with their kinds."""
        return answers(self.folder)

    def query(self, name: str, engine: str) -> Query | str:
        """The query in the engine's language, or why it cannot be said there."""
        file = self.folder / name / ("sweeparea.cql" if engine == "sweeparea" else f"{engine}.sql")
        if engine != "sweeparea" and not file.exists():
            file = self.folder / name / "spark.sql"
        if not file.exists():
            return f"there is no {file.name}"
        text = file.read_text(encoding="utf-8").strip()
        if text.startswith(CANNOT):
            return " ".join(line.removeprefix(CANNOT).removeprefix("--").strip() for line in text.splitlines())
        reading = self.folder / name / "sweeparea.sql"
        told = {"reading": reading.read_text(encoding="utf-8")} if reading.exists() else {}
        return Query(name, text, self.queries()[name], slices=self.slices, **told)


def answers(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """What ``answers.toml`` says."""
    told = tomllib.loads((folder / "answers.toml").read_text(encoding="utf-8"))
    found = {}
    for query, columns in told.items():
        pairs = [column.split() for column in columns.split(",")]
        found[query] = [(name, kind) for name, kind in pairs]
        assert all(kind in DUCKDB for _, kind in found[query]), query
    return found
