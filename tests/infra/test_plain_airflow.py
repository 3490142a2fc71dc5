"""An Airflow that knows nothing of this checkout: from PyPI and the wheel alone to a first result, as
``docs/in-your-airflow.md`` says, with a second environment for what computes.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import requests

from sweeparea.infra.services import processes
from tests.infra.test_wheel import ORDERS

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow]

PATIENCE = 600.0
"""Seconds for what takes one minute on a machine without other load."""
DAGS = '''\
"""Airflow: the DAGs of the shop."""
from sweeparea.dags import application_dags
globals().update(application_dags({shop!r}, python={python!r}))
'''
OWN = '''\
"""Airflow: a DAG of one's own."""
from datetime import datetime
from airflow.sdk import dag, task
from sweeparea.dags import ResultSensor, SweepAreaProcessOperator

@dag(schedule=None, start_date=datetime(2024, 1, 1), is_paused_upon_creation=False)
def report():
    wait = ResultSensor(
        task_id="wait", application={shop!r}, query="sales", up_to="2024-01-01 00:45:00", poke_interval=1
    )
    run = SweepAreaProcessOperator(task_id="run", application={shop!r}, query="sales", python={python!r})
    wait >> run

report()
'''
COMPONENTS = {
    "api-server": [],
    # their log servers would listen on all interfaces
    "scheduler": ["--skip-serve-logs"],
    "dag-processor": [],
    "triggerer": ["--skip-serve-logs"],
}


@dataclass
class PlainAirflow:
    """An Airflow in a folder: ``pip install``, no setting that is about SweepArea."""

    folder: Path
    wheel: Path
    port: int = field(default_factory=processes.free_port)
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def install(self) -> None:
        pin = f"apache-airflow=={version('apache-airflow')}"
        self._environment("airflow", pin, f"{self.wheel}[airflow]")
        self._environment("compute", f"{self.wheel}[spark,java]")
        self.run("compute/bin/sweeparea", "setup")

    def _environment(self, name: str, *packages: str) -> None:
        venv.create(self.folder / name, with_pip=True)
        self.run(f"{name}/bin/pip", "install", "-q", *packages)

    @property
    def variables(self) -> dict[str, str]:
        url = f"http://127.0.0.1:{self.port}"
        ours = ("AIRFLOW", "SWEEPAREA_", "SPARK_", "PYTHONPATH", "PYSPARK")
        settings = {
            "CORE__LOAD_EXAMPLES": "False",
            "CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
            "CORE__PARALLELISM": "2",
            "API__HOST": "127.0.0.1",
            "API__PORT": str(self.port),
            "API__BASE_URL": url,
            "API__WORKERS": "1",
            "USAGE_DATA_COLLECTION__ENABLED": "False",
            "DAG_PROCESSOR__REFRESH_INTERVAL": "5",
            "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "5",
        }
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
            **{f"AIRFLOW__{name}": value for name, value in settings.items()},
            "AIRFLOW_HOME": str(self.folder / "home"),
            "PATH": f"{self.folder / 'airflow' / 'bin'}:{os.environ['PATH']}",
            "SCARF_ANALYTICS": "false",
        }

    def run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [self.folder / program, *arguments],
            env=self.variables,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (program, arguments, done.stdout, done.stderr)
        return done.stdout

    def start(self) -> None:
        self.run("airflow/bin/airflow", "db", "migrate")
        for name, options in COMPONENTS.items():
            with (self.folder / f"{name}.log").open("wb") as log:
                command = [self.folder / "airflow/bin/airflow", name, *options]
                self.running.append(
                    subprocess.Popen(
                        command,
                        env=self.variables,
                        cwd=self.folder,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )

    def stop(self) -> None:
        for process in self.running:
            # with all that it started: a scheduler that is killed leaves its workers behind
            processes.end_tree(process.pid, grace=20.0)
            process.wait()

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict:
        """Airflow's answer; empty while it gives none."""
        url = f"http://127.0.0.1:{self.port}"
        with requests.Session() as session:
            session.trust_env = False
            try:
                passwords = self.folder / "home" / "simple_auth_manager_passwords.json.generated"
                login = {"username": "admin", "password": json.loads(passwords.read_text())["admin"]}
                token = session.post(f"{url}/auth/token", json=login, timeout=30).json()["access_token"]
                headers = {"Authorization": f"Bearer {token}"}
                answer = session.request(method, f"{url}/api/v2{path}", json=body, headers=headers, timeout=30)
                return answer.json() if answer.ok else {}
            except (requests.RequestException, OSError, ValueError, KeyError):
                return {}

    def await_(self, what: str, condition) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            logs = {path.name: path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.log")}
            assert time.monotonic() < deadline, (what, logs)
            time.sleep(1)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Iterator[PlainAirflow]:
    """It runs, with an application and a DAG of somebody's own."""
    made = PlainAirflow(tmp_path_factory.mktemp("plain"), wheel)
    made.install()
    shop, dags = made.folder / "shop", made.folder / "home" / "dags"
    (shop / "orders").mkdir(parents=True)
    dags.mkdir(parents=True)
    (shop / "shop.cql").write_text(ORDERS)
    rows = [{"at": f"2024-01-01T00:{m:02}:00Z", "shop": "a", "price": m} for m in (1, 2, 30, 31)]
    (shop / "orders" / "rows.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    named = {"shop": str(shop), "python": str(made.folder / "compute" / "bin" / "python")}
    (dags / "shop.py").write_text(DAGS.format(**named))
    (dags / "report.py").write_text(OWN.format(**named))
    made.start()
    try:
        yield made
    finally:
        made.stop()


def result(plain: PlainAirflow) -> list[dict]:
    told = plain.run(
        "airflow/bin/sweeparea", "sql", "shop", "-c", "SELECT total FROM sales__current", "--format", "json"
    )
    return [json.loads(line) for line in told.splitlines()]


def test_from_three_lines_to_a_first_result(plain: PlainAirflow):
    packages = plain.run("airflow/bin/pip", "list").lower()
    assert not [name for name in ("pyspark", "postgres", "great-expectations", "numba") if name in packages]
    plain.await_("a first result", (plain.folder / "shop/.data/results/sales/_delta_log").exists)
    plain.await_("all that has come", lambda: result(plain) == [{"total": 33}])
    assert plain.ask("GET", "/importErrors")["total_entries"] == 0
    assert plain.ask("GET", "/plugins/importErrors")["total_entries"] == 0
    found = {one["dag_id"] for one in plain.ask("GET", "/dags")["dags"]}
    assert found == {"report", "shop__admit_orders", "shop__maintenance", "shop__sales"}


def test_a_dag_of_ones_own_waits_for_a_result_without_a_worker(plain: PlainAirflow):
    def state(task: str) -> str | None:
        runs = plain.ask("GET", "/dags/report/dagRuns/mine/taskInstances").get("task_instances", [])
        return next((one["state"] for one in runs if one["task_id"] == task), None)

    plain.ask("POST", "/dags/report/dagRuns", {"dag_run_id": "mine", "logical_date": None})
    plain.await_("the sensor to wait", lambda: state("wait") == "deferred")
    more = [{"at": f"2024-01-01T00:{m}:00Z", "shop": "a", "price": m} for m in (50, 51)]
    (plain.folder / "shop/orders/more.json").write_text("".join(json.dumps(row) + "\n" for row in more))
    plain.await_("the run to end", lambda: state("run") in ("success", "failed"))
    assert (state("wait"), state("run")) == ("success", "success")
    # 1, 2, 30, 31 and 50; that of 51 has not been closed
    assert result(plain) == [{"total": 114}]
