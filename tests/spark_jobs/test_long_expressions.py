"""Long expressions are given to Spark under settings that fit them, and only those."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sweeparea.spark_jobs.evaluation.long_expressions import room_for_expressions
from sweeparea.spark_jobs.slices.slice import Slice
from sweeparea.spark_jobs.spark.session import CONF
from tests.cql.schemas import plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = " AND ".join(f"a <> {i}" for i in range(1_000))
RULES = "spark.sql.optimizer.excludedRules"
KEYS = (
    RULES,
    "spark.sql.codegen.wholeStage",
    "spark.sql.constraintPropagation.enabled",
    "spark.sql.subexpressionElimination.enabled",
)


@pytest.mark.parametrize(
    ("text", "long"),
    [
        (f"SELECT a FROM S WHERE {LONG}", True),
        (f"SELECT COUNT(*) FILTER (WHERE {LONG}) AS n FROM S [Now]", True),
        ("SELECT a FROM S WHERE a <> 1", False),
    ],
)
def test_a_session_is_fit_for_long_expressions_while_they_run(spark: SparkSession, text: str, long: bool):
    def settings() -> list[str | None]:
        return [spark.conf.get(key) for key in KEYS]

    def fails() -> None:
        with room_for_expressions(spark, plan(text)):
            inside.extend(settings())
            raise ZeroDivisionError

    usual = [CONF[key] for key in KEYS]
    inside: list[str | None] = []
    assert settings() == usual
    with pytest.raises(ZeroDivisionError):
        fails()
    assert settings() == usual
    rules = f"{CONF[RULES]},org.apache.spark.sql.catalyst.optimizer.BooleanSimplification"
    assert inside == ([rules, "false", "false", "false"] if long else usual)


def test_functions_nest_deeper_than_sparks_analyzer_has_iterations_by_default(spark: SparkSession):
    nested = f"{'greatest(1, ' * 120}id{')' * 120}"  # each 1 is cast once the type of what is inside is known
    assert spark.range(0).selectExpr(f"{nested} AS z").schema["z"].dataType.typeName() == "long"


def test_a_slice_of_long_expressions_runs_without_code_generation(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    found = []
    monkeypatch.setattr(Slice, "_run", lambda self, publication: found.append(spark.conf.get(KEYS[1])))
    run = object.__new__(Slice)
    run.spark, run.plan = spark, plan(f"SELECT a FROM S WHERE {LONG}")
    run.place = type("Place", (), {"data": "", "ledger": None, "registration": None})()  # type: ignore[assignment]
    monkeypatch.setattr("sweeparea.spark_jobs.slices.slice.Publication", lambda *given: None)
    run.run()
    assert found == ["false"]
