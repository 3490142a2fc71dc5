"""How evenly the tasks of a slice share its work while one key has a part of the rows: CPU seconds of each task.

    python -m benchmarks.skew --rows 400000 --shares 0 50 95 --queries sliding distinct

Eight workers share a slice of one query. For each share of the rows in one key and each Spark job with sweeps the
benchmark prints how long its longest task is, in means of all workers: a job's mean is the sum of its tasks' CPU
seconds divided by the number of workers, whether all have something to do or not. ``longest`` is the same of all jobs
together, one after the other: how many times longer the slice takes on eight cores than if its work were shared
evenly. Seconds are those of Python's workers, taken in them, and of the JVM's threads, from Spark's event log.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from benchmarks.cpu import cpu_seconds, spent
from sweeparea.operators.bridge import ChainedTask
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.evaluation import hot_keys
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.slices import slice as slices
from sweeparea.spark_jobs.spark import session

WORKERS, KEYS, SECONDS, VALUES = 8, 1_000, 3_600, 300_000
DECLARATIONS = """
CREATE STREAM a FROM DELTA 'source/a' TIMESTAMP BY at CHRONON INTERVAL 1 MILLISECOND
  HEARTBEAT FOR at AS at - INTERVAL 1 SECOND;
CREATE STREAM b FROM DELTA 'source/b' TIMESTAMP BY at CHRONON INTERVAL 1 MILLISECOND
  HEARTBEAT FOR at AS at - INTERVAL 1 SECOND;
"""
RANKS = ("v < 100", "v >= 100 AND v < 900", "v >= 900")
COUNTS = ", ".join(
    f"COUNT({what}) FILTER (WHERE {rank}) AS {name}{i}"
    for name, what in (("c", "*"), ("d", "DISTINCT x"))
    for i, rank in enumerate(RANKS)
)
QUERIES = {
    "sliding": "SELECT k, COUNT(*) AS n, SUM(v) AS s, AVG(w) AS m FROM a [RANGE INTERVAL 60 SECONDS] GROUP BY k",
    "tumbling": "SELECT k, COUNT(*) AS n, SUM(v) AS s, AVG(w) AS m FROM a [TUMBLING INTERVAL 60 SECONDS] GROUP BY k",
    "extrema": "SELECT k, MIN(w) AS least, MAX(w) AS most FROM a [RANGE INTERVAL 60 SECONDS] GROUP BY k",
    "distinct": f"SELECT k, COUNT(*) AS n, COUNT(DISTINCT x) AS d, {COUNTS} FROM a GROUP BY k",
    "distinct_global": f"SELECT COUNT(*) AS n, COUNT(DISTINCT x) AS d, {COUNTS} FROM a",
    "global": "SELECT COUNT(*) AS n, SUM(v) AS s, AVG(w) AS m FROM a [RANGE INTERVAL 60 SECONDS]",
    "top": "SELECT k, w FROM a [RANGE INTERVAL 60 SECONDS] QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY w) <= 10",
    "join": "SELECT a.k, a.v, b.v AS of_b FROM a [RANGE INTERVAL 60 SECONDS], b [RANGE INTERVAL 60 SECONDS]"
    " WHERE a.k = b.k",
}
START = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp())


def elements(count: int, share: int, seed: int) -> pa.Table:
    """``count`` elements spread over an hour, ``share`` per cent of them with the key 0."""
    chance = np.random.default_rng(seed)
    at = START * 1_000_000 + np.sort(chance.integers(0, SECONDS * 1000, count)) * 1000
    keys = np.where(chance.integers(0, 100, count) < share, 0, chance.integers(1, KEYS + 1, count))
    columns: dict[str, Any] = {
        "at": pa.array(at, pa.int64()).cast(pa.timestamp("us", tz="UTC")),
        "k": keys,
        "v": chance.integers(0, 1000, count),
        "w": chance.random(count),
        "x": chance.integers(0, VALUES, count),
    }
    return pa.table(columns)


@dataclass(frozen=True)
class Timed:
    """A task that notes in ``folder`` how many CPU seconds its worker has spent on a partition."""

    task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    folder: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        begun = time.process_time()
        yield from self.task(batches)
        context = TaskContext.get()
        assert context is not None
        note = [context.stageId(), context.partitionId(), time.process_time() - begun, _words(self.task)]
        Path(f"{self.folder}/{uuid.uuid4().hex}.json").write_text(json.dumps(note))


def _words(task: Any) -> str:
    """The tasks that are chained."""
    parts = (task.first, task.second) if isinstance(task, ChainedTask) else ()
    return "+".join(map(_words, parts)) or type(task).__name__.removesuffix("Task")


def stages(folder: Path, log: Path, since: int) -> dict[int, tuple[str, dict[int, float]]]:
    """By stage with a task of ours what it ran, and the CPU seconds of each of its tasks."""
    found: dict[int, tuple[str, dict[int, float]]] = {}
    for note in folder.glob("*.json"):
        stage, place, seconds, words = json.loads(note.read_text())
        tasks = found.setdefault(stage, (words, defaultdict(float)))[1]
        tasks[place] += seconds
    for line in log.read_text().splitlines()[since:]:
        event = json.loads(line)
        if event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
            nanoseconds = event["Task Metrics"]["Executor CPU Time"]
            tasks = found.setdefault(event["Stage ID"], ("Spark SQL", defaultdict(float)))[1]
            tasks[event["Task Info"]["Partition ID"]] += nanoseconds / 1e9
    return found


def told(found: dict[int, tuple[str, dict[int, float]]], least: float = 0.05) -> str:
    """A line: each stage of more than so many seconds, and all of them."""
    parts, longest, all_of_them = [], 0.0, 0.0
    for stage, (words, tasks) in sorted(found.items()):
        most, total = max(tasks.values()), sum(tasks.values())
        longest, all_of_them = longest + most, all_of_them + total
        if total >= least:
            parts.append(f"{stage} {words}: {total:.2f} s in {len(tasks)}, longest {most * WORKERS / total:.2f}")
    head = f"longest {longest * WORKERS / all_of_them:.2f} of the mean ({longest:.2f} s of {all_of_them:.2f} s)"
    return head + "".join(f"\n      {part}" for part in parts)


def measure(spark, rows: int, share: int, names: list[str], log: Path, beside: int) -> None:
    """Runs each query once over ``rows`` elements in one slice and prints how its tasks have shared the work."""
    with tempfile.TemporaryDirectory() as scratch:
        queries = Path(scratch) / "bench"
        queries.mkdir()
        texts = (f"CREATE CONTINUOUS QUERY q_{n} MATERIALIZE ISTREAM, DSTREAM AS\n{QUERIES[n]};\n" for n in names)
        (queries / "bench.cql").write_text(DECLARATIONS + "".join(texts))
        application = Application.open(queries)
        for stream, count in (("a", rows), ("b", max(1, rows // beside))):
            table = elements(count, share, 7 + len(stream) * ord(stream))
            write_deltalake(str(application.data / f"source/{stream}"), table)
            admit(application, stream, spark)
        for name in names:
            notes = Path(scratch) / name
            notes.mkdir()
            since = len(log.read_text().splitlines())
            begun, before = time.perf_counter(), cpu_seconds()
            with timing(notes):
                report = process(application, f"q_{name}", spark)
            took, cpu = time.perf_counter() - begun, spent(before)
            time.sleep(1)  # the log is written behind the tasks
            head = f"{name}, {share} %: {took:.1f} s, CPU {cpu}, {report.slices} slice, {report.rows_out:,} rows out"
            print(f"{head}\n   {told(stages(notes, log, since))}", flush=True)


def timing(folder: Path):
    """Has every task of ours noted in ``folder``."""
    from pyspark.sql.classic.dataframe import DataFrame

    plain = DataFrame.mapInArrow

    def timed(self, func, *args, **kwargs):
        return plain(self, Timed(func, str(folder)), *args, **kwargs)

    return mock.patch.object(DataFrame, "mapInArrow", timed)


def main() -> None:
    """One line a query and share."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, default=400_000)
    arguments.add_argument("--shares", type=int, nargs="+", default=[0, 50, 95], help="per cent in one key")
    arguments.add_argument("--queries", nargs="+", default=list(QUERIES), choices=list(QUERIES))
    arguments.add_argument("--beside", type=int, default=1000, help="the other stream of the join is so much smaller")
    arguments.add_argument("--whole", action="store_true", help="keys are never divided")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        logging = {"enabled": "true", "dir": f"file://{folder}", "rolling.enabled": "false", "compress": "false"}
        os.environ.setdefault("SWEEPAREA_SPARK_MASTER", "local[2]")
        conf = {f"spark.eventLog.{name}": value for name, value in logging.items()}
        conf["spark.sql.files.minPartitionNum"] = str(WORKERS)  # as many as it would have on so many cores
        with (
            mock.patch.dict(session._STATIC, conf),
            mock.patch.object(hot_keys, "LEAST", 2**62 if given.whole else hot_keys.LEAST),
            mock.patch.object(slices, "ROWS_PER_PARTITION", -(-given.rows // WORKERS)),
            session.spark_session() as spark,
        ):
            [log] = Path(folder).iterdir()
            measure(spark, 60_000, 50, given.queries, log, 100)  # kernels are compiled, workers started
            print("-" * 80, flush=True)
            for share in given.shares:
                measure(spark, given.rows, share, given.queries, log, given.beside)


if __name__ == "__main__":
    main()
