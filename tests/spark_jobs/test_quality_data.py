"""Verdicts of a real application as people read them: of streams, relations and queries, committed and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sweeparea.infra.errors import UsageError
from sweeparea.quality.verdict import QualityFailure
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands import quality
from sweeparea.spark_jobs.commands.sql import Reader
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.upkeep.maintain import maintain
from tests.spark_jobs import shop

TEXT = shop.STREAM + shop.QUERY.replace(
    " AS\nSELECT", "\n  CONSTRAINT few EXPECT (n < 2) ON VIOLATION {outcome} AS\nSELECT", 1
)


def asked(app: Application, statement: str) -> list[dict[str, Any]]:
    return Reader(app).connect().sql(statement).to_arrow_table().to_pylist()


def day(app: Application, folder: Path, spark: SparkSession, number: int) -> None:
    shop.sell(folder, shop.DAYS[number])
    admit(app, "sales", spark)
    process(app, "turnover", spark)


def test_verdicts_and_samples_of_what_was_committed(tmp_path: Path, spark: SparkSession):
    app = shop.application(tmp_path, TEXT.format(outcome="WARN"))
    for number in range(3):
        day(app, tmp_path, spark, number)
    assert asked(app, "SELECT view_name FROM duckdb_views() WHERE schema_name = 'quality'")
    of_stream = asked(app, "SELECT seq, expectation, unexpected, rows FROM quality.verdicts WHERE kind = 'stream'")
    assert {"seq": 1, "expectation": "constraint:positive", "unexpected": 0, "rows": 4} in of_stream
    assert {"seq": 2, "expectation": "constraint:positive", "unexpected": 1, "rows": 5} in of_stream
    assert any(row["expectation"].startswith("admission:timestamp column at is NULL") for row in of_stream)
    few = asked(app, "SELECT * FROM quality.verdicts WHERE expectation = 'constraint:few' AND NOT refused")
    n = asked(app, "SELECT count(*) AS n FROM turnover WHERE n >= 2")[0]["n"]
    relation = [row for row in few if row["table_name"] == "turnover"]
    assert n
    assert sum(row["unexpected"] for row in relation) == n  # once, when it comes
    assert {row["status"] for row in few} <= {"pass", "fail"}
    assert all(row["since"] is None or row["since"] < row["upto"] for row in few)
    shown = asked(app, "SELECT * FROM quality.samples WHERE expectation = 'constraint:few'")
    assert shown
    assert all('"n": ' in row["row"] and "__check" not in row["row"] for row in shown)
    laws = asked(app, "SELECT DISTINCT expectation FROM quality.verdicts WHERE expectation LIKE 'law:%'")
    assert len(laws) >= 5
    before = asked(app, "SELECT count(*) AS n FROM quality.verdicts")
    maintain(app)
    assert asked(app, "SELECT count(*) AS n FROM quality.verdicts") == before

    pages = quality.write_reports(app)
    assert {page.name for page in pages} == {"sales.html", "turnover.html"}
    assert "constraint:few" in pages[1].read_text()
    with pytest.raises(UsageError, match="no nothing"):
        quality.write_reports(app, "nothing")
    assert "constraint" in quality.diff(
        app, "2020-01-01 12:00:00..2020-01-01 12:00:25", "2020-01-01 12:00:25..2030-01-01"
    )


def test_a_refused_slice_has_a_verdict_that_says_so_and_no_other(tmp_path: Path, spark: SparkSession):
    app = shop.application(tmp_path, TEXT.format(outcome="FAIL UPDATE"))
    with pytest.raises(QualityFailure):
        day(app, tmp_path, spark, 0)
    told = asked(app, "SELECT * FROM quality.verdicts WHERE name = 'turnover'")
    assert told
    assert all(row["refused"] for row in told)
    (failed,) = {row["expectation"] for row in told if row["status"] == "fail"}
    assert failed == "constraint:few"
    assert asked(app, "SELECT * FROM quality.samples WHERE refused AND expectation = 'constraint:few'")
    assert app.ledger.row("turnover") is None
