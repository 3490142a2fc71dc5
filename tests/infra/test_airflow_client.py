"""A small HTTP server stands for Airflow and notes what it is asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from sweeparea.infra.services.airflow_client import AirflowClient, AirflowError


class FakeAirflow(ThreadingHTTPServer):
    """Answers by "METHOD path" from ``answers``; a list is used up one by one, its last entry stays."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, Any]] = []
        self.valid = "t1"
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: FakeAirflow

    def answer(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        path = self.path.split("?")[0]
        if path == "/auth/token":
            right = body == {"username": "admin", "password": "right"}
            return self.send(201 if right else 401, {"access_token": self.server.valid} if right else {"detail": "no"})
        if self.headers.get("Authorization") != f"Bearer {self.server.valid}":
            return self.send(401, {"detail": "expired"})
        key = f"{self.command} {path.removeprefix('/api/v2')}"
        self.server.asked.append((key, body))
        found = self.server.answers.get(key)
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        self.send(200, found) if found is not None else self.send(404, {"detail": f"nothing at {key}"})

    do_GET = do_POST = do_PATCH = answer

    def send(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[FakeAirflow]:
    with FakeAirflow() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def client(server: FakeAirflow) -> AirflowClient:
    return AirflowClient(server.url, "admin", "right")


def test_an_expired_token_is_renewed(server: FakeAirflow, client: AirflowClient):
    server.answers["GET /dags"] = {"dags": [{"dag_id": "a"}]}
    assert client.dags() == [{"dag_id": "a"}]
    server.valid = "t2"
    assert client.dags() == [{"dag_id": "a"}]


def test_a_run_is_waited_for(server: FakeAirflow, client: AirflowClient):
    server.answers["POST /dags/q/dagRuns"] = {"dag_run_id": "manual__1"}
    server.answers["GET /dags/q/dagRuns/manual__1"] = [{"state": "queued"}, {"state": "success"}]
    run = client.trigger("q", {"a": 1})
    assert server.asked[0] == ("POST /dags/q/dagRuns", {"logical_date": None, "conf": {"a": 1}})
    assert client.wait_run("q", run["dag_run_id"])["state"] == "success"


def test_a_backfill_is_asked_for_in_utc(server: FakeAirflow, client: AirflowClient):
    server.answers["POST /backfills"] = {"id": 7}
    server.answers["GET /backfills/7"] = {"dag_id": "q", "completed_at": None}
    client.backfill("q", datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 3, tzinfo=UTC))
    body = server.asked[0][1]
    assert (body["from_date"], body["to_date"]) == ("2013-01-01T00:00:00+00:00", "2013-01-03T00:00:00+00:00")
    with pytest.raises(AirflowError, match="backfill 7 of q has not ended"):
        client.wait_backfill(7, timeout=0)
    with pytest.raises(AirflowError, match="time zone"):
        client.backfill("q", datetime(2013, 1, 1), datetime(2013, 1, 3))


def test_dags_that_do_not_appear_are_named_with_the_import_errors(server: FakeAirflow, client: AirflowClient):
    server.answers["GET /dags"] = {"dags": [{"dag_id": "a"}]}
    server.answers["GET /importErrors"] = {"import_errors": [{"filename": "x.py", "stack_trace": "..\nKeyError: 'y'"}]}
    client.wait_for_dags(["a"], timeout=0)
    with pytest.raises(AirflowError, match=r"no DAG b .*x\.py: KeyError"):
        client.wait_for_dags(["a", "b"], timeout=0)


def test_refusals_carry_airflows_words(server: FakeAirflow, client: AirflowClient):
    with pytest.raises(AirflowError, match=r"status 404: nothing at PATCH /dags/q"):
        client.set_paused("q", False)


def test_a_wrong_password_and_no_server(server: FakeAirflow):
    with pytest.raises(AirflowError, match="did not accept the password"):
        AirflowClient(server.url, "admin", "wrong").dags()
    with pytest.raises(AirflowError, match="make up"):
        AirflowClient("http://127.0.0.1:9", "admin", "x").dags()
