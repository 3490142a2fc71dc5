"""``python -m queries.nexmark.demo``: loads the events, runs every query and compares its answer with the known one.

All in this process: no Airflow, no service. ``--data`` says where tables go, ``--query`` picks some of the queries.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from queries.nexmark import answers, loader
from sweeparea.infra import settings
from sweeparea.infra.errors import SweepAreaError, exit_code_of
from sweeparea.spark_jobs.admission.admit import admit, advance
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.spark.session import spark_session
from sweeparea.tables.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def take_in(data: Path, spark: SparkSession) -> Application:
    """Loads the sources, admits them and says that all events are here."""
    loader.load(data)
    application = Application.open(loader.FOLDER, data)
    for name in loader.STREAMS:
        if admit(application, name, spark).heartbeat != loader.TICK:
            advance(application, name, loader.TICK)
    return application


def answer(application: Application, query: str, spark: SparkSession) -> tuple[list[str], list[str]]:
    """Lets a query catch up; the lines of the known answer that it lacks, and those that it has besides."""
    process(application, query, spark)
    table = DeltaTable(Layout(application.data).result(query)).to_pyarrow_table()
    known, found = answers.expected()[query], answers.final(query, table)
    return sorted((known - found).elements()), sorted((found - known).elements())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m queries.nexmark.demo", description=__doc__)
    parser.add_argument("--data", type=Path, default=settings.data("nexmark"), help="the application's data folder")
    parser.add_argument("--query", action="append", choices=[*answers.expected()], help="only this query (repeatable)")
    options = parser.parse_args(arguments)
    wrong = 0
    try:
        with spark_session() as spark:
            application = take_in(options.data, spark)
            for query in options.query or answers.expected():
                started = time.monotonic()
                lacking, besides = answer(application, query, spark)
                told = (
                    f"{len(lacking)} rows are lacking, {len(besides)} are too many" if lacking or besides else "right"
                )
                print(f"{query:5} {told} ({time.monotonic() - started:.1f} s)", flush=True)
                wrong += bool(lacking or besides)
    except SweepAreaError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{wrong} queries gave something else" if wrong else "All answers are the known ones.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(exit_code_of(main, "run the same command again: it goes on where it stopped"))
