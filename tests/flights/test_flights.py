"""Laws S1 and S2 on real flights: January in any slicing gives, row for row, what plain SQL gives."""

from __future__ import annotations

import json
import random
import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from queries.flights import importer
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.tables.layout import Layout
from tests.flights import oracle
from tests.flights.compare import difference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

QUERIES = Path(importer.__file__).parent
FIRST = datetime(2013, 1, 1, tzinfo=UTC)
END = datetime(2013, 1, 31, 23, 28, tzinfo=UTC)
"""The heartbeat that January's flights give."""
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def _every(step: timedelta, first: datetime = FIRST, last: datetime = END) -> list[datetime]:
    return [first + k * step for k in range(1, (last - first) // step + 1)]


def _random_cuts(seed: int) -> list[datetime]:
    """Twelve cuts at any minute, and some right beside another or on a hop of the sliding window."""
    chance = random.Random(seed)
    cuts = {FIRST + timedelta(minutes=chance.randrange((END - FIRST) // timedelta(minutes=1))) for _ in range(12)}
    some = sorted(cuts)[::4]
    return sorted(cuts | {cut + timedelta(minutes=1) for cut in some} | {cut.replace(minute=0) for cut in some})


STORM = datetime(2013, 1, 30, 12, tzinfo=UTC)
SLICINGS = {
    "one slice": [],
    "days": _every(DAY),
    "the storm in hours": [STORM, *_every(HOUR, STORM, STORM + DAY)],
    "random cuts": _random_cuts(2013),
}
LONG = ("days", "the storm in hours")
"""Slicings of the long run of the tests alone."""


@pytest.fixture(scope="module")
def admitted(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose source holds January, a commit a day, and whose stream and relation are admitted."""
    data = tmp_path_factory.mktemp("flights")
    importer.load_planes(data)
    importer.load_flights(data, [date(2013, 1, day) for day in range(1, 32)])
    application = Application.open(QUERIES, data)
    for name in ("planes", "flights"):
        admit(application, name, spark)
    return data


@pytest.fixture(scope="module")
def expected(january: pa.Table, planes: pa.Table) -> dict[str, dict[str, pa.Table]]:
    return {name: oracle.history(query, january, planes, END) for name, query in oracle.QUERIES.items()}


def _compare(data: Path, expected: dict[str, pa.Table]) -> None:
    for name, table in expected.items():
        actual = DeltaTable(Layout(data).result(name)).to_pyarrow_table()
        assert not (parts := difference(actual, table)), f"{name}: {parts}"


def _check(
    spark: SparkSession, admitted: Path, data: Path, query: str, cuts: list[datetime], expected: dict[str, pa.Table]
) -> None:
    """Processes ``query`` on a copy of ``admitted`` in slices that end at ``cuts`` and END; compares every table."""
    shutil.copytree(admitted, data)
    ticks = [oracle.tick(cut) for cut in cuts]
    report = process(Application.open(QUERIES, data), query, spark, cuts=ticks)
    assert (report.committed, report.slices) == (oracle.tick(END), len(set(cuts)) + 1)
    _compare(data, expected)


@pytest.mark.parametrize("query", oracle.QUERIES)
@pytest.mark.parametrize(
    "slicing", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in SLICINGS]
)
def test_any_slicing_gives_what_sql_gives(
    spark: SparkSession, admitted: Path, expected, tmp_path: Path, query: str, slicing: str
):
    _check(spark, admitted, tmp_path / "flights", query, SLICINGS[slicing], expected[query])


@pytest.mark.slow
@pytest.mark.parametrize("query", oracle.QUERIES)
def test_january_in_hours(spark: SparkSession, admitted: Path, expected, tmp_path: Path, query: str):
    _check(spark, admitted, tmp_path / "flights", query, _every(HOUR), expected[query])


def test_as_it_lives(spark: SparkSession, expected, tmp_path: Path):
    """Three days arrive one by one, each waking the queries; the rest of January comes as one commit."""
    importer.load_planes(tmp_path)
    flights = importer.read_flights()
    application = Application.open(QUERIES, tmp_path)
    batches = [[date(2013, 1, day)] for day in (1, 2, 3)]
    batches.append([date(2013, 1, day) for day in range(4, 32)])
    for days in batches:
        importer.load_flights(tmp_path, days, flights=flights)
        for name in ("planes", "flights"):
            admit(application, name, spark)
        for query in oracle.QUERIES:
            process(application, query, spark)
    for tables in expected.values():
        _compare(tmp_path, tables)


def test_cancelled_flights_are_kept_aside(admitted: Path):
    """A flight without a departure is no element: each is in quarantine once, with its reason; no other flight is."""
    source = DeltaTable(importer._uri(admitted, "flights")).to_pyarrow_table()
    cancelled = {row["id"] for row in source.select(["id", "departed"]).to_pylist() if row["departed"] is None}
    aside = DeltaTable(Layout(admitted).quarantine("flights")).to_pyarrow_table().to_pylist()
    assert len(aside) == len(cancelled)
    assert {json.loads(row["__row"])["id"] for row in aside} == cancelled
    assert all(row["__reason"] for row in aside)
