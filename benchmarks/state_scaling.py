"""Seconds per slice of 1,000 new rows into SweepAreas of 10,000 to 10,000,000 rows: sum, distinct, join, difference.

``relation``: into a table of which about two thirds as many rows are open. Of the rows that come first it tells
seconds, CPU seconds, the greatest memory of driver, JVM and a worker, and bytes on disk.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from benchmarks.cpu import cpu_seconds
from benchmarks.memory import peaks
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.spark.session import spark_session

ROWS, SLICES, WARM_UP = 1_000, 9, 3
PIECE = 5_000_000
"""Rows that this program holds at once."""
START = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp())
QUERIES = {
    "sum": "ISTREAM (SELECT k, SUM(v) AS total FROM a [RANGE INTERVAL 1 DAY] GROUP BY k)",
    "distinct": "ISTREAM (SELECT DISTINCT k FROM a [RANGE INTERVAL 1 DAY])",
    "join": "ISTREAM (SELECT a.k, a.v, b.v w FROM a [RANGE INTERVAL 1 DAY] JOIN b [RANGE INTERVAL 1 DAY] ON a.k = b.k)",
    "difference": "ISTREAM (SELECT k FROM a [RANGE INTERVAL 1 DAY] EXCEPT ALL SELECT k FROM b [RANGE INTERVAL 1 DAY])",
    "relation": "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM a [RANGE UNBOUNDED] GROUP BY k",
}


def declarations(most: int) -> str:
    """Two streams and the queries over them, in slices of at most so many rows."""
    streams = (
        f"CREATE STREAM {name} FROM DELTA 'source/{name}' TIMESTAMP BY at CHRONON INTERVAL 1 SECOND\n"
        "  HEARTBEAT FOR at AS at - INTERVAL 1 SECOND;\n"
        for name in "ab"
    )
    queries = (
        f"CREATE CONTINUOUS QUERY q_{name} START AT TIMESTAMP '2020-01-01 00:00:00'"
        f" WITH (slice.max_rows = {most}) AS\n{text};\n"
        for name, text in QUERIES.items()
    )
    return "".join((*streams, *queries))


def elements(count: int, keys: int, first: int, seconds: int, chance: np.random.Generator) -> pa.Table:
    """``count`` elements within ``seconds`` from second ``first`` on."""
    at = (START + first + np.sort(chance.integers(0, seconds, count))) * 1_000_000
    stamps = pa.array(at, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    return pa.table({"at": stamps, "k": chance.integers(0, keys, count), "v": chance.integers(0, 1000, count)})


def arrived(source: str, count: int, keys: int, first: int, seconds: int, chance: np.random.Generator) -> None:
    """``elements`` in a source, in as many versions as they have pieces."""
    pieces = -(-count // PIECE)
    for i in range(pieces):
        most = count * (i + 1) // pieces - count * i // pieces
        write_deltalake(
            source, elements(most, keys, first + seconds * i // pieces, seconds // pieces, chance), mode="append"
        )


class Measured:
    """Seconds, CPU seconds and greatest memory of a block."""

    seconds = cpu = 0.0

    def __enter__(self) -> Measured:
        self._watch = peaks()
        self.memory = self._watch.__enter__()
        self._begun, self._before = time.perf_counter(), sum(cpu_seconds().values())
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._begun
        self.cpu = sum(cpu_seconds().values()) - self._before
        self._watch.__exit__(None, None, None)

    def __str__(self) -> str:
        memory = ", ".join(f"{kind} {size:.2f}" for kind, size in self.memory.items())
        return f"{self.seconds:.2f} s, CPU {self.cpu:.2f} s, GB {memory}"


def on_disk(data: Path) -> str:
    """Bytes of the folders of an application's data."""
    sizes = {
        folder.name: sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        for folder in sorted(data.iterdir())
    }
    return "on disk GB " + ", ".join(f"{name} {size / 1e9:.2f}" for name, size in sizes.items() if size > 1e6)


def measure(spark, size: int, names: list[str], most: int) -> dict[str, list[tuple[float, float]]]:
    """(seconds, CPU seconds) of each small slice after the warm-up, by query."""
    chance, found = np.random.default_rng(size), {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        queries = Path(folder) / "bench"
        queries.mkdir()
        (queries / "bench.cql").write_text(declarations(most))
        application, data = Application.open(queries), queries / ".data"
        streams = "ab" if {"join", "difference"} & {*names} else "a"
        for number in range(SLICES + 1):
            first, seconds, count = (0, 3600, size) if number == 0 else (3600 + 60 * number, 60, ROWS)
            for stream in streams:
                arrived(str(application.data / f"source/{stream}"), count, size, first, seconds, chance)
                with Measured() as admitted:
                    admit(application, stream, spark)
                if number == 0:
                    print(f"  admission of {stream}: {admitted}, {on_disk(data)}", flush=True)
            for name in names:
                with Measured() as measured:
                    report = process(application, f"q_{name}", spark)
                if number == 0:
                    told = f"{size:,} rows in {report.slices} slices: {measured}"
                    print(f"  {name}: {told}, {on_disk(data)}", flush=True)
                elif number > WARM_UP:
                    found[name].append((measured.seconds, measured.cpu))
                    print(f"  {name} slice {number}: {measured}, {report.phases}", flush=True)
    return found


def main() -> None:
    """Prints the median of each query and size: seconds, and CPU seconds where Spark runs in this process."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000, 10_000_000])
    arguments.add_argument("--queries", nargs="+", default=list(QUERIES), choices=list(QUERIES))
    arguments.add_argument("--max-rows", type=int, default=5_000_000, help="slice.max_rows, for the rows of the state")
    given = arguments.parse_args()
    medians: dict[int, dict[str, tuple[float, float]]] = {}
    with spark_session() as spark:
        for size in given.sizes:
            print(f"{size:,} rows", flush=True)
            found = measure(spark, size, given.queries, given.max_rows)
            medians[size] = {
                name: (statistics.median(t for t, _ in times), statistics.median(c for _, c in times))
                for name, times in found.items()
            }
    for size, row in medians.items():
        print(f"{size:>12,}: " + ", ".join(f"{name} {t:.2f} s (CPU {c:.2f})" for name, (t, c) in row.items()))


if __name__ == "__main__":
    main()
