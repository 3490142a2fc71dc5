"""Instants and lengths of time as the page gets them: numbers, which the browser words in its user's zone."""

from __future__ import annotations

from typing import Any

from sweeparea.heartbeats.policies import MAX_TICK
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind

Json = dict[str, Any]


def of_clock(micros: int | None) -> Json | None:
    """A time of a clock, given in microseconds since the epoch (UTC): ``ms`` since then."""
    return None if micros is None else {"ms": micros / 1000}


def of_tick(tick: int | None, micros: int | None) -> Json | None:
    """A tick: ``ms`` since the epoch where one lasts ``micros`` microseconds; ``tick`` as text, which holds numbers
    that a browser's do not.

    >>> of_tick(2, 60_000_000)
    {'tick': '2', 'ms': 120000.0}
    >>> of_tick(2, 0)
    {'tick': '2'}
    """
    if tick is None:
        return None
    return {"tick": str(tick), **({"ms": tick * micros / 1000} if micros else {})}


def tick_micros(row: LedgerRow | None, chronon: int | None) -> int | None:
    """How long a tick of a name's heartbeat lasts. A relation's count microseconds where its time is the clock's."""
    return 1 if chronon and row is not None and row.kind == NameKind.RELATION else chronon


def heartbeat(row: LedgerRow | None, chronon: int | None) -> Json | None:
    """How far a ledger row has come; None: it has not begun, or is static."""
    if row is None or row.committed is None or row.committed >= MAX_TICK:
        return None
    return of_tick(row.committed, tick_micros(row, chronon))


def length(ticks: int | None, micros: int | None) -> Json | None:
    """A number of ticks, and how many milliseconds they last."""
    if ticks is None:
        return None
    return {"ticks": str(ticks), **({"ms": ticks * micros / 1000} if micros else {})}
