"""Airflow's plugin: the timetable of queries, and a page that shows how far streams and queries are. Read-only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.plugins_manager import AirflowPlugin
from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from sweeparea.dags.model import Application, ApplicationCache
from sweeparea.dags.timetables import HeartbeatSchedule

PAGE = (Path(__file__).parent / "continuous_queries.html").read_text(encoding="utf-8")

app = FastAPI(title="SweepArea", docs_url=None, redoc_url=None, openapi_url=None)
applications = ApplicationCache()


# Airflow does not protect mounted applications: every route has to ask for the user itself.
@app.get("/", response_class=HTMLResponse)
def page(user: GetUserDep) -> str:
    return PAGE


@app.get("/api/state")
def state(user: GetUserDep) -> dict[str, Any]:
    """Streams and queries whose DAGs the user may see."""
    loaded, broken = applications()
    allowed = get_auth_manager().get_authorized_dag_ids(user=user, method="GET")
    return {
        "applications": [_application_state(one, allowed) for one in loaded],
        "broken": {name: str(error) for name, error in broken.items()},
    }


def _application_state(application: Application, allowed: set[str]) -> dict[str, Any]:
    from sweeparea.dags.factory import admit_dag_id, query_dag_id
    from sweeparea.heartbeats.readiness import judge
    from sweeparea.tables.ledger import Ledger

    head = Ledger(application.data_folder).head()
    states = judge({name: row.committed for name, row in head.items()}, application.watched()["queries"])
    streams, queries = [], []
    for name, source in application.sources.items():
        row, dag_id = head.get(name), admit_dag_id(application.name, name)
        if dag_id in allowed:
            info = row.info if row else {}
            heartbeat = instant(row.committed if row else None, info)
            streams.append(
                {
                    "name": name,
                    "dag": dag_id,
                    "kind": source.kind,
                    "heartbeat": heartbeat,
                    "version": info.get("source_version"),
                    "at": _micros(row.at) if row else None,
                }
            )
    for name, position in states.items():
        row, dag_id = head.get(name), query_dag_id(application.name, name)
        if dag_id in allowed:
            info = row.info if row else {}
            queries.append(
                {
                    "name": name,
                    "dag": dag_id,
                    "committed": instant(position.done, info),
                    "ready": instant(position.ready, info),
                    "behind": position.is_ready,
                    "lag": lag(position.done, position.ready, info),
                    "at": _micros(row.at) if row else None,
                }
            )
    return {"name": application.name, "streams": streams, "queries": queries}


def instant(tick: int | None, info: dict[str, Any]) -> str | int | None:
    """A tick as an instant, where the ledger row tells its chronon (``info['time']``: kind and chronon in
    microseconds)."""
    time = info.get("time") or {}
    if tick is None or time.get("kind") != "TIMESTAMP":
        return tick
    return _micros(tick * time["chronon"])


def lag(done: int | None, ready: int | None, info: dict[str, Any]) -> str | int | None:
    """How far a query is behind its inputs: a length of time, or ticks."""
    if done is None or ready is None:
        return None
    behind = max(0, ready - done)
    time = info.get("time") or {}
    if time.get("kind") != "TIMESTAMP":
        return behind
    return str(timedelta(microseconds=behind * time["chronon"]))


def _micros(micros: int) -> str:
    try:
        return (
            (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros))
            .isoformat(sep=" ")
            .removesuffix("+00:00")
        )
    except OverflowError:
        return str(micros)


class SweepAreaPlugin(AirflowPlugin):
    """Registers the timetable, the page, and a place for it in the navigation and on every DAG."""

    name = "sweeparea"
    timetables = [HeartbeatSchedule]  # noqa: RUF012 -- Airflow's interface
    fastapi_apps = [{"app": app, "url_prefix": "/sweeparea", "name": "SweepArea"}]  # noqa: RUF012
    external_views = [  # noqa: RUF012
        {
            "name": "Continuous queries",
            "href": "/sweeparea/",
            "destination": "nav",
            "category": "browse",
            "url_route": "continuous-queries",
        }
    ]
