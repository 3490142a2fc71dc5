"""A real Airflow: by cron, on a Spark of a connection, for users who are no admin, after a clock that was ahead."""

from __future__ import annotations

import os
import shutil
import signal
import time
from datetime import UTC, datetime
from typing import Any

import psutil
import pytest
import requests

from sweeparea.infra.services import airflow, clock_steps, processes
from sweeparea.tables.publication.ledger import Ledger
from tests.operations.conftest import DAY, QUERY, STREAM, Operator, wait

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow]


def test_a_query_by_cron_runs_by_cron_alone(trial: Operator):
    trial.commit("clocked")
    by_cron = QUERY.replace("AS\n", "WITH (schedule = '* * * * *') AS\n")
    trial.application("clocked", STREAM + by_cron)
    client = trial.client()
    client.wait_for_dags(["clocked__q0"])
    trial.result_of("clocked", trial.commit("clocked"), seconds=200)
    kinds = {run["run_type"] for run in client.runs("clocked__q0")}
    assert kinds == {"scheduled"}
    shutil.rmtree(trial.home / "queries" / "clocked")


def test_a_connection_names_the_spark_that_computes(trial: Operator):
    client, port = trial.client(), int(trial.environment["SWEEPAREA_SPARK_PORT"])
    connections = (
        {"connection_id": "spark_here", "conn_type": "spark", "host": "local[1]"},
        {"connection_id": "spark_server", "conn_type": "spark_connect", "host": "127.0.0.1", "port": port},
        {"connection_id": "no_spark", "conn_type": "http", "host": "127.0.0.1"},
    )
    for connection in connections:
        client.request("POST", "/connections", body=connection)
        name = str(connection["connection_id"])
        trial.commit(name)
        trial.application(name, f"SET spark = '{name}';\n{STREAM}{QUERY}")
    client.wait_for_dags([f"{connection['connection_id']}__q0" for connection in connections])
    for name in ("spark_here", "spark_server"):
        trial.result_of(name, trial.commit(name), seconds=300)

    def failed() -> list[dict[str, Any]]:
        return client.runs("no_spark__admit_readings", state="failed")

    wait(lambda: bool(failed()), 120, "nobody says that the connection names no Spark")
    words = client.failures("no_spark__admit_readings", failed()[0]["dag_run_id"])
    assert "The connection no_spark of Airflow's is of type http with the host 127.0.0.1" in words
    for connection in connections:
        shutil.rmtree(trial.home / "queries" / str(connection["connection_id"]))


def test_users_who_are_no_admin_do_what_their_role_lets_them(trial: Operator):
    """As Airflow has it: a viewer reads, a user runs DAGs, an op has connections besides."""
    by_hand = STREAM.replace("HEARTBEAT FOR ts AS ts - INTERVAL 0 SECONDS", "HEARTBEAT MANUAL")
    trial.commit("byhand")
    trial.application("byhand", by_hand + QUERY)
    trial.application("fallen", "CREATE STREAM secret_name FROM;\n")
    trial.client().wait_for_dags(["byhand__q0"])
    wait(lambda: "readings" in Ledger(str(trial.data("byhand"))).head(), 120, "it is not admitted")
    url = f"http://127.0.0.1:{trial.environment['SWEEPAREA_AIRFLOW_PORT']}"
    day = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    backfill = {"dag_id": "trial__q0", "from_date": day.isoformat(), "to_date": (day + DAY).isoformat()}
    asked = {
        "state": ("GET", "/sweeparea/api/state", None),
        "picture": ("GET", "/sweeparea/picture/trial/q0", None),
        "trigger": ("POST", "/api/v2/dags/byhand__q0/dagRuns", {"logical_date": None, "conf": {}}),
        "backfill": ("POST", "/api/v2/backfills", {**backfill, "max_active_runs": 1, "reprocess_behavior": "none"}),
        "pause": ("PATCH", "/api/v2/dags/byhand__q0", {"is_paused": False}),
        "heartbeat": ("POST", "/sweeparea/api/heartbeat/byhand/readings", {"instant": "2001-01-01 00:00:00"}),
        "connection": ("GET", "/api/v2/connections", None),
    }
    answers: dict[str, dict[str, int]] = {}
    for role in ("viewer", "user", "op"):
        session = requests.Session()
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {trial.token(role)}"
        answers[role] = {
            what: session.request(method, url + path, json=body).status_code
            for what, (method, path, body) in asked.items()
        }
        state = session.get(f"{url}/sweeparea/api/state").json()
        assert "trial" in {one["name"] for one in state["applications"]}
        for trick in ("byhand/nothing", "../byhand/readings", "byhand%2f..%2ftrial/readings", "x' OR '1'='1/readings"):
            answer = session.post(f"{url}/sweeparea/api/heartbeat/{trick}", json={"instant": "2001-01-01"})
            assert answer.status_code in (403, 404), trick
    refused = {what: 404 if what == "heartbeat" else 403 for what in ("trigger", "backfill", "pause", "heartbeat")}
    assert {what: answers["viewer"][what] for what in refused} == refused
    assert (answers["viewer"]["state"], answers["viewer"]["picture"]) == (200, 200)
    for role in ("user", "op"):
        assert {answers[role][what] for what in ("state", "picture", "trigger", "pause")} == {200}
    assert answers["user"]["heartbeat"] == 200
    assert answers["op"]["heartbeat"] == 200  # where it stands is no step back
    assert {role: answers[role]["connection"] for role in answers} == {"viewer": 403, "user": 403, "op": 200}
    for name in ("byhand", "fallen"):
        shutil.rmtree(trial.home / "queries" / name)


def test_what_a_clock_that_was_ahead_has_left_behind_holds_nobody_up(trial: Operator):
    """The rows of Airflow's database that it would have written; nobody sets the clock of a machine for a test."""
    client = trial.client()
    tomorrow = datetime.now(UTC) + DAY
    body = {"logical_date": None, "conf": {}, "run_after": tomorrow.isoformat()}
    run_id = client.request("POST", "/dags/trial__q0/dagRuns", body=body)["dag_run_id"]
    assert trial.sql(f"UPDATE dag_run SET queued_at = run_after WHERE run_id = '{run_id}'") == 1
    alive = "UPDATE job SET latest_heartbeat = latest_heartbeat + interval '1 day' WHERE state = 'running'"
    assert trial.sql(alive) >= 3
    tick = trial.commit("trial")
    time.sleep(15)
    assert trial.committed("trial") < tick  # a run is queued, so there is no event
    clock_steps.stamp(trial.home / ".run").write_text("86400")  # as the supervisor does when it notices
    trial.result_of("trial", tick, seconds=120)
    assert run_id not in {run["dag_run_id"] for run in client.runs("trial__q0")}
    assert f"run {run_id} of trial__q0: removed" in (trial.home / ".run" / "logs" / "supervisor.log").read_text()
    assert trial.sql("UPDATE job SET latest_heartbeat = now() WHERE latest_heartbeat > now() + interval '1 hour'") == 0


def test_a_source_that_commits_often_is_taken_over_in_few_commits(trial: Operator):
    before = len(Ledger(str(trial.data("trial"))).history("readings"))
    version = Ledger(str(trial.data("trial"))).head()["readings"].of_source.source_version or 0
    for _ in range(99):
        trial.commit("trial")
    trial.result_of("trial", trial.commit("trial"))
    ledger = Ledger(str(trial.data("trial")))
    assert ledger.head()["readings"].of_source.source_version == version + 100
    assert len(ledger.history("readings")) - before < 50


def test_workers_of_a_scheduler_that_was_killed_end_and_runs_go_on(trial: Operator):
    run_folder = trial.home / ".run"

    def orphans() -> list[int]:
        found = []
        for process in psutil.process_iter():
            try:
                mine = process.cwd() == str(airflow.home(run_folder))
                if mine and process.cmdline() and process.cmdline()[0].startswith(airflow.WORKER):
                    parent = process.parent()
                    if parent is None or "airflow scheduler" not in " ".join(parent.cmdline()):
                        found.append(process.pid)
            except psutil.Error:
                continue
        return found

    found = processes.running("airflow-scheduler", run_folder)
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)
    assert orphans() != []
    trial.result_of("trial", trial.commit("trial"), seconds=240)
    wait(lambda: orphans() == [], 60, "workers of the scheduler that was killed live on")
    wait(lambda: trial.services("status").returncode == 0, 90, "a service is not well")
