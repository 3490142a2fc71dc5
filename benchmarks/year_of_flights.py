"""The year of flights: each query (or those named as arguments) in one slice, and in day slices."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from queries.flights import importer
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.spark.session import spark_session
from sweeparea.tables.log.delta_log import DeltaLog

DAY = 24 * 60
"""Ticks of a day: the stream's chronon is a minute."""


def main() -> None:
    """Prints seconds, rows and whether both ways gave the same tables."""
    queries = Path(importer.__file__).parent
    with tempfile.TemporaryDirectory() as folder, spark_session() as spark:
        data = Path(folder) / "one"
        importer.load_planes(data)
        importer.load_rest(data, None)
        application = Application.open(queries, data)
        begun = time.perf_counter()
        for name in ("planes", "flights"):
            admit(application, name, spark)
        print(f"admit of the whole year: {time.perf_counter() - begun:.1f} s")
        shutil.copytree(data, Path(folder) / "days")
        days = Application.open(queries, Path(folder) / "days")
        for query in sys.argv[1:] or application.catalog.queries:
            plan = application.plans.plan(query)
            heartbeat = application.ledger.head()["flights"].committed or 0
            cuts = list(range(plan.start + DAY - 1, heartbeat, DAY))
            process_warm(application, query, spark, folder)
            begun = time.perf_counter()
            one = process(application, query, spark)
            middle = time.perf_counter()
            many = process(days, query, spark, cuts=cuts)
            ended = time.perf_counter()
            same = contents(application, query) == contents(days, query)
            print(
                f"{query}: one slice {middle - begun:.1f} s, {many.slices} day slices {ended - middle:.1f} s"
                f" ({(ended - middle) / many.slices:.2f} s each), {one.rows_out:,} rows, same tables: {same}"
            )


def process_warm(application: Application, query: str, spark, folder: str) -> None:
    """A first slice on a copy, so that code is compiled before the clock runs."""
    copy = Path(folder) / f"warm_{query}"
    shutil.copytree(application.data, copy)
    warm = Application.open(Path(importer.__file__).parent, copy)
    process(warm, query, spark, until=warm.plans.plan(query).start + 7 * DAY)
    shutil.rmtree(copy)


def contents(application: Application, query: str) -> list[str]:
    """The rows of a query's own table, as text, in an order of their own."""
    return sorted(map(str, DeltaLog(application.layout.result(query)).read().to_pylist()))


if __name__ == "__main__":
    main()
