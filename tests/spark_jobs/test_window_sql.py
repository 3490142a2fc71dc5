"""Windows as Spark SQL against their definitions in Python: calendar buckets in many zones, bounds of buckets."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sweeparea.operators import bridge
from sweeparea.operators.nodes import StreamScan, Window
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.time import wall_clock
from sweeparea.operators.time.ticks import INF, MAX_TICK, MIN_TICK
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.operators.windows import BucketWindow, Calendar, Fixed, Hopping, UserWindow, window
from sweeparea.spark_jobs.evaluation.runners.window_rows import WindowRows
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.frames import fields

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DAY = 86_400_000_000
CHANGES = [
    ("America/New_York", 1_710_054_000, 1_730_613_600, -2_717_640_000),
    ("Europe/Berlin", 1_711_846_800, 1_729_990_800),
    ("Australia/Lord_Howe", 1_712_415_600, 1_728_142_200),
    ("America/Sao_Paulo", 1_541_300_400, 1_518_919_200),
    ("America/Havana", 1_730_610_000, 1_710_046_800),
    ("America/St_Johns", 1_162_092_660, 1_143_948_660),
    ("Pacific/Apia", 1_325_239_200),
    ("America/Toronto", -1_601_753_400),
    ("Asia/Kathmandu", 504_901_800),
    ("UTC", 0),
]
"""Zones, and instants at which their clocks change, in seconds."""


def instants(rng: random.Random, changes: tuple[int, ...]) -> list[int]:
    near = [c * 1_000_000 + rng.randint(-3 * DAY, 3 * DAY) for c in changes for _ in range(40)]
    exact = [c * 1_000_000 + d for c in changes for d in (-1, 0, 1, -3_600_000_000, 1_800_000_000)]
    return near + exact + [rng.randint(-(1 << 52), 1 << 52) for _ in range(20)]


def rows_of(spark: SparkSession, spec: BucketWindow, ticks: list[int], bounds: bool) -> set[tuple[int, ...]]:
    given = spark.createDataFrame([(t, t, t + 1, 1) for t in ticks], "c0 BIGINT, __ts BIGINT, __te BIGINT, __n BIGINT")
    scan = StreamScan("S", ((Column("c0", "s"), "s"),))
    node = Window(scan, spec, bounds=(Column("c1", "a"), Column("c2", "b")) if bounds else None)
    got = window.apply(node, given, lambda tick: tick).collect()
    return {tuple(row[:-1]) for row in got}


def check_calendar(spark: SparkSession, unit: str, zones: list[tuple]) -> None:
    rng = random.Random(unit)
    for zone, *changes in zones:
        chronon = rng.choice([1, 1, 1000, 1_000_000, 3_600_000_000])
        spec = Calendar(unit, zone, chronon)
        ticks = sorted({m // chronon for m in instants(rng, tuple(changes))} | {0, MIN_TICK, MAX_TICK})
        visible = {(s, *shown) for s in ticks if (shown := spec.interval(s)) is not None}
        assert rows_of(spark, spec, ticks, False) == visible, zone
        bounded = {(s, *bucket) for s in ticks for bucket in spec.buckets(s)}
        assert rows_of(spark, spec, ticks, True) == bounded, zone


@pytest.mark.parametrize(("unit", "zone"), [("second", 7), ("hour", 0), ("hour", 2), ("day", 4), ("week", 3)])
def test_calendar_windows_in_sql_equal_those_in_python(spark: SparkSession, unit: str, zone: int):
    check_calendar(spark, unit, [CHANGES[zone]])


@pytest.mark.slow
@pytest.mark.parametrize("unit", wall_clock.UNITS)
def test_calendar_windows_in_sql_in_every_zone(spark: SparkSession, unit: str):
    check_calendar(spark, unit, CHANGES)


@pytest.mark.parametrize(
    "spec", [Hopping(7, 7, 3), Hopping(6, 3), Hopping(7, 3, -2), Hopping(3, 5, 1), Hopping(1, 1), Fixed(5, 2), Fixed(1)]
)
def test_window_bounds_in_sql_equal_those_in_python(spark: SparkSession, spec: BucketWindow):
    ticks = [*range(-25, 25), MIN_TICK, MIN_TICK + 1, MAX_TICK - 8, MAX_TICK - 2, MAX_TICK - 1, MAX_TICK]
    bounded = {(s, *bucket) for s in ticks for bucket in spec.buckets(s)}
    assert rows_of(spark, spec, ticks, True) == bounded
    for s in ticks:  # together the buckets are visible for as long as the element is valid
        shown = sorted((ts, te) for _, _, ts, te in spec.buckets(s))
        assert all(a[1] == b[0] for a, b in itertools.pairwise(shown))
        assert (shown[0][0], shown[-1][1]) == spec.interval(s) if shown else spec.interval(s) is None
        assert all(start <= s < end or end == INF for start, end, _, _ in spec.buckets(s))


def held(instants: pa.Array, ticks: pa.Array) -> tuple[pa.Array, pa.Array]:
    """A user's window: valid for as many ticks as a column says."""
    return instants, pc.call_function("add", [instants, ticks])


def test_a_window_of_the_user_runs_as_its_function_says(spark: SparkSession):
    columns = "s BIGINT, k INT, __ts BIGINT, __te BIGINT, __n BIGINT"
    given = spark.createDataFrame([(t, t % 4, t, t + 1, 1) for t in range(12)], columns)
    scan = StreamScan("S", ((Column("s", "s"), "s"), (Column("k", "k"), "k")))
    rows = WindowRows(Window(scan, UserWindow("held", "WK"), arguments=(Expr("CAST(k AS BIGINT) * 2"),)))
    shown = rows.raw(given)
    schema = pa.schema(fields(shown, shown.columns))
    output = pa.schema([schema.field("s"), schema.field("k"), *BAG_FIELDS])
    task = bridge.MapTask(rows.function({"held": held}.__getitem__), schema, output)
    got = {tuple(row) for row in shown.mapInArrow(task, frames.ddl(output)).collect()}
    assert got == {(t, t % 4, t, t + 2 * (t % 4), 1) for t in range(12) if t % 4}
