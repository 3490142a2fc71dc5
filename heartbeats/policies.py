"""Heartbeat policies: from what one source version brought to the stream's next heartbeat.

A heartbeat h means that no future element has a timestamp at or below h (Arasu, Babu, Widom 2003, section 7.3). A
policy is evaluated once after each source version, in order. Whatever it answers, a heartbeat never moves backwards: a
value below the previous heartbeat is clamped to it and counted. So the heartbeat after a version depends on the
versions up to it alone, not on how many of them one run takes.

Heartbeats are ticks; commit and read times are microseconds since 1970 UTC, since versions are committed by clocks.
The policies with a state of their own have their own files: ``per_source.py``, ``user_policy.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sweeparea.infra.errors import DataError

MIN_TICK = -(1 << 62)
MAX_TICK = 1 << 62


@dataclass(frozen=True)
class VersionFacts:
    """What the admit job saw in one source version.

    max_tick             greatest tick of the elements it admitted; None if it admitted none
    max_expression_tick  greatest value of the policy's own expression or column over the admitted elements, as a tick
                         (see ``last_tick_at``); None without such an expression, or if every value was NULL
    commit_time          microseconds, the version's own instant c(v): that of its commit, made to increase
    read_time            microseconds, when the source's log was read
    sources              per source of HEARTBEAT PER ``max_expression_tick`` of its elements, where not None
    state                what the policy's decision after the version before carried (JSON values)
    """

    max_tick: int | None = None
    max_expression_tick: int | None = None
    commit_time: int | None = None
    read_time: int | None = None
    sources: Mapping[str, int] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class HeartbeatDecision:
    """The heartbeat after a version (None while the stream has none), how many values had to be clamped (0 or 1), and
    what the policy wants to see again after the next version (JSON values; the ledger keeps it).
    """

    heartbeat: int | None
    clamped: int = 0
    state: Mapping[str, Any] = field(default_factory=dict)


class Policy(Protocol):
    """``previous`` is the heartbeat before this version, None for a stream that has none yet."""

    def evaluate(self, previous: int | None, version: VersionFacts) -> HeartbeatDecision: ...


def last_tick_at(micros: int, chronon: int) -> int:
    """The last tick that lies wholly at or before an instant in microseconds, for ticks that last ``chronon``
    microseconds.

    A one-second tick ends with its last microsecond, so the instant 10:00:00.5 gives the tick of 09:59:59.

    >>> last_tick_at(10_500_000, 1_000_000), last_tick_at(10_999_999, 1_000_000), last_tick_at(7, 1)
    (9, 10, 7)
    """
    return (micros + 1) // chronon - 1


@dataclass(frozen=True)
class BoundedDisorder:
    """``HEARTBEAT FOR column AS expression``: the greatest value of the expression over all admitted elements.

    A version whose own maximum is lower is not a step back, since the maximum runs over the elements of all versions:
    nothing is counted.
    """

    def evaluate(self, previous: int | None, version: VersionFacts) -> HeartbeatDecision:
        value = version.max_expression_tick
        if value is None or (previous is not None and value <= previous):
            return HeartbeatDecision(previous)
        return advance(previous, value)


@dataclass(frozen=True)
class EachBatch:
    """``HEARTBEAT EACH BATCH``, for an ordered source: the version's greatest timestamp less one tick.

    Further elements may still come at that timestamp, none before it.
    """

    def evaluate(self, previous: int | None, version: VersionFacts) -> HeartbeatDecision:
        return advance(previous, None if version.max_tick is None else version.max_tick - 1)


@dataclass(frozen=True)
class FromColumn:
    """``HEARTBEAT FROM COLUMN column``: the source itself says how far it is; the version's greatest value counts."""

    def evaluate(self, previous: int | None, version: VersionFacts) -> HeartbeatDecision:
        return advance(previous, version.max_expression_tick)


@dataclass(frozen=True)
class FromClock:
    """``HEARTBEAT FROM CLOCK LAG interval``: the time at which the source was read, less the lag.

    ``lag`` and ``chronon`` are microseconds. What is published once a run has taken all versions, and also when a read
    brought none, is the read time less the lag (``published``). After a version that others may follow in the same run
    it is the version's own instant less the lag, since those are not late for having waited; a source's clock that runs
    ahead of the reader's counts as the reader's.
    """

    lag: int
    chronon: int = 1

    def evaluate(self, previous: int | None, version: VersionFacts) -> HeartbeatDecision:
        known = [time for time in (version.commit_time, version.read_time) if time is not None]
        return advance(previous, last_tick_at(min(known) - self.lag, self.chronon) if known else None)

    def published(self, previous: int | None, read_time: int) -> HeartbeatDecision:
        """The heartbeat when all that the source had at ``read_time`` has been taken."""
        return advance(previous, last_tick_at(read_time - self.lag, self.chronon))


@dataclass(frozen=True)
class Manual:
    """``HEARTBEAT MANUAL``: versions never move it, only a person does, by command or REST."""

    def evaluate(self, previous: int | None, version: VersionFacts) -> HeartbeatDecision:
        return HeartbeatDecision(previous)

    def set(
        self, stream: str, previous: int | None, value: int, shown: Callable[[int], str] = "tick {}".format
    ) -> HeartbeatDecision:
        """The heartbeat that a person asks for. Going back is an error here, never clamped: someone meant something
        else."""
        if not MIN_TICK <= value <= MAX_TICK:
            raise DataError(
                f"Stream {stream} cannot have the heartbeat {shown(value)}: time is from -2^62 to 2^62 ticks. Give at"
                f" most {MAX_TICK}, for a stream that has ended."
            )
        if previous is not None and value < previous:
            raise DataError(
                f"The heartbeat of stream {stream} stands at {shown(previous)} and cannot go back to {shown(value)}: "
                f"results up to {shown(previous)} may have been published. Give at least that, or correct the rows "
                "themselves (LATE REPAIR, or release them from quarantine)."
            )
        return advance(previous, value)


def advance(previous: int | None, value: int | None) -> HeartbeatDecision:
    """Moves a heartbeat to ``value`` but never backwards, and never out of the time domain."""
    if value is None:
        return HeartbeatDecision(previous)
    value = max(MIN_TICK, min(MAX_TICK, value))
    if previous is not None and value < previous:
        return HeartbeatDecision(previous, clamped=1)
    return HeartbeatDecision(value)
