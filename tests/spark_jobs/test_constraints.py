"""Constraints of queries over a real application: each outcome live, late and in a backfill; what a person accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sweeparea.infra.errors import SweepAreaError, UsageError
from sweeparea.quality.verdict import QualityFailure
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.sql import Reader
from sweeparea.spark_jobs.commands.status import status
from sweeparea.spark_jobs.orchestration.accept import accept
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.rewriting.backfill import backfill
from sweeparea.spark_jobs.upkeep.check import check
from tests.spark_jobs import shop

LATE = shop.STREAM.replace("  CONSTRAINT", "  LATE REPAIR WITHIN INTERVAL 1 HOUR\n  CONSTRAINT")
BELOW = """
CREATE CONTINUOUS QUERY busy START AT TIMESTAMP '2020-01-01 00:00:00' AS SELECT shop, n FROM turnover WHERE n > 1;
"""


def text(outcome: str, condition: str = "n < 2", stream: str = LATE) -> str:
    clause = f"\n  CONSTRAINT few EXPECT ({condition}) ON VIOLATION {outcome} AS\nSELECT"
    return stream + shop.QUERY.replace(" AS\nSELECT", clause, 1) + BELOW


def asked(app: Application, statement: str) -> list[dict[str, Any]]:
    return Reader(app).connect(statement).sql(statement).to_arrow_table().to_pylist()


def day(app: Application, folder: Path, spark: SparkSession, rows: list[Any]) -> None:
    shop.sell(folder, rows)
    admit(app, "sales", spark)
    for query in ("turnover", "busy"):
        process(app, query, spark)


def committed(app: Application, name: str) -> int | None:
    row = app.ledger.head().get(name)
    return None if row is None else row.committed


def history(app: Application, table: str) -> list[tuple[Any, ...]]:
    return sorted(
        ((r["shop"], r["n"], r["amount"], r["valid_from"], r["valid_to"]) for r in asked(app, f"FROM {table}")),
        key=repr,
    )


def test_what_is_kept_out_of_a_query_stands_beside_it(tmp_path: Path, spark: SparkSession):
    """Together they are what the query is without the constraint, in any order of arrival, and after a backfill."""
    plain = shop.application(tmp_path / "plain", LATE + shop.QUERY)
    shop.sell(tmp_path / "plain", [row for rows in shop.DAYS for row in rows if row[0] is not None])
    admit(plain, "sales", spark)
    process(plain, "turnover", spark)
    whole = history(plain, "turnover")
    app = shop.application(tmp_path / "q", text("QUARANTINE ROW"))
    for rows in shop.DAYS:  # the last brings a late row
        day(app, tmp_path / "q", spark, rows)
    kept, out = history(app, "turnover"), history(app, "quarantine.turnover")
    assert kept == [row for row in whole if row[1] < 2]
    assert out == [row for row in whole if row[1] >= 2]
    assert asked(app, "SELECT count(*) AS n FROM busy") == [{"n": 0}]
    why = asked(app, "SELECT DISTINCT __constraint, __reason FROM quarantine.turnover")
    assert why == [{"__constraint": "few", "__reason": "constraint few is violated: n < 2"}]
    assert asked(app, "SELECT count(*) AS n FROM quarantine.turnover__at('2020-01-01 12:00:35')") == [{"n": 1}]
    report = backfill(app, "turnover", spark, None, None, print)
    assert "nothing differs" in report.words
    assert not check(app).wrong
    with pytest.raises(SweepAreaError, match="quarantine"):
        Reader(app).run("FROM quarantine.nothing")


def test_a_refused_slice_is_accepted_by_a_person(tmp_path: Path, spark: SparkSession):
    app = shop.application(tmp_path, text("FAIL UPDATE"))
    with pytest.raises(UsageError, match="Nothing of turnover is refused"):
        accept(app, "turnover", "why not")
    with pytest.raises(QualityFailure, match="few"):
        day(app, tmp_path, spark, [(0, "a", 1.0, 1), (5, "a", 1.0, 1), (200, "b", 1.0, 1)])
    assert committed(app, "turnover") is None
    assert "few" in status(app)
    assert "Refused verdicts that are not over" in status(app)
    with pytest.raises(UsageError, match="Say why"):
        accept(app, "turnover", " ")
    refusal, accepted = accept(app, "turnover", "known", "anna")
    assert refusal.constraints == accepted.constraints == ("few",)
    assert "Refused" not in status(app)
    process(app, "turnover", spark)
    assert committed(app, "turnover") == accepted.upto
    assert [(a.who, a.why) for a in app.ledger.head()["turnover"].of_query.accepted or ()] == [("anna", "known")]
    # what began then and ends later was judged, and what is computed again is judged as it was
    shop.sell(tmp_path, [(300, "z", 1.0, 1)])
    admit(app, "sales", spark)
    process(app, "turnover", spark)
    assert "nothing differs" in backfill(app, "turnover", spark, None, None, print).words
    # other instants are judged as before
    shop.sell(tmp_path, [(301, "z", 1.0, 1), (400, "z", 1.0, 1)])
    admit(app, "sales", spark)
    before = committed(app, "turnover")
    with pytest.raises(QualityFailure, match="few"):
        process(app, "turnover", spark)
    assert committed(app, "turnover") == before


def test_a_refused_repair_stays_pending(tmp_path: Path, spark: SparkSession):
    app = shop.application(tmp_path, text("FAIL UPDATE", "n < 4"))
    day(app, tmp_path, spark, shop.DAYS[0])
    day(app, tmp_path, spark, [(200, "z", 1.0, 1)])
    before = history(app, "turnover")
    with pytest.raises(QualityFailure, match="few"):
        day(app, tmp_path, spark, [(31, "a", 1.0, 1)])
    assert history(app, "turnover") == before
    assert "to be repaired after corrections of sales" in status(app)
    assert "computed again" in status(app)
    accept(app, "turnover", "known")
    process(app, "turnover", spark)
    assert [row for row in history(app, "turnover") if row[1] == 4]
    assert "after corrections of sales" not in status(app)
    assert not check(app).wrong


@pytest.mark.parametrize("outcome", ["QUARANTINE ROW", "WARN", "FAIL UPDATE"])
def test_a_condition_that_cannot_be_computed_concerns_its_row(tmp_path: Path, spark: SparkSession, outcome: str):
    app = shop.application(tmp_path, text(outcome, "1 DIV (n - 2) < 9 AND 1 DIV (n - 2) < 8"))
    shop.sell(tmp_path, shop.DAYS[0])
    admit(app, "sales", spark)
    if outcome == "FAIL UPDATE":
        with pytest.raises(QualityFailure, match=r"computed:few .*cannot be computed"):
            process(app, "turnover", spark)
    else:
        process(app, "turnover", spark)
        out = asked(app, "SELECT n, __reason FROM quarantine.turnover") if outcome == "QUARANTINE ROW" else []
        assert {row["n"] for row in out} == ({2} if out else set())
        assert all("cannot be computed" in row["__reason"] for row in out)
    told = asked(app, "SELECT status, unexpected FROM quality.verdicts WHERE expectation = 'computed:few'")
    assert [row["status"] for row in told if row["unexpected"]][:1] == (
        [] if outcome == "QUARANTINE ROW" else ["error"]
    )


def test_a_version_of_a_source_is_accepted(tmp_path: Path, spark: SparkSession):
    stream = shop.STREAM.replace("QUARANTINE ROW", "FAIL UPDATE").replace("amount > 0", "10 / (amount + 1) > 0")
    app = shop.application(tmp_path, stream + shop.QUERY)
    shop.sell(tmp_path, [(1, "a", -1.0, 1), (2, "a", -3.0, 1), (3, "b", 1.0, 1)])
    with pytest.raises(SweepAreaError, match="violated by 1 rows and cannot be computed for 1"):
        admit(app, "sales", spark)
    assert "sales: version 0 of its source was refused" in status(app)
    assert len(asked(app, "SELECT * FROM quality.samples WHERE name = 'sales' AND refused")) == 2
    accept(app, "sales", "a test of the till", "anna")
    assert admit(app, "sales", spark).warned == {"positive": 2}
    assert committed(app, "sales") is not None
    shop.sell(tmp_path, [(50, "a", -3.0, 1)])
    with pytest.raises(SweepAreaError, match="violated by 1 rows, and"):
        admit(app, "sales", spark)
