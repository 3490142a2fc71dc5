"""Heartbeats of a stream: its policy, and commits that move the heartbeat without a new version of the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from sweeparea.cql.syntax.statements import HeartbeatKind
from sweeparea.heartbeats import policies
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.time.domain import TimeKind
from sweeparea.spark_jobs.admission.judging.policy import set_back
from sweeparea.spark_jobs.admission.judging.state import StreamState
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.spark.errors import NotReadyError
from sweeparea.spark_jobs.spark.instants import instant_of, instant_text, tick_of
from sweeparea.tables.errors import LostRace
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication, recover

TRIES = 5
"""A person's own move of a heartbeat gives way to a run that commits at the same time so many times."""


def advance_to(application: Application, name: str, instant: str) -> tuple[str, str | None]:
    """As ``advance``, to an instant as a person writes it; returns the heartbeat and what it was (None: none), as
    texts.
    """
    application.source(name)
    time = application.plans.input_schema(name).time
    tick = tick_of(instant, time)
    if time.kind == TimeKind.TIMESTAMP:  # the instant's own tick may not be over
        tick = policies.last_tick_at(instant_of(instant), time.chronon)
    before = advance(application, name, tick)
    return instant_text(time, tick), None if before is None else instant_text(time, before)


def advance(application: Application, name: str, heartbeat: int) -> int | None:
    """Moves the heartbeat of a stream or relation declared HEARTBEAT MANUAL to a tick; returns what it was.

    Going back is an error, and so is one whose heartbeat moves by itself.
    """
    if name in application.catalog.relations:
        from sweeparea.spark_jobs.admission.relation.admit_relation import advance_relation

        return advance_relation(application, name, heartbeat)
    declared = application.stream(name)
    if declared.heartbeat is None or declared.heartbeat.kind != HeartbeatKind.MANUAL:
        raise SweepAreaError(
            f"Stream {name} ({declared.place}) moves its heartbeat by its own policy. Only a stream declared HEARTBEAT"
            " MANUAL is moved by hand."
        )
    domain = application.plans.input_schema(name).time
    recover(str(application.data), application.ledger, [name])
    for tried in range(TRIES):
        row = application.ledger.head().get(name)
        if row is None:
            raise NotReadyError(f"Stream {name} has not been admitted yet. Run `{application.command('admit', name)}`.")
        publication = Publication(str(application.data), application.ledger, name, NameKind.STREAM, row.registration)
        publication.begin()
        state = StreamState.of(publication.previous)
        decision = policies.Manual().set(name, state.heartbeat, heartbeat, partial(instant_text, domain))
        try:
            _commit(publication, state, decision)
        except LostRace:
            if tried + 1 == TRIES:
                raise
            continue
        return state.heartbeat
    return None


def publish_clock(
    application: Application,
    name: str,
    registration: str,
    read_time: int,
    tell: Callable[[str], None] = lambda text: None,
) -> int | None:
    """A clock goes on also where the source brought nothing new: publishes the read time (microseconds) less the lag.

    ``read_time`` is when the source's log was read: what was committed since is not known. Returns the heartbeat.
    ``tell`` is told of a clock that was set back.
    """
    declared = application.stream(name)
    publication = Publication(str(application.data), application.ledger, name, NameKind.STREAM, registration)
    publication.begin()
    state = StreamState.of(publication.previous)
    spec = declared.heartbeat
    if spec is None or spec.kind != HeartbeatKind.CLOCK or publication.previous is None:
        return state.heartbeat
    time = application.plans.input_schema(name).time
    decision = policies.FromClock(spec.lag, time.chronon).published(state.heartbeat, read_time)
    if back := set_back(time, decision.heartbeat, read_time, spec.lag):
        tell(f"{name}: {back}")
    if (decision.heartbeat, decision.clamped) != (state.heartbeat, 0):
        _commit(publication, state, decision)
    return decision.heartbeat


def _commit(publication: Publication, state: StreamState, decision: policies.HeartbeatDecision) -> None:
    counts = Counter(clamped=decision.clamped)
    publication.commit(committed=decision.heartbeat, pins={}, info=state.as_info(counts))
