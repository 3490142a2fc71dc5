"""Maintenance beside slices, RETAIN, and `check` with a SweepArea that was lost: over real Delta sources."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.time.ticks import INF
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.admission.judging.rules import Rules
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands import cli
from sweeparea.spark_jobs.deployment.history_gone import HistoryGone
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.rewriting.backfill import backfill, outlook
from sweeparea.spark_jobs.upkeep import retained
from sweeparea.spark_jobs.upkeep.check import check
from sweeparea.spark_jobs.upkeep.maintain import hours_of, maintain
from sweeparea.spark_jobs.upkeep.rebuild import rebuild
from sweeparea.tables.log import compaction
from sweeparea.tables.log.delta_log import DeltaLog
from tests.spark_jobs import shop

pytestmark = pytest.mark.spark
STREAM = shop.STREAM.replace("  CONSTRAINT", "  RETAIN INTERVAL 20 SECONDS\n  CONSTRAINT")
EVER = """
CREATE CONTINUOUS QUERY ever START AT TIMESTAMP '2020-01-01 00:00:00' AS
SELECT shop, COUNT(*) AS n FROM sales [RANGE UNBOUNDED] GROUP BY shop;
"""
TABLES = ("turnover", "turnover__istream", "ever")
DAYS: list[list[tuple[int | None, str, float, int]]] = [
    [(60 * minute + 7 * i, "abc"[i % 3], 1.5 * i + 1, minute) for i in range(5)] for minute in range(4)
]


def day(app: Application, folder: Path, spark, number: int) -> None:
    shop.sell(folder, DAYS[number])
    admit(app, "sales", spark)
    for query in ("turnover", "ever"):
        process(app, query, spark)


@pytest.fixture(scope="module")
def unmaintained(spark, tmp_path_factory) -> Application:
    """Without any maintenance, in one slice."""
    folder = tmp_path_factory.mktemp("plain")
    app = shop.application(folder, shop.STREAM + shop.QUERY + EVER)
    for rows in DAYS[:-1]:
        shop.sell(folder, rows)
    day(app, folder, spark, len(DAYS) - 1)
    return app


@pytest.fixture(scope="module")
def plain(unmaintained) -> dict[str, object]:
    return {table: shop.contents(unmaintained, table) for table in TABLES}


@pytest.fixture(scope="module")
def maintained(spark, tmp_path_factory) -> tuple[Application, Path]:
    folder = tmp_path_factory.mktemp("maintained")
    app = shop.application(folder, STREAM + shop.QUERY + EVER)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compaction, "FAN", 2)
        for number in range(len(DAYS)):
            day(app, folder, spark, number)
            report = maintain(app)
            assert report.problems == []
    return app, folder


def test_results_are_those_without_maintenance_and_check_agrees(plain, maintained):
    app, _ = maintained
    assert {table: shop.contents(app, table) for table in TABLES} == plain
    for table in (app.layout.admitted("sales"), app.layout.result("turnover__istream")):
        assert len(DeltaLog(table).files()) < 3
    assert check(app).wrong == {}


def test_retain_lets_go_what_no_query_needs_and_says_up_to_where(maintained):
    app, _ = maintained
    row = app.ledger.head()["sales"]
    gone = row.info["retained"]
    assert row.committed is not None
    assert gone < row.committed - 20 - 60
    # `ever` would be repaired from START on: no late element can be repaired any more, whatever is declared later
    assert row.info["repairs_from"] == INF
    assert Rules.of(app.stream("sales"), app.plans.input_schema("sales").time, ()).lateness(100, INF).retain == -1
    admitted = DeltaLog(app.layout.admitted("sales")).read()
    assert 0 < admitted.num_rows < sum(map(len, DAYS))
    assert min(admitted.column("__tick").to_pylist()) > gone


def test_what_needs_elements_that_have_gone_is_refused_with_the_way_out(spark, maintained):
    app, _ = maintained
    said: list[str] = []
    with pytest.raises(HistoryGone, match=r"elements of sales up to 2020-01-01 12:0.* have gone \(RETAIN\)"):
        backfill(app, "turnover", spark, None, None, said.append)
    with pytest.raises(HistoryGone, match="have gone"):
        outlook(app, "turnover", None, None)
    new = Application.open(app.folder, str(app.data))  # pyright: ignore[reportArgumentType]
    assert new.folder is not None
    late = EVER.replace("ever", "later")
    (new.folder / "later.cql").write_text(late)
    new = Application.open(new.folder, str(app.data))
    with pytest.raises(HistoryGone, match="START AT 2020-01-01 12:0"):
        process(new, "later", spark)
    found = retained.outlook(new, "sales")
    assert found is not None
    assert (found.cut, found.reasons) == (None, ["later has not begun"])
    assert new.folder is not None
    (new.folder / "later.cql").unlink()


def test_a_lost_sweep_area_is_told_refused_by_process_and_rebuilt(spark, plain, maintained, capsys):
    app, folder = maintained
    said: list[str] = []
    area = next(t for t in app.ledger.head()["turnover"].info["tables"] if t.startswith("state/turnover/aggr"))
    shutil.rmtree(app.layout.absolute(area))
    shop.sell(folder, [(400, "a", 1.0, 1)])
    admit(app, "sales", spark)
    app = Application.open(app.folder, str(app.data))  # pyright: ignore[reportArgumentType]
    with pytest.raises(SweepAreaError, match=f"table {area} of turnover is missing.*check .* turnover --rebuild"):
        process(app, "turnover", spark)
    assert cli.main(["check", str(app.folder), "turnover", "--data", str(app.data)]) == 1
    assert f"WRONG: {area}: the table is missing" in capsys.readouterr().out
    rebuild(app, "turnover", spark, check(app, "turnover").damaged["turnover"], said.append)
    assert check(app, "turnover").wrong == {}
    assert shop.contents(app, "turnover") == plain["turnover"]
    process(app, "turnover", spark)
    assert check(app, "turnover").wrong == {}


def test_lost_results_and_tables_that_others_have_changed_are_rebuilt(spark, plain, unmaintained):
    app, said = unmaintained, []
    shutil.rmtree(app.layout.result("turnover__istream"))
    relation = DeltaLog(app.layout.result("turnover"))
    Path(relation.uri, relation.files()[0].path).unlink()
    areas = [t for t in app.ledger.head()["turnover"].info["tables"] if t.startswith("state/")]
    DeltaTable(app.layout.absolute(areas[0])).delete()
    for path in Path(app.layout.absolute(areas[-1]), "_delta_log").iterdir():
        path.write_text("no log")
    found = check(app, "turnover")
    assert found.damaged["turnover"] == {"results/turnover", "results/turnover__istream", areas[0], areas[-1]}
    rebuild(app, "turnover", spark, found.damaged["turnover"], said.append)
    assert check(app, "turnover").wrong == {}
    assert {table: shop.contents(app, table) for table in TABLES} == plain
    assert any("its log cannot be read" in text for text in said)


def test_without_a_name_all_that_is_damaged_is_rebuilt(spark, tmp_path, capsys):
    """Those that others read come first, whatever their names."""
    reader = "CREATE CONTINUOUS QUERY busiest MATERIALIZE RELATION AS SELECT MAX(n) AS n FROM turnover;"
    app = shop.application(tmp_path, shop.STREAM + shop.QUERY + reader)
    for day in shop.DAYS:
        shop.sell(tmp_path, day)
    admit(app, "sales", spark)
    for query in ("turnover", "busiest"):
        process(app, query, spark)
    before = {table: shop.contents(app, table) for table in ("turnover", "busiest")}
    where = [str(app.folder), "--data", str(app.data)]
    assert cli.main(["check", *where, "--rebuild"]) == 0
    assert "computed again" not in capsys.readouterr().out
    for lost in ("state/turnover", "results/turnover", "results/busiest"):
        shutil.rmtree(app.layout.absolute(lost))
    assert cli.main(["check", *where, "--rebuild"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in said if "is computed again" in line] == ["turnover", "busiest"]
    assert {table: shop.contents(app, table) for table in before} == before
    assert cli.main(["check", where[0], "sales", *where[1:], "--rebuild"]) == 1
    assert "sales is no query" in capsys.readouterr().err


def test_damaged_files_and_foreign_rows_are_told(maintained):
    app, _ = maintained
    log = DeltaLog(app.layout.result("ever"))
    path = Path(log.uri, log.files()[0].path)
    kept = path.read_bytes()
    path.write_bytes(kept[:-1])
    assert "bytes, the log says" in check(app, "ever").wrong["ever"][0]
    path.unlink()
    assert check(app, "ever").wrong["ever"] == [f"results/ever: the file {log.files()[0].path} is missing"]
    path.write_bytes(kept)
    before = log.version()
    DeltaTable(log.uri).delete("n = 1")
    assert "changed from outside" in check(app, "ever").wrong["ever"][0]
    assert maintain(app, "ever").problems
    DeltaTable(log.uri).restore(before)
    assert check(app, "ever").wrong == {}


def test_a_file_whose_pages_are_damaged_is_told_and_rebuilt(spark, tmp_path):
    app = shop.application(tmp_path, shop.STREAM + shop.QUERY)
    shop.sell(tmp_path, shop.DAYS[0])
    admit(app, "sales", spark)
    process(app, "turnover", spark)
    before = shop.contents(app, "turnover")
    log = DeltaLog(app.layout.result("turnover"))
    file = max(log.files(), key=lambda f: f.size)
    path = Path(log.uri) / file.path
    whole = path.read_bytes()
    footer = 8 + int.from_bytes(whole[-8:-4], "little")
    path.write_bytes(whole[:4] + bytes(len(whole) - 4 - footer) + whole[-footer:])
    found = check(app, "turnover")
    assert found.damaged == {"turnover": {"results/turnover"}}
    assert found.wrong["turnover"][0].startswith(f"results/turnover: the file {file.path} cannot be read: ")
    rebuild(app, "turnover", spark, found.damaged["turnover"])
    assert check(app, "turnover").wrong == {}
    assert shop.contents(app, "turnover") == before


def test_lengths_of_time():
    assert (hours_of("7 days"), hours_of("36 hours"), hours_of("2 WEEKS")) == (168, 36, 336)
    for text in ("7", "0 days", "a while", "1 minute"):
        with pytest.raises(SweepAreaError, match="is no length of time"):
            hours_of(text)
