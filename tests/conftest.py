"""What tests of all folders share: one Spark session a pytest process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where several processes run the tests (``-n``), one of them has all that need Spark or Airflow."""
    for item in items:
        if item.get_closest_marker("spark") or item.get_closest_marker("airflow"):
            item.add_marker(pytest.mark.xdist_group("services"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Starting Spark takes seconds and a process can hold one Spark only, so every test uses this session."""
    from sweeparea.spark_jobs.session import spark_session

    # never a developer's running server
    os.environ["SWEEPAREA_SPARK_MASTER"] = "local[2]"
    with spark_session() as session:
        yield session
        session.stop()
