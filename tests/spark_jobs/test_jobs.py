"""Admit and process over real Delta sources: quarantine, heartbeats, recovery, others' commits, changed definitions."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.admission.admit import admit, advance
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.commands import StatementSession
from sweeparea.spark_jobs.commands.sql import Reader
from sweeparea.spark_jobs.commands.status import status
from sweeparea.spark_jobs.evaluation.grouped import grouping
from sweeparea.spark_jobs.orchestration.apply import apply
from sweeparea.spark_jobs.orchestration.drop import drop
from sweeparea.spark_jobs.orchestration.planner import plan
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.tables import faults
from sweeparea.tables.log.delta_log import DeltaLog
from tests.spark_jobs import shop

pytestmark = pytest.mark.spark
TABLES = ("turnover", "turnover__istream")


class Killed(BaseException):
    """Stands for SIGKILL at a crash point: nothing catches it, nothing runs after it."""


def _live(spark, folder: Path) -> Application:
    app = shop.application(folder)
    for day in shop.DAYS:
        shop.sell(folder, day)
        admit(app, "sales", spark)
        process(app, "turnover", spark)
    return app


@pytest.fixture(scope="module")
def undisturbed(spark, tmp_path_factory) -> Application:
    return _live(spark, tmp_path_factory.mktemp("undisturbed"))


def _same(app: Application, other: Application) -> None:
    for table in TABLES:
        assert shop.contents(app, table) == shop.contents(other, table)


def test_a_query_that_runs_otherwise_than_it_is_bound_goes_on(spark, tmp_path: Path):
    """COUNT(DISTINCT x) and ranks are lowered; what is compared with their SweepAreas is the plan as it runs."""
    text = shop.STREAM + (
        "CREATE CONTINUOUS QUERY kinds AS SELECT shop, COUNT(DISTINCT items) AS n FROM sales GROUP BY shop;\n"
        "CREATE CONTINUOUS QUERY places AS SELECT shop, amount, RANK() OVER (PARTITION BY shop ORDER BY amount) AS r"
        " FROM sales;\n"
    )
    for day in shop.DAYS[:2]:
        shop.sell(tmp_path, day)
        app = shop.application(tmp_path, text)
        admit(app, "sales", spark)
        for query in ("kinds", "places"):
            process(app, query, spark)
            row = app.ledger.head()[query]
            assert any(rows for op, rows in row.of_query.state.rows.items() if op != "materialize")
            assert not app.registry.stale(app.plans.plan(query), row)


def test_closed_windows_and_exact_sums_worked_by_hand(undisturbed):
    """By hand: closed windows of 60 s end at s+61; 1e16 + 1.0 + 2.5 rounds once, to 1e16 + 4, and 1e16 leaves no
    trace.
    """
    rows = DeltaLog(undisturbed.layout.result("turnover")).read().to_pylist()
    b = [
        (r["amount"], r["most"], r["n"], (r["valid_from"] - shop.NOON).total_seconds())
        for r in sorted(rows, key=lambda r: r["valid_from"])
        if r["shop"] == "b"
    ]
    assert b == [
        (1e16, 1, 1, 5.0),
        (1e16, 9, 2, 40.0),
        (1.0, 9, 1, 66.0),
        (3.5, 9, 2, 90.0),
        (2.5, 4, 1, 101.0),
        (2.501, 4, 2, 130.0),
        (0.001, 2, 1, 151.0),
    ]


def test_quarantine_keeps_what_was_kept_out(undisturbed):
    rows = DeltaLog(undisturbed.layout.quarantine("sales")).read().to_pylist()
    reasons = Counter(r["__reason"].split(" (")[0].split(":")[0] for r in rows)
    assert reasons == {"timestamp column at is NULL": 1, "constraint positive is violated": 1, "late": 1}
    late = next(r for r in rows if r["__reason"].startswith("late"))
    assert (late["__version"], late["__tick"]) == (2, shop.tick(20))
    assert '"amount": 9.9' in late["__row"]


def test_one_slice_equals_three(spark, tmp_path, undisturbed):
    app = shop.application(tmp_path)
    for day in shop.DAYS:
        shop.sell(tmp_path, day)
    report = admit(app, "sales", spark)
    assert (report.versions, report.rows, sum(report.quarantined.values())) == (3, 10, 3)
    assert process(app, "turnover", spark).slices == 1
    _same(app, undisturbed)


POINTS = ["publish.staged", "publish.ledger_committed", "publish.applied:", "publish.history", "slice.staged_files"]


@pytest.mark.parametrize("point", POINTS)
def test_a_run_that_dies_anywhere_is_continued(spark, tmp_path, undisturbed, monkeypatch, point):
    """Law S3: dies once in the second admit and once in the second slice, at every kind of crash point."""
    app = shop.application(tmp_path)
    died: list[str] = []

    def maybe(name: str) -> None:
        if armed and name.startswith(point):
            armed.clear()
            died.append(name)
            raise Killed(name)

    armed: list[bool] = []
    for module in ("sweeparea.tables.publication.publish", "sweeparea.spark_jobs.slices.slice"):
        monkeypatch.setattr(f"{module}.crash_point", maybe)
    for number, day in enumerate(shop.DAYS):
        shop.sell(tmp_path, day)
        for job in (lambda: admit(app, "sales", spark), lambda: process(app, "turnover", spark)):
            if number == 1:
                armed.append(True)
            try:
                job()
            except Killed:
                job()
            armed.clear()
    assert len(died) == (1 if point.startswith("slice") else 2)
    _same(app, undisturbed)
    assert shop.contents(app, "turnover")


def test_crash_points_kill_only_when_asked(monkeypatch):
    struck: list[tuple[int, int]] = []
    monkeypatch.setattr(faults.os, "kill", lambda process, with_: struck.append((process, with_)))
    monkeypatch.delenv("SWEEPAREA_CRASH_AT", raising=False)
    faults.crash_point("slice.staged_files")
    monkeypatch.setenv("SWEEPAREA_CRASH_AT", "slice.staged_files")
    faults.crash_point("slice.other")
    assert not struck
    faults.crash_point("slice.staged_files")
    assert struck == [(os.getpid(), signal.SIGKILL)]


def test_optimize_between_slices_is_adopted(spark, tmp_path, undisturbed):
    """A user's OPTIMIZE mixes open and closed rows of a relation in one file; later slices still replace the open
    ones.
    """
    app = shop.application(tmp_path)
    for day in shop.DAYS:
        shop.sell(tmp_path, day)
        admit(app, "sales", spark)
        process(app, "turnover", spark)
        for table in TABLES:
            DeltaTable(app.layout.result(table)).optimize.compact()
    _same(app, undisturbed)


def test_a_foreign_write_stops_the_query(spark, tmp_path):
    app = shop.application(tmp_path)
    shop.sell(tmp_path, shop.DAYS[0])
    admit(app, "sales", spark)
    process(app, "turnover", spark)
    path = app.layout.result("turnover")
    assert "WRONG" not in status(app)
    write_deltalake(path, DeltaTable(path).to_pyarrow_table().slice(0, 1), mode="append")
    told = r"results/turnover: .* was changed from outside: version \d+ is a WRITE by .* RESTORE TABLE"
    assert re.search(told, status(app))
    for statement in (
        "SELECT 1 FROM turnover WHERE shop = 'none'", "FROM turnover__current", "FROM turnover__at('2020-01-01')",
        "SELECT 1; SELECT * FROM Turnover", "SUMMARIZE turnover",
    ):  # fmt: skip
        with pytest.raises(SweepAreaError, match=r"turnover is not what SweepArea committed.*changed from outside"):
            Reader(app).run(statement)
    assert Reader(app).run("SELECT count(*) AS turnover FROM turnover__istream", "csv") == "turnover\n3"
    shop.sell(tmp_path, shop.DAYS[1])
    admit(app, "sales", spark)
    with pytest.raises(SweepAreaError, match=r"turnover"):
        process(app, "turnover", spark)


def test_a_changed_definition_is_refused_until_dropped(spark, tmp_path, undisturbed):
    folder = tmp_path / "copy"
    shutil.copytree(undisturbed.data, folder / "data")
    changed = shop.application(folder, shop.STREAM + shop.QUERY.replace("60 SECONDS", "30 SECONDS"))
    with pytest.raises(SweepAreaError, match=r"definition of turnover has changed.*sweeparea drop"):
        process(changed, "turnover", spark)
    assert any("removed" in line for line in drop(changed, "turnover"))
    assert process(changed, "turnover", spark).slices == 1
    assert shop.contents(changed, "turnover") != shop.contents(undisturbed, "turnover")


def test_the_source_may_not_take_back_elements(spark, tmp_path):
    app = shop.application(tmp_path)
    shop.sell(tmp_path, shop.DAYS[0])
    admit(app, "sales", spark)
    DeltaTable(str(tmp_path / "data/source/sales")).delete("shop = 'b'")
    with pytest.raises(SweepAreaError, match=r"version 1 .* removes or changes 1 rows.*ON SOURCE CHANGE FAIL"):
        admit(app, "sales", spark)
    ignoring = shop.application(tmp_path, shop.STREAM.replace(";", " ON SOURCE CHANGE IGNORE;") + shop.QUERY)
    # what FAIL admitted holds under IGNORE too, so it goes on from there
    shop.sell(tmp_path, shop.DAYS[1])
    report = admit(ignoring, "sales", spark)
    assert (report.versions, report.rows, report.ignored) == (2, 3, 1)
    assert ignoring.ledger.head()["sales"].info["source_version"] == 2
    with pytest.raises(SweepAreaError, match="definition of sales has changed"):
        admit(shop.application(tmp_path), "sales", spark)


def test_an_empty_source_waits(spark, tmp_path):
    app = shop.application(tmp_path)
    shop.sell(tmp_path, [])
    report = admit(app, "sales", spark)
    assert (report.rows, report.heartbeat) == (0, None)
    assert process(app, "turnover", spark).waits_for == "sales"
    shop.sell(tmp_path, shop.DAYS[0])
    admit(app, "sales", spark)
    assert process(app, "turnover", spark).slices == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (shop.STREAM.replace("source/sales", "source/nothing"), "source/nothing does not exist"),
        (shop.STREAM.replace("BY at", "BY att").replace("FOR at AS at", "FOR att AS att"), "att.*Did you mean at"),
        (shop.STREAM.replace("BY at", "BY shop").replace("FOR at AS at", "FOR shop AS at"), "shop.*no time.*at"),
    ],
)
def test_bad_sources_are_named(spark, tmp_path, text, said):
    shop.sell(tmp_path, shop.DAYS[0])
    app = shop.application(tmp_path, text)
    with pytest.raises(SweepAreaError, match=f"(?s){said}"):
        admit(app, "sales", spark)
    assert not app.ledger.head()


def test_a_retyped_source_column_is_refused_before_anything_is_written(spark, tmp_path):
    app = shop.application(tmp_path)
    shop.sell(tmp_path, shop.DAYS[0])
    admit(app, "sales", spark)
    wider = shop.SCHEMA.append(pa.field("note", pa.string()))
    row = pa.table([[shop.NOON], ["a"], [1.0], [1], ["x"]], schema=wider)
    write_deltalake(str(tmp_path / "data/source/sales"), row, mode="append", schema_mode="merge")
    with pytest.raises(SweepAreaError, match=r"gained the column.*note"):
        admit(app, "sales", spark)


def test_a_failing_constraint_publishes_nothing(spark, tmp_path):
    query = shop.QUERY.replace(" AS\n", "\n  CONSTRAINT small EXPECT (n < 2) ON VIOLATION FAIL UPDATE AS\n", 1)
    app = shop.application(tmp_path, shop.STREAM + query)
    shop.sell(tmp_path, shop.DAYS[0])
    admit(app, "sales", spark)
    with pytest.raises(SweepAreaError, match=r"not published.*small"):
        process(app, "turnover", spark)
    assert "turnover" not in app.ledger.head()
    warned = shop.application(tmp_path, shop.STREAM + query.replace("FAIL UPDATE", "WARN"))
    process(warned, "turnover", spark)
    verdicts = warned.ledger.head()["turnover"].info["verdicts"]
    assert verdicts[0]["warnings"] == {"constraint:small": 1}
    assert all(
        not c.startswith("__") for c in DeltaTable(app.layout.result("turnover")).to_pyarrow_table().column_names
    )


def test_sql_reads_one_ledger_state(undisturbed):
    reader = Reader(undisturbed)
    assert reader.run("SELECT count(*) AS n FROM turnover__istream", "json") == '{"n": 15}'
    current = reader.run("SELECT shop, n FROM turnover__current ORDER BY 1", "csv")
    assert current == "shop,n"
    then = reader.run("SELECT shop, most FROM turnover__at('2020-01-01 12:00:45') ORDER BY 1", "csv")
    assert then == "shop,most\na,7\nb,9"
    with pytest.raises(SweepAreaError, match=r"Tables of shop"):
        reader.run("SELECT * FROM nothing")


def test_sql_whatever_columns_and_queries_are_called(spark, tmp_path):
    text = """
    CREATE CONTINUOUS QUERY known AS
    SELECT items AS i, COUNT(*) AS instant, 1 AS asked, 2 AS `a"b`
    FROM sales [RANGE INTERVAL 60 SECONDS] GROUP BY items;
    CREATE CONTINUOUS QUERY later AS SELECT shop FROM known, sales [NOW];
    """
    app = shop.application(tmp_path, shop.STREAM + text)
    shop.sell(tmp_path, shop.DAYS[0])
    admit(app, "sales", spark)
    process(app, "known", spark)
    reader = Reader(app)
    assert reader.run("FROM known__at('2020-01-01 12:00:04') ORDER BY ALL", "csv") == 'i,instant,asked,"a""b"\n3,1,1,2'
    assert reader.run("SELECT i, instant FROM known__current ORDER BY ALL", "csv") == "i,instant\n1,1\n3,1\n7,1"
    with pytest.raises(SweepAreaError, match=r"known up to its committed instant only"):
        reader.run("FROM known__at('2020-01-01 12:01:00')")
    with pytest.raises(SweepAreaError, match=r"later has not been processed yet, see `sweeparea status"):
        reader.run("FROM later__current")


def test_a_manual_heartbeat_is_moved_by_hand_and_never_back(spark, tmp_path):
    text = shop.STREAM.replace("HEARTBEAT FOR at AS at - INTERVAL 10 SECONDS", "HEARTBEAT MANUAL")
    app = shop.application(tmp_path, text + shop.QUERY)
    shop.sell(tmp_path, shop.DAYS[0])
    with pytest.raises(SweepAreaError, match="not been admitted yet"):
        advance(app, "sales", shop.tick(30))
    admit(app, "sales", spark)
    assert process(app, "turnover", spark).waits_for == "sales"
    assert advance(app, "sales", shop.tick(30)) is None
    assert process(app, "turnover", spark).committed == shop.tick(30)
    with pytest.raises(SweepAreaError, match="cannot go back"):
        advance(app, "sales", shop.tick(29))
    shop.sell(tmp_path / "other", shop.DAYS[0])
    with pytest.raises(SweepAreaError, match="own policy"):
        advance(shop.application(tmp_path / "other"), "sales", 0)


def test_a_clock_goes_on_without_new_rows(spark, tmp_path):
    text = shop.STREAM.replace("FOR at AS at - INTERVAL 10 SECONDS", "FROM CLOCK LAG INTERVAL 1 SECOND")
    app = shop.application(tmp_path, text)
    shop.sell(tmp_path, shop.DAYS[0])
    first = admit(app, "sales", spark)
    time.sleep(1.1)
    second = admit(app, "sales", spark)
    assert (first.rows, second.rows) == (4, 0)
    assert (second.heartbeat or 0) > (first.heartbeat or 0) > shop.tick(0)


def test_a_source_made_anew_is_not_taken_for_the_old_one(spark, tmp_path):
    app = shop.application(tmp_path)
    shop.sell(tmp_path, shop.DAYS[0])
    admit(app, "sales", spark)
    shutil.rmtree(tmp_path / "data/source/sales")
    for day in shop.DAYS:
        shop.sell(tmp_path, day)
    with pytest.raises(SweepAreaError, match="removed and made anew"):
        admit(app, "sales", spark)


READER = "CREATE CONTINUOUS QUERY busiest AS SELECT MAX(n) AS n FROM turnover;"


def test_a_reader_stands_still_when_what_it_reads_has_changed(spark, tmp_path):
    app = shop.application(tmp_path, shop.STREAM + shop.QUERY + READER)
    shop.sell(tmp_path, shop.DAYS[0])
    admit(app, "sales", spark)
    process(app, "turnover", spark)
    assert process(app, "busiest", spark).committed == shop.tick(19)
    changed = shop.application(
        tmp_path, shop.STREAM + shop.QUERY.replace("COUNT(*) AS n", "COUNT(*) + 1 AS n") + READER
    )
    with pytest.raises(SweepAreaError, match="definition of turnover has changed"):
        process(changed, "busiest", spark)
    place = changed.catalog.queries["turnover"].place
    assert f"turnover: stands still: {place}: The definition of turnover has changed" in status(changed)
    with pytest.raises(SweepAreaError, match="is read by busiest"):
        drop(changed, "turnover")


def test_a_query_over_the_stream_that_another_keeps(spark, tmp_path):
    """``turnover__istream`` read as an input is what turnover itself has sent out, however it was cut."""
    news = "CREATE CONTINUOUS QUERY news AS SELECT shop, n FROM turnover__istream;"
    app = shop.application(tmp_path, shop.STREAM + shop.QUERY + news)
    for day in shop.DAYS:
        shop.sell(tmp_path, day)
        admit(app, "sales", spark)
        process(app, "turnover", spark)
        assert process(app, "news", spark).slices == 1
    sent = [
        (row["shop"], row["n"], row["ts"])
        for row in DeltaLog(app.layout.result("turnover__istream")).read().to_pylist()
    ]
    assert shop.contents(app, "news") == sorted(sent, key=repr)
    row = app.ledger.head()["news"]
    assert row.pins["turnover__istream"]["seq"] == app.ledger.head()["turnover"].seq


def test_a_paused_query_waits_and_a_replaced_one_starts_again(spark, tmp_path):
    app = shop.application(tmp_path, shop.STREAM + shop.QUERY)
    shop.sell(tmp_path, shop.DAYS[0])
    admit(app, "sales", spark)
    process(app, "turnover", spark)
    shop.sell(tmp_path, shop.DAYS[1])
    admit(app, "sales", spark)
    list(StatementSession(app).run("PAUSE CONTINUOUS QUERY turnover"))
    report = process(app, "turnover", spark)
    assert (report.paused, report.slices) == (True, 0)
    list(StatementSession(app).run("RESUME CONTINUOUS QUERY turnover"))
    assert process(app, "turnover", spark).slices == 1
    text = shop.STREAM + shop.QUERY.replace("60 SECONDS", "30 SECONDS").replace("CREATE", "CREATE OR REPLACE")
    replaced = shop.application(tmp_path, text)
    apply(replaced, plan(replaced))
    assert process(replaced, "turnover", spark).slices == 1
    alone = shop.application(tmp_path / "alone", text)
    for day in shop.DAYS[:2]:
        shop.sell(tmp_path / "alone", day)
    admit(alone, "sales", spark)
    process(alone, "turnover", spark)
    assert shop.contents(replaced, "turnover") == shop.contents(alone, "turnover")


@pytest.mark.parametrize("lost", ["state/turnover", "results/turnover", "admitted/sales"])
def test_folders_that_were_lost_are_noticed(spark, tmp_path, undisturbed, lost):
    shutil.copytree(undisturbed.data, tmp_path / "data")
    app = shop.application(tmp_path)
    assert "WRONG" not in status(app)
    shutil.rmtree(tmp_path / "data" / lost)
    assert re.search(rf"WRONG, `sweeparea check .*` tells more: {lost}.*: the table is missing", status(app))
    if not lost.startswith("state"):
        with pytest.raises(SweepAreaError, match=r"is not what SweepArea committed.*: the table is missing"):
            Reader(app).run(f"SELECT * FROM {lost.replace('/', '.').removeprefix('results.')}")
    shop.sell(tmp_path, [(500, "a", 1.0, 1)])
    with pytest.raises(SweepAreaError, match=r"(missing|SweepArea).*[Rr]estore the data folder"):  # noqa: PT012
        admit(app, "sales", spark)
        process(app, "turnover", spark)


def test_state_in_the_layout_of_another_version_is_told(spark, tmp_path, monkeypatch):
    app = shop.application(
        tmp_path,
        shop.STREAM + "CREATE CONTINUOUS QUERY ends START AT TIMESTAMP '2020-01-01 00:00:00' AS SELECT shop,"
        " FIRST(items) AS one, LAST(items) AS other FROM sales [RANGE INTERVAL 60 SECONDS] GROUP BY shop;",
    )
    with monkeypatch.context() as other_version:  # one that kept both ends as one
        other_version.setattr(grouping.Base, "state", property(lambda base: (base.function, base.distinct, base.given)))
        shop.sell(tmp_path, shop.DAYS[0])
        admit(app, "sales", spark)
        process(app, "ends", spark)
    shop.sell(tmp_path, shop.DAYS[1])
    admit(app, "sales", spark)
    with pytest.raises(SweepAreaError, match=r"layout of another version.*check.* --rebuild"):
        process(app, "ends", spark)
