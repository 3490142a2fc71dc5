"""An Airflow that is none: users by their cookie, the calls of its REST API that the page makes, its UI's frame."""

from __future__ import annotations

import threading
import time
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, Response

from sweeparea.dags.model import load_all
from sweeparea.dags.page.routes import make_app
from sweeparea.dags.page.state import dag_ids
from sweeparea.infra.dag_names import group_dag_id

ONE_DAG = "shop__revenue"
ICON = '<link rel="icon" href="data:,">'
"""So that the browser asks for none."""
SANDBOX = "allow-scripts allow-same-origin allow-forms allow-downloads"
"""As Airflow 3.3 frames the views of plugins."""


def user_of(request: Request) -> str:
    name = request.cookies.get("_token")
    if name not in ("admin", "viewer", "one"):
        raise HTTPException(401, "Not authenticated")
    return name


@dataclass
class StubAirflow:
    """``one`` sees the DAG ``ONE_DAG`` only, ``viewer`` changes nothing. ``dags``: paused, stale or failed ones by id;
    ``missing``: those that Airflow does not have; ``calls``: what was asked to be done.
    """

    dags: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    running: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    calls: list[tuple[str, str, Any]] = field(default_factory=list)

    def reset(self) -> None:
        for found in (self.dags, self.failed, self.running, self.missing, self.calls):
            found.clear()

    @property
    def user(self) -> Any:
        return user_of

    def allowed(self, user: str, dag_ids: Set[str], method: str) -> set[str]:
        if user == "one":
            return set(dag_ids) & {ONE_DAG} if method == "GET" else set()
        return set(dag_ids) if user == "admin" or method == "GET" else set()

    def may_run(self, user: str, dag_ids: Set[str]) -> set[str]:
        return set(dag_ids) if user == "admin" else set()

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.get("/api/v2/dags")
        def dags(request: Request, limit: int = 50, offset: int = 0, last_dag_run_state: str | None = None) -> Any:
            loaded, _ = load_all()
            groups = {group_dag_id(one.name, group) for one in loaded for group in one.groups}
            known = groups.union(*(dag_ids(one) for one in loaded))
            wanted = {"failed": self.failed, "running": self.running}.get(last_dag_run_state or "", known)
            ids = sorted((self.allowed(user_of(request), known, "GET") & wanted) - self.missing)
            usual = {"is_paused": False, "is_stale": False, "has_import_errors": False}
            found = [{"dag_id": each, **usual, **self.dags.get(each, {})} for each in ids[offset : offset + limit]]
            return {"dags": found, "total_entries": len(ids)}

        @app.api_route("/api/v2/{path:path}", methods=["POST", "PATCH"])
        async def act(path: str, request: Request) -> Any:
            if user_of(request) != "admin":
                raise HTTPException(403, "Forbidden")
            self.calls.append((request.method, path, await request.json()))
            if path == "backfills/dry_run":
                return {"backfills": [], "total_entries": 3}
            return {"id": 5, "dag_run_id": "manual__1"}

        @app.get("/plugin/continuous-queries")
        def frame(inside: str = "/sweeparea/") -> Response:
            text = f'<!doctype html>{ICON}<iframe sandbox="{SANDBOX}" src="{inside}" width=900 height=700></iframe>'
            return HTMLResponse(text)

        @app.get("/dags/{dag_id}")
        def dag(dag_id: str) -> Response:
            return HTMLResponse(f"<!doctype html>{ICON}<p>A DAG")

        app.mount("/sweeparea", make_app(self))
        return app


class Served:
    """A server on a free port of 127.0.0.1, in a thread."""

    def __init__(self, airflow: StubAirflow) -> None:
        config = uvicorn.Config(airflow.app(), host="127.0.0.1", port=0, log_level="error", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        give_up = time.monotonic() + 20
        while not self._server.started and time.monotonic() < give_up:
            time.sleep(0.02)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)
