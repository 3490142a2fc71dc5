"""What tests of all folders share: one Spark session a pytest process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Starting Spark takes seconds and a process can hold one Spark only, so every test uses this session."""
    from sweeparea.spark_jobs.spark.session import spark_session

    # never a developer's running server
    os.environ["SWEEPAREA_SPARK_MASTER"] = "local[2]"
    # nor wait for the disk: no power cut is survived here
    os.environ["SWEEPAREA_SYNC"] = "off"
    with spark_session() as session:
        yield session
        session.stop()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs Spark but has one of its own: ``make test`` runs it beside what shares the session."""
    for item in items:
        if item.get_closest_marker("spark") and "spark" not in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.apart)
