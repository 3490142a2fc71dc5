"""Ticks as people read them and as result tables hold them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

from sweeparea.infra.errors import UsageError
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.spark_jobs.spark.json_values import micros_of


def tick_of(text: str, time_: TimeDomain) -> int:
    """The tick of an instant that a person wrote: 2013-01-31 12:00:00 (UTC), or a tick where time is BIGINT.
    UsageError if it is none.
    """
    if time_.kind == TimeKind.BIGINT:
        if text.lstrip("-").isdigit():
            return int(text)
        raise UsageError(f"{text} is no tick: time is counted in BIGINT ticks here, so give a whole number.")
    return instant_of(text) // time_.chronon


def instant_of(text: str) -> int:
    """Microseconds since 1970 UTC of an instant that a person wrote. UsageError if it is none."""
    try:
        return micros_of(text)
    except ValueError:
        raise UsageError(f"{text} is no instant. Write it as 2013-01-31 or 2013-01-31 12:00:00 (UTC).") from None


def slice_text(time_: TimeDomain, h0: int, h1: int) -> str:
    return f"({instant_text(time_, h0)}, {instant_text(time_, h1)}]"


def instant_text(time_: TimeDomain, tick: int) -> str:
    """A tick as its author would write it."""
    value = as_instant(time_, tick)
    return str(value) if isinstance(value, int) else value.isoformat(sep=" ").replace("+00:00", "")


def stored_type(time_: TimeDomain) -> pa.DataType:
    """The type of the result tables' instant columns."""
    return pa.timestamp("us", tz="UTC") if time_.kind == TimeKind.TIMESTAMP else pa.int64()


def as_instant(time_: TimeDomain, tick: int) -> Any:
    """A tick as a value of the result tables' instant columns: a datetime (UTC), or the tick."""
    if time_.kind != TimeKind.TIMESTAMP:
        return tick
    try:
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=tick * time_.chronon)
    except OverflowError:
        return tick
