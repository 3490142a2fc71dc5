"""Applications with a past, a server that stands for Airflow, and a browser: once a pytest process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.dags.page import made
from tests.dags.page.stub import Served, StubAirflow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SHOTS = "SWEEPAREA_SCREENSHOTS"
"""A folder: the tests leave their pictures there (``docs`` has them)."""


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A SWEEPAREA_HOME with no application, with ``shop`` (and one that is broken), with ``many``, and with a tidy
    ``shop`` for pictures.
    """
    folder = tmp_path_factory.mktemp("page")
    found = {name: folder / name for name in ("0", "3", "200", "tidy")}
    for home in found.values():
        (home / "queries").mkdir(parents=True)
    made.shop(found["3"])
    made.broken(found["3"])
    made.many(found["200"])
    if SHOTS in os.environ:
        made.shop(found["tidy"], made.tidy)
    return found


@pytest.fixture(scope="session")
def served() -> Iterator[tuple[Served, StubAirflow]]:
    airflow = StubAirflow()
    server = Served(airflow)
    yield server, airflow
    server.stop()


@pytest.fixture
def airflow(served: tuple[Served, StubAirflow]) -> StubAirflow:
    served[1].reset()
    return served[1]


@pytest.fixture
def use(homes: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Chooses a home for this test."""

    def chosen(name: str) -> Path:
        for variable in ("SWEEPAREA_DATA", "SWEEPAREA_APPS", "SWEEPAREA_ENV"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("SWEEPAREA_HOME", str(homes[name]))
        return homes[name]

    return chosen


class Visitor:
    """Somebody at the page: ``open`` gives it when it is drawn. What the browser complains of, the test fails for;
    ``refused``: answers that refuse something are expected.
    """

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser, self.url = browser, url
        self.faults: list[str] = []
        self.refused = False
        self._contexts: list[Any] = []

    def open(
        self, where: str = "", user: str | None = "admin", width: int = 1200, height: int = 800, dark: bool = False,
        zone: str = "Europe/Berlin", path: str = "/sweeparea/",
    ) -> Page:  # fmt: skip
        context = self._browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            timezone_id=zone,
            locale="en-GB",
        )
        self._contexts.append(context)
        if user is not None:
            context.add_cookies([{"name": "_token", "value": user, "url": self.url, "sameSite": "Lax"}])
        page = context.new_page()
        page.set_default_timeout(30000)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on(
            "console", lambda said: self.faults.append(f"{said.text} {said.location}") if said.type == "error" else None
        )
        page.on("dialog", lambda dialog: self.faults.append(f"dialog {dialog.message}") or dialog.dismiss())
        page.goto(f"{self.url}{path}{where}")
        if path == "/sweeparea/" and user is not None:
            drawn(page)
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()


def drawn(page: Page) -> None:
    """Waits until the page shows what it was asked for."""
    page.wait_for_selector("main:not([aria-busy])")
    page.wait_for_selector("#body > *, .note, h1")


@pytest.fixture
def visitor(browser: Browser, served: tuple[Served, StubAirflow], airflow: StubAirflow) -> Iterator[Visitor]:
    found = Visitor(browser, served[0].url)
    yield found
    found.close()
    assert [fault for fault in found.faults if not (found.refused and fault.startswith("Failed to load"))] == []
