"""Runs that others overtake between two looks at the ledger: they say so, and what the others have committed stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sweeparea.infra.errors import DataError
from sweeparea.spark_jobs.admission import admit as admission
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.apply import apply
from sweeparea.spark_jobs.orchestration.planner import plan
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.rewriting import repair
from sweeparea.spark_jobs.rewriting.backfill import backfill
from sweeparea.spark_jobs.rewriting.rewrite import Rewrite
from sweeparea.spark_jobs.rewriting.shadow import Shadow
from sweeparea.spark_jobs.slices.slice import Slice
from sweeparea.spark_jobs.spark.session import spark_session
from sweeparea.tables.errors import LostRace
from tests.spark_jobs import shop

pytestmark = pytest.mark.spark
TEXT = shop.STREAM.replace("  CONSTRAINT", "  LATE REPAIR\n  CONSTRAINT") + shop.QUERY
Day = list[tuple[int | None, str, float, int]]
FIRST: Day = [(0, "a", 1.5, 3), (5, "b", 2.5, 1), (9, "a", 0.25, 7), (30, "a", 4.0, 2)]
SECOND: Day = [(70, "b", 1.0, 9), (150, "c", 8.0, 1)]
THIRD: Day = [(155, "a", 1.0, 4), (200, "b", 8.0, 1)]


@pytest.fixture
def begun(spark, tmp_path) -> Path:
    """A folder whose query has come to the 20th second."""
    _day(spark, tmp_path, FIRST)
    process(_opened(tmp_path), "turnover", spark)
    return tmp_path


def _opened(folder: Path, text: str = TEXT) -> Application:
    return shop.application(folder, text)


def _day(spark, folder: Path, rows: Day) -> None:
    app = _opened(folder)
    shop.sell(folder, rows)
    admit(app, "sales", spark)


def _before(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, others: Callable[[], None]) -> None:
    """Lets ``others`` run before the next call of a function, which then goes on."""
    told = getattr(owner, name)

    def overtaken(*arguments, **options):
        monkeypatch.undo()
        others()
        return told(*arguments, **options)

    monkeypatch.setattr(owner, name, overtaken)


def _as_on_time(spark, folder: Path, tmp_path_factory: pytest.TempPathFactory, *days: Day) -> None:
    """Compares with a run that nobody disturbed, after one more run and a backfill, which finds nothing."""
    app, twin = _opened(folder), tmp_path_factory.mktemp("twin")
    process(app, "turnover", spark)
    for rows in days:
        _day(spark, twin, rows)
    process(_opened(twin), "turnover", spark)
    assert app.ledger.head()["turnover"].committed == _opened(twin).ledger.head()["turnover"].committed
    for table in ("turnover", "turnover__istream"):
        assert shop.contents(app, table) == shop.contents(_opened(twin), table)
    assert "nothing differs" in backfill(app, "turnover", spark, None, None, print).words


def test_a_correction_that_concerns_nothing_is_not_noted_over_another_run(spark, begun, monkeypatch, tmp_path_factory):
    _day(spark, begun, SECOND)
    late: Day = [(100, "a", 2.0, 5)]  # for the stream, not for the query, which has not come so far
    _day(spark, begun, late)
    # between the look at what is to be repaired and the commit that notes it
    _before(monkeypatch, repair, "touched", lambda: process(_opened(begun), "turnover", spark) and None)
    with pytest.raises(LostRace, match="another run was faster"):
        process(_opened(begun), "turnover", spark)
    assert _opened(begun).ledger.head()["turnover"].committed == shop.tick(139)
    _as_on_time(spark, begun, tmp_path_factory, FIRST, SECOND, late)


def test_a_repair_that_was_overtaken_takes_nothing_back(spark, begun, monkeypatch, tmp_path_factory):
    _day(spark, begun, SECOND)
    process(_opened(begun), "turnover", spark)
    late: Day = [(12, "a", 2.0, 5)]
    later: Day = [(13, "a", 64.0, 8)]
    _day(spark, begun, late)

    def others() -> None:
        process(_opened(begun), "turnover", spark)
        _day(spark, begun, later)
        _day(spark, begun, THIRD)
        process(_opened(begun), "turnover", spark)

    _before(monkeypatch, Rewrite, "publish", others)
    with pytest.raises(LostRace, match="another run was faster"):
        process(_opened(begun), "turnover", spark)
    row, head = _opened(begun).ledger.head()["turnover"], _opened(begun).ledger.head()
    assert row.pins["sales"]["seq"] == head["sales"].seq
    _as_on_time(spark, begun, tmp_path_factory, FIRST, SECOND, late, later, THIRD)


def test_what_fails_since_others_were_faster_is_told_so(spark, begun, monkeypatch, tmp_path_factory):
    """A slice reads the tables as they are, which another run's slice may have changed under it."""
    _day(spark, begun, SECOND)

    def others() -> None:
        process(_opened(begun), "turnover", spark)
        raise DataError("The number of copies of a record falls below zero.")

    _before(monkeypatch, Slice, "_materialize", others)
    with pytest.raises(LostRace, match="turnover: another run was faster"):
        process(_opened(begun), "turnover", spark)
    _as_on_time(spark, begun, tmp_path_factory, FIRST, SECOND)


def test_a_repair_that_fails_since_others_were_faster_is_told_so(spark, begun, monkeypatch, tmp_path_factory):
    late: Day = [(12, "a", 2.0, 5)]
    _day(spark, begun, late)

    def others() -> None:
        process(_opened(begun), "turnover", spark)
        raise DataError("The number of copies of a record falls below zero.")

    _before(monkeypatch, Shadow, "_beginning", others)
    with pytest.raises(LostRace, match="turnover: another run was faster: it has corrected the results"):
        process(_opened(begun), "turnover", spark)
    _as_on_time(spark, begun, tmp_path_factory, FIRST, late)


def test_an_admission_that_fails_since_others_were_faster_is_told_so(spark, begun, monkeypatch):
    shop.sell(begun, SECOND)

    def others() -> None:
        admit(_opened(begun), "sales", spark)
        raise DataError("of what it met")

    _before(monkeypatch, admission, "judge_version", others)
    with pytest.raises(LostRace, match="sales: another run was faster"):
        admit(_opened(begun), "sales", spark)
    assert admit(_opened(begun), "sales", spark).versions == 0


def test_an_error_of_its_own_stays_what_it_is(spark, begun, monkeypatch):
    _day(spark, begun, SECOND)

    def fails() -> None:
        raise DataError("of its own")

    _before(monkeypatch, Slice, "_materialize", fails)
    with pytest.raises(DataError, match="of its own"):
        process(_opened(begun), "turnover", spark)


def test_a_new_definition_does_not_take_back_what_the_old_one_has_reached(spark, begun, monkeypatch):
    old = _opened(begun)
    _day(spark, begun, SECOND)
    text = TEXT.replace("CREATE CONTINUOUS", "CREATE OR REPLACE CONTINUOUS").replace("60 SECONDS", "30 SECONDS")

    def others() -> None:
        _day(spark, begun, THIRD)
        process(old, "turnover", spark)  # a slice of the old definition that was at work
        _opened(begun, text)

    _before(monkeypatch, Rewrite, "replace", others)
    new = _opened(begun, text)
    with pytest.raises(LostRace, match="apply again"):
        apply(new, plan(new, beside=True), session=spark_session)
    assert new.ledger.head()["turnover"].committed == shop.tick(189)
    new = _opened(begun, text)
    apply(new, plan(new, beside=True), session=spark_session)
    assert _opened(begun, text).ledger.head()["turnover"].committed == shop.tick(189)
