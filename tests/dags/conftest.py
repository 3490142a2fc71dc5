"""Two small applications and an Airflow of its own (sqlite in a temporary folder) for the tests of the DAGs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

# Airflow writes a configuration file into its home when it is imported: here that must not be the user's.
os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="sweeparea-airflow-"))

ROOT = Path(__file__).resolve().parents[2]
SHOP = """\
CREATE STREAM orders
  FROM DELTA 'source/orders'
  TIMESTAMP BY ordered
  HEARTBEAT FOR ordered AS ordered - INTERVAL 30 MINUTES;

CREATE RELATION products FROM DELTA '/elsewhere/products' STATIC;

-- sold
CREATE CONTINUOUS QUERY sales
  WITH (backfill_slice = '6 hours')
AS
SELECT p.kind, COUNT(*) AS n
FROM orders [RANGE INTERVAL 1 HOUR] AS o JOIN products AS p ON o.product = p.id
GROUP BY p.kind;

CREATE CONTINUOUS QUERY surges AS
SELECT kind FROM sales WHERE n > 100;
"""
MILL = """\
CREATE STREAM sacks FROM DELTA 'source/sacks' TIMESTAMP BY filled HEARTBEAT EACH BATCH;
CREATE CONTINUOUS QUERY recent AS SELECT weight FROM sacks [RANGE INTERVAL 1 DAY];
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A SWEEPAREA_HOME with the applications ``shop`` and ``mill``."""
    for app, text in (("shop", SHOP), ("mill", MILL)):
        folder = tmp_path / "queries" / app
        folder.mkdir(parents=True)
        (folder / f"{app}.cql").write_text(text)
    monkeypatch.setenv("SWEEPAREA_HOME", str(tmp_path))
    for variable in ("SWEEPAREA_DATA", "SWEEPAREA_RUN", "SWEEPAREA_APPS"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.fixture(scope="session")
def airflow_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of an Airflow that knows our DAGs and plugin; its database is made once per test session."""
    folder = tmp_path_factory.mktemp("airflow")
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW")},
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags" / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "SCARF_ANALYTICS": "false",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
    }
    subprocess.run(
        [sys.executable, "-m", "airflow", "db", "migrate"],
        env=environment,
        check=True,
        capture_output=True,
        timeout=300,
    )
    return environment


@pytest.fixture
def in_airflow(airflow_environment: dict[str, str], home: Path) -> Callable[..., str]:
    """Runs a Python text in a fresh process of that Airflow and returns what it printed.

    A process of its own, because Airflow reads its configuration and connects to its database when it is imported.
    """

    def run(text: str, **variables: str) -> str:
        environment = {**airflow_environment, "SWEEPAREA_HOME": str(home), **variables}
        done = subprocess.run(
            [sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=300, cwd=home
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
