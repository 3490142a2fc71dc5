"""What operator and sensor of DAGs of one's own have in common: an application's query, and how far it is."""

from __future__ import annotations

from datetime import datetime
from os import fspath
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from sweeparea.dags.model import ApplicationDags, load
from sweeparea.heartbeats.result import Reached
from sweeparea.heartbeats.result_trigger import ResultTrigger
from sweeparea.infra.errors import SweepAreaError, UsageError


def text_of(instant: Any) -> str | None:
    """An instant as a template, a datetime or a tick as text."""
    return instant.isoformat() if isinstance(instant, datetime) else None if instant is None else str(instant)


def opened(application: Any, query: str) -> ApplicationDags:
    """The application of a task. AirflowFailException where it cannot be read, or has no such query."""
    try:
        found = load(fspath(application))
    except SweepAreaError as error:
        raise AirflowFailException(str(error)) from error
    if query not in found.queries:
        known = ", ".join(found.queries) or "none"
        raise AirflowFailException(
            f"The application {found.name} has no continuous query {query!r}. There are: {known}."
        )
    return found


def trigger_of(application: ApplicationDags, query: str, up_to: str, poll: float, of_inputs: bool) -> ResultTrigger:
    """The trigger that waits for a query."""
    return ResultTrigger(
        application.data_folder, query, up_to, application.queries[query].inputs, poll=poll, of_inputs=of_inputs
    )


def look(trigger: ResultTrigger) -> Reached:
    """How far the query is. AirflowFailException where it will never be."""
    try:
        return trigger.look()
    except UsageError as error:
        raise AirflowFailException(str(error)) from error


def require_reached(event: Any) -> None:
    """Raises what a trigger could not find out."""
    if "error" in (event or {}):
        raise (AirflowFailException if event.get("final") else AirflowException)(event["error"])
