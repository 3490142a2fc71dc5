"""Seconds per small slice: 1,000 new rows a slice, AVG and COUNT per key over a sliding window of ten minutes."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

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
START = datetime(2020, 1, 1, tzinfo=UTC)


def minute(number: int, chance: random.Random) -> pa.Table:
    """The readings of one minute."""
    at = [START + timedelta(minutes=number, seconds=chance.randrange(60)) for _ in range(ROWS)]
    keys = [chance.randrange(KEYS) for _ in range(ROWS)]
    values = [chance.random() for _ in range(ROWS)]
    return pa.table({"at": pa.array(at, pa.timestamp("us", tz="UTC")), "k": keys, "v": values})


def main() -> None:
    """Prints medians over the slices after the warm-up."""
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as folder, spark_session() as spark:
        queries = Path(folder) / "bench"
        queries.mkdir()
        (queries / "bench.cql").write_text(DECLARATIONS)
        application = Application.open(queries)
        admits, slices, phases = [], [], []
        for number in range(SLICES):
            write_deltalake(str(application.data / "source/readings"), minute(number, chance), mode="append")
            begun = time.perf_counter()
            admit(application, "readings", spark)
            admitted = time.perf_counter()
            report = process(application, "averages", spark)
            if number >= WARM_UP:
                admits.append(admitted - begun)
                slices.append(time.perf_counter() - admitted)
                phases.append(report.phases)
        print(f"{type(spark).__module__}: {len(slices)} slices of {ROWS:,} new rows, {KEYS} keys")
        for name, values in (("admit", admits), ("process", slices)):
            print(
                f"{name}: median {statistics.median(values):.3f} s, best {min(values):.3f} s, worst {max(values):.3f} s"
            )
        for phase in phases[0]:
            print(f"  {phase}: median {statistics.median(p[phase] for p in phases):.3f} s")


if __name__ == "__main__":
    main()
