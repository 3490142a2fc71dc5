"""Calendar windows over the two days of 2024 on which New York's clocks change, worked by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from sweeparea.spark_jobs.cases.replay import replay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [
    ["2024-03-10T04:30:00Z", [1]],  # half past eleven in the evening of the 9th
    ["2024-03-10T12:00:00Z", [2]],
    ["2024-11-03T05:30:00Z", [3]],  # half past one, daylight saving time
    ["2024-11-03T06:30:00Z", [4]],  # half past one again
]
DAYS = [
    [1, "2024-03-09T05:00:00Z", "2024-03-10T05:00:00Z"],
    [2, "2024-03-10T05:00:00Z", "2024-03-11T04:00:00Z"],  # 23 hours
    [3, "2024-11-03T04:00:00Z", "2024-11-04T05:00:00Z"],  # 25 hours
    [4, "2024-11-03T04:00:00Z", "2024-11-04T05:00:00Z"],
]
HOURS = [
    [1, "2024-03-10T04:00:00Z", "2024-03-10T05:00:00Z"],
    [2, "2024-03-10T12:00:00Z", "2024-03-10T13:00:00Z"],
    [3, "2024-11-03T05:00:00Z", "2024-11-03T06:00:00Z"],
    [4, "2024-11-03T06:00:00Z", "2024-11-03T07:00:00Z"],
]
MONTHS = [
    [1, "2024-03-01T05:00:00Z", "2024-04-01T04:00:00Z"],
    [2, "2024-03-01T05:00:00Z", "2024-04-01T04:00:00Z"],
    [3, "2024-11-01T04:00:00Z", "2024-12-01T05:00:00Z"],
    [4, "2024-11-01T04:00:00Z", "2024-12-01T05:00:00Z"],
]
VISIBLE = {  # from the bucket's last instant to the next one's
    "Day": [
        ["2024-03-10T04:59:59.999999Z", "2024-03-11T03:59:59.999999Z"],
        ["2024-03-11T03:59:59.999999Z", "2024-03-12T03:59:59.999999Z"],
        ["2024-11-04T04:59:59.999999Z", "2024-11-05T04:59:59.999999Z"],
        ["2024-11-04T04:59:59.999999Z", "2024-11-05T04:59:59.999999Z"],
    ],
    "Hour": [
        ["2024-03-10T04:59:59.999999Z", "2024-03-10T05:59:59.999999Z"],
        ["2024-03-10T12:59:59.999999Z", "2024-03-10T13:59:59.999999Z"],
        ["2024-11-03T05:59:59.999999Z", "2024-11-03T06:59:59.999999Z"],
        ["2024-11-03T06:59:59.999999Z", "2024-11-03T07:59:59.999999Z"],
    ],
    "Month": [
        ["2024-04-01T03:59:59.999999Z", "2024-05-01T03:59:59.999999Z"],
        ["2024-04-01T03:59:59.999999Z", "2024-05-01T03:59:59.999999Z"],
        ["2024-12-01T04:59:59.999999Z", None],
        ["2024-12-01T04:59:59.999999Z", None],
    ],
}


@pytest.mark.spark
@pytest.mark.parametrize(("unit", "buckets"), [("Day", DAYS), ("Hour", HOURS), ("Month", MONTHS)])
def test_calendar_windows_in_new_york_over_a_change_of_the_clocks(
    spark: SparkSession, unit: str, buckets: list[list[Any]]
):
    window = f"S [Tumbling By {unit} In 'America/New_York']"
    case = {
        "time": "TIMESTAMP",
        "streams": {"S": {"columns": {"k": "int"}, "rows": ROWS}},
        "heartbeats": ["2024-03-10T05:30:00Z", "2024-11-03T06:00:00Z", "2025-01-01T00:00:00Z"],
    }
    bounded = {**case, "query": f"SELECT k, WINDOW_START(S) AS a, WINDOW_END(S) AS b FROM {window}"}
    plain = {**case, "query": f"SELECT k FROM {window}"}
    with_bounds, without = replay(map(json.dumps, (bounded, plain)), spark)
    wanted = [[*shown, bucket] for shown, bucket in zip(VISIBLE[unit], buckets, strict=True)]
    assert with_bounds.get("relation") == wanted, with_bounds
    assert without.get("relation") == [[*shown, bucket[:1]] for *shown, bucket in wanted], without
