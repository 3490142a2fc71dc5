"""Seconds for one slice of 2,000,000 rows of 1,000 keys: SUM over a sliding window of 60 s, every change written."""

from __future__ import annotations

import argparse
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from benchmarks.cpu import cpu_seconds, spent
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.spark.session import spark_session

KEYS, SECONDS = 1_000, 3_600
DECLARATIONS = """
CREATE STREAM bids FROM DELTA 'source/bids' TIMESTAMP BY at CHRONON INTERVAL 1 MILLISECOND
  HEARTBEAT FOR at AS at - INTERVAL 1 SECOND;
CREATE CONTINUOUS QUERY totals START AT TIMESTAMP '2020-01-01 00:00:00' MATERIALIZE ISTREAM, DSTREAM AS
SELECT k, SUM(v) AS total FROM bids [RANGE INTERVAL 60 SECONDS] GROUP BY k;
"""
START = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp())


def bids(count: int) -> pa.Table:
    """``count`` elements spread over an hour."""
    chance = np.random.default_rng(7)
    at = START * 1_000_000 + np.sort(chance.integers(0, SECONDS * 1000, count)) * 1000
    stamps = pa.array(at, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    return pa.table({"at": stamps, "k": chance.integers(0, KEYS, count), "v": chance.integers(0, 1000, count)})


def main() -> None:
    """Prints seconds of admit and of the slice by phase, and its CPU seconds, after a small slice that warms up."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=2_000_000)
    arguments.add_argument("--repeat", type=int, default=2)
    given = arguments.parse_args()
    with spark_session() as spark:
        for rows in (10_000, *[given.rows] * given.repeat):
            with tempfile.TemporaryDirectory() as folder:
                queries = Path(folder) / "bench"
                queries.mkdir()
                (queries / "bench.cql").write_text(DECLARATIONS)
                application = Application.open(queries)
                write_deltalake(str(application.data / "source/bids"), bids(rows))
                begun = time.perf_counter()
                admit(application, "bids", spark)
                admitted, before = time.perf_counter(), cpu_seconds()
                report = process(application, "totals", spark)
                took, cpu = time.perf_counter() - admitted, spent(before)
                written = sum(
                    DeltaTable(application.plans.result_table(f"totals__{kind}")).to_pyarrow_dataset().count_rows()
                    for kind in ("istream", "dstream")
                )
                print(
                    f"{rows:,} rows: admit {admitted - begun:.1f} s, slice {took:.1f} s {report.phases},"
                    f" CPU seconds {cpu}, {written:,} changes written",
                    flush=True,
                )


if __name__ == "__main__":
    main()
