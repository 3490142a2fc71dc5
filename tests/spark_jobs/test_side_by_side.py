"""Several queries at a time: in order of what they read, each worker with an application of its own."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.admission.admit import admit, advance
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import Processed, process
from sweeparea.spark_jobs.orchestration.side_by_side import each_of
from sweeparea.tables.log.delta_log import DeltaLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = """
CREATE STREAM s FROM DELTA 'source/s' TIMESTAMP BY t HEARTBEAT MANUAL;
CREATE CONTINUOUS QUERY top AS SELECT k FROM middle UNION ALL SELECT k FROM other;
CREATE CONTINUOUS QUERY middle AS SELECT k, v FROM s [Range 5];
CREATE CONTINUOUS QUERY other AS SELECT k, v FROM s [Range 3];
CREATE CONTINUOUS QUERY alone AS SELECT COUNT(*) AS n FROM s [Range 5];
"""
PATIENCE = 60.0
"""Seconds."""


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[], Application]:
    (tmp_path / "a.cql").write_text(TEXT)
    return lambda: Application.open(tmp_path)


@pytest.mark.parametrize("threads", [1, 2, 9])
def test_a_query_waits_for_those_that_it_reads(opened: Callable[[], Application], threads: int):
    ended: list[str] = []

    def work(application: Application, name: str) -> str:
        read = {application.owner(n) for n in application.catalog.dependencies(name)} & set(names)
        assert read <= set(ended)
        ended.append(name)
        return name.upper()

    names = list(opened().catalog.queries)
    found = dict(each_of(opened(), opened, names, work, threads))
    assert found == {name: name.upper() for name in names}
    assert ended.index("top") > max(ended.index("middle"), ended.index("other"))


def test_independent_queries_run_at_the_same_time_with_applications_of_their_own(opened: Callable[[], Application]):
    both, applications = threading.Barrier(2), []

    def work(application: Application, name: str) -> None:
        both.wait(PATIENCE)
        applications.append(application)

    list(each_of(opened(), opened, ["middle", "other"], work, 2))
    assert len({id(application) for application in applications}) == 2


def test_one_that_fails_stops_no_other(opened: Callable[[], Application]):
    def work(application: Application, name: str) -> str:
        if name == "middle":
            raise SweepAreaError("no")
        return "yes"

    found = dict(each_of(opened(), opened, list(opened().catalog.queries), work, 2))
    assert str(found.pop("middle")) == "no"
    assert set(found.values()) == {"yes"}


def test_what_is_no_error_of_ours_ends_the_work(opened: Callable[[], Application]):
    def work(application: Application, name: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(each_of(opened(), opened, ["middle", "other"], work, 2))


@pytest.mark.spark
def test_the_tables_are_those_of_one_after_the_other(spark: SparkSession, tmp_path: Path):
    def run(folder: Path, threads: int) -> dict[str, Counter]:
        folder.mkdir()
        (folder / "a.cql").write_text(TEXT)
        application = Application.open(folder)
        for first in (0, 10):
            ticks = list(range(first, first + 10))
            write_deltalake(
                str(application.data / "source/s"),
                pa.table({"t": ticks, "k": [t % 3 for t in ticks], "v": ticks}),
                mode="append",
            )
            admit(application, "s", spark)
            advance(application, "s", first + 9)
            found = each_of(
                Application.open(folder),
                lambda: Application.open(folder),
                list(application.catalog.queries),
                lambda mine, name: process(mine, name, spark),
                threads,
            )
            assert all(isinstance(report, Processed) and report.slices for _, report in found)
        tables = {name: DeltaLog(application.layout.result(name)).read() for name in application.catalog.queries}
        return {name: Counter(map(str, table.to_pylist())) for name, table in tables.items()}

    assert run(tmp_path / "several", 4) == run(tmp_path / "one", 1)
