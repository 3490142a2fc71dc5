"""The timetable of a continuous query: live on events, backfill by slices."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NoReturn

from airflow.sdk import timezone
from airflow.timetables.assets import AssetOrTimeSchedule
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.interval import DeltaDataIntervalTimetable
from airflow.timetables.trigger import CronTriggerTimetable

UNTIL_NOW = timedelta(microseconds=1)
"""What the end of an interval has beyond a whole second where its slice had not ended when the backfill was made."""
BESIDE_SLICES = timedelta(microseconds=2)
"""What the instant of a live run by cron has beyond it."""


def ends_now(end: datetime) -> bool:
    """Whether an interval ends where it does because its slice had not ended."""
    return end.microsecond == UNTIL_NOW.microseconds


def _just_before_now() -> Any:
    # earlier than what Airflow takes for the present, which it has looked up before
    now = timezone.utcnow().replace(microsecond=0) - timedelta(seconds=2) + UNTIL_NOW
    return timezone.coerce_datetime(now)


def _refuse_future(start: datetime) -> NoReturn:
    from airflow.models.backfill import NoBackfillRunsToCreate

    raise NoBackfillRunsToCreate(
        f"The range begins at {start.isoformat(sep=' ', timespec='seconds')}, in the future: nothing has happened there"
        " yet, and what will happen is computed as it comes. Give a range that begins before now."
    )


class HeartbeatSchedule(AssetOrTimeSchedule):
    """Live runs start when an asset event says so, and have no data interval: the engine chooses the slice.

    A backfill of the range [from, to) gets one run per slice of the length ``slice``, the first starting at ``from``,
    the last clipped to end at ``to``; where ``from`` equals ``to``, one whole slice. Airflow leaves out intervals that
    have not ended, so the slice that contains the present ends ``UNTIL_NOW``: it is whole, as far as heartbeats are. A
    range that only begins later is refused. A manual run has an empty interval, which means live.

    ``cron`` (UTC) gives live runs by time, for an asset that nobody raises.
    """

    def __init__(self, *, assets: Any, slice: timedelta, cron: str | None = None):
        # the inner timetable only makes it periodic, or Airflow would refuse a backfill
        super().__init__(timetable=DeltaDataIntervalTimetable(slice), assets=assets)  # pyright: ignore[reportAbstractUsage]
        self.slice, self.cron = slice, cron
        self._clock = None if cron is None else CronTriggerTimetable(cron, timezone="UTC")  # pyright: ignore[reportAbstractUsage]
        self.description = f"{f'By cron {cron}' if cron else 'On heartbeat'}; backfill in slices of {slice}"

    @property
    def summary(self) -> str:
        return self.cron or "Heartbeat"

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        if (
            restriction.latest is None
        ):  # live scheduling: a query's DAG has no end date; only a backfill bounds the range
            return self._by_clock(last_automated_data_interval, restriction)
        if last_automated_data_interval is not None:
            start = last_automated_data_interval.end
            empty = start >= restriction.latest
        else:
            start = restriction.earliest
            empty = start is None or start > restriction.latest
        if start is None or empty:
            return None
        end = start + self.slice
        if start < restriction.latest:
            end = min(end, restriction.latest)
        now = _just_before_now()
        if start >= now:
            if last_automated_data_interval is None:
                _refuse_future(start)
            return None
        return DagRunInfo.interval(start=start, end=min(end, now))

    def _by_clock(self, last: DataInterval | None, restriction: TimeRestriction) -> DagRunInfo | None:
        """The next live run by time; what was missed is not caught up with, since one run does all there is to do."""
        if self._clock is None:
            return None
        now_on = TimeRestriction(restriction.earliest, None, catchup=False)
        found = self._clock.next_dagrun_info(last_automated_data_interval=last, restriction=now_on)
        if found is None:
            return None
        # at an instant of its own: Airflow would take it for the run of a backfill's slice that begins there
        at = timezone.coerce_datetime(found.run_after) + BESIDE_SLICES
        return DagRunInfo(run_after=found.run_after, data_interval=DataInterval.exact(at))

    def infer_manual_data_interval(self, *, run_after: Any) -> DataInterval:
        return DataInterval.exact(run_after)

    def serialize(self) -> dict[str, Any]:
        from airflow.serialization.encoders import encode_asset_like

        told = {"asset_condition": encode_asset_like(self.asset_condition), "slice": self.slice.total_seconds()}
        return told if self.cron is None else {**told, "cron": self.cron}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> HeartbeatSchedule:
        from airflow.serialization.decoders import decode_asset_like

        slice = timedelta(seconds=data["slice"])
        return cls(assets=decode_asset_like(data["asset_condition"]), slice=slice, cron=data.get("cron"))
