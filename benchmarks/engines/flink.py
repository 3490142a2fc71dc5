"""Flink SQL over streams: two parallel tasks, mini-batches, state on the heap, Parquet read, nothing written.

Runs in an environment of its own (``flink.lock``), so nothing but Python's own library and pyflink is imported here.
"""

from __future__ import annotations

import time

from pyflink.java_gateway import get_gateway  # pyright: ignore[reportMissingImports]
from pyflink.table import EnvironmentSettings, TableDescriptor, TableEnvironment  # pyright: ignore[reportMissingImports]
from pyflink.version import __version__  # pyright: ignore[reportMissingImports]

from benchmarks.engines import digest
from benchmarks.engines.task import Answer, Query, Ran, Source, Table

SETTINGS = {
    "execution.target": "remote",
    "parallelism.default": "2",
    "table.local-time-zone": "UTC",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.distinct-agg.split.enabled": "true",
}
"""Those of nexmark-flink's own configuration, but for checkpoints, which are off."""
CLUSTER = {
    "rest.address": "127.0.0.1",
    "rest.bind-address": "127.0.0.1",
    "rest.bind-port": "0",
    "jobmanager.bind-host": "127.0.0.1",
    "taskmanager.bind-host": "127.0.0.1",
    "taskmanager.memory.network.min": "256 mb",
    "taskmanager.memory.network.max": "256 mb",
    "taskmanager.memory.managed.size": "512 mb",
}
KINDS = {"integer": "BIGINT", "text": "STRING", "instant": "TIMESTAMP(3)"}


class Engine:
    """A cluster in the JVM of this process, which all jobs share, and the tables over the Parquet files."""

    def __init__(self, source: Source):
        self._tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        for name, value in {**SETTINGS, "rest.address": "127.0.0.1", "rest.port": str(_cluster())}.items():
            self._tables.get_config().set(name, value)
        for table in source.tables:
            self._tables.execute_sql(_declared(table))

    def versions(self) -> dict[str, str]:
        """Flink's."""
        return {"flink": __version__}

    def run(self, query: Query) -> Ran:
        """All changes into a sink that drops them."""
        begun = time.perf_counter()
        table = self._tables.sql_query(query.text)
        table.execute_insert(TableDescriptor.for_connector("blackhole").build()).wait()
        return Ran(time.perf_counter() - begun)

    def answer(self, query: Query) -> Answer:
        """The digest is computed by Flink itself over the query's changes; the last one counts."""
        text = f"SELECT {digest.flink(query.answer)} FROM ({query.text}\n) AS answer"
        last = [0, 0]
        with self._tables.execute_sql(text).collect() as rows:
            for row in rows:
                last = [row[0], row[1]]
        return Answer(last[0], last[1] or 0)


def _cluster() -> int:
    """Starts a cluster of one task manager with two slots: without one Flink makes a new one for each job. Its port."""
    flink = get_gateway().jvm.org.apache.flink
    settings = flink.configuration.Configuration()
    for name, value in CLUSTER.items():
        settings.setString(name, value)
    told = flink.runtime.minicluster.MiniClusterConfiguration.Builder()
    told = told.setConfiguration(settings).setNumTaskManagers(1).setNumSlotsPerTaskManager(2).build()
    cluster = flink.runtime.minicluster.MiniCluster(told)
    cluster.start()
    return cluster.getRestAddress().get().getPort()


def _declared(table: Table) -> str:
    columns = [f"`{name}` {KINDS[kind]}" for name, kind in table.columns]
    if table.time is not None:
        columns.append(f"WATERMARK FOR `{table.time}` AS `{table.time}` - INTERVAL '4' SECOND")
    return (
        f"CREATE TABLE {table.name} ({', '.join(columns)}) WITH ('connector' = 'filesystem',"
        f" 'path' = 'file://{table.folder}', 'format' = 'parquet', 'parquet.utc-timezone' = 'true')"
    )
