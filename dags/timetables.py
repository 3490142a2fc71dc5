"""The timetable of a continuous query: live on events, backfill by slices."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.timetables.assets import AssetOrTimeSchedule
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.interval import DeltaDataIntervalTimetable


class HeartbeatSchedule(AssetOrTimeSchedule):
    """Live runs start when an asset event says so, and have no data interval: the engine chooses the slice.

    A backfill of the range [from, to) gets one run per slice of the length ``slice``, the first starting at ``from``,
    the last clipped to end at ``to``; where ``from`` equals ``to``, one whole slice. A manual run has an empty
    interval, which means live.
    """

    def __init__(self, *, assets: Any, slice: timedelta):
        # the inner timetable only makes it periodic, or Airflow would refuse a backfill
        super().__init__(timetable=DeltaDataIntervalTimetable(slice), assets=assets)  # pyright: ignore[reportAbstractUsage]
        self.slice = slice
        self.description = f"On heartbeat; backfill in slices of {slice}"

    @property
    def summary(self) -> str:
        return "Heartbeat"

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        if (
            restriction.latest is None
        ):  # live scheduling: a query's DAG has no end date; only a backfill bounds the range
            return None
        if last_automated_data_interval is not None:
            start = last_automated_data_interval.end
            empty = start >= restriction.latest
        else:
            start = restriction.earliest
            empty = start is None or start > restriction.latest
        if start is None or empty:
            return None
        end = start + self.slice
        return DagRunInfo.interval(start=start, end=min(end, restriction.latest) if start < restriction.latest else end)

    def infer_manual_data_interval(self, *, run_after: Any) -> DataInterval:
        return DataInterval.exact(run_after)

    def serialize(self) -> dict[str, Any]:
        from airflow.serialization.encoders import encode_asset_like

        return {"asset_condition": encode_asset_like(self.asset_condition), "slice": self.slice.total_seconds()}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> HeartbeatSchedule:
        from airflow.serialization.decoders import decode_asset_like

        return cls(assets=decode_asset_like(data["asset_condition"]), slice=timedelta(seconds=data["slice"]))
