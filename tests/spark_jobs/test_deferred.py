"""A DataFrame that is made when it is needed has the columns and types that Spark would say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sweeparea.spark_jobs.spark.deferred import Deferred, deferred, types_of, united
from sweeparea.tables.log.schema import ddl_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TYPES = {"c1": "int", "c2": "string", "a b": "decimal(10,2)", "t`t": "timestamp", "s": "struct<f:int>", "__n": "bigint"}
TEXTS = [
    "c1",
    "`c1`",
    "(c1) AS x",
    "(`c2`) AS `y z`",
    "`a b` AS c3",
    "`t``t`",
    "(`s`) AS s2",
    "s.f AS f",
    "c1 + 1L AS __ts",
    "(c1 + `a b`) AS sum",
    "CAST(c2 AS DATE) AS d",
    "CAST(1 AS TINYINT) AS __side",
    "CAST((c1) AS string) AS c1s",
    "CAST(NULL AS Timestamp_NTZ) AS u",
    "CAST(c1 AS INT) + CAST(c1 AS BIGINT) AS both",
    "NULL AS nothing",
    "TRUE AS __new",
    "array(c1, NULL) AS l",
    "named_struct('AS', c1) AS inner",
    "__n",
    "-__n AS minus",
    "DATE'2020-01-01' - DATE'2019-01-01' AS gone",
]


def _empty(spark: SparkSession) -> DataFrame:
    return spark.range(0).selectExpr(*(f"CAST(NULL AS {t}) AS `{n.replace('`', '``')}`" for n, t in TYPES.items()))


def _told(frame: DataFrame) -> list[tuple[str, str]]:
    return [(name, t if isinstance(t, str) else ddl_type(t)) for name, t in types_of(frame).items()]


def _is_deferred(frame: object) -> bool:
    return type(frame) is Deferred


def _never() -> DataFrame:
    raise AssertionError("it was made")


@pytest.mark.spark
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.lists(st.sampled_from(TEXTS), min_size=1, unique=True))
def test_types_are_those_that_spark_says(spark: SparkSession, chosen: list[str]) -> None:
    later = deferred(spark, _never, TYPES).selectExpr(*chosen).where("1 = 1")
    assert _told(later) == _told(_empty(spark).selectExpr(*chosen))
    assert later.columns == [name for name, _ in _told(later)]


@pytest.mark.spark
def test_it_is_made_once_when_its_rows_are_wanted(spark: SparkSession) -> None:
    made: list[int] = []

    def make() -> DataFrame:
        made.append(1)
        return spark.range(3)

    later = deferred(spark, make, {"id": "bigint"}).selectExpr("id + 1 AS x").where("x > 1")
    assert _is_deferred(later)
    assert not made
    assert sorted(row.x for row in spark.range(1).selectExpr("7L AS x").union(later).collect()) == [2, 3, 7]
    assert sorted(row.x for row in later.crossJoin(later.selectExpr("x AS y")).collect()) == [2, 2, 3, 3]
    assert made == [1]


@pytest.mark.spark
def test_a_union_is_made_when_its_rows_are_wanted_or_where_types_differ(spark: SparkSession) -> None:
    later = deferred(spark, _never, {"a": "int", "b": "string"})
    same = deferred(spark, _never, {"x": "int", "y": "string"})
    assert united([later, same]).columns == ["a", "b"]
    wide = deferred(spark, lambda: spark.range(2), {"id": "bigint"})
    narrow = deferred(spark, lambda: spark.range(1).selectExpr("CAST(id AS INT) AS id"), {"id": "int"})
    both = united([narrow, wide])
    assert not _is_deferred(both)
    assert next(iter(both.schema)).dataType.simpleString() == "bigint"
    assert sorted(row.id for row in united([wide, wide]).collect()) == [0, 0, 1, 1]


@pytest.mark.spark
def test_what_only_spark_can_name_is_made_at_once(spark: SparkSession) -> None:
    rows = deferred(spark, lambda: spark.range(2), {"id": "bigint"})
    assert rows.selectExpr("*", "explode(array(1, 2)) AS e").columns == ["id", "e"]
    assert rows.selectExpr("id + 1").columns == ["(id + 1)"]
