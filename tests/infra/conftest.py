"""An installation of its own, in a temporary folder, for each test of its services."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A SWEEPAREA_HOME; no other setting of the developer's environment is left."""
    for variable in (
        "SWEEPAREA_DATA",
        "SWEEPAREA_RUN",
        "SWEEPAREA_JARS",
        "SWEEPAREA_SPARK_PORT",
        "SWEEPAREA_AIRFLOW_PORT",
        "SWEEPAREA_SPARK_MEMORY",
        "SWEEPAREA_IVY_SETTINGS",
        "SPARK_REMOTE",
    ):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("SWEEPAREA_HOME", str(tmp_path))
    return tmp_path
