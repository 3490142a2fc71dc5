"""Types that only Spark knows, and that what the binder knows without Spark is what Spark says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sweeparea.cql.binding.binder import bind_select
from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.cql.functions.column_types import unknown
from sweeparea.cql.functions.signatures import FAMILIES
from sweeparea.cql.functions.types import normal
from sweeparea.cql.text.errors import TypeError_
from sweeparea.spark_jobs.declarations.analysis import Checking, analyzer
from sweeparea.spark_jobs.declarations.function_signatures import Analyzer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INPUTS = {"N": InputSchema("N", SchemaKind.STREAM, (("k", "int"), ("arr", "array<int>"), ("j", "string")))}


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("SELECT transform(arr, v -> v + 1L) AS z, from_json(j, 'a INT') AS y FROM N", "array<bigint> struct<a:int>"),
        (
            "SELECT k, sum(s) AS s, collect_list(s) AS l FROM (SELECT k, aggregate(arr, 0L, (p, q) -> p + q) AS s "
            "FROM N) w GROUP BY k",
            "int bigint array<bigint>",
        ),
        (
            "SELECT q, lag(q) OVER (ORDER BY k) AS p FROM N LATERAL VIEW explode(transform(arr, v -> v * 1.5)) t AS q",
            "decimal(13,1) decimal(13,1)",
        ),
        (
            "SELECT k, x, grouping(x) AS g FROM (SELECT k, from_json(j, 'a INT') AS x FROM N) w GROUP BY CUBE(k, x)",
            "int struct<a:int> tinyint",
        ),
        ("SELECT k FROM N UNION ALL SELECT from_json(j, 'a BIGINT').a FROM N", "bigint"),
    ],
)
def test_the_binder_fills_in_what_spark_knows(spark: SparkSession, text: str, types: str) -> None:
    bound = bind_select(text, INPUTS, analyze=analyzer(spark))
    assert [c.type for c in bound.root.columns] == types.split()
    assert not unknown(bound.root)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT k, aggregate(arr, 'x', (p, q) -> p + q) AS z FROM N", "1:11"),
        ("SELECT k\nFROM (SELECT k,\n transform(k, v -> v) AS z FROM N) w\nWHERE z IS NULL", "3:2"),
        ("SELECT COLLECT_LIST(transform(k, v -> v)) AS z FROM N [Range 5]", "1:21"),
        ("SELECT k, e FROM N LATERAL VIEW explode(transform(k, v -> v)) t AS e", "1:33"),
    ],
)
def test_what_spark_refuses_is_told_with_its_place(spark: SparkSession, text: str, place: str) -> None:
    with pytest.raises(TypeError_, match="DATATYPE_MISMATCH") as caught:
        bind_select(text, INPUTS, analyze=analyzer(spark))
    assert str(caught.value).startswith(f"<query>:{place}: TypeError: ")


def test_signatures_are_what_spark_says(spark: SparkSession) -> None:
    """A sample of the file, asked again: calls of one argument of every sample type."""
    asked = Analyzer(spark)
    samples = [s for family in FAMILIES.values() for s in family]
    inputs = {"S": InputSchema("S", SchemaKind.STREAM, tuple((f"v{i}", t) for i, t in enumerate(samples)))}
    for name in ("abs", "upper", "size", "year", "sqrt", "to_json", "map_values", "array_max", "sum", "collect_set"):
        said = asked.types([f"{name}({asked.column(t)})" for t in samples])
        for i, type_ in enumerate(said):
            if type_ is None or (name == "sum" and samples[i].startswith("timestamp")):
                continue
            if name in ("sum", "collect_set") and samples[i].startswith(("interval", "variant")):
                with pytest.raises(TypeError_, match="which no table holds, and rows are remembered by it"):
                    bind_select(f"SELECT {name}(v{i}) AS z FROM S [Now]", inputs)
                continue
            bound = bind_select(f"SELECT {name}(v{i}) AS z FROM S [Now]", inputs)
            assert bound.root.columns[0].type in (None, normal(type_)), f"{name}({samples[i]})"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT k FROM N [Range 5] WHERE (t - t) NOT IN (SELECT q.t - q.t FROM N [Range 5] AS q)", "INTERVAL"),
        ("SELECT a.k FROM N [Range 5] AS a LEFT JOIN N [Range 5] AS b ON a.t - a.t = b.t - b.t", "INTERVAL"),
        ("SELECT a.k FROM N [Range 5] AS a FULL JOIN N [Range 5] AS b ON b.t - b.t = a.t - a.t", "INTERVAL"),
        (
            "SELECT COUNT(DISTINCT named_struct('a b', arr, 'c', array(NULL)), k) AS z FROM N [Range 5]",
            "C:ARRAY<VOID>",
        ),
        ("SELECT k, LAG(named_struct('a b', arr, 'c', NULL)) OVER (ORDER BY t, k) AS z FROM N [Range 5]", "C:VOID"),
    ],
)
def test_what_no_table_remembers_is_told_with_its_place(spark: SparkSession, text: str, kind: str) -> None:
    inputs = {"N": InputSchema("N", SchemaKind.STREAM, (("k", "int"), ("arr", "array<int>"), ("t", "timestamp")))}
    with pytest.raises(TypeError_, match="which no table holds, and rows are remembered by it") as caught:
        bind_select(text, inputs, analyze=Checking(analyzer(spark), lambda: spark))
    assert caught.value.place is not None
    assert kind in str(caught.value)


def test_columns_that_are_null_without_a_type_are_stored(spark: SparkSession) -> None:
    text = "SELECT DISTINCT named_struct('a b', k, 'c', NULL) AS y FROM N [Range 5]"
    assert bind_select(text, INPUTS, analyze=Checking(analyzer(spark), lambda: spark)).root.columns
