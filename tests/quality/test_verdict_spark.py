from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sweeparea.operators.plan.plan import Constraint
from sweeparea.operators.sql.expressions import Expr
from sweeparea.quality import suites, verdict

pytestmark = pytest.mark.spark

BEGIN = datetime(2013, 1, 1, tzinfo=UTC)
CONSTRAINTS = [Constraint("sane", Expr("c0 < 100", "delay < 100"), "fail")]


@pytest.fixture(autouse=True)
def always_on_spark(monkeypatch):
    monkeypatch.setattr(verdict, "PANDAS_ROWS", 0)


def delays(spark, rows: int, bad: int):
    """``rows`` elements, a second apart; the first ``bad`` of them violate the constraint, the last has a NULL
    delay."""
    frame = spark.range(1, rows + 1).selectExpr(
        f"CASE WHEN id <= {bad} THEN 200 WHEN id < {rows} THEN 1 END AS delay",
        "timestampadd(SECOND, CAST(id AS INT), TIMESTAMP '2013-01-01 00:00:00') AS ts",
    )
    return frame.selectExpr("*", "coalesce(delay < 100, TRUE) AS __check_sane")


def test_the_spark_engine_finds_what_the_pandas_engine_finds(spark):
    checks = suites.stream_checks(["delay"], BEGIN, BEGIN + timedelta(seconds=990), CONSTRAINTS)
    frame = delays(spark, 1000, 7)
    on_spark = verdict.audit(frame, "delays", checks)
    on_pandas = verdict.audit(frame.toArrow(), "delays", checks)
    assert on_spark.rows == on_pandas.rows == 1000
    judged = [[(r["id"], r["status"], r["unexpected"]) for r in found.results] for found in (on_spark, on_pandas)]
    assert judged[0] == judged[1]
    assert [r["unexpected"] for r in on_spark.failures] == [10, 7]
    assert len(on_spark.failures[1]["sample"]) == 5
    assert on_spark.failures[1]["sample"][0]["delay"] == 200
    with pytest.raises(verdict.QualityFailure, match="constraint:sane"):
        verdict.require(on_spark, "delays", "(0, 990]")


def test_a_slice_of_another_session_is_not_mistaken_for_this_one(spark):
    checks = suites.stream_checks(["delay"], BEGIN, BEGIN + timedelta(seconds=1000), CONSTRAINTS)
    assert verdict.audit(delays(spark, 100, 0), "delays", checks).ok
    other = spark.newSession()
    assert not verdict.audit(delays(other, 100, 3), "delays", checks).ok


@pytest.mark.parametrize("base", [0, 10**17])
def test_ticks_are_compared_as_whole_numbers(spark, base):
    frame = spark.createDataFrame(
        [("a", base + 1, base + 5), ("b", base - 3, None), ("c", base - 3, base), ("d", base + 2, base + 2)],
        "v string, valid_from bigint, valid_to bigint",
    )
    found = verdict.audit(frame, "q", suites.relation_checks(["v"], base, base + 5))
    failures = {r["id"]: [row["v"] for row in r["sample"]] for r in found.failures}
    assert failures == {"law:validity is not empty": ["d"], "law:validity ends in the slice": ["c"]}
