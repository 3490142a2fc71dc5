"""A small client of Airflow's REST API: what the demo, the tests and the command line need of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import requests

from sweeparea.infra import settings
from sweeparea.infra.errors import SweepAreaError
from sweeparea.infra.services import airflow

FINAL_STATES = ("success", "failed")


class AirflowError(SweepAreaError):
    """Airflow refused a request, does not answer, or a run did not end in time."""

    type = "AirflowError"


class AirflowClient:
    """Talks to one API server; by default this installation's, as its admin.

    Methods return Airflow's JSON as it is. Errors are AirflowError with Airflow's own words.
    """

    def __init__(self, url: str | None = None, user: str | None = None, password: str | None = None) -> None:
        self.url = (url or settings.airflow_url()).rstrip("/")
        self._user = user or airflow.USER
        self._password = password or airflow.password()
        self._session = requests.Session()
        # the address is this machine: a proxy of the environment must not see it
        self._session.trust_env = False
        self._token = ""

    def request(self, method: str, path: str, *, body: Any = None, params: dict[str, Any] | None = None) -> Any:
        """One request below ``/api/v2``; logs in first, and again when the token has expired."""
        for attempt in (1, 2):
            if not self._token:
                self._token = self._log_in()
            answer = self._send(
                method,
                f"{self.url}/api/v2{path}",
                json=body,
                params=params,
                headers={"Authorization": f"Bearer {self._token}"},
            )
            if answer.status_code != 401 or attempt == 2:
                break
            self._token = ""
        if not answer.ok:
            raise AirflowError(f"Airflow refused {method} {path} with status {answer.status_code}: {_reason(answer)}")
        return answer.json() if answer.content else None

    def _log_in(self) -> str:
        answer = self._send("POST", f"{self.url}/auth/token", json={"username": self._user, "password": self._password})
        if not answer.ok:
            raise AirflowError(
                f"Airflow at {self.url} did not accept the password of {self._user} (status {answer.status_code}). "
                "If the password file was changed by hand, restart with `make stop up`."
            )
        return answer.json()["access_token"]

    def _send(self, method: str, url: str, **options: Any) -> requests.Response:
        try:
            return self._session.request(method, url, timeout=60, **options)
        except requests.ConnectionError as error:
            raise AirflowError(
                f"Airflow does not answer at {self.url}. `make up` starts it; `make status` shows what runs."
            ) from error
        except requests.Timeout as error:
            raise AirflowError(f"Airflow at {self.url} gave no answer to {method} {url} within 60 s.") from error

    def pages(self, path: str, key: str, params: dict[str, Any]) -> list[dict[str, Any]]:
        """All entries of a list, which Airflow gives a hundred at a time."""
        found: list[dict[str, Any]] = []
        while True:
            answer = self.request("GET", path, params={**params, "limit": 100, "offset": len(found)})
            found += answer[key]
            if not answer[key] or len(found) >= answer.get("total_entries", 0):
                return found

    # DAGs

    def dags(self) -> list[dict[str, Any]]:
        """All DAGs Airflow knows, paused ones too."""
        return self.pages("/dags", "dags", {"exclude_stale": True})

    def import_errors(self) -> list[dict[str, Any]]:
        """DAG files that could not be read, with the stack trace."""
        return self.request("GET", "/importErrors", params={"limit": 100})["import_errors"]

    def wait_for_dags(self, ids: list[str], timeout: float = 120.0) -> None:
        """Wait until the DAG processor has read these DAGs."""

        def all_known() -> bool:
            return set(ids) <= {dag["dag_id"] for dag in self.dags()}

        if not _wait(all_known, timeout):
            missing = sorted(set(ids) - {dag["dag_id"] for dag in self.dags()})
            errors = "; ".join(
                f"{e['filename']}: {e['stack_trace'].strip().splitlines()[-1]}" for e in self.import_errors()
            )
            raise AirflowError(
                f"Airflow shows no DAG {', '.join(missing)} after {timeout:.0f} s."
                f" {errors or 'No DAG file has errors.'}"
            )

    def set_paused(self, dag_id: str, paused: bool) -> None:
        """Pause a DAG or let it run."""
        self.request("PATCH", f"/dags/{quote(dag_id)}", body={"is_paused": paused}, params={"update_mask": "is_paused"})

    # Pools

    def pools(self) -> list[dict[str, Any]]:
        """All pools."""
        return self.request("GET", "/pools", params={"limit": 1000})["pools"]

    def make_pool(self, name: str, slots: int, description: str) -> None:
        """A new pool."""
        self.request("POST", "/pools", body={"name": name, "slots": slots, "description": description})

    def change_pool(self, name: str, slots: int) -> None:
        """Gives a pool other slots."""
        path, mask = f"/pools/{quote(name, safe='')}", {"update_mask": "slots"}
        self.request("PATCH", path, body={"pool": name, "slots": slots}, params=mask)

    # Runs

    def trigger(
        self, dag_id: str, conf: dict[str, Any] | None = None, logical_date: datetime | None = None
    ) -> dict[str, Any]:
        """Start one run now; returns it."""
        body = {"logical_date": _text(logical_date) if logical_date else None, "conf": conf or {}}
        return self.request("POST", f"/dags/{quote(dag_id)}/dagRuns", body=body)

    def run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        """One run."""
        return self.request("GET", f"/dags/{quote(dag_id)}/dagRuns/{quote(run_id, safe='')}")

    def runs(self, dag_id: str = "~", limit: int = 100, **filters: Any) -> list[dict[str, Any]]:
        """The newest runs of a DAG (``~``: of all); filters as in Airflow's API, for example ``state="running"``."""
        params = {"limit": limit, "order_by": "-run_after", **filters}
        return self.request("GET", f"/dags/{quote(dag_id, safe='~')}/dagRuns", params=params)["dag_runs"]

    def delete_run(self, dag_id: str, run_id: str) -> None:
        """Removes a run; one that is at work is ended."""
        self.request("DELETE", f"/dags/{quote(dag_id)}/dagRuns/{quote(run_id, safe='')}")

    def clear(self, dag_id: str, run_id: str, task_ids: Sequence[str]) -> None:
        """Lets tasks of a run be done anew, now."""
        body = {"dry_run": False, "dag_run_id": run_id, "task_ids": list(task_ids), "only_failed": False}
        self.request("POST", f"/dags/{quote(dag_id)}/clearTaskInstances", body=body)

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """The tasks of a run."""
        path = f"/dags/{quote(dag_id)}/dagRuns/{quote(run_id, safe='')}/taskInstances"
        return self.request("GET", path, params={"limit": 1000})["task_instances"]

    def log(self, dag_id: str, run_id: str, task_id: str, attempt: int = 1) -> str:
        """A task's log as plain text."""
        path = f"/dags/{quote(dag_id)}/dagRuns/{quote(run_id, safe='')}/taskInstances/{quote(task_id)}/logs/{attempt}"
        content = self.request("GET", path, params={"full_content": True})["content"]
        return "\n".join(line if isinstance(line, str) else _logged(line) for line in content)

    def wait_run(self, dag_id: str, run_id: str, timeout: float = 300.0) -> dict[str, Any]:
        """Wait until a run has ended; returns it. A failed run is returned too: look at ``state``."""
        latest: dict[str, Any] = {}

        def ended() -> bool:
            latest.update(self.run(dag_id, run_id))
            return latest["state"] in FINAL_STATES

        if not _wait(ended, timeout):
            raise AirflowError(
                f"The run {run_id} of {dag_id} is still {latest.get('state')} after {timeout:.0f} s; see"
                f" {self.run_url(dag_id, run_id)}"
            )
        return latest

    def run_url(self, dag_id: str, run_id: str) -> str:
        """The address of a run in the UI."""
        return f"{self.url}/dags/{quote(dag_id)}/runs/{quote(run_id, safe='')}"

    def failures(self, dag_id: str, run_id: str) -> str:
        """Why a run failed: the last lines of its failed tasks' logs."""
        parts = []
        for task in self.task_instances(dag_id, run_id):
            if task["state"] == "failed":
                lines = self.log(dag_id, run_id, task["task_id"], max(1, task["try_number"])).splitlines()
                parts.append(f"{task['task_id']}:\n" + "\n".join(lines[-12:]))
        return "\n".join(parts)

    # Backfills

    def backfill(
        self,
        dag_id: str,
        start: datetime,
        end: datetime,
        conf: dict[str, Any] | None = None,
        *,
        max_active_runs: int = 1,
        reprocess: str = "completed",
    ) -> dict[str, Any]:
        """Start a backfill of [start, end]; ``reprocess`` is none, failed or completed. Returns it, with its ``id``."""
        body = {
            "dag_id": dag_id,
            "from_date": _text(start),
            "to_date": _text(end),
            "reprocess_behavior": reprocess,
            "max_active_runs": max_active_runs,
            "run_backwards": False,
            "dag_run_conf": conf or {},
        }
        return self.request("POST", "/backfills", body=body)

    def backfills(self, dag_id: str) -> list[dict[str, Any]]:
        """All backfills of a DAG."""
        return self.request("GET", "/backfills", params={"dag_id": dag_id, "limit": 100})["backfills"]

    def backfill_runs(self, dag_id: str, backfill_id: int) -> list[dict[str, Any]]:
        """The runs that a backfill has made so far."""
        return [
            run
            for run in self.runs(dag_id, limit=1000, run_type="backfill")
            if run.get("backfill_id", backfill_id) == backfill_id
        ]

    def wait_backfill(self, backfill_id: int, timeout: float = 600.0) -> dict[str, Any]:
        """Wait until all runs of a backfill have ended; returns the backfill."""
        latest: dict[str, Any] = {}

        def ended() -> bool:
            latest.update(self.request("GET", f"/backfills/{backfill_id}"))
            return latest["completed_at"] is not None

        if not _wait(ended, timeout):
            raise AirflowError(
                f"The backfill {backfill_id} of {latest.get('dag_id')} has not ended after {timeout:.0f} s; see"
                f" {self.url}"
            )
        return latest


def _logged(line: dict[str, Any]) -> str:
    """An entry of a task's log: its text, and the errors that were raised with it."""
    errors = [f"{error.get('exc_type')}: {error.get('exc_value')}" for error in line.get("error_detail") or ()]
    return "\n".join([str(line.get("event", line)), *errors])


def _wait(condition: Callable[[], bool], timeout: float) -> bool:
    end = time.monotonic() + timeout
    while True:
        if condition():
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.5)


def _text(instant: datetime) -> str:
    if instant.tzinfo is None:
        raise AirflowError(
            f"{instant} has no time zone; Airflow's dates need one, for example"
            f" {instant.replace(tzinfo=UTC).isoformat()}"
        )
    return instant.astimezone(UTC).isoformat()


def _reason(answer: requests.Response) -> str:
    try:
        detail = answer.json().get("detail", answer.text)
    except ValueError:
        detail = answer.text
    return str(detail)[:500]
