"""Expectations over several rows of a real application: of commits, of units of time however these were cut, of what
another relation holds; they fail or warn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from sweeparea.infra.errors import SweepAreaError
from sweeparea.quality.verdict import QualityFailure
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands import quality
from sweeparea.spark_jobs.commands.sql import Reader
from sweeparea.spark_jobs.orchestration import planner
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.rewriting.backfill import backfill
from tests.spark_jobs import shop

SALES = """
CREATE STREAM sales FROM DELTA 'source/sales' TIMESTAMP BY at CHRONON INTERVAL 1 SECOND
  HEARTBEAT FOR at AS at - INTERVAL 10 SECONDS LATE REPAIR {clauses};
"""
RELATION = """
CREATE CONTINUOUS QUERY turnover START AT TIMESTAMP '2020-01-01 12:00:00' {clauses} AS
SELECT shop, COUNT(*) AS n FROM sales [RANGE INTERVAL 60 SECONDS] GROUP BY shop;
"""
STREAM = """
CREATE CONTINUOUS QUERY large START AT TIMESTAMP '2020-01-01 12:00:00' {clauses} AS
ISTREAM(SELECT shop, amount, items FROM sales [NOW] WHERE amount > 0);
"""
MINUTE = "PER INTERVAL 1 MINUTE ON VIOLATION WARN"
DAYS: list[list[tuple[int | None, str, float, int]]] = [
    [(1, "a", 1.0, 3), (5, "b", 2.0, 1), (59, "b", 9.0, 1), (61, "a", 1.0, 9)],
    [(100, "b", 3.0, 9), (170, "c", 1.0, 1), (185, "a", 5.0, 1), (200, "a", 2.0, 2)],
    [(330, "a", 7.0, 8), (420, "c", 4.0, 1)],
]


def verdicts(app: Application, name: str, more: str = "TRUE") -> list[dict[str, Any]]:
    columns = "expectation, status, observed, unexpected, rows, unit_from, unit_to, refused, error"
    text = f"SELECT {columns} FROM quality.verdicts WHERE name = '{name}' AND {more} AND expectation NOT LIKE 'law:%'"
    return Reader(app).connect().sql(f"{text} ORDER BY judged_at, expectation, unit_from").to_arrow_table().to_pylist()


def sold(folder: Path, text: str, spark: SparkSession, days: Sequence[Sequence[Any]], *queries: str) -> Application:
    app = shop.application(folder, text)
    for day in days:
        shop.sell(folder, list(day))
        admit(app, "sales", spark)
        for query in queries:
            process(app, query, spark)
    return app


def by_minute(app: Application, name: str, constraint: str) -> list[tuple[int, str, int]]:
    rows = verdicts(app, name, f"expectation = 'constraint:{constraint}'")
    start = shop.tick(0)
    return [((row["unit_from"] - start) // 60, row["status"], row["rows"]) for row in rows]


def test_a_unit_is_judged_once_and_as_a_whole_however_time_was_cut(tmp_path: Path, spark: SparkSession):
    clauses = (
        f"CONSTRAINT most EXPECT gx.expect_column_max_to_be_between(column => 'n', max_value => 1) {MINUTE} "
        f"CONSTRAINT volume EXPECT VOLUME BETWEEN 1 AND 3 {MINUTE}"
    )
    stream = clauses.replace("'n', max_value => 1", "'amount', max_value => 5")
    text = SALES.format(clauses=stream) + RELATION.format(clauses=clauses) + STREAM.format(clauses=stream)
    found = []
    for cut in (DAYS, [[row for day in DAYS for row in day]]):
        app = sold(tmp_path / str(len(cut)), text, spark, cut, "turnover", "large")
        found.append({(n, c): by_minute(app, n, c) for n in ("sales", "turnover", "large") for c in ("most", "volume")})
    assert found[0] == found[1]
    assert found[0]["large", "volume"] == [
        (0, "pass", 3), (1, "pass", 2), (2, "pass", 1), (3, "pass", 2), (4, "fail", 0), (5, "pass", 1),
    ]  # fmt: skip
    assert found[0]["large", "most"] == [(0, "fail", 3), (1, "pass", 2), (2, "pass", 1), (3, "pass", 2), (5, "fail", 1)]
    assert found[0]["sales", "most"] == found[0]["large", "most"][1:]  # the unit of the first element is not whole
    assert [minute for minute, _, _ in found[0]["turnover", "volume"]] == [0, 1, 2, 3, 4, 5]


def test_a_late_row_has_its_unit_judged_again_before_it_is_published(tmp_path: Path, spark: SparkSession):
    clause = "CONSTRAINT few EXPECT VOLUME BETWEEN 0 AND 3 PER INTERVAL 1 MINUTE"
    app = sold(tmp_path, SALES.format(clauses="") + STREAM.format(clauses=clause), spark, DAYS, "large")
    before = shop.contents(app, "large")
    shop.sell(tmp_path, [(70, "a", 1.0, 1)])
    admit(app, "sales", spark)
    process(app, "large", spark)
    repaired = verdicts(app, "large", "cause IS NOT NULL")
    assert [(r["status"], r["observed"], r["unit_from"]) for r in repaired] == [("pass", "3", shop.tick(60))]
    assert len(shop.contents(app, "large")) == len(before) + 1
    shop.sell(tmp_path, [(80, "a", 1.0, 1)])
    admit(app, "sales", spark)
    with pytest.raises(QualityFailure, match="constraint:few"):
        process(app, "large", spark)
    assert len(shop.contents(app, "large")) == len(before) + 1
    (refused,) = verdicts(app, "large", "refused AND status <> 'pass'")
    assert (refused["observed"], refused["unit_from"]) == ("4", shop.tick(60))


def test_what_fails_is_refused_kept_and_goes_on_when_it_is_put_right(tmp_path: Path, spark: SparkSession):
    clause = "CONSTRAINT few EXPECT gx.expect_column_max_to_be_between(column => 'amount', max_value => 1)"
    app = sold(tmp_path, SALES.format(clauses="") + STREAM.format(clauses=clause), spark, [])
    shop.sell(tmp_path, DAYS[0])
    admit(app, "sales", spark)
    with pytest.raises(QualityFailure, match=r"constraint:few .*expect_column_max_to_be_between.* fails, observed 2"):
        process(app, "large", spark)
    assert app.ledger.row("large") is None
    (row,) = verdicts(app, "large")
    assert (row["status"], row["observed"], row["refused"]) == ("fail", "2.0", True)
    again = shop.application(tmp_path, SALES.format(clauses="") + STREAM.format(clauses=clause.replace("1)", "9)")))
    process(again, "large", spark)
    assert [(r["status"], r["refused"]) for r in verdicts(again, "large")] == [("fail", True), ("pass", False)]


def test_a_version_that_fails_is_not_admitted(tmp_path: Path, spark: SparkSession):
    clause = "CONSTRAINT few EXPECT gx.expect_column_sum_to_be_between(column => 'amount', max_value => 12)"
    app = sold(tmp_path, SALES.format(clauses=clause), spark, [])
    shop.sell(tmp_path, DAYS[0])
    with pytest.raises(SweepAreaError, match="ersion 0 of its source of sales is not admitted"):
        admit(app, "sales", spark)
    assert app.ledger.row("sales") is None
    assert [(r["status"], r["refused"]) for r in verdicts(app, "sales")] == [("fail", True)]
    suite, left = quality.exported(app, "sales")
    assert '"expect_column_sum_to_be_between"' in suite
    assert not left
    (tmp_path / "s.json").write_text(suite)
    assert quality.imported(app, str(tmp_path / "s.json"), "sales") == f"{clause} ON VIOLATION FAIL UPDATE"


def test_what_is_referenced_is_looked_for_when_it_is_planned(tmp_path: Path, spark: SparkSession):
    write_deltalake(str(tmp_path / "data" / "source" / "shops"), pa.table({"id": ["a"]}))
    shop.sell(tmp_path, DAYS[0])
    clauses = (
        "CONSTRAINT a EXPECT shop REFERENCES shops(idd) CONSTRAINT b EXPECT shop REFERENCES turnover(shop)"
        " CONSTRAINT c EXPECT shop REFERENCES large(shop)"
    )
    relation = "CREATE RELATION shops FROM DELTA 'source/shops' STATIC;"
    text = relation + SALES.format(clauses="") + RELATION.format(clauses="") + STREAM.format(clauses=clauses)
    app = shop.application(tmp_path, text)
    with app.analyzing(spark):
        told = "\n".join(map(str, planner.plan(app).problems))
    assert "constraint a: shops has no column idd. Did you mean id?" in told
    assert "constraint c: large is a stream" in told
    assert "constraint b" not in told


def test_values_that_another_relation_must_have_at_the_same_instant(tmp_path: Path, spark: SparkSession):
    shops = pa.table({"id": ["a", "b"], "area": ["x", "y"]})
    write_deltalake(str(tmp_path / "data" / "source" / "shops"), shops)
    clause = "CONSTRAINT known EXPECT shop REFERENCES shops(id) ON VIOLATION WARN"
    seen = "CONSTRAINT seen EXPECT (shop) REFERENCES turnover(shop) ON VIOLATION WARN"
    text = SALES.format(clauses=clause) + RELATION.format(clauses="") + STREAM.format(clauses=f"{clause} {seen}")
    app = shop.application(tmp_path, "CREATE RELATION shops FROM DELTA 'source/shops' STATIC;" + text)
    admit(app, "shops", spark)
    shop.sell(tmp_path, [row for day in DAYS for row in day])
    admit(app, "sales", spark)
    process(app, "large", spark)
    first = {row["expectation"]: row for row in verdicts(app, "large")}
    assert (first["constraint:seen"]["status"], first["constraint:known"]["status"]) == ("error", "fail")
    assert "turnover is not known yet" in first["constraint:seen"]["error"]
    assert first["constraint:known"]["unexpected"] == 1  # the shop c at 170; 420 is above the heartbeat
    (of_stream,) = verdicts(app, "sales", "expectation = 'constraint:known'")
    assert of_stream["unexpected"] == 2
    samples = Reader(app).connect().sql("SELECT row FROM quality.samples WHERE name = 'large'").fetchall()
    assert samples == [('{"shop": "c", "at": "2020-01-01 12:02:50"}',)]
    process(app, "turnover", spark)
    backfill(app, "large", spark, None, None, print)
    process(app, "large", spark)
    shop.sell(tmp_path, [(500, "z", 1.0, 1), (600, "a", 1.0, 1)])
    admit(app, "sales", spark)
    process(app, "turnover", spark)
    process(app, "large", spark)
    last = verdicts(app, "large", "expectation = 'constraint:seen'")[-1]
    assert (last["status"], last["unexpected"]) == ("pass", 0)  # the window holds each row at its own instant
