"""A real Airflow with PostgreSQL, driven by REST: who wakes, who fails alone, what comes back after a kill."""

from __future__ import annotations

import os
import shutil
import signal
import time
from datetime import UTC, datetime
from typing import Any

import pytest
import requests

from sweeparea.infra.services import processes
from sweeparea.infra.services.airflow_client import AirflowError
from tests.operations.conftest import DAY, QUERY, STREAM, Operator, wait

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow]

NOTIFIER = """
from airflow.sdk import BaseNotifier

class ToFile(BaseNotifier):
    template_fields = ("text",)

    def __init__(self, text):
        super().__init__()
        self.text = text

    def notify(self, context):
        with open({file!r}, "a") as file:
            file.write(self.text + "\\n")

on_call = ToFile("{{{{ alert.subject }}}}")
"""


def test_a_fault_of_one_application_is_its_own(trial: Operator):
    wrong = ("my shop", "x" * 101, "a+b", "größe")
    for name in wrong:
        trial.application(name, STREAM + QUERY)
    trial.application("broken", f"{STREAM}CREATE CONTINUOUS QUERY q0 AS SELECT FROM;\n")
    trial.application("longid", STREAM + QUERY.replace("q0", "q" * 245))
    trial.application("gone", STREAM + QUERY)
    trial.commit("gone")
    client = trial.client()

    def told() -> str:
        return "\n".join(error["stack_trace"] for error in client.import_errors())

    wait(lambda: all(name in told() for name in (*wrong, "broken.cql:2", "longid")), 90, "no import error names them")
    trial.result_of("gone", 0)
    trial.data("gone").rename(trial.data("away"))
    trial.result_of("trial", trial.commit("trial"))
    trial.data("away").rename(trial.data("gone"))
    trial.result_of("gone", trial.commit("gone"))
    for name in (*wrong, "broken", "longid", "gone"):
        shutil.rmtree(trial.home / "queries" / name)
    wait(lambda: not client.import_errors(), 90, "the import error stays")


def test_a_group_works_in_one_task_and_who_is_behind_is_told_once(trial: Operator):
    file = trial.home / "told.txt"
    text = QUERY.replace("AS\n", "WITH (dag = 'both', alert_after = '20 seconds') AS\n")
    text += "CREATE CONTINUOUS QUERY q1 WITH (dag = 'both') AS SELECT n FROM q0 WHERE n > 1;\n"
    settings = "SET notify = 'alerts:on_call'; SET pool = 'watch_pool'; SET pool.slots = 1;\n"
    trial.commit("watch")
    trial.application("watch", settings + STREAM + text, alerts=NOTIFIER.format(file=str(file)))
    client = trial.client()
    client.wait_for_dags(["watch__both", "watch__alerts", "watch__q0"])

    def told() -> list[str]:
        return file.read_text().splitlines() if file.exists() else []

    trial.result_of("watch", 0, "q1")
    wait(lambda: len(told()) % 2 == 1, 120, "nobody was told")
    before = len(told())
    assert "q0 is more than 0:00:20 behind the clock; it waits for readings" in told()[-1]
    tick = trial.commit("watch")
    trial.result_of("watch", tick, "q1")
    wait(lambda: len(told()) > before, 60, "no all-clear")
    assert "all clear" in told()[before]
    assert client.runs("watch__q0") == []  # its own DAG had no live run
    tasks = [client.task_instances("watch__both", run["dag_run_id"])[0] for run in client.runs("watch__both")]
    assert {task["state"] for task in tasks} == {"success"}
    assert ("watch_pool", 1) in [(pool["name"], pool["slots"]) for pool in client.pools()]
    shutil.rmtree(trial.home / "queries" / "watch")


def test_a_backfill_of_any_range(trial: Operator):
    client = trial.client()
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)

    def reports(start: datetime, end: datetime, **how: Any) -> list[tuple[str, dict[str, Any]]]:
        begun = client.backfill("trial__q0", start, end, **how)["id"]
        client.wait_backfill(begun, 240)
        found = []
        for run in client.runs("trial__q0", limit=1000, run_type="backfill"):
            if start.isoformat()[:19] <= run["data_interval_start"][:19] < end.isoformat()[:19]:
                path = f"/dags/trial__q0/dagRuns/{run['dag_run_id']}/taskInstances/process/xcomEntries/return_value"
                found.append((run["state"], client.request("GET", path)["value"]))
        return sorted(found, key=lambda one: one[1]["backfill"]["from"])

    (one,) = reports(today, today + DAY)  # ends after now
    assert one[0] == "success"
    assert one[1]["backfill"]["complete"] is False
    several = reports(today - DAY, today + DAY, reprocess="completed")
    assert [(state, report["backfill"]["complete"]) for state, report in several] == [
        ("success", True),
        ("success", False),
    ]
    assert all(report["recomputed"]["added"] == {} for _, report in several)  # nothing differs, and that is a success
    with pytest.raises(AirflowError, match="future"):
        client.backfill("trial__q0", today + 3 * DAY, today + 5 * DAY)
    for conf, words in (
        ({"untill": 1}, "cannot do anything with 'untill'"),
        ({"until": "'; DROP TABLE x"}, "is no instant"),
    ):
        run = client.wait_run("trial__q0", client.trigger("trial__q0", conf)["dag_run_id"])
        assert run["state"] == "failed"
        assert words in client.failures("trial__q0", run["dag_run_id"])


def test_who_is_killed_comes_back_and_nothing_is_lost(trial: Operator):
    for name in ("airflow-scheduler", "airflow-triggerer", "spark-connect", "postgres"):
        found = processes.running(name, trial.home / ".run")
        assert found is not None
        os.kill(found.pid, signal.SIGKILL)
        trial.result_of("trial", trial.commit("trial"), seconds=240)
        wait(lambda: trial.services("status").returncode == 0, 90, "a service is not well")
        assert f"{name} " in (trial.home / ".run" / "logs" / "supervisor.log").read_text().replace(":", " ")


def test_a_server_that_dies_during_a_slice_is_named_and_the_task_goes_on(trial: Operator):
    """The task waits for the server that is being started again at its next attempt."""
    client = trial.client()
    found = processes.running("spark-connect", trial.home / ".run")
    assert found is not None
    os.kill(found.pid, signal.SIGSTOP)  # so that the slice is under way when it dies
    tick = trial.commit("trial")
    newest: dict[str, Any] = {}

    def at_work() -> bool:
        runs = client.runs("trial__admit_readings", limit=1)
        newest.update(runs[0])
        return runs[0]["state"] == "running"

    wait(at_work, 60, "nothing is admitted")
    time.sleep(3)
    os.kill(found.pid, signal.SIGKILL)
    killed = time.monotonic()
    dag, run_id = "trial__admit_readings", newest["dag_run_id"]
    wait(lambda: client.task_instances(dag, run_id)[0]["state"] == "up_for_retry", 60, "the task does not notice")
    assert time.monotonic() - killed < 30  # 20 s on a machine with nothing else to do
    assert "Spark is gone" in client.log(dag, run_id, "admit", 1)
    trial.result_of("trial", tick, seconds=240)


def test_strangers_are_refused_and_tricks_are_inert(trial: Operator):
    url = f"http://127.0.0.1:{trial.environment['SWEEPAREA_AIRFLOW_PORT']}"
    session = requests.Session()
    session.trust_env = False
    for method, path in (
        ("GET", "/api/v2/dags"),
        ("POST", "/api/v2/dags/trial__q0/dagRuns"),
        ("POST", "/api/v2/backfills"),
        ("GET", "/sweeparea/"),
        ("GET", "/sweeparea/api/state"),
        ("POST", "/sweeparea/api/heartbeat/trial/readings"),
        ("GET", "/sweeparea/picture/trial/q0"),
    ):
        body = {"instant": "2026-01-01"} if method == "POST" else None
        assert session.request(method, url + path, json=body).status_code == 401, path
    client = trial.client()
    client.dags()
    session.headers["Authorization"] = f"Bearer {client._token}"
    for path in ("..%2f..%2fetc/passwd", "trial/q0'%20OR%201=1", "trial/../q0", "trial%00/q0"):
        assert session.get(f"{url}/sweeparea/picture/{path}").status_code == 404, path
    for instant in ("2026-01-01'; DROP TABLE x; --", "../../etc", "9" * 23, "", "2026-13-45"):
        answer = session.post(f"{url}/sweeparea/api/heartbeat/trial/readings", json={"instant": instant})
        assert (answer.status_code, "is no instant" in answer.text) == (409, True), instant
