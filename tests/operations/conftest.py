"""An installation of its own, with PostgreSQL, Spark Connect and Airflow, for tests that drive it as its users do."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from sqlalchemy import create_engine
from sqlalchemy import text as sql_text

from sweeparea.infra import settings
from sweeparea.infra.services import postgres
from sweeparea.infra.services.airflow_client import AirflowClient
from sweeparea.tables.publication.ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]
STREAM = """\
CREATE STREAM readings FROM DELTA 'source/readings' TIMESTAMP BY ts HEARTBEAT FOR ts AS ts - INTERVAL 0 SECONDS;
"""
DAY = timedelta(days=1)
QUERY = "CREATE CONTINUOUS QUERY q0 AS\nSELECT k, COUNT(*) AS n FROM readings [RANGE INTERVAL 5 MINUTES] GROUP BY k;\n"


class Operator:
    """What somebody does with an installation: writes applications and sources, asks Airflow, reads results."""

    def __init__(self, home: Path, ports: tuple[int, int]) -> None:
        self.home = home
        own = {
            "SWEEPAREA_HOME": str(home),
            "SWEEPAREA_JARS": str(settings.jars_folder()),
            "SWEEPAREA_SPARK_PORT": str(ports[0]),
            "SWEEPAREA_AIRFLOW_PORT": str(ports[1]),
        }
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("SWEEPAREA", "SPARK", "AIRFLOW"))}
        self.environment |= own
        self.last = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)

    def services(self, command: str) -> subprocess.CompletedProcess[str]:
        """``make up``, ``status`` or ``stop``."""
        return subprocess.run(
            [sys.executable, "-m", "sweeparea.infra.services.up", command],
            env=self.environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def client(self) -> AirflowClient:
        """Airflow's REST API, as the admin."""
        password = (self.home / ".run" / "airflow" / "passwords.json").read_text().split('"')[3]
        return AirflowClient(f"http://127.0.0.1:{self.environment['SWEEPAREA_AIRFLOW_PORT']}", "admin", password)

    def token(self, role: str) -> str:
        """What somebody with a role of Airflow's (viewer, user, op) shows to its API."""
        text = (
            "from airflow.api_fastapi.app import create_auth_manager\n"
            "from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser\n"
            f"user = SimpleAuthManagerUser(username='{role}', role='{role}')\n"
            "print('TOKEN', create_auth_manager().generate_jwt(user))\n"
        )
        command = (
            "import os, sys; from sweeparea.infra.services import airflow; "
            "os.execve(sys.executable, [sys.executable, '-c', sys.argv[1]], airflow.environment())"
        )
        done = subprocess.run(
            [sys.executable, "-c", command, text], env=self.environment, cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return next(line.split()[1] for line in done.stdout.splitlines() if line.startswith("TOKEN"))

    def sql(self, text: str) -> int:
        """A statement in Airflow's database; returns how many rows it had to do with."""
        engine = create_engine(postgres.url("psycopg2", self.home / ".run"))
        try:
            with engine.begin() as connection:
                return connection.execute(sql_text(text)).rowcount
        finally:
            engine.dispose()

    def application(self, name: str, text: str, **files: str) -> Path:
        """Writes an application; ``files`` are Python modules beside it."""
        folder = self.home / "queries" / name
        folder.mkdir(parents=True, exist_ok=True)
        for module, source in files.items():
            (folder / f"{module}.py").write_text(source)
        (folder / f"{name}.cql").write_text(text)
        return folder

    def data(self, application: str) -> Path:
        """Its data folder."""
        return self.home / ".data" / application

    def commit(self, application: str, at: datetime | None = None, stream: str = "readings") -> int:
        """One more version of a source, whose last element is at ``at`` (default: now); returns that tick."""
        self.last = max(self.last + timedelta(seconds=1), at or datetime.now(UTC).replace(microsecond=0))
        ts = pa.array([self.last - timedelta(seconds=s) for s in range(5)], pa.timestamp("us", "UTC"))
        table = pa.table({"ts": ts, "k": pa.array([0, 1, 0, 1, 0], pa.int32())})
        write_deltalake(str(self.data(application) / "source" / stream), table, mode="append")
        return int(self.last.timestamp() * 1e6)

    def committed(self, application: str, query: str = "q0") -> int:
        """How far a query is; -1 where it never ran."""
        row = Ledger(str(self.data(application))).head().get(query)
        return -1 if row is None or row.committed is None else row.committed

    def result_of(self, application: str, tick: int, query: str = "q0", seconds: float = 180.0) -> float:
        """Waits until a query has come to ``tick``; returns how long that took."""
        begun = time.monotonic()
        wait(
            lambda: self.committed(application, query) >= tick, seconds, f"{application}.{query} has not come to {tick}"
        )
        return time.monotonic() - begun


def wait(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Until a condition holds; fails with ``what`` after so long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"after {seconds:.0f} s: {what}"
        time.sleep(0.3)


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.fixture(scope="package")
def operator() -> Iterator[Operator]:
    """An installation that runs; it ends with the tests, whatever came of them."""
    home = Path(tempfile.mkdtemp(prefix="sweeparea-operations-"))
    (home / "queries").mkdir()
    found = Operator(home, (_free_port(), _free_port()))
    try:
        done = found.services("start")
        assert done.returncode == 0, done.stdout
        yield found
    finally:
        found.services("stop")
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="package")
def trial(operator: Operator) -> Operator:
    """The installation with an application that has a result."""
    operator.commit("trial", datetime.now(UTC) - 2 * DAY)
    operator.application("trial", f"-- of five minutes\n{STREAM}{QUERY}")
    operator.client().wait_for_dags(["trial__q0", "trial__admit_readings"])
    operator.result_of("trial", operator.commit("trial"))
    return operator
