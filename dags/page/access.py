"""Who may see and do what: asked of whatever serves the page, Airflow's auth manager or a test's."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any, Protocol
from urllib.parse import urlsplit

from fastapi import HTTPException, Request

HEADER = "X-SweepArea"
"""A page of another origin cannot send it without being asked for first (CORS), and nobody allows it."""


class Access(Protocol):
    """``user`` is a dependency of FastAPI's that gives the user of a request, or refuses it (401)."""

    @property
    def user(self) -> Callable[..., Any]: ...

    def allowed(self, user: Any, dag_ids: Set[str], method: str) -> set[str]:
        """Those of the DAGs that a user may see (``GET``) or edit (``PUT``), whether Airflow has them or not."""
        ...

    def may_run(self, user: Any, dag_ids: Set[str]) -> set[str]:
        """Those of the DAGs of which a user may start runs."""
        ...


def from_this_page(request: Request) -> None:
    """Refuses (403, 415) a write that another site may have made a browser send with its cookie: it has to be JSON,
    carry our header and come from this origin. A request that brings a token of its own is nobody's trick.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "Send JSON.")
    if request.headers.get("authorization", "").lower().startswith("bearer "):
        return
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    strange = site not in (None, "same-origin", "none")
    if site is None and origin is not None:  # an old browser
        strange = urlsplit(origin).netloc != request.headers.get("host")
    if strange or HEADER.lower() not in request.headers:
        raise HTTPException(403, "This can be sent by the page itself only.")
