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


def own_ticks(low: int | None, high: int | None, scale: int) -> tuple[int | None, int | None]:
    """The range of ticks of which ``scale`` make one of ``low`` to ``high`` (both inclusive, None: open).

    >>> own_ticks(2, 3, 10), own_ticks(None, -1, 10), own_ticks(5, 5, 1)
    ((20, 39), (None, -1), (5, 5))
    """
    # beyond the time domain there are no rows
    least, greatest = (None if x is None or (abs(x) >= MAX_TICK // scale and scale > 1) else x for x in (low, high))
    return None if least is None else least * scale, None if greatest is None else greatest * scale + scale - 1
