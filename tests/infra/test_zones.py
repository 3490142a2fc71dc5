from __future__ import annotations

import datetime as dt

import pytest

from sweeparea.infra import zones

FIRST, LAST = dt.date(2000, 1, 1), dt.date(2060, 1, 1)


@pytest.mark.parametrize(
    "name", ["America/Mexico_City", "Africa/Casablanca", "Australia/Lord_Howe", "Asia/Kathmandu", "Etc/GMT+5"]
)
def test_changes_are_those_that_zoneinfo_shows_day_by_day(name: str):
    epoch, zone = dt.datetime(1970, 1, 1, tzinfo=dt.UTC), zones.zone(name)
    days = [epoch + dt.timedelta((FIRST - epoch.date()).days + i) for i in range((LAST - FIRST).days + 1)]
    offsets = [day.astimezone(zone).utcoffset() for day in days]
    differ = [(a.date(), x, y) for a, x, y in zip(days, offsets, offsets[1:], strict=False) if x != y]
    second = dt.timedelta(seconds=1)
    found = [
        ((epoch + second * (at - 1)).date(), before * second, after * second)
        for at, before, after in zones.changes(name, FIRST, LAST)
    ]
    assert found == differ
