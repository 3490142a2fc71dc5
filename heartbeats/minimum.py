"""A query's heartbeat: the minimum over its inputs (Arasu, Babu, Widom 2003, section 7.3)."""

from __future__ import annotations

from collections.abc import Mapping

from sweeparea.infra.errors import SweepAreaError

INFINITE = (1 << 63) - 1
"""The heartbeat of an input that never changes again (a static relation). The same number as an interval without
end."""


class NoTimeError(SweepAreaError):
    """A query none of whose inputs moves time."""

    type = "RefusedError"


def query_heartbeat(query: str, inputs: Mapping[str, int | None]) -> int | None:
    """The greatest instant up to which all inputs of ``query`` are known; None while some input has no heartbeat yet.

    Raises NoTimeError if all inputs are infinite: such a query would have a single, never ending slice.
    """
    if all(heartbeat == INFINITE for heartbeat in inputs.values()):
        names = ", ".join(sorted(inputs)) or "none at all"
        raise NoTimeError(
            f"The continuous query {query} reads only inputs that never change (static relations: {names}), so no "
            "heartbeat would ever drive it. Let it read a stream or a relation with HISTORY, CHANGES or CHANGE DATA "
            "FEED; for a single answer over static tables plain SQL is enough."
        )
    heartbeats = list(inputs.values())
    return None if None in heartbeats else min(h for h in heartbeats if h is not None)
