"""Long expressions are given to Spark under settings that fit them, and only those."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sweeparea.spark_jobs.cases.replay import replay
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


@pytest.mark.spark
@pytest.mark.parametrize("operands", [600, pytest.param(5_000, marks=pytest.mark.slow)])
def test_a_long_chain_of_strings_is_put_together_as_a_short_one(spark: SparkSession, operands: int):
    kinds = ("s", "k", "m", "d", "TRUE", "'x'")
    chain, short = " || ".join(kinds * (operands // 6)), " || ".join(kinds)
    columns = {"k": "int", "s": "string", "m": "decimal(5,2)", "d": "date"}
    rows = [[1, [7, "Größe", "1.50", "2024-01-31"]], [2, [None, "a", "2.00", "2024-01-31"]]]
    query = f"SELECT k, (({chain})) = repeat({short}, {operands // 6}) AS z FROM S"
    case = {"name": "n", "streams": {"S": {"columns": columns, "rows": rows}}, "query": query, "heartbeats": [2]}
    (result,) = replay([json.dumps(case)], spark)
    assert result["stream"] == [[1, [7, True]], [2, [None, None]]]


def test_threads_that_share_a_session_have_room_until_the_last_has_left(spark: SparkSession):
    long, other = plan(f"SELECT a FROM S WHERE {LONG}"), plan(f"SELECT a FROM S WHERE {LONG} AND a <> -1")
    same = type(spark).getActiveSession()  # another object for one session
    assert same is not None
    usual = [CONF[key] for key in KEYS]
    first, second = room_for_expressions(spark, long), room_for_expressions(same, other)
    first.__enter__()
    inside = [spark.conf.get(key) for key in KEYS]
    second.__enter__()
    first.__exit__(None, None, None)
    assert [spark.conf.get(key) for key in KEYS] == inside
    second.__exit__(None, None, None)
    assert [spark.conf.get(key) for key in KEYS] == usual


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
