"""``HEARTBEAT PER column AS expression [IDLE AFTER i]``: many sources in one stream, each with a progress of its own.

The heartbeat is the minimum over the sources of the greatest value of the expression that each has brought; a source
that has brought nothing for IDLE AFTER is left out until it brings something again.
"""

from __future__ import annotations

from dataclasses import dataclass

from sweeparea.heartbeats.policies import HeartbeatDecision, VersionFacts, advance
from sweeparea.infra.errors import SweepAreaError

MAX_SOURCES = 10_000
"""Sources that a stream's ledger row keeps: it is rewritten with every commit of the application."""


@dataclass(frozen=True)
class PerSource:
    """``idle``: microseconds of IDLE AFTER, None if no source is ever left out. ``stream`` is its name, for errors.

    Idle time is counted by the versions' own instants: a source is idle after version v if c(v) lies ``idle`` or more
    after c of the last version in which it brought an element. While all are idle the heartbeat stands still. The state
    is per source ``[greatest value, c of the last version with an element]``. An idle source whose greatest value the
    heartbeat has reached is forgotten, which changes nothing: whatever it brings later, a value that it brought before
    could not have held the heartbeat back any more. So the state is as large as the number of sources that are alive.
    """

    idle: int | None = None
    stream: str = ""

    def evaluate(self, previous: int | None, version: VersionFacts) -> HeartbeatDecision:
        now = version.commit_time or 0
        known: dict[str, list[int]] = {key: list(value) for key, value in version.state.get("sources", {}).items()}
        for key, tick in version.sources.items():
            known[key] = [max(tick, known[key][0]) if key in known else tick, now]
        alive = {key: tick for key, (tick, last) in known.items() if self.idle is None or now - last < self.idle}
        least = min(alive.values(), default=None)
        # a source that is new or was idle may be behind the others: its elements are late, the heartbeat stays
        decision = advance(previous, least if previous is None or least is None else max(least, previous))
        clamped = int(least is not None and previous is not None and least < previous)
        h = decision.heartbeat
        kept = {key: value for key, value in known.items() if key in alive or h is None or value[0] > h}
        if len(kept) > MAX_SOURCES:
            raise SweepAreaError(
                f"Stream {self.stream}: HEARTBEAT PER has {len(kept):,} sources that are not idle, and their progress"
                f" is kept for at most {MAX_SOURCES:,}. Nothing of this version was admitted. Ways out: leave out"
                " sources that went silent (IDLE AFTER), take a coarser column (a site, not a device), or one bound"
                " for all of them (HEARTBEAT FOR)."
            )
        return HeartbeatDecision(h, clamped, {"sources": kept})

    def waits_for(self, state: dict[str, list[int]]) -> tuple[str, int] | None:
        """The source that holds the heartbeat back and its value; None before any source is known."""
        return min(((key, value[0]) for key, value in state.items()), key=lambda pair: pair[1], default=None)
