"""DuckDB computes the whole answer anew from the Parquet files and writes it as Parquet."""

from __future__ import annotations

import time
from pathlib import Path

import duckdb

from benchmarks.engines import digest
from benchmarks.engines.task import Answer, Query, Ran, Source

THREADS = 2


class Engine:
    """A database in memory with the tables as views."""

    def __init__(self, source: Source):
        self._scratch = Path(source.scratch)
        self._database = duckdb.connect(config={"threads": THREADS})
        for table in source.tables:
            columns = [
                f'make_timestamp(epoch_us("{name}")) AS "{name}"' if kind == "instant" else f'"{name}"'
                for name, kind in table.columns
            ]
            self._database.execute(
                f"CREATE VIEW {table.name} AS SELECT {', '.join(columns)} FROM '{table.folder}/*.parquet'"
            )

    def versions(self) -> dict[str, str]:
        """DuckDB's."""
        return {"duckdb": duckdb.__version__}

    def run(self, query: Query) -> Ran:
        """The answer into one Parquet file."""
        begun = time.perf_counter()
        rows = self._database.execute(f"COPY ({query.text}) TO '{self._file(query)}' (FORMAT parquet)").fetchall()
        return Ran(time.perf_counter() - begun, rows[0][0])

    def answer(self, query: Query) -> Answer:
        """Computes and reads what was written."""
        self.run(query)
        found = self._database.execute(f"SELECT {digest.duckdb(query.answer)} FROM '{self._file(query)}'").fetchall()
        return Answer(found[0][0], int(found[0][1] or 0))

    def _file(self, query: Query) -> Path:
        return self._scratch / f"{query.name}.parquet"
