"""Who is let in, and what another site cannot make a browser do."""

from __future__ import annotations

import json
import re

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from sweeparea.dags.page.access import HEADER
from sweeparea.dags.page.routes import WEB, make_app
from tests.dags.page.stub import StubAirflow

OURS = {"content-type": "application/json", HEADER: "1", "sec-fetch-site": "same-origin"}
BODY = json.dumps({"instant": "2020-01-01"})


@pytest.fixture
def client(use) -> TestClient:
    use("3")
    return TestClient(make_app(StubAirflow()), base_url="http://airflow.example")


def test_every_route_asks_for_a_user(client: TestClient):
    routes = [route for route in make_app(StubAirflow()).routes if isinstance(route, APIRoute)]
    assert len(routes) >= 12
    for route in routes:
        path = re.sub(r"\{\w+\}", "x", route.path)
        for method in route.methods:
            answer = client.request(method, path, headers=OURS, content=BODY if method == "POST" else None)
            assert answer.status_code == 401, path
    assert client.get("/docs").status_code == client.get("/openapi.json").status_code == 404


def test_nothing_but_the_page_is_served(client: TestClient):
    client.cookies.set("_token", "admin")
    for name in ("../routes.py", "..%2froutes.py", "%2e%2e/routes.py", "none.js", "__init__.py"):
        assert client.get(f"/web/{name}").status_code == 404, name
    answer = client.get("/")
    assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]
    for file in WEB.iterdir():
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), file  # nothing comes from elsewhere
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(", text), file
        assert len(client.get(f"/web/{file.name}").content) == len(file.read_bytes())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (OURS, 409),
        ({**OURS, "content-type": "text/plain"}, 415),
        ({**OURS, "content-type": "application/x-www-form-urlencoded"}, 415),
        ({**OURS, "sec-fetch-site": "cross-site"}, 403),
        ({**OURS, "sec-fetch-site": "same-site"}, 403),
        ({key: value for key, value in OURS.items() if key != HEADER}, 403),
        ({**OURS, "sec-fetch-site": "", "origin": "http://evil.example"}, 403),
        ({"content-type": "application/json", HEADER: "1", "origin": "http://evil.example"}, 403),
        ({"content-type": "application/json", HEADER: "1", "origin": "http://airflow.example"}, 409),
        ({"content-type": "application/json", "authorization": "Bearer t"}, 409),  # no cookie's doing
    ],
)
def test_a_write_comes_from_the_page_itself(client: TestClient, headers: dict[str, str], status: int):
    client.cookies.set("_token", "admin")
    answer = client.post("/api/heartbeat/shop/orders", content=BODY, headers=headers)
    assert answer.status_code == status, answer.text
    if status == 409:
        assert "moves its heartbeat by its own policy" in answer.text


def test_who_may_not_edit_changes_nothing(client: TestClient):
    client.cookies.set("_token", "viewer")
    assert client.post("/api/heartbeat/shop/returns", content=BODY, headers=OURS).status_code == 404
    assert client.post("/api/pause/shop/revenue", content='{"paused": true}', headers=OURS).status_code == 404


def test_who_may_see_one_dag_is_told_of_nothing_else(client: TestClient):
    client.cookies.set("_token", "one")
    state = client.get("/api/state").json()
    assert [(app["name"], len(app["streams"]), len(app["queries"])) for app in state["applications"]] == [
        ("shop", 0, 1)
    ]
    assert state["broken"] == {}
    assert state["may_edit"] == state["may_run"] == []
    assert client.get("/api/query/shop/revenue").status_code == 200
    for path in (
        "query/shop/surges", "plan/shop/surges", "results/shop/surges", "plot/shop/surges", "corrections/shop/surges",
        "stream/shop/orders", "quarantine/shop/orders", "query/nothing/revenue", "query/shop/nothing",
    ):  # fmt: skip
        assert client.get(f"/api/{path}").status_code == 404, path
    assert client.get("/picture/shop/surges").status_code == 404


def test_one_application_that_cannot_be_read_stops_no_other(client: TestClient):
    client.cookies.set("_token", "admin")
    state = client.get("/api/state").json()
    assert [app["name"] for app in state["applications"]] == ["shop"]
    assert list(state["broken"]) == ["broken"]


def test_what_cannot_be_told_is_said_in_words(client: TestClient):
    client.cookies.set("_token", "admin")
    for path, words in (
        ("results/shop/revenue?at=never", "is no instant"),
        ("results/shop/revenue?table=../x", "keeps no table"),
        ("plot/shop/revenue?measure=kind", "is no number"),
    ):
        answer = client.get(f"/api/{path}")
        assert (answer.status_code, words in answer.text) == (409, True), answer.text
    assert client.get("/api/results/shop/sent_back").json() == {}
    assert client.get("/api/corrections/shop/sent_back").json()["commits"] == []
    assert client.get("/api/quarantine/shop/returns").json()["rows"] == []


def test_a_damaged_ledger_stops_no_other_application(client: TestClient, monkeypatch: pytest.MonkeyPatch):
    client.cookies.set("_token", "admin")

    def damaged(self):
        raise ValueError("Parquet magic bytes not found")

    monkeypatch.setattr("sweeparea.dags.page.opened.HeldApplication.facts", damaged)
    state = client.get("/api/state").json()
    assert state["applications"] == []
    assert "magic bytes" in state["broken"]["shop"]
