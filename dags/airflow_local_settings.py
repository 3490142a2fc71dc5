"""Airflow imports this file from the config folder of its home; SweepArea copies it there.

The scheduler forks the workers that run tasks. What it has imported before, they have for nothing: a second per task
saved. No gRPC channel may be made here: those do not survive a fork.
"""

import contextlib
import sys

if "scheduler" in sys.argv:
    for _name in (
        "pandas",
        "pyarrow.dataset",
        "pyarrow.parquet",
        "grpc",
        "deltalake",
        "sqlglot",
        "pyspark.sql.connect.session",
        "sweeparea.dags.factory",
        "sweeparea.cql.declarations.catalog",
        "sweeparea.spark_jobs.commands.jobs",
        "sweeparea.spark_jobs.admission.admit",
        "sweeparea.spark_jobs.orchestration.process",
    ):
        with contextlib.suppress(ImportError):
            __import__(_name)
    with contextlib.suppress(ImportError):
        from sweeparea.quality.verdict import preload

        preload()
