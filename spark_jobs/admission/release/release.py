"""Releasing rows from quarantine: what a person has looked at, and may have corrected, is admitted after all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeparea.spark_jobs.admission.release.release_relation import release_changes
from sweeparea.spark_jobs.admission.release.release_rows import Released
from sweeparea.spark_jobs.admission.release.release_stream import release_elements
from sweeparea.spark_jobs.admission.release.wanted_rows import WantedRows
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.spark.errors import readable
from sweeparea.tables.errors import LostRace
from sweeparea.tables.publication.publish import recover

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRIES = 5
"""A release gives way to an admit run that commits at the same time so many times."""


def release(application: Application, name: str, spark: SparkSession, wanted: WantedRows) -> Released:
    """Releases rows of a stream's or relation's quarantine; raises SweepAreaError where there is none such."""
    application.source(name)
    work = release_changes if name in application.catalog.relations else release_elements
    with application.analyzing(spark):
        recover(str(application.data), application.ledger, [name])
        for tried in range(TRIES):
            try:
                return work(application, name, spark, wanted)
            except LostRace:
                if tried + 1 == TRIES:
                    raise
            except Exception as error:
                raise readable(error, f"quarantine of {name}") from error
    raise AssertionError("unreachable")
