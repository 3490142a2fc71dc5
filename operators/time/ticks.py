"""The time domain: discrete instants called ticks, half-open intervals, one infinity.

A tick is a BIGINT in ``[MIN_TICK, MAX_TICK]``; what one tick lasts (its *chronon*) is declared per stream and never
known here. ``INF`` stands for an interval that does not end; arithmetic that leaves the domain saturates to it.
Every interval is ``[ts, te)`` (Kraemer & Seeger 2005, section 2.4). The instants themselves are those of Patroumpas &
Sellis 2006, section 2.1, whose scopes are closed on both sides: ``[a, b]`` of theirs is ``[a, b + 1)``.
"""

from __future__ import annotations

MIN_TICK = -(1 << 62)
MAX_TICK = 1 << 62
INF = (1 << 63) - 1
"""The end of an interval that does not end. Larger than every tick; stored as a plain BIGINT inside the engine."""


def end_of(start: int, length: int) -> int:
    """The end of an interval that lasts ``length`` ticks, saturated to ``INF``.

    >>> end_of(5, 10)
    15
    >>> end_of(MAX_TICK, 1) == INF
    True
    """
    end = start + length
    return INF if end > MAX_TICK else end
