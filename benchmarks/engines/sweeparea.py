"""SweepArea: streams admitted once, each run a continuous query of its own from the first instant to the last.

Its time is that of ``process``: planned, computed, judged, published and applied. Admission is told apart: it is done
once for all queries.
"""

from __future__ import annotations

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
                database.register(table.name, ds.dataset(table.folder, format="parquet", exclude_invalid_files=True))
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
        begun = time.perf_counter()
        application = Application.open(self._folder)
        report = process(application, name, self._spark)
        return application, name, Ran(time.perf_counter() - begun, report.rows_out, report.phases)


def declared(table: Table) -> str:
    """The statement that declares a table as an input."""
    if table.time is None:
        return f"CREATE RELATION {table.name} FROM DELTA '{table.folder}' STATIC;"
    return (
        f"CREATE STREAM {table.name} FROM DELTA '{table.folder}' TIMESTAMP BY {table.time}"
        " CHRONON INTERVAL 1 MILLISECOND HEARTBEAT MANUAL MAX AHEAD INTERVAL 99999 DAYS;"
    )
