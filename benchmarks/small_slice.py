"""Seconds per small slice: 1,000 new rows a slice, AVG and COUNT per key over a sliding window of ten minutes.

With ``--engine streaming`` Spark's Structured Streaming does the same, as one query that stays: each slice is a
micro-batch, its state in RocksDB, its source and its result Delta tables. ``--json FILE`` keeps the figures.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from benchmarks.cpu import cpu_seconds, spent
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.spark.session import spark_session

SLICES, WARM_UP, ROWS, KEYS = 40, 10, 1_000, 50
DECLARATIONS = """
CREATE STREAM readings FROM DELTA 'source/readings' TIMESTAMP BY at CHRONON INTERVAL 1 SECOND
  HEARTBEAT FOR at AS at - INTERVAL 1 SECOND;
CREATE CONTINUOUS QUERY averages START AT TIMESTAMP '2020-01-01 00:00:00' AS
SELECT k, AVG(v) AS average, COUNT(*) AS n FROM readings [RANGE INTERVAL 10 MINUTES SLIDE INTERVAL 1 MINUTE] GROUP BY k;
"""
STREAMING = """
SELECT k, window.start AS starttime, AVG(v) AS average, COUNT(*) AS n
FROM readings GROUP BY k, window(at, '10 minutes', '1 minute')
"""
START = datetime(2020, 1, 1, tzinfo=UTC)


def minute(number: int, chance: random.Random) -> pa.Table:
    """The readings of one minute."""
    at = [START + timedelta(minutes=number, seconds=chance.randrange(60)) for _ in range(ROWS)]
    keys = [chance.randrange(KEYS) for _ in range(ROWS)]
    values = [chance.random() for _ in range(ROWS)]
    return pa.table({"at": pa.array(at, pa.timestamp("us", tz="UTC")), "k": keys, "v": values})


def sweeparea(slices: int) -> dict[str, Any]:
    """Seconds, CPU seconds and phases of the slices after the warm-up, and the seconds of their admissions."""
    chance = random.Random(1)
    found: dict[str, Any] = {"seconds": [], "cpu": [], "phases": {"admit": []}}
    with tempfile.TemporaryDirectory() as folder, spark_session() as spark:
        queries = Path(folder) / "bench"
        queries.mkdir()
        (queries / "bench.cql").write_text(DECLARATIONS)
        application = Application.open(queries)
        for number in range(slices + WARM_UP):
            write_deltalake(str(application.data / "source/readings"), minute(number, chance), mode="append")
            begun = time.perf_counter()
            admit(application, "readings", spark)
            admitted, before = time.perf_counter(), cpu_seconds()
            report = process(application, "averages", spark)
            if number >= WARM_UP:
                found["phases"]["admit"].append(admitted - begun)
                found["seconds"].append(time.perf_counter() - admitted)
                found["cpu"].append(sum(spent(before).values()))
                for phase, seconds in report.phases.items():
                    found["phases"].setdefault(phase, []).append(seconds)
        found["session"] = type(spark).__module__
    return found


def streaming(slices: int) -> dict[str, Any]:
    """Seconds and CPU seconds from a slice's commit in the source until its micro-batch has been committed."""
    from benchmarks.engines.streaming import session

    chance = random.Random(1)
    found: dict[str, Any] = {"seconds": [], "cpu": [], "phases": {}}
    with tempfile.TemporaryDirectory() as folder:
        spark = session(Path(folder))
        source = f"{folder}/readings"
        write_deltalake(source, minute(0, chance))
        spark.readStream.format("delta").load(source).withWatermark("at", "1 second").createTempView("readings")
        writer = spark.sql(STREAMING).writeStream.format("delta").outputMode("append")
        query = writer.option("checkpointLocation", f"{folder}/checkpoint").start(f"{folder}/result")
        for number in range(1, slices + WARM_UP):
            write_deltalake(source, minute(number, chance), mode="append")
            begun, before = time.perf_counter(), cpu_seconds()
            query.processAllAvailable()
            if number >= WARM_UP:
                found["seconds"].append(time.perf_counter() - begun)
                found["cpu"].append(sum(spent(before).values()))
        query.stop()
    return found


def main() -> None:
    """Prints medians over the slices after the warm-up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("sweeparea", "streaming"), default="sweeparea")
    parser.add_argument("--slices", type=int, default=SLICES - WARM_UP, help="after a warm-up of ten")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {"sweeparea": sweeparea, "streaming": streaming}[options.engine](options.slices)
    print(f"{found.pop('session', options.engine)}: {options.slices} slices of {ROWS:,} new rows, {KEYS} keys")
    for name, values in (("process", found["seconds"]), ("CPU", found["cpu"])):
        print(
            f"{name}: median {statistics.median(values):.3f} s, best {min(values):.3f} s, worst {max(values):.3f} s",
        )
    for phase, seconds in found["phases"].items():
        print(f"  {phase}: median {statistics.median(seconds):.3f} s")
    if options.json:
        options.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
