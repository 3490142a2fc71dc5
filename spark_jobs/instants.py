"""Ticks as people read them and as result tables hold them."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sweeparea.operators.logical import TimeDomain


def slice_text(time_: TimeDomain, h0: int, h1: int) -> str:
    return f"({instant_text(time_, h0)}, {instant_text(time_, h1)}]"


def instant_text(time_: TimeDomain, tick: int) -> str:
    """A tick as its author would write it."""
    value = as_instant(time_, tick)
    return str(value) if isinstance(value, int) else value.isoformat(sep=" ").replace("+00:00", "")


def as_instant(time_: TimeDomain, tick: int) -> Any:
    """A tick as a value of the result tables' instant columns: a datetime (UTC), or the tick."""
    if time_.kind != "TIMESTAMP":
        return tick
    try:
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=tick * time_.chronon)
    except OverflowError:
        return tick
