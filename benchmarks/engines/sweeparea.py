"""SweepArea: streams admitted once, each run a continuous query of its own from the first instant to the last.

Its time is that of ``process``: planned, computed, judged, published and applied. Admission is told apart: it is done
once for all queries.
"""

from __future__ import annotations

import statistics
import time
from importlib import metadata
from pathlib import Path

import duckdb
import pyarrow.compute as pc
import pyarrow.dataset as ds

from benchmarks.engines import digest
from benchmarks.engines.task import Answer, Query, Ran, Source, Table
from sweeparea.spark_jobs.admission.admit import admit, advance
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.spark.session import spark_session
from sweeparea.tables.log.delta_log import DeltaLog


class Engine:
    """An application whose streams have been admitted."""

    def __init__(self, source: Source):
        self._folder = Path(source.scratch) / "bench"
        self._folder.mkdir(parents=True)
        self._session = spark_session()
        self._spark = self._session.__enter__()
        self._runs = 0
        self._tables = source.tables
        self._begin, self._last = source.begin, max(map(_last, source.tables))
        self._admitted = {}
        (self._folder / "streams.cql").write_text("\n".join(map(declared, source.tables)))
        application = Application.open(self._folder)
        for table in source.tables:
            begun = time.perf_counter()
            admit(application, table.name, self._spark)
            self._admitted[f"admit {table.name}"] = round(time.perf_counter() - begun, 2)
            if table.time is not None:
                advance(application, table.name, source.end)

    def versions(self) -> dict[str, str]:
        """Of what computes, and the seconds of admission."""
        packages = ("pyspark", "delta-spark", "deltalake", "numba", "pyarrow", "great-expectations")
        return {
            **{package: metadata.version(package) for package in packages},
            **{f"seconds of {what}": str(seconds) for what, seconds in self._admitted.items()},
        }

    def run(self, query: Query) -> Ran:
        """A continuous query catches up with all that has happened."""
        return self._ran(query)[2]

    def answer(self, query: Query) -> Answer:
        """The same; its result is read at the end of time."""
        application, name, _ = self._ran(query)
        stream = application.layout.result(f"{name}__istream")
        rows = DeltaLog(stream if Path(stream).is_dir() else application.layout.result(name)).read()
        if "valid_to" in rows.column_names:
            rows = rows.filter(pc.is_null(rows["valid_to"]))  # pyright: ignore[reportAttributeAccessIssue]
        with duckdb.connect() as database:
            database.register("result", rows)
            for table in self._tables:
                # of an Arrow dataset DuckDB does not know how many rows it has, and joins it row by row
                database.execute(f"CREATE VIEW {table.name} AS FROM read_parquet('{table.folder}/*.parquet')")
            text = f"SELECT {digest.duckdb(query.answer)} FROM ({query.reading})"
            found = database.execute(text).fetchall()
        return Answer(found[0][0], int(found[0][1] or 0))

    def _ran(self, query: Query) -> tuple[Application, str, Ran]:
        name = f"{query.name}_{self._runs}"
        self._runs += 1
        statement = (
            query.text if query.text.startswith("CREATE") else f"CREATE CONTINUOUS QUERY {{name}} AS\n{query.text}"
        )
        (self._folder / f"{name}.cql").write_text(statement.replace("{name}", name) + ";\n")
        begun, rows, phases, slices = time.perf_counter(), 0, {}, []
        application = Application.open(self._folder)
        for until in self._cuts(query.slices):
            before = time.perf_counter()
            report = process(application, name, self._spark, until=until)
            slices.append(time.perf_counter() - before)
            rows += report.rows_out
            for phase, seconds in report.phases.items():
                phases[phase] = phases.get(phase, 0.0) + seconds
        seconds = time.perf_counter() - begun
        if query.slices > 1:
            phases["one of the last slices"] = statistics.median(slices[-11:-1])
        return application, name, Ran(seconds, rows, phases)

    def _cuts(self, slices: int) -> list[int | None]:
        """Where slices of equal length end; behind the last one there is nothing but time that passes."""
        length = self._last - self._begin
        return [*(self._begin + length * k // slices - 1 for k in range(1, slices)), None]


def _last(table: Table) -> int:
    """Milliseconds since 1970 of a table's last event; 0 where it has none."""
    if table.time is None:
        return 0
    rows = ds.dataset(table.folder, format="parquet").to_table(columns=[table.time])
    return int(pc.max(rows[table.time]).cast("int64").as_py()) // 1000  # pyright: ignore[reportAttributeAccessIssue]


def declared(table: Table) -> str:
    """The statement that declares a table as an input."""
    if table.time is None:
        return f"CREATE RELATION {table.name} FROM DELTA '{table.folder}' STATIC;"
    return (
        f"CREATE STREAM {table.name} FROM DELTA '{table.folder}' TIMESTAMP BY {table.time}"
        " CHRONON INTERVAL 1 MILLISECOND HEARTBEAT MANUAL MAX AHEAD INTERVAL 99999 DAYS;"
    )
