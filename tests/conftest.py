"""What tests of all folders share: one Spark session a pytest process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession

REQUIRED = "SWEEPAREA_BROWSER"
"""Set to ``required``, tests that need a browser fail where there is none; otherwise they are skipped."""


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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium; no longer than a file's tests: its driver runs an event loop in this thread, and no other
    could be run beside it.
    """
    required = os.environ.get(REQUIRED) == "required"
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        (pytest.fail if required else pytest.skip)("no Chromium: apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        (pytest.fail if required else pytest.skip)("no playwright: pip install playwright")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=found, args=["--disable-dev-shm-usage", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs Spark but has one of its own: ``make test`` runs it beside what shares the session."""
    for item in items:
        if item.get_closest_marker("spark") and "spark" not in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.apart)
