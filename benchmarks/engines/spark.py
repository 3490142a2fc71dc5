"""Spark computes the whole answer anew from the Parquet files and writes it as Parquet."""

from __future__ import annotations

import time
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession

from benchmarks.engines import digest
from benchmarks.engines.task import Answer, Query, Ran, Source

SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""As many partitions as cores; all else, also the compilers and the collector of Java, as Spark has it by default."""


class Engine:
    """A session with the tables as views."""

    def __init__(self, source: Source):
        self._scratch = Path(source.scratch)
        builder = SparkSession.builder.master("local[2]").appName("recomputation")
        for name, value in {**SETTINGS, "spark.sql.warehouse.dir": f"{self._scratch}/warehouse"}.items():
            builder = builder.config(name, value)
        self._spark = builder.getOrCreate()
        for table in source.tables:
            self._spark.read.parquet(table.folder).createOrReplaceTempView(table.name)

    def versions(self) -> dict[str, str]:
        """Spark's."""
        return {"spark": self._spark.version}

    def run(self, query: Query) -> Ran:
        """The answer as Parquet files."""
        begun = time.perf_counter()
        self._spark.sql(query.text).write.mode("overwrite").parquet(self._files(query))
        return Ran(time.perf_counter() - begun)

    def answer(self, query: Query) -> Answer:
        """Computes and reads what was written."""
        self.run(query)
        with duckdb.connect() as database:
            text = f"SELECT {digest.duckdb(query.answer)} FROM '{self._files(query)}/*.parquet'"
            found = database.execute(text).fetchall()
        return Answer(found[0][0], int(found[0][1] or 0))

    def _files(self, query: Query) -> str:
        return str(self._scratch / query.name)
