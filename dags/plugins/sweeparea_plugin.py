"""Airflow's plugin: the timetable of queries, a page that shows how far streams and queries are, and the one thing that
is done from outside: moving the heartbeat of what is declared HEARTBEAT MANUAL.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.plugins_manager import AirflowPlugin
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel

from sweeparea.dags.model import ApplicationCache, ApplicationDags
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


class Advance(BaseModel):
    """Up to when no element will come any more: ``2013-01-31 12:00:00`` (UTC), or a tick."""

    instant: str


@app.post("/api/heartbeat/{name}/{source}")
def advance(name: str, source: str, to: Advance, user: GetUserDep) -> Response:
    """Moves the heartbeat of a stream or relation, for users who may edit its DAG. Going back is an error (409)."""
    from sweeparea.infra import settings
    from sweeparea.infra.dag_names import admit_dag_id
    from sweeparea.infra.errors import SweepAreaError
    from sweeparea.spark_jobs.admission.heartbeat import advance_to
    from sweeparea.spark_jobs.application import Application as Opened

    known = {one.name: one for one in applications()[0]}
    allowed = get_auth_manager().get_authorized_dag_ids(user=user, method="PUT")
    if name not in known or source not in known[name].sources or admit_dag_id(name, source) not in allowed:
        return Response(status_code=404)
    try:
        opened = Opened.open(settings.application(name) if "@" not in name else name, known[name].data_folder)
        now, before = advance_to(opened, source, to.instant)
    except SweepAreaError as error:
        return Response(str(error), status_code=409, media_type="text/plain")
    return JSONResponse({"heartbeat": now, "was": before})


@app.get("/picture/{name}/{query}")
def picture(name: str, query: str, user: GetUserDep) -> Response:
    """A query's plan as SVG, for users who may see its DAG; an SVG image runs no scripts."""
    from sweeparea.cql.explain import explain
    from sweeparea.infra import settings
    from sweeparea.infra.dag_names import query_dag_id
    from sweeparea.infra.errors import SweepAreaError
    from sweeparea.spark_jobs.application import Application as Opened

    known = {one.name: one for one in applications()[0]}
    allowed = get_auth_manager().get_authorized_dag_ids(user=user, method="GET")
    if name not in known or query not in known[name].queries or query_dag_id(name, query) not in allowed:
        return Response(status_code=404)
    try:
        opened = Opened.open(settings.application(name) if "@" not in name else name, known[name].data_folder)
        shown = explain(opened.plans.plan(query), opened.unchanging(), "svg")
    except SweepAreaError as error:
        return Response(str(error), status_code=409, media_type="text/plain")
    return Response(shown, media_type="image/svg+xml")


@app.get("/quality/{name}/{of}", response_class=HTMLResponse)
def quality(name: str, of: str, user: GetUserDep) -> Response:
    """The verdicts of a stream, relation or query as a page, for users who may see its DAG. It has no script."""
    from sweeparea.infra import settings
    from sweeparea.infra.dag_names import admit_dag_id, query_dag_id
    from sweeparea.infra.errors import SweepAreaError
    from sweeparea.spark_jobs.application import Application as Opened
    from sweeparea.spark_jobs.commands.quality import page_of

    known = {one.name: one for one in applications()[0]}
    allowed = get_auth_manager().get_authorized_dag_ids(user=user, method="GET")
    dag_id = None
    if name in known and of in known[name].queries:
        dag_id = query_dag_id(name, of)
    elif name in known and of in known[name].sources:
        dag_id = admit_dag_id(name, of)
    if dag_id is None or dag_id not in allowed:
        return Response(status_code=404)
    try:
        opened = Opened.open(settings.application(name) if "@" not in name else name, known[name].data_folder)
        return HTMLResponse(page_of(opened, of, write=False))
    except SweepAreaError as error:
        return Response(str(error), status_code=409, media_type="text/plain")


def _application_state(application: ApplicationDags, allowed: set[str]) -> dict[str, Any]:
    from sweeparea.heartbeats.lag import chronons
    from sweeparea.heartbeats.readiness import judge
    from sweeparea.infra.dag_names import admit_dag_id, query_dag_id
    from sweeparea.tables.publication.ledger import Ledger

    head = Ledger(application.data_folder).head()
    watched = application.watched()
    positions = judge(head, watched["queries"])
    ticks = chronons(head, watched["queries"])
    streams, queries = [], []
    for name, source in application.sources.items():
        row, dag_id = head.get(name), admit_dag_id(application.name, name)
        if dag_id not in allowed:
            continue
        heartbeat = instant(row.committed, ticks.get(name)) if row else None
        streams.append(
            {
                "name": name,
                "dag": dag_id,
                "kind": source.kind.value,
                "heartbeat": "static" if row and source.static else heartbeat,
                "version": row.of_source.source_version if row else None,
                "at": instant(row.at, 1) if row else None,
            }
        )
    for name, position in positions.items():
        row, dag_id = head.get(name), query_dag_id(application.name, name)
        if dag_id not in allowed:
            continue
        chronon = ticks.get(name)
        queries.append(
            {
                "name": name,
                "dag": dag_id,
                "committed": instant(position.done, chronon),
                "ready": instant(position.ready, chronon),
                "behind": position.is_ready,
                "lag": lag(position.done, position.ready, chronon),
                "at": instant(row.at, 1) if row else None,
            }
        )
    return {"name": application.name, "streams": streams, "queries": queries}


def instant(tick: int | None, chronon: int | None) -> str | int | None:
    """A tick as its instant (UTC), or as the number it is where the chronon is not known or time is BIGINT."""
    if tick is None or not chronon:
        return tick
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=tick * chronon)
    except OverflowError:
        return tick
    return moment.isoformat(sep=" ").removesuffix("+00:00")


def lag(done: int | None, ready: int | None, chronon: int | None) -> str | int | None:
    """How far a query is behind its inputs: a length of time, or ticks."""
    if done is None or ready is None:
        return None
    behind = max(0, ready - done)
    return str(timedelta(microseconds=behind * chronon)) if chronon else behind


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
