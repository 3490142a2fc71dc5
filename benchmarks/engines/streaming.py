"""Spark's Structured Streaming: one run of all that is there, state in RocksDB, results into a Delta table.

Windows close when the watermark has passed them, so the files of a stream get company: one with a single row at the end
of time, which moves the watermark and is filtered behind it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit, timestamp_millis

from benchmarks.engines import digest, spark
from benchmarks.engines.task import Answer, Query, Ran, Source, Table
from sweeparea.infra.setup import jars

SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
}
COMPLETE = "-- complete"
"""How a query begins whose whole result is written by each batch; others append."""


def session(scratch: Path) -> SparkSession:
    """Spark with RocksDB for its state and Delta for its tables."""
    builder = SparkSession.builder.master("local[2]").appName("streaming")
    settings = {**spark.SETTINGS, **SETTINGS, "spark.driver.extraClassPath": jars.class_path()}
    for name, value in {**settings, "spark.sql.warehouse.dir": f"{scratch}/warehouse"}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


class Engine:
    """A session with the streams as views, each with a watermark."""

    def __init__(self, source: Source):
        self._scratch = Path(source.scratch)
        self._runs = 0
        self._spark = session(self._scratch)
        for table in source.tables:
            if table.time is None:
                rows = self._spark.read.parquet(table.folder)
            else:
                schema = self._spark.read.parquet(table.folder).schema
                rows = self._spark.readStream.schema(schema).parquet(str(self._with_an_end(table, source.end)))
                rows = rows.withWatermark(table.time, "4 seconds")
                rows = rows.where(rows[table.time] < timestamp_millis(lit(source.end)))
            rows.createOrReplaceTempView(table.name)

    def versions(self) -> dict[str, str]:
        """Spark's."""
        return {"spark": self._spark.version}

    def run(self, query: Query) -> Ran:
        """A new query over all that is there, into a new Delta table."""
        return self._ran(query)[1]

    def answer(self, query: Query) -> Answer:
        """Computes and reads the Delta table."""
        table, _ = self._ran(query)
        with duckdb.connect() as database:
            database.register("result", DeltaTable(table).to_pyarrow_dataset())
            found = database.execute(f"SELECT {digest.duckdb(query.answer)} FROM result").fetchall()
        return Answer(found[0][0], int(found[0][1] or 0))

    def _ran(self, query: Query) -> tuple[str, Ran]:
        self._runs += 1
        folder = self._scratch / f"{query.name}-{self._runs}"
        mode = "complete" if query.text.startswith(COMPLETE) else "append"
        begun = time.perf_counter()
        writer = self._spark.sql(query.text).writeStream.format("delta").outputMode(mode)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
        writer.start(str(folder / "table")).awaitTermination()
        return str(folder / "table"), Ran(time.perf_counter() - begun)

    def _with_an_end(self, table: Table, end: int) -> Path:
        folder = self._scratch / "streams" / table.name
        folder.mkdir(parents=True)
        files = sorted(Path(table.folder).glob("*.parquet"))
        for file in files:
            os.link(file, folder / file.name)
        schema = pq.read_schema(files[0])
        row = {name: [None] for name in schema.names} | {table.time: [end * 1000]}
        last = pa.table(
            {n: pa.array(v, pa.int64() if n == table.time else schema.field(n).type) for n, v in row.items()}
        )
        pq.write_table(last.cast(schema), folder / "end.parquet")
        return folder
