"""Seconds until so many queries over one stream, all due at once, have processed a small slice: 1,000 new rows.

Each query counts and averages what it selects of the stream; ``--threads`` of them run side by side in one process, as
``sweeparea process`` without a query does. ``--json FILE`` keeps the figures.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from deltalake import write_deltalake

from benchmarks.cpu import cpu_seconds, spent
from benchmarks.small_slice import DECLARATIONS, minute
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import Processed, process
from sweeparea.spark_jobs.orchestration.side_by_side import each_of
from sweeparea.spark_jobs.spark.session import spark_session

WARM_UP = 3
STREAM = DECLARATIONS.split("CREATE CONTINUOUS")[0]
QUERY = """
CREATE CONTINUOUS QUERY q{number} START AT TIMESTAMP '2020-01-01 00:00:00' AS
SELECT k, AVG(v) AS average, COUNT(*) AS n FROM readings [RANGE INTERVAL {length} MINUTES SLIDE INTERVAL 1 MINUTE]
WHERE k % 10 <> {left_out} GROUP BY k;
"""


def measured(queries: int, threads: int, slices: int) -> dict[str, Any]:
    """Seconds and CPU seconds from when the rows have been admitted until the last query has committed its slice."""
    chance, found = random.Random(1), {"queries": queries, "threads": threads, "seconds": [], "cpu": []}
    with tempfile.TemporaryDirectory() as folder, spark_session() as spark:
        place = Path(folder) / "bench"
        place.mkdir()
        texts = (QUERY.format(number=i, length=5 + i % 7, left_out=i % 10) for i in range(queries))
        (place / "bench.cql").write_text(STREAM + "".join(texts))
        application = Application.open(place)
        for number in range(slices + WARM_UP):
            write_deltalake(str(application.data / "source/readings"), minute(number, chance), mode="append")
            admit(application, "readings", spark)
            begun, before = time.perf_counter(), cpu_seconds()
            found_now = each_of(
                Application.open(place), lambda: Application.open(place), list(application.catalog.queries),
                lambda mine, name: process(mine, name, spark), threads,
            )  # fmt: skip
            assert [report.slices for _, report in found_now if isinstance(report, Processed)] == [1] * queries
            if number >= WARM_UP:
                found["seconds"].append(time.perf_counter() - begun)
                found["cpu"].append(sum(spent(before).values()))
    return found


def main() -> None:
    """Prints a line for each number of queries."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 10, 50])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--slices", type=int, default=3, help=f"after a warm-up of {WARM_UP}")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    kept = []
    for queries in options.queries:
        for threads in options.threads:
            found = measured(queries, threads, options.slices)
            kept.append(found)
            seconds, cpu = statistics.median(found["seconds"]), statistics.median(found["cpu"])
            print(f"{queries} queries, {threads} side by side: {seconds:.2f} s, CPU {cpu:.2f} s", flush=True)
    if options.json:
        options.json.write_text(json.dumps(kept))


if __name__ == "__main__":
    main()
