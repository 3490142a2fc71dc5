"""The Airflow event trigger that wakes the DAGs of one application.

One poll loop per application serves all its DAGs (Airflow's shared stream). It is **level-triggered**: an event says
"this name is behind", and it is repeated while that stays true. So an event that Airflow loses, a failed run, a paused
DAG or a restarted triggerer only costs time. Events carry no authority: a task asks the ledger what to do.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from sweeparea.heartbeats import measures
from sweeparea.heartbeats.lag import LAG, changes, lags
from sweeparea.heartbeats.readiness import judge, known

if TYPE_CHECKING:
    from sweeparea.tables.publication.deployed import DeployedRow
    from sweeparea.tables.publication.incidents import Incident
    from sweeparea.tables.publication.ledger import LedgerRow

log = logging.getLogger(__name__)

MAX_REFIRE = 300.0
"""Seconds between two events for the same unchanged position, at most."""

HELD = 2.0
"""Seconds after which it is asked again whether the run has ended that holds an event back, or has begun that an event
of a group asks for."""
ALERTS = "*alerts"
"""The name under which positions say that somebody has to be alerted; nothing else can be called so."""
AT = "at"
"""In a position, where a clock stands that has only to be read."""

Position = tuple[str, dict[str, Any]]
"""A name that is behind, and where it stands."""


@dataclass(frozen=True)
class Watched:
    """What one poll loop looks at: the same for all triggers of an application, or they would not share the loop.

    data_folder  the application's data folder, where the ledger lies
    sources      per stream or relation the URI of its source Delta table
    pinned       the static relations among them: admitted once, whatever becomes of their source
    clocks       those whose heartbeat is the time at which their source is read: a clock's, or a change data feed's
    queries      per query the names of its inputs
    formats      per stream or relation FROM FORMAT its folder of files, empty where it has none; ``sources`` then has
                 the table in which it is landed
    limits       microseconds that a stream, relation or query may be behind the clock until somebody is alerted
    application  its name, which metrics have
    """

    data_folder: str
    sources: dict[str, str] = field(default_factory=dict)
    pinned: list[str] = field(default_factory=list)
    clocks: list[str] = field(default_factory=list)
    queries: dict[str, list[str]] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    application: str = ""


class BehindTrigger(BaseEventTrigger):
    """Fires while ``name`` is behind: a query behind its inputs' heartbeats, a stream behind its source table's
    versions, ``ALERTS`` behind what somebody has to be alerted of.

    While a run of the DAG ``dag_id`` is queued or running there is no event: that run does the work, and what it leaves
    is told when it has ended. ``poll`` and ``refire`` are seconds. ``watched`` has the fields of ``Watched``, in DAGs
    as JSON: Airflow goes through every value of a dictionary whenever it parses one. It and ``poll`` must be equal
    throughout an application, or its triggers would not share one loop.
    """

    def __init__(
        self, name: str, watched: Mapping[str, Any] | str, poll: float = 0.25, refire: float = 30.0, dag_id: str = ""
    ):
        super().__init__()
        self.name = name
        self.watched = watched if isinstance(watched, str) else dict(watched)
        self.poll = poll
        self.refire = refire
        self.dag_id = dag_id

    def serialize(self) -> tuple[str, dict[str, Any]]:
        kwargs = {"name": self.name, "watched": self.watched, "poll": self.poll, "refire": self.refire}
        held = {"dag_id": self.dag_id} if self.dag_id else {}
        return "sweeparea.heartbeats.trigger.BehindTrigger", {**kwargs, **held}

    def dags(self) -> Mapping[str, Sequence[str]]:
        """By name that this trigger fires for the DAGs that do its work."""
        return {self.name: [self.dag_id] if self.dag_id else []}

    def shared_stream_key(self) -> tuple[str, ...]:
        text = self.watched if isinstance(self.watched, str) else json.dumps(self.watched, sort_keys=True)
        return ("sweeparea-behind", text, str(self.poll))

    @classmethod
    async def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncIterator[Position]:
        """Who is behind, again and again: the level. Each subscriber's gates make events of it."""
        watched = kwargs["watched"]
        store = Store(Watched(**(json.loads(watched) if isinstance(watched, str) else watched)))
        metrics, sent = await asyncio.to_thread(store.metrics), float("-inf")
        while True:
            for position in (await asyncio.to_thread(store.behind_if_there)).items():
                yield position
            if metrics and time.monotonic() >= sent + measures.EVERY:
                sent = time.monotonic()
                await asyncio.to_thread(store.measure)
            await asyncio.sleep(float(kwargs["poll"]))

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Position]) -> AsyncIterator[TriggerEvent]:
        dags = self.dags()
        gates = {name: Gate(self.refire) for name in dags}
        held: dict[str, float] = {}  # by DAG that has a run, until when it is not asked for again
        async for name, position in shared_stream:
            gate, now = gates.get(name), time.monotonic()
            if gate is None or not gate.would_pass(position, now):
                continue
            if any(now < held.get(dag_id, 0.0) for dag_id in dags[name]):
                continue
            for dag_id in dags[name]:
                # in a thread that knows this loop: Airflow's answer comes through it
                if await sync_to_async(has_runs)(dag_id):
                    held[dag_id] = now + HELD
                    break
            else:
                if gate.passes(position, now):
                    yield TriggerEvent({"name": name, **position})
                    if len(dags) > 1:  # the run that comes of it does the work of the others as well
                        held[dags[name][0]] = time.monotonic() + HELD

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """A loop of its own, for a caller that does not share."""
        async for event in self.filter_shared_stream(self.open_shared_stream(self.serialize()[1])):
            yield event


class GroupTrigger(BehindTrigger):
    """Fires while one of several queries is behind, which one DAG (``dag_id``) runs together. ``members``: each with
    the DAG of its own, whose runs hold its events back as well: a backfill of one query stops no other.
    """

    def __init__(
        self,
        members: Mapping[str, str],
        watched: Mapping[str, Any] | str,
        poll: float = 0.25,
        refire: float = 30.0,
        dag_id: str = "",
    ):
        super().__init__("", watched, poll, refire, dag_id)
        self.members = dict(members)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        _, kwargs = super().serialize()
        del kwargs["name"]
        return "sweeparea.heartbeats.trigger.GroupTrigger", {"members": self.members, **kwargs}

    def dags(self) -> Mapping[str, Sequence[str]]:
        return {name: [self.dag_id, own] for name, own in self.members.items()}


def holding_back(
    head: Mapping[str, LedgerRow], query: str, inputs: Sequence[str], clocks: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """The inputs of a query among ``clocks`` that hold it at their heartbeat. ``wanted`` is how far the others are,
    None where there is no other; it says when to read again at once, not the clock itself, which always goes on: ``at``
    is where it stands.
    """
    ticks = known(head, query, inputs)
    if None in ticks.values():
        return {}
    found: dict[str, dict[str, Any]] = {}
    for name in inputs:
        others = [tick for other, tick in ticks.items() if other != name and tick is not None]
        mine, wanted = ticks[name], min(others, default=None)
        if name in clocks and mine is not None and (wanted is None or wanted > mine):
            found[name] = {"wanted": wanted, AT: mine}
    return found


class Gate:
    """Lets a position through when it is new, and again while it lasts: after ``refire`` seconds, then after twice as
    many, ..

    The growing pause keeps a slice that fails for good from failing every few seconds; a new position ends it at once.
    A clock that goes on (``AT``) is no new position, but none that fails either: it is let through every ``refire``
    seconds. A gate lives as long as its trigger, which Airflow replaces when a DAG is unpaused: so that wakes at once,
    too.
    """

    def __init__(self, refire: float):
        self.refire = refire
        self.position: dict[str, Any] | None = None
        self.at: Any = None
        self.passed, self.pause = 0.0, refire

    def would_pass(self, position: dict[str, Any], now: float) -> bool:
        """Whether the gate is open for a position."""
        pause = self.refire if position.get(AT) != self.at else self.pause
        return _without_at(position) != self.position or now >= self.passed + pause

    def passes(self, position: dict[str, Any], now: float) -> bool:
        """As ``would_pass``; what passes closes the gate behind it."""
        if not self.would_pass(position, now):
            return False
        again = _without_at(position) == self.position and position.get(AT) == self.at
        self.pause = min(2 * self.pause, max(MAX_REFIRE, self.refire)) if again else self.refire
        self.position, self.at, self.passed = _without_at(position), position.get(AT), now
        return True


def news(
    watched: Watched,
    head: Mapping[str, LedgerRow],
    deployed: Mapping[str, DeployedRow],
    open_: Mapping[str, Incident],
    now: int,
) -> dict[str, Any]:
    """The names that are too far behind the clock and nobody was alerted of (``opened``), and those of which the
    all-clear is due (``closed``), each with since when, so that the same name's next incident is another; empty:
    nothing is new.
    """
    if not watched.limits and not open_:
        return {}
    new = changes(lags(watched.limits, head, deployed, watched.queries, now), open_)
    if not new.opened and not new.closed:
        return {}
    named = {"opened": new.opened, "closed": new.closed}
    return {key: {name.removeprefix(LAG): one.since for name, one in them.items()} for key, them in named.items()}


def _without_at(position: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in position.items() if key != AT}


def has_runs(dag_id: str) -> bool:
    """Whether a run of a DAG is queued or running, as Airflow says in its triggerer; no where it cannot be asked."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    try:
        return RuntimeTaskInstance.get_dr_count(dag_id=dag_id, states=["queued", "running"]) > 0
    except Exception as error:  # events are repeated, so one too many does no harm, and none would
        log.warning("Airflow does not say whether %s runs: %s", dag_id, error)
        return False


class Store:
    """Answers who is behind. A source that cannot be read is logged, once per error, and does not hold up the
    others."""

    def __init__(self, watched: Watched):
        from sweeparea.tables.publication.deployed import Deployed
        from sweeparea.tables.publication.incidents import Incidents
        from sweeparea.tables.publication.ledger import Ledger, now_micros

        self.watched, self.clock = watched, now_micros
        self.ledger = Ledger(watched.data_folder)
        self.deployed = Deployed(watched.data_folder)
        self.incidents = Incidents(watched.data_folder)
        self.tables: dict[str, Any] = {}
        self.errors: dict[str, str] = {}

    def behind_if_there(self) -> dict[str, dict[str, Any]]:
        """``behind``; nobody is while the data folder cannot be read, which is logged, once per error: the loop goes on
        when it is there again.
        """
        try:
            found = self.behind()
        except Exception as error:  # gone, unmounted, without rights, half restored
            if self.errors.get("") != str(error):
                log.warning("The data folder %s cannot be looked at: %s", self.watched.data_folder, error)
            self.errors[""] = str(error)
            return {}
        self.errors.pop("", None)
        return found

    def metrics(self) -> bool:
        """Whether Airflow sends metrics anywhere; makes this process ready for it."""
        if not self.watched.application or not measures.on():
            return False
        measures.begin()
        return True

    def measure(self) -> None:
        """Sends how far behind everything is."""
        try:
            head = self.ledger.head()
        except Exception:  # behind_if_there tells of it
            return
        measures.send_distances(self.watched.application, head, self.watched.queries, time.time_ns() // 1000)

    def behind(self) -> dict[str, dict[str, Any]]:
        """Per name that is behind its position: ``done``/``ready`` ticks of queries (and ``corrected``, where an input
        was), ``admitted``/``version`` of streams; ``wanted`` of those that only have to be read, because a query
        waits for their clock.
        """
        head = self.ledger.head()
        found: dict[str, dict[str, Any]] = {}
        for stream, uri in self.watched.sources.items():
            row = head.get(stream)
            if row is not None and stream in self.watched.pinned:
                continue
            version = self.version(stream, uri)
            admitted = None if row is None else row.info.get("source_version")
            if version is not None and (admitted is None or version > admitted):
                found[stream] = {"admitted": admitted, "version": version}
        for stream, path in self.watched.formats.items():
            if stream not in found and not (stream in head and stream in self.watched.pinned):
                found |= self.arrived(stream, path)
        deployed = self.deployed.rows()
        if change := news(self.watched, head, deployed, self.incidents.open(), self.clock()):
            found[ALERTS] = change
        paused = {row.name for row in deployed.values() if row.paused}
        for query, inputs in self.watched.queries.items():
            if query not in paused:
                found = {**holding_back(head, query, inputs, self.watched.clocks), **found}
        for query, state in judge(head, self.watched.queries).items():
            if state.is_ready and query not in paused:
                found[query] = {key: value for key, value in asdict(state).items() if key != "corrected" or value}
        return found

    def arrived(self, stream: str, path: str) -> dict[str, dict[str, Any]]:
        """A stream whose source has something that was not landed yet."""
        from sweeparea.tables.sources.landing import arrived

        try:
            new = arrived(self.watched.sources[stream], path, self.clock() / 1e6)
        except Exception as error:  # as below
            if self.errors.get(stream) != str(error):
                log.warning("The source %s of %s cannot be looked at: %s", path, stream, error)
            self.errors[stream] = str(error)
            return {}
        return {stream: {"arrived": new}} if new else {}

    def version(self, stream: str, uri: str) -> int | None:
        from sweeparea.tables.sources.landing import LandingTable
        from sweeparea.tables.sources.source import SourceTable

        try:
            if stream not in self.tables:
                self.tables[stream] = LandingTable(uri) if stream in self.watched.formats else SourceTable(uri, None)
            version = int(self.tables[stream].version())
        except Exception as error:  # a source of another team: not there yet, moved, unreachable
            self.tables.pop(stream, None)
            if self.errors.get(stream) != str(error):
                log.warning("The source table %s of %s cannot be read: %s", uri, stream, error)
            self.errors[stream] = str(error)
            return None
        self.errors.pop(stream, None)
        return version
