"""Who is alerted of what: a name too far behind the clock, a task that has failed, an expectation that is not met; once
an incident, with an all-clear.

``notify = 'alerts:on_call'`` names a notifier of Airflow's, a list of them, or a function of the context, in a Python
file beside the ``.cql`` files. It is found when there is something to say, and gets the task's context with one entry
more, ``alert``, so that a notifier's templates can say ``{{ alert.subject }}`` and ``{{ alert.text }}``.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sweeparea.infra import environments
from sweeparea.infra.errors import UsageError

if TYPE_CHECKING:
    from sweeparea.dags.model import ApplicationDags
    from sweeparea.tables.publication.incidents import Incident, Incidents

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Alert:
    """``opened`` and ``closed`` are texts, one an incident; ``subject`` is a line, ``text`` all of it."""

    application: str
    opened: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()

    @property
    def over(self) -> bool:
        """Whether it is an all-clear and nothing else."""
        return not self.opened

    @property
    def subject(self) -> str:
        lines = self.opened or self.closed
        first, more = next(iter(lines), ""), f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        return f"SweepArea {self.application}: {'all clear: ' if self.over else ''}{first}{more}"

    @property
    def text(self) -> str:
        return "\n".join((*self.opened, *(f"All clear: {line}" for line in self.closed)))


def lag(application: ApplicationDags, context: Any) -> dict[str, Any]:
    """Alerts of what is too far behind the clock since this was asked last, and of what is not any more. What was told
    is kept after it was told: a notifier that fails is tried again.
    """
    from sweeparea.heartbeats.lag import LAG, changes, lags
    from sweeparea.heartbeats.trigger import Watched
    from sweeparea.tables.publication.deployed import Deployed
    from sweeparea.tables.publication.incidents import Incident
    from sweeparea.tables.publication.ledger import Ledger, now_micros

    now, watched = now_micros(), Watched(**application.watched())
    head, deployed = Ledger(watched.data_folder).head(), Deployed(watched.data_folder).rows()
    incidents = _incidents(application)
    found = changes(lags(watched.limits, head, deployed, watched.queries, now), incidents.open())
    opened, closed = found.opened, found.closed
    for target in dict.fromkeys(application.notified(name.removeprefix(LAG)) for name in (*opened, *closed)):
        new = {n: lag for n, lag in opened.items() if application.notified(n.removeprefix(LAG)) == target}
        over = {n: row for n, row in closed.items() if application.notified(n.removeprefix(LAG)) == target}
        told = [f"{lag.words} It is {timedelta(seconds=lag.micros // 1_000_000)} behind now." for lag in new.values()]
        alert = Alert(application.name, tuple(told), tuple(row.text for row in over.values()))
        notify(application.name, target, context, alert)
        incidents.change([Incident(name, lag.words, now) for name, lag in new.items()], over)
    return {"opened": sorted(opened), "closed": sorted(closed), "open": sorted(found.late)}


def callbacks(
    application: ApplicationDags, target: str | None, names: Sequence[str] = ()
) -> dict[str, Callable[[Any], None]]:
    """What a task that works on ``names`` does when it has failed for good, and when it has succeeded; nothing where
    nobody is named.
    """
    if target is None:
        return {}

    def succeeded(context: Any) -> None:
        recovered(application, target, context)
        quality(application, target, names, context)

    def ended(context: Any) -> None:
        failed(application, target, context)
        quality(application, target, names, context)

    return {"on_failure_callback": ended, "on_success_callback": succeeded}


def quality(application: ApplicationDags, target: str, names: Sequence[str], context: Any) -> None:
    """Alerts of expectations that the commits of a run did not meet, and of those that are met again. What was met in
    the end, and not in between, is told as both.
    """
    if not names or application.alert_quality == "off":
        return
    from sweeparea.quality.incidents import QUALITY, states
    from sweeparea.tables.publication.incidents import Incident
    from sweeparea.tables.publication.ledger import Ledger, now_micros

    begun = _begun(context)
    ledger, incidents = Ledger(application.data_folder), _incidents(application)
    open_ = {name: row for name, row in incidents.open().items() if name.startswith(QUALITY)}
    opened: dict[str, str] = {}
    closed: dict[str, str] = {}
    for name in names:
        rows = ledger.history(name, since=begun)
        for incident, state in states(rows, application.alert_quality == "all").items():
            if state.broken is not None and incident not in open_:
                opened[incident] = state.broken
            if state.met and (incident in open_ or incident in opened):
                closed[incident] = open_[incident].text if incident in open_ else opened[incident]
    if not opened and not closed:
        return
    notify(application.name, target, context, Alert(application.name, tuple(opened.values()), tuple(closed.values())))
    now = now_micros()
    incidents.change([Incident(name, text, now) for name, text in opened.items() if name not in closed], closed)


def quality_page(app: str, name: str) -> str:
    """The path of the page with a name's verdicts, on Airflow's server."""
    return f"/sweeparea/quality/{app}/{name}"


def _begun(context: Any) -> int:
    """When the run of a task's context began: microseconds since the epoch."""
    dates = [getattr(context.get(key), "start_date", None) for key in ("dag_run", "ti")]
    known = [at for at in dates if at is not None]
    return int(min(known).timestamp() * 1_000_000) if known else 0


def failed(application: ApplicationDags, target: str, context: Any) -> None:
    """Alerts of a task that has failed, unless its DAG had failed before."""
    from sweeparea.tables.publication.incidents import Incident
    from sweeparea.tables.publication.ledger import now_micros

    ti = context["ti"]
    incidents, name = _incidents(application), f"failed {ti.dag_id}"
    if name in incidents.open():
        return
    error = context.get("exception")
    why = "" if error is None else f" {type(error).__name__}: {error}"
    text = f"The task {ti.task_id} of the DAG {ti.dag_id} has failed (run {ti.run_id}).{why}"
    notify(application.name, target, context, Alert(application.name, opened=(text,)))
    incidents.change([Incident(name, text, now_micros())])


def recovered(application: ApplicationDags, target: str, context: Any) -> None:
    """The all-clear of a DAG that had failed."""
    ti = context["ti"]
    incidents, name = _incidents(application), f"failed {ti.dag_id}"
    incident: Incident | None = incidents.open().get(name)
    if incident is not None:
        alert = Alert(application.name, closed=(f"The DAG {ti.dag_id} succeeded again. {incident.text}",))
        notify(application.name, target, context, alert)
        incidents.change(closed=[name])


def _incidents(application: ApplicationDags) -> Incidents:
    from sweeparea.tables.publication.incidents import Incidents

    return Incidents(application.data_folder)


def notify(app: str, target: str | None, context: Any, alert: Alert) -> None:
    """Sends an alert to whom ``target`` names; without one it stands in the log alone. Errors are raised."""
    (log.info if alert.over else log.warning)("%s", alert.text)
    for one in [] if target is None else found(app, target):
        # rendering its templates changes a notifier for good
        copy.copy(one)({**context, "alert": alert})


def found(app: str, target: str) -> Sequence[Callable[[Any], Any]]:
    """The notifiers that ``module:object`` names among an application's files. UsageError where it names none."""
    from sweeparea.operators import user
    from sweeparea.operators.user_code.user_modules import Modules

    folder = environments.located(app)[0]
    try:
        named = user.find(target, Modules.of(folder, target))
    except user.UserCodeError as error:
        raise UsageError(f"notify = {target!r}: {error}") from error
    several = list(named) if isinstance(named, (list, tuple)) else [named]
    if not several or not all(callable(one) for one in several):
        raise UsageError(
            f"notify = {target!r} names {named!r}, which is no notifier: name an object such as SmtpNotifier(to=..), a"
            " list of these, or a function of the context."
        )
    return several
