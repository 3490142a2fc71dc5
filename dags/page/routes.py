"""The page's routes: thin, each asks who the user is and gives what the modules beside say."""

from __future__ import annotations

import functools
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from sweeparea.dags.model import as_fault
from sweeparea.dags.page import details, quarantine, results, tables
from sweeparea.dags.page.access import Access, from_this_page
from sweeparea.dags.page.opened import Applications, HeldApplication
from sweeparea.dags.page.state import dag_ids, overview
from sweeparea.infra.dag_names import admit_dag_id, group_dag_id, maintenance_dag_id, query_dag_id
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.application import Application
from sweeparea.tables.publication.ledger import Ledger

WEB = Path(__file__).parent / "web"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
HEADERS = {
    # scripts and styles of this page alone: text that gets into it as markup would still not run
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-cache",
}

OF_REPORTS = (
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)
"""Of a page that stands by itself: its style is in it, and it has no script."""
PICTURE = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}


class Advance(BaseModel):
    """Up to when no element will come any more: ``2013-01-31 12:00:00`` (UTC), or a tick."""

    instant: str


class WantedPause(BaseModel):
    """Whether a query is to stand still."""

    paused: bool


@dataclass(frozen=True)
class Served:
    """What routes need: who may do what, and the applications."""

    access: Access
    applications: Applications

    def held(self, user: Any, app: str, dag_id: str, method: str = "GET") -> HeldApplication:
        """An application, for a user who may see (or edit) one of its DAGs; 404 where there is none such for them."""
        loaded, _ = self.applications()
        if app not in loaded or dag_id not in self.access.allowed(user, {dag_id}, method):
            raise HTTPException(404, "There is nothing of that name that you may see.")
        return loaded[app]

    def is_query(self, app: str, name: str) -> bool:
        """Whether an application has a query of a name, whoever may see it."""
        loaded, _ = self.applications()
        return app in loaded and name in loaded[app].dags.queries

    @contextmanager
    def query(
        self, user: Any, app: str, name: str, method: str = "GET"
    ) -> Iterator[tuple[HeldApplication, Application]]:
        """A query's application, opened."""
        held = self.held(user, app, query_dag_id(app, name), method)
        with _opened(held, name, held.dags.queries, "query") as application:
            yield held, application

    @contextmanager
    def source(
        self, user: Any, app: str, name: str, method: str = "GET"
    ) -> Iterator[tuple[HeldApplication, Application]]:
        """A stream's or relation's application, opened."""
        held = self.held(user, app, admit_dag_id(app, name), method)
        with _opened(held, name, held.dags.sources, "stream or relation") as application:
            yield held, application


@contextmanager
def _opened(held: HeldApplication, name: str, names: Container[str], kind: str) -> Iterator[Application]:
    if name not in names:
        raise HTTPException(404, f"There is no such {kind}.")
    with held.use() as application:
        yield application


def make_app(access: Access, applications: Applications | None = None) -> FastAPI:
    """The page as an application of FastAPI's, to be mounted by whoever knows users."""
    app = FastAPI(title="SweepArea", docs_url=None, redoc_url=None, openapi_url=None)
    served = Served(access, applications or Applications())
    User = Depends(access.user)

    # nobody protects what is mounted: every route asks for the user itself
    @app.get("/")
    def page(user: Any = User) -> Response:
        return _file("index.html")

    @app.get("/web/{file}")
    def part(file: str, user: Any = User) -> Response:
        return _file(file)

    _reads(app, served)
    _writes(app, served)

    @app.exception_handler(SweepAreaError)
    def told(request: Request, error: SweepAreaError) -> Response:
        return Response(str(error), status_code=409, media_type="text/plain")

    return app


def _file(file: str) -> Response:
    found = _files().get(file)
    if found is None:
        return Response(status_code=404)
    kind = TYPES[Path(file).suffix]
    return Response(found, media_type=f"{kind}; charset=utf-8", headers=HEADERS)


@functools.cache
def _files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in WEB.iterdir() if path.suffix in TYPES}


def _reads(app: FastAPI, served: Served) -> None:
    access = served.access
    User = Depends(access.user)

    @app.get("/api/state")
    def state(user: Any = User) -> dict[str, Any]:
        """Streams and queries whose DAGs the user may see; of applications that cannot be read, why."""
        loaded, broken = served.applications()
        ids = {name: dag_ids(held.dags) for name, held in loaded.items()}
        groups = {group_dag_id(name, group) for name, held in loaded.items() for group in held.dags.groups}
        every = {*groups, *(dag for found in ids.values() for dag in found)}
        allowed = access.allowed(user, every, "GET")
        found, faults = [], {name: str(error) for name, error in broken.items()}
        for name, held in loaded.items():
            if not ids[name] & allowed:
                continue
            try:
                found.append(overview(held.facts(), allowed))
            except Exception as error:  # a damaged ledger, a folder without rights: the others are shown
                faults[name] = str(as_fault(error))
        seen = access.allowed(user, {maintenance_dag_id(name) for name in faults}, "GET")
        return {
            "applications": found,
            "broken": {name: text for name, text in faults.items() if maintenance_dag_id(name) in seen},
            "may_edit": sorted(access.allowed(user, allowed, "PUT")),
            "may_run": sorted(access.may_run(user, allowed)),
        }

    @app.get("/api/query/{name}/{query}")
    def one_query(name: str, query: str, user: Any = User) -> dict[str, Any]:
        held = served.held(user, name, query_dag_id(name, query))
        facts = held.facts()
        with served.query(user, name, query) as (_, application):
            return details.query(facts, application, query)

    @app.get("/api/stream/{name}/{source}")
    def one_stream(name: str, source: str, user: Any = User) -> dict[str, Any]:
        facts = served.held(user, name, admit_dag_id(name, source)).facts()
        with served.source(user, name, source) as (_, application):
            return details.stream(facts, application, source)

    @app.get("/api/plan/{name}/{query}")
    def plan(name: str, query: str, user: Any = User) -> dict[str, Any]:
        with served.query(user, name, query) as (_, application):
            return details.plan(application, query)

    @app.get("/picture/{name}/{query}")
    def picture(name: str, query: str, user: Any = User) -> Response:
        """A query's plan as SVG; an SVG image runs no scripts."""
        from sweeparea.cql.explain import explain

        with served.query(user, name, query) as (_, application):
            shown = explain(application.plans.plan(query), application.unchanging(), "svg")
        return Response(shown, media_type="image/svg+xml", headers=HEADERS | PICTURE)

    @app.get("/quality/{name}/{of}")
    def quality(name: str, of: str, user: Any = User) -> Response:
        """The verdicts of a stream, relation or query as a page of its own, without a script."""
        from sweeparea.spark_jobs.commands.quality import page_of

        with (served.query if served.is_query(name, of) else served.source)(user, name, of) as (_, application):
            shown = page_of(application, of, write=False)
        return Response(shown, media_type="text/html", headers={**HEADERS, "Content-Security-Policy": OF_REPORTS})

    @app.get("/api/results/{name}/{query}")
    def result_rows(
        name: str, query: str, at: str | None = None, table: str | None = None, user: Any = User
    ) -> dict[str, Any]:
        found = _table(served, user, name, query, table)
        return {} if found is None else results.rows_at(found, tables.instant(found, at) if at else None)

    @app.get("/api/plot/{name}/{query}")
    def plot(
        name: str,
        query: str,
        until: str | None = None,
        measure: str | None = None,
        key: str | None = None,
        table: str | None = None,
        user: Any = User,
    ) -> dict[str, Any]:
        found = _table(served, user, name, query, table)
        if found is None:
            return {}
        keys = None if key is None else [key] if key else []
        return results.over_time(found, tables.instant(found, until) if until else None, measure, keys)

    @app.get("/api/corrections/{name}/{query}")
    def corrected(name: str, query: str, user: Any = User) -> dict[str, Any]:
        with served.query(user, name, query) as (held, _):
            ledger = Ledger(held.dags.data_folder)
        table = tables.other(ledger, ledger.layout.result(f"{query}__corrections"), f"{query}__corrections")
        return {"commits": [], "rows": [], "more": False} if table is None else quarantine.corrections(table)

    @app.get("/api/quarantine/{name}/{source}")
    def kept_out(name: str, source: str, reason: str | None = None, user: Any = User) -> dict[str, Any]:
        micros = served.held(user, name, admit_dag_id(name, source)).tick_micros(source)
        with served.source(user, name, source) as (held, _):
            ledger = Ledger(held.dags.data_folder)
        return quarantine.kept_out(ledger, source, micros, reason)


def _table(served: Served, user: Any, name: str, query: str, table: str | None) -> tables.PinnedTable | None:
    # what may take long is done by a ledger of its own, after the application has been let go
    with served.query(user, name, query) as (held, _):
        ledger = Ledger(held.dags.data_folder)
    return tables.result(ledger, query, table)


def _writes(app: FastAPI, served: Served) -> None:
    User = Depends(served.access.user)
    Own = [User, Depends(from_this_page)]

    @app.post("/api/heartbeat/{name}/{source}", dependencies=Own)
    def advance(name: str, source: str, to: Advance, user: Any = User) -> Response:
        """Moves the heartbeat of a stream or relation, for users who may edit its DAG. Going back is an error (409)."""
        from sweeparea.spark_jobs.admission.heartbeat import advance_to

        with served.source(user, name, source, "PUT") as (_, application):
            now, before = advance_to(application, source, to.instant)
        return JSONResponse({"heartbeat": now, "was": before})

    @app.post("/api/pause/{name}/{query}", dependencies=Own)
    def pause(name: str, query: str, wanted: WantedPause, user: Any = User) -> Response:
        """PAUSE or RESUME CONTINUOUS QUERY, for users who may edit its DAG."""
        from sweeparea.spark_jobs.commands.commands import StatementSession

        verb = "PAUSE" if wanted.paused else "RESUME"
        with served.query(user, name, query, "PUT") as (held, application):
            told = list(StatementSession(application).run(f"{verb} CONTINUOUS QUERY {query};"))
            held.forget()
        return JSONResponse({"told": told})
