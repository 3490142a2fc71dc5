"""What tests of all folders share: one Spark session a pytest process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Starting Spark takes seconds and a process can hold one Spark only, so every test uses this session."""
    from sweeparea.spark_jobs.session import spark_session

    with spark_session() as session:
        yield session
