"""What one late element costs, in a year of history: ``python -m benchmarks.late_repair [--rows N]``.

A keyed sum over an hour's window, or with ``--window rows`` over ten elements of the key, of a year's elements. Prints
the seconds of a small slice, of the repair after one element of half a year ago, and of one of the last hour, each the
best of three; then the rows a second of a backfill.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.rewriting.backfill import backfill
from sweeparea.spark_jobs.spark.session import spark_session

TEXT = """
CREATE STREAM s FROM DELTA 'source/s' TIMESTAMP BY at CHRONON INTERVAL 1 SECOND
  HEARTBEAT FOR at AS at MAX AHEAD INTERVAL 9999 DAYS LATE REPAIR;
CREATE CONTINUOUS QUERY q START AT TIMESTAMP '2023-01-01 00:00:00' MATERIALIZE RELATION, ISTREAM AS
SELECT k, SUM(v) AS v, COUNT(*) AS n FROM s [{window}] GROUP BY k;
"""
WINDOWS = {"time": "RANGE INTERVAL 1 HOUR", "rows": "PARTITION BY k ROWS 10"}
BEGIN = datetime(2023, 1, 1, tzinfo=UTC)
YEAR = 365 * 86_400


def _rows(seconds: np.ndarray, seed: int, keys: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    at = pa.array(np.int64(BEGIN.timestamp()) * 1_000_000 + seconds * 1_000_000).cast(pa.timestamp("us", "UTC"))
    k, v = rng.integers(0, keys, len(seconds)), rng.integers(0, 1000, len(seconds))
    return pa.table({"at": at, "k": pa.array(k), "v": pa.array(v)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="elements of the year")
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--window", choices=WINDOWS, default="time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, spark_session() as spark:
        queries, data = Path(folder, "q"), Path(folder, "data")
        queries.mkdir()
        (queries / "q.cql").write_text(TEXT.format(window=WINDOWS[options.window]))
        source = str(data / "source" / "s")

        def run(rows: pa.Table) -> tuple[float, list[str]]:
            write_deltalake(source, rows, mode="append")
            app = Application.open(queries, data)
            admit(app, "s", spark)
            begun = time.monotonic()
            report = process(app, "q", spark)
            return time.monotonic() - begun, report.repaired

        seconds, _ = run(_rows(np.sort(np.random.default_rng(0).integers(0, YEAR, options.rows)), 1, options.keys))
        print(f"a year of {options.rows:,} elements, {options.keys:,} keys: {seconds:.1f} s")
        end = YEAR
        for what, where in (
            ("a slice of 1,000 elements", None),
            ("an element of half a year ago", YEAR // 2),
            ("an element of the last hour", -600),
        ):
            best = []
            for i in range(3):
                if where is None:
                    rows = _rows(end + np.sort(np.random.default_rng(i).integers(1, 600, 1000)), i, options.keys)
                    end += 600
                else:
                    rows = _rows(np.array([where + i if where > 0 else end + where + i]), i, options.keys)
                best.append(run(rows))
            print(f"{what}: {min(s for s, _ in best):.2f} s {best[-1][1]}")
        begun = time.monotonic()
        report = backfill(Application.open(queries, data), "q", spark, None, None, lambda text: None)
        took = time.monotonic() - begun
        rate, live = report.rows_in / took, options.rows / seconds
        print(f"backfill of it all: {took:.1f} s, {rate:,.0f} rows/s (the first run: {live:,.0f})")


if __name__ == "__main__":
    main()
