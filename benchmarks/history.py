"""CPU seconds of equal slices behind 10, 100 and 1,000 earlier ones, each of them admitted and published by itself.

    python -m benchmarks.history --history 10 100 1000 --slices 10

One application goes through all of the history, with maintenance every hour of its own time; at each length its data
folder is copied. Then each copy goes on by a slice in turn, so that other work on the machine meets all alike: what is
told is the median of ``--slices`` slices of each, and the median of each round's ratio to the shortest history. A slice
is a minute of 100 readings: AVG and COUNT of 50 keys over ten minutes.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from deltalake import write_deltalake

from benchmarks.cpu import cpu_seconds
from benchmarks.small_slice import DECLARATIONS, minute
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.spark.session import spark_session
from sweeparea.spark_jobs.upkeep.maintain import maintain

ROWS = 100
HOUR = 60
"""Slices from one maintenance to the next."""
SEED = 1


class History:
    """An application with its past: ``slice`` adds a minute to it."""

    def __init__(self, folder: Path, spark, past: int = 0):
        self.folder, self.past, self._spark = folder, past, spark

    @property
    def data(self) -> Path:
        """Its data folder."""
        return self.folder / ".data"

    def slice(self) -> tuple[float, float]:
        """Seconds and CPU seconds of admission and slice, each as a job of its own does them."""
        rows = minute(self.past, random.Random(SEED + self.past)).slice(0, ROWS)
        write_deltalake(str(self.data / "source/readings"), rows, mode="append")
        begun, before = time.perf_counter(), sum(cpu_seconds().values())
        admit(Application.open(self.folder), "readings", self._spark)
        report = process(Application.open(self.folder), "averages", self._spark)
        assert report.slices == 1
        self.past += 1
        return time.perf_counter() - begun, sum(cpu_seconds().values()) - before

    def upkeep(self) -> None:
        """What Airflow does every hour."""
        if self.past % HOUR == 0:
            maintain(Application.open(self.folder), tell=lambda text: None)

    def copy(self, folder: Path) -> History:
        """The same with a data folder of its own."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return History(folder, self._spark, self.past)


def histories(lengths: list[int], scratch: Path, spark) -> list[History]:
    """Copies of an application after so many slices, shortest first."""
    (scratch / "all").mkdir()
    (scratch / "all" / "bench.cql").write_text(DECLARATIONS)
    growing, found = History(scratch / "all", spark), []
    begun = time.perf_counter()
    for length in sorted(lengths):
        while growing.past < length:
            growing.slice()
            growing.upkeep()
        found.append(growing.copy(scratch / f"after-{length}"))
        print(f"  {length:,} slices in {time.perf_counter() - begun:.0f} s, {files(growing.data):,} files", flush=True)
    return found


def files(folder: Path) -> int:
    """How many files are below a folder."""
    return sum(path.is_file() for path in folder.rglob("*"))


def main() -> None:
    """Prints a line for each length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--history", type=int, nargs="+", default=[10, 100, 1_000])
    parser.add_argument("--slices", type=int, default=10)
    given = parser.parse_args()
    if "SPARK_REMOTE" in os.environ:
        raise SystemExit("Unset SPARK_REMOTE: of a server no CPU is seen.")
    os.environ.setdefault("SWEEPAREA_SPARK_MASTER", "local[2]")  # even where the installation's server runs
    with tempfile.TemporaryDirectory() as folder, spark_session() as spark:
        found = histories(given.history, Path(folder), spark)
        for each in found:
            each.slice()  # what each folder's first slice has to read
        rounds = [[each.slice() for each in found] for _ in range(given.slices)]
    for i, length in enumerate(sorted(given.history)):
        seconds, cpu = (statistics.median(row[i][of] for row in rounds) for of in (0, 1))
        ratio = statistics.median(row[i][1] / row[0][1] for row in rounds)
        print(f"after {length:>6,} slices: {seconds:.2f} s, CPU {cpu:.2f} s, {ratio:.2f} times that of the shortest")


if __name__ == "__main__":
    main()
