"""How far streams and queries are behind the wall clock, and which are further behind than they may be.

The lag of a stream is the time from its heartbeat until now, that of a query the time from its committed instant. Time
that is counted in BIGINT ticks is none of the wall clock's: there it is the time since the last commit. What never had
a heartbeat is behind since it was deployed. A name whose instant lies in the future tells of a clock that was set back:
nobody knows how far behind it is, so nothing is over by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sweeparea.heartbeats.minimum import INFINITE
from sweeparea.heartbeats.readiness import known
from sweeparea.tables.publication.name_kinds import NameKind

if TYPE_CHECKING:
    from sweeparea.tables.publication.deployed import DeployedRow
    from sweeparea.tables.publication.incidents import Incident
    from sweeparea.tables.publication.ledger import LedgerRow

LAG = "lag "
"""How the names of incidents of this kind begin."""


@dataclass(frozen=True)
class Lag:
    """``since``: the heartbeat or committed instant, in microseconds since the epoch (UTC); ``limit`` in microseconds;
    ``at``: when it was looked at; ``ticks``: it is the time since the last commit, for its time is no clock's;
    ``holding``: the inputs that hold a query where it is.
    """

    name: str
    kind: NameKind
    since: int
    limit: int
    at: int
    ticks: bool = False
    never: bool = False
    holding: tuple[str, ...] = ()

    @property
    def micros(self) -> int:
        """The lag itself."""
        return self.at - self.since

    @property
    def too_long(self) -> bool:
        """Whether somebody has to be alerted."""
        return self.micros > self.limit

    @property
    def words(self) -> str:
        """What is told of it, without how long it is by now: the same text as long as it lasts."""
        allowed = timedelta(microseconds=self.limit)
        what = "The continuous query" if self.kind == NameKind.QUERY else f"The {self.kind.value}"
        if self.never:
            fault = f"has not begun {allowed} after it was deployed"
        elif self.ticks:
            fault = f"has not advanced for more than {allowed}"
        else:
            fault = f"is more than {allowed} behind the clock"
        why = f"; it waits for {', '.join(self.holding)}" if self.holding else ""
        return f"{what} {self.name} {fault}{why}."


def chronons(head: Mapping[str, LedgerRow], queries: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Microseconds a tick lasts, 0 for BIGINT time: what a name's ledger row tells, else what its query has.

    A query and its streams share a chronon; a relation takes the query's and counts microseconds itself. ``queries``
    are names with those of their inputs.
    """
    found = {name: row.info["chronon"] for name, row in head.items() if row.info.get("chronon") is not None}
    relations = {name for name, row in head.items() if row.kind == NameKind.RELATION}
    together = [[query, *(name for name in inputs if name not in relations)] for query, inputs in queries.items()]
    known_before = -1
    while known_before < len(found):  # as often as a chronon travels from query to query
        known_before = len(found)
        for names in together:
            missing = [name for name in names if name not in found]
            if missing and len(missing) < len(names):
                found |= dict.fromkeys(missing, next(found[name] for name in names if name in found))
    return found


def lags(
    limits: Mapping[str, int],
    head: Mapping[str, LedgerRow],
    deployed: Mapping[str, DeployedRow],
    queries: Mapping[str, Sequence[str]],
    now: int,
) -> dict[str, Lag]:
    """The lag of each name of ``limits`` (microseconds) that is deployed, not paused and no static relation, at ``now``
    (microseconds since the epoch, UTC).
    """
    ticks_of = chronons(head, queries)
    found: dict[str, Lag] = {}
    for name, limit in limits.items():
        registered, row = deployed.get(name), head.get(name)
        if registered is None or registered.paused or (row is not None and row.committed == INFINITE):
            continue
        if row is None or row.committed is None:
            lag = Lag(name, registered.kind, registered.deployed_at, limit, now, never=True)
        elif chronon := ticks_of.get(name):
            micros = 1 if row.kind == NameKind.RELATION else chronon
            lag = Lag(name, row.kind, row.committed * micros, limit, now)
        else:
            lag = Lag(name, row.kind, row.at, limit, now, ticks=True)
        found[name] = lag
    return {
        name: replace(lag, holding=_holding(head, name, queries[name])) if lag.too_long and name in queries else lag
        for name, lag in found.items()
    }


@dataclass(frozen=True)
class Changes:
    """Since somebody was told last: by name of an incident the lags that are ``late`` now, those among them that nobody
    knows of (``opened``), and incidents of which the all-clear is due (``closed``).
    """

    late: dict[str, Lag]
    opened: dict[str, Lag]
    closed: dict[str, Incident]


def changes(found: Mapping[str, Lag], open_: Mapping[str, Incident]) -> Changes:
    """What has changed between the lags that were ``found`` and the incidents that are open, of any kind."""
    late = {f"{LAG}{name}": lag for name, lag in found.items() if lag.too_long}
    unknown = {f"{LAG}{name}" for name, lag in found.items() if lag.micros < 0}
    told = {name: incident for name, incident in open_.items() if name.startswith(LAG)}
    return Changes(
        late,
        {name: lag for name, lag in late.items() if name not in told},
        {name: incident for name, incident in told.items() if name not in late and name not in unknown},
    )


def _holding(head: Mapping[str, LedgerRow], query: str, inputs: Sequence[str]) -> tuple[str, ...]:
    """The inputs behind which a query cannot go."""
    done = head[query].committed if query in head else None
    ticks = known(head, query, inputs)
    if done is None:
        return tuple(name for name, tick in ticks.items() if tick is None)
    return tuple(name for name, tick in ticks.items() if tick is None or tick <= done)
