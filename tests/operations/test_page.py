"""The page within the UI of a real Airflow: framed, linked from and to DAGs, with the UI's theme and session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import requests

from tests.operations.conftest import QUERY, STREAM, Operator, wait

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow]


@pytest.fixture
def page(operator: Operator, browser: Browser) -> Iterator[Page]:
    """A window of the admin's, who is logged in."""
    client = operator.client()
    client.dags()
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    cookie = {"name": "_token", "value": client._token, "url": f"http://127.0.0.1:{_port(operator)}", "sameSite": "Lax"}
    context.add_cookies([cookie])  # pyright: ignore[reportArgumentType]
    found = context.new_page()
    found.set_default_timeout(60_000)
    yield found
    context.close()


def _port(operator: Operator) -> str:
    return operator.environment["SWEEPAREA_AIRFLOW_PORT"]


def test_the_page_within_airflow(operator: Operator, page: Page):
    operator.application("seen", STREAM + QUERY)
    client, url = operator.client(), f"http://127.0.0.1:{_port(operator)}"
    operator.result_of("seen", operator.commit("seen"), seconds=240)
    page.goto(f"{url}/plugin/continuous-queries")
    frame = page.frame_locator("iframe")
    row = frame.locator("tr", has=page.locator("a:text-is('q0')")).filter(has_text="seen")
    assert "gone" not in row.locator(".badge").evaluate_all("found => found.map(badge => badge.dataset.kind)")
    row.locator("td.name > a").click()
    frame.get_by_text("What holds it back").wait_for()
    page.wait_for_url("**/plugin/continuous-queries/sweeparea/?query=seen*q0")  # the address can be kept
    page.evaluate("localStorage.setItem('theme', 'dark')")
    frame.locator("html[data-theme=dark]").wait_for()
    frame.locator("[data-tab=plan]").click()
    frame.locator("svg.plan .box").first.wait_for()
    frame.locator("[data-tab=results]").click()
    frame.locator(".rows-at tbody tr").first.wait_for()

    frame.get_by_text("Pause DAG").click()
    wait(lambda: client.request("GET", "/dags/seen__q0")["is_paused"], 60, "the DAG is not paused")
    frame.locator(".badge[data-kind=paused]").first.wait_for()
    frame.get_by_text("Unpause DAG").click()
    wait(lambda: not client.request("GET", "/dags/seen__q0")["is_paused"], 60, "the DAG is still paused")
    before = len(client.runs("seen__q0", limit=100))
    frame.get_by_text("Run now").click()
    wait(lambda: len(client.runs("seen__q0", limit=100)) > before, 60, "no run was started")

    frame.get_by_text("DAG in Airflow").click()
    page.wait_for_url("**/dags/seen__q0*")  # out of the frame
    page.goto(f"{url}/dags/seen__q0/plugin/continuous-query")
    frame.locator("h1", has_text="q0").wait_for()
    link = client.request("GET", "/dags/seen__q0/details")["doc_md"].rpartition("](")[2].rstrip(")")
    page.goto(url + link)
    frame.locator("h1", has_text="q0").wait_for()


def test_who_is_not_logged_in_gets_nothing(operator: Operator):
    session = requests.Session()
    session.trust_env = False
    for path in (
        "",
        "web/main.js",
        "api/state",
        "api/query/seen/q0",
        "api/results/seen/q0",
        "api/quarantine/seen/readings",
    ):
        assert session.get(f"http://127.0.0.1:{_port(operator)}/sweeparea/{path}").status_code == 401, path
