"""Calendar buckets against the wall clock, read minute by minute, and Calendar windows against the buckets."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.time import wall_clock
from sweeparea.operators.time.ticks import INF, MAX_TICK, MIN_TICK
from sweeparea.operators.windows import Calendar

HOUR = 3_600_000_000
DAY = 24 * HOUR


def micros(text: str) -> int:
    """Of an instant with an offset."""
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def begun(local: datetime, unit: str) -> datetime:
    """The start of the unit, on the wall clock."""
    match unit:
        case "minute":
            return local.replace(second=0, microsecond=0)
        case "hour":
            return local.replace(minute=0, second=0, microsecond=0)
    day = local.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "week":
            return day - timedelta(days=day.isoweekday() - 1)
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "year":
            return day.replace(month=1, day=1)
    return day


def starts(low: str, high: str, step: timedelta, unit: str, zone: str) -> list[int]:
    """The instants at which a bucket begins: the clock shows a unit's start, or has come further than ever; of a day
    and longer only the latter.
    """
    found = []
    at, end = datetime.fromisoformat(low).astimezone(UTC), datetime.fromisoformat(high)
    furthest = None
    while at <= end:
        local = at.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        start = begun(local, unit)
        if furthest is not None and (start > furthest or (unit in ("minute", "hour") and local == start)):
            found.append((at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))
        furthest = start if furthest is None else max(furthest, start)
        at += step
    return found


MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
SCANS = [
    ("2024-03-09T00:00:00Z", "2024-03-12T00:00:00Z", MINUTE, "America/New_York"),  # 23 hours
    ("2024-11-02T00:00:00Z", "2024-11-05T12:00:00Z", MINUTE, "America/New_York"),  # 25 hours
    ("2024-03-30T00:00:00Z", "2024-04-02T00:00:00Z", MINUTE, "Europe/Berlin"),
    ("2024-10-26T00:00:00Z", "2024-10-29T00:00:00Z", MINUTE, "Europe/Berlin"),
    ("2024-04-06T00:00:00Z", "2024-04-08T00:00:00Z", MINUTE, "Australia/Lord_Howe"),  # half an hour again
    ("2024-10-05T00:00:00Z", "2024-10-07T00:00:00Z", MINUTE, "Australia/Lord_Howe"),  # half an hour skipped
    ("2018-11-03T00:00:00Z", "2018-11-06T00:00:00Z", MINUTE, "America/Sao_Paulo"),  # no midnight
    ("2018-02-16T00:00:00Z", "2018-02-20T00:00:00Z", MINUTE, "America/Sao_Paulo"),  # two evenings
    ("2024-11-02T00:00:00Z", "2024-11-05T00:00:00Z", MINUTE, "America/Havana"),  # two midnights
    ("2006-10-28T00:00:00Z", "2006-10-31T00:00:00Z", MINUTE, "America/St_Johns"),  # back over midnight
    ("2011-12-28T00:00:00Z", "2012-01-02T00:00:00Z", MINUTE, "Pacific/Apia"),  # a day that never was
    ("2024-02-27T00:00:00Z", "2024-03-03T00:00:00Z", MINUTE, "Asia/Kathmandu"),
    ("1883-11-18T16:00:00Z", "1883-11-18T19:00:00Z", SECOND, "America/New_York"),  # the first common time
]


@pytest.mark.parametrize("unit", ["minute", "hour", "day", "week", "month", "quarter", "year"])
@pytest.mark.parametrize(("low", "high", "step", "zone"), SCANS)
def test_buckets_follow_the_wall_clock(low, high, step, zone, unit):
    if unit == "minute" and step is MINUTE:
        pytest.skip("finer than the scan")
    found = starts(low, high, step, unit, zone)
    for start, end in itertools.pairwise(found):
        for inside in (start, start + 1, (start + end) // 2, end - 1):
            assert wall_clock.bucket(inside, unit, zone) == (start, end)


def test_a_skipped_midnight_counts_by_the_offset_before():
    # Toronto, 30 March 1919: from 23:30 straight to 00:30
    start, end = wall_clock.bucket(micros("1919-03-31T12:00:00-04:00"), "day", "America/Toronto")
    assert (start, end) == (micros("1919-03-31T00:00:00-05:00"), micros("1919-04-01T00:00:00-04:00"))
    assert wall_clock.bucket(start - 1, "day", "America/Toronto")[1] == start


ANY = st.integers(-(1 << 62), 1 << 62) | st.integers(-(1 << 52), 1 << 52)
UNIT = st.sampled_from(wall_clock.UNITS)
ZONE = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])


@settings(max_examples=500, deadline=None)
@given(ANY, UNIT, ZONE)
def test_buckets_follow_each_other(instant, unit, zone):
    start, end = wall_clock.bucket(instant, unit, zone)
    assert start <= instant < end
    assert wall_clock.bucket(start, unit, zone) == wall_clock.bucket(end - 1, unit, zone) == (start, end)
    assert wall_clock.bucket(end, unit, zone)[0] == end
    assert wall_clock.bucket(start - 1, unit, zone)[1] == start
    assert end - start <= wall_clock.longest(unit)


@settings(max_examples=500, deadline=None)
@given(st.integers(MIN_TICK, MAX_TICK) | st.integers(-(1 << 45), 1 << 45), UNIT, ZONE, st.sampled_from([1, 1000, HOUR]))
def test_a_calendar_window_is_visible_from_bucket_to_bucket(s, unit, zone, chronon):
    window = Calendar(unit, zone, chronon)
    visible = window.interval(s)
    if abs(s) > wall_clock.RANGE // chronon:
        assert visible is None
        return
    end = wall_clock.bucket(s * chronon, unit, zone)[1]
    first = s  # the bucket's last tick
    while (first + 1) * chronon < end:
        first = end // chronon - 1 if (first + 2) * chronon < end else first + 1
    if visible is None:
        assert first > MAX_TICK
        return
    ts, te = visible
    assert ts == first
    assert te - s <= window.reach or te == INF
    if te < INF:
        assert te == window._next(ts + 1) - 1
    ((start, past, *shown),) = window.buckets(s)
    assert tuple(shown) == visible
    assert past == ts + 1
    assert wall_clock.bucket(start * chronon, unit, zone) == wall_clock.bucket(s * chronon, unit, zone)
    assert (start - 1) * chronon < wall_clock.bucket(s * chronon, unit, zone)[0]


def test_days_of_23_and_25_hours():
    window = Calendar("day", "America/New_York")
    short, long = micros("2024-03-10T12:00:00-04:00"), micros("2024-11-03T12:00:00-05:00")
    assert [p - f for f, p, _, _ in window.buckets(short)] == [23 * HOUR]
    assert [p - f for f, p, _, _ in window.buckets(long)] == [25 * HOUR]
    # what happened on the day before the short one shows from that day's end for 23 hours
    ts, te = window.interval(short - DAY) or (0, 0)
    assert (ts, te - ts) == (micros("2024-03-10T00:00:00-05:00") - 1, 23 * HOUR)
