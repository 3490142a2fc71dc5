from __future__ import annotations

from datetime import timedelta

import pendulum
import pytest
from airflow.models.backfill import NoBackfillRunsToCreate
from airflow.sdk import Asset
from airflow.timetables.base import DataInterval, TimeRestriction

from sweeparea.dags.timetables import HeartbeatSchedule, ends_now

SLICE = timedelta(days=1)


def at(day: int, hour: int = 0) -> pendulum.DateTime:
    return pendulum.datetime(2013, 1, day, hour)


@pytest.fixture
def timetable() -> HeartbeatSchedule:
    return HeartbeatSchedule(assets=Asset("wake", uri="x-sweeparea://shop/wake/sales"), slice=SLICE)  # pyright: ignore[reportAbstractUsage]


def slices(timetable: HeartbeatSchedule, start, end) -> list[tuple]:
    restriction, last, found = TimeRestriction(start, end, catchup=True), None, []
    while info := timetable.next_dagrun_info(last_automated_data_interval=last, restriction=restriction):
        last = info.data_interval
        assert last is not None
        found.append((last.start, last.end))
    return found


def test_nothing_is_scheduled_by_time(timetable):
    restriction = TimeRestriction(at(1), None, catchup=True)
    assert timetable.next_dagrun_info(last_automated_data_interval=None, restriction=restriction) is None
    assert timetable.periodic  # or Airflow would refuse a backfill


def test_a_backfill_is_cut_into_slices_and_the_last_one_is_clipped(timetable):
    assert slices(timetable, at(1), at(3)) == [(at(1), at(2)), (at(2), at(3))]
    assert slices(timetable, at(1, 6), at(3)) == [(at(1, 6), at(2, 6)), (at(2, 6), at(3))]
    assert slices(timetable, at(1), at(1, 5)) == [(at(1), at(1, 5))]


def test_an_empty_range_means_one_whole_slice(timetable):
    assert slices(timetable, at(1), at(1)) == [(at(1), at(2))]
    assert slices(timetable, at(2), at(1)) == []


def test_a_slice_that_has_not_ended_ends_just_before_now_and_a_range_in_the_future_is_refused(timetable):
    now = pendulum.now("UTC")
    today = now.start_of("day") if now.hour else now.subtract(days=1)
    found = slices(timetable, today.subtract(days=1), today.add(days=3))
    (before, (start, end)) = found
    assert before == (today.subtract(days=1), today)
    assert start == today
    assert ends_now(end)
    assert now.subtract(seconds=4) < end < now
    assert not ends_now(today)
    with pytest.raises(NoBackfillRunsToCreate, match="in the future: nothing has happened there yet"):
        slices(timetable, today.add(days=1), today.add(days=3))


def test_a_manual_run_is_live(timetable):
    assert timetable.infer_manual_data_interval(run_after=at(5)) == DataInterval(at(5), at(5))


def test_it_survives_serialization(timetable):
    back = HeartbeatSchedule.deserialize(timetable.serialize())
    assert back.slice == SLICE
    assert back.serialize() == timetable.serialize()
    assert slices(back, at(1), at(3)) == slices(timetable, at(1), at(3))


def test_by_cron_it_runs_at_its_times_without_catching_up_and_apart_from_slices():
    wake = Asset("wake", uri="x-sweeparea://shop/wake/sales")
    timetable = HeartbeatSchedule(assets=wake, slice=SLICE, cron="*/15 * * * *")  # pyright: ignore[reportAbstractUsage]
    again = HeartbeatSchedule.deserialize(timetable.serialize())
    assert (again.cron, again.summary, again.slice) == ("*/15 * * * *", "*/15 * * * *", SLICE)
    restriction, now = TimeRestriction(at(1), None, catchup=True), pendulum.now("UTC")
    first = again.next_dagrun_info(last_automated_data_interval=None, restriction=restriction)
    assert first is not None
    assert first.data_interval is not None
    assert now.subtract(minutes=16) < first.run_after <= now.add(minutes=15)  # the last one is still to come, no other
    assert first.data_interval.start == first.data_interval.end  # live
    assert first.data_interval.start.microsecond == 2
    second = again.next_dagrun_info(last_automated_data_interval=first.data_interval, restriction=restriction)
    assert second is not None
    assert (second.run_after - first.run_after).total_seconds() == 900
    assert slices(again, at(1), at(3)) == [(at(1), at(2)), (at(2), at(3))]
