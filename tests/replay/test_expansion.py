"""Aggregates, window functions and LIMIT on random cases: at every instant what SQL gives on the instantaneous rows."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from sweeparea.operators.plan.encoding import STRATEGIES
from sweeparea.spark_jobs.cases.replay import replay
from sweeparea.spark_jobs.slices import slice as slices
from tests.replay.expansion_cases import cut, framed, generate, references, wrong
from tests.replay.slicing import one_slice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _check(spark: SparkSession, seeds: range) -> None:
    cases = [generate(random.Random(seed)) for seed in seeds]
    for seed, case, result in zip(seeds, cases, replay([json.dumps(c.case) for c in cases], spark), strict=True):
        found = wrong(case, result)
        assert not found, f"seed {seed}; as a replay line:\n{json.dumps(case.case)}\n{found}"


@pytest.mark.spark
def test_random_generators_and_window_functions(spark: SparkSession):
    _check(spark, range(300, 310))


@pytest.mark.spark
def test_random_generators_and_window_functions_in_several_partitions(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(slices, "SMALL_SLICE", 0)
    _check(spark, range(330, 334))


def _check_incremental(spark: SparkSession, seeds: range) -> None:
    """Cases of all kinds that have an incremental form, each under one strategy."""
    lines, cases = [], []
    for i, seed in enumerate(seeds):
        case = generate(random.Random(seed), make=(cut, framed, references, framed)[i % 4])
        settings = {**case.case.get("settings", {}), "strict": True}
        lines.append(json.dumps({**case.case, "strategy": STRATEGIES[i % 3], "settings": settings}))
        cases.append(case)
    for line, case, result in zip(lines, cases, replay(lines, spark), strict=True):
        found = wrong(case, result)
        assert not found, f"as a replay line:\n{line}\n{found}"


@pytest.mark.spark
@pytest.mark.parametrize("first", [400, 412])
def test_numbers_frames_and_values_of_other_rows_under_each_strategy(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, first: int
):
    if first == 412:  # in several partitions
        monkeypatch.setattr(slices, "SMALL_SLICE", 0)
    _check_incremental(spark, range(first, first + 12))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("first", range(21_000, 21_200, 20))
def test_many_cases_of_numbers_frames_and_values_of_other_rows(spark: SparkSession, first: int):
    _check_incremental(spark, range(first, first + 20))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("first", range(20_000, 20_200, 20))
def test_many_random_generators_and_window_functions(spark: SparkSession, first: int):
    _check(spark, range(first, first + 20))


@pytest.mark.spark
@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, SUM(v) AS s, STDDEV_SAMP(v) AS d, AVG(v) AS a FROM S [Range 9] GROUP BY k",
        "SELECT k, v, SUM(v) OVER (PARTITION BY k) AS s, VAR_POP(v) OVER () AS d FROM S [Range 9]",
    ],
)
def test_no_slicing_changes_a_bit(spark: SparkSession, query: str):
    chance = random.Random(11)
    values = [1e16, -1e16, 0.1, 1.0, 3e-9, 1e-300]
    rows = [[chance.randint(0, 30), [chance.randint(0, 1), chance.choice(values) * chance.random()]] for _ in range(40)]
    case = {"streams": {"S": {"columns": {"k": "int", "v": "double"}, "rows": rows}}, "query": query}
    sliced = {**case, "heartbeats": [3, 4, 11, 12, 13, 27, 45]}
    one, many = replay([json.dumps(one_slice(sliced)), json.dumps(sliced)], spark)
    assert "error" not in one
    assert one == many


ROWS = [[1, [1, [1, 2]]], [2, [2, []]], [4, [3, None]]]


@pytest.mark.spark
def test_lateral_views_worked_by_hand(spark: SparkSession):
    case = {"streams": {"S": {"columns": {"k": "int", "a": "array<int>"}, "rows": ROWS}}, "heartbeats": [2, 9]}
    worked = {
        "SELECT k, x FROM S [Range 1] LATERAL VIEW explode(a) t AS x": [[1, 3, [1, 1]], [1, 3, [1, 2]]],
        "SELECT k, i, x FROM S [Range 1] LATERAL VIEW OUTER posexplode(a) t AS i, x": [
            [1, 3, [1, 0, 1]],
            [1, 3, [1, 1, 2]],
            [2, 4, [2, None, None]],
            [4, 6, [3, None, None]],
        ],
        "SELECT MEDIAN(k) AS m FROM S [Range 1]": [
            [0, 1, [None]],
            [1, 2, [1.0]],
            [2, 3, [1.5]],
            [3, 4, [2.0]],
            [4, 6, [3.0]],
            [6, None, [None]],
        ],
        "SELECT k FROM S [Range 1] UNION ALL SELECT 7": [[0, None, [7]], [1, 3, [1]], [2, 4, [2]], [4, 6, [3]]],
        "SELECT k FROM S [Range 1] ORDER BY k DESC LIMIT 1": [[1, 2, [1]], [2, 4, [2]], [4, 6, [3]]],
    }
    results = replay([json.dumps({**case, "query": query}) for query in worked], spark)
    for (query, relation), result in zip(worked.items(), results, strict=True):
        assert result.get("relation") == relation, (query, result.get("error"))


@pytest.mark.spark
def test_copies_of_a_record_get_what_belongs_together(spark: SparkSession):
    rows = [[1, [5]], [1, [5]], [1, [7]]]
    case = {"streams": {"S": {"columns": {"k": "int"}, "rows": rows}}, "heartbeats": [0, 1, 9]}
    worked: dict[str, list[list[int | None]]] = {
        "SELECT k, ROW_NUMBER() OVER w AS n, LAG(k) OVER w AS l FROM S WINDOW w AS (ORDER BY k)": [
            [5, 1, None],
            [5, 2, 5],
            [7, 3, 5],
        ],
        "SELECT k, LAG(k) OVER w AS l, ROW_NUMBER() OVER w AS n FROM S WINDOW w AS (ORDER BY k) QUALIFY n <= 2": [
            [5, None, 1],
            [5, 5, 2],
        ],
        "SELECT k, LAG(k) OVER (ORDER BY k) AS l, LEAD(k) OVER (ORDER BY k DESC) AS d FROM S": [
            [5, None, 5],
            [5, 5, None],
            [7, 5, 5],
        ],
        "SELECT k, LAG(k) OVER w AS l, SUM(k) OVER (w ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM S"
        " WINDOW w AS (ORDER BY k)": [[5, None, 5], [5, 5, 10], [7, 5, 12]],
        "SELECT k FROM S QUALIFY ROW_NUMBER() OVER (ORDER BY k) NOT BETWEEN 2 AND 2": [[5], [7]],
        "SELECT k, n FROM (SELECT k, RANK() OVER (ORDER BY k DESC) AS n FROM S) AS q WHERE NOT n IN (2)": [[7, 1]],
    }
    results = replay([json.dumps({**case, "query": query}) for query in worked], spark)
    for (query, shown), result in zip(worked.items(), results, strict=True):
        got = sorted(result.get("relation") or [], key=str)
        assert got == sorted(([1, None, row] for row in shown), key=str), (query, result.get("error"))


@pytest.mark.spark
def test_the_ends_of_one_order_forget_different_elements(spark: SparkSession):
    rows = [[15, [5, 1]], [16, [2, 9]]]
    case = {"streams": {"S": {"columns": {"k": "int", "a": "int"}, "rows": rows}}, "heartbeats": [17, 25]}
    query = "SELECT FIRST(k), LAST(k), MIN_BY(a, k), MAX_BY(a, k) FROM S [Range 4]"
    (result,) = replay([json.dumps({**case, "query": query})], spark)
    assert result.get("relation") == [
        [0, 15, [None, None, None, None]],
        [15, 16, [5, 5, 1, 1]],
        [16, 20, [2, 5, 9, 1]],
        [20, 21, [2, 2, 9, 9]],
        [21, None, [None, None, None, None]],
    ], result.get("error")


@pytest.mark.spark
def test_strict_refuses_snapshot_expansion(spark: SparkSession):
    case = {"streams": {"S": {"columns": {"k": "int", "a": "array<int>"}, "rows": ROWS}}, "heartbeats": [9]}
    texts = [
        "SELECT COLLECT_LIST(k) FROM S",
        "SELECT COUNT(*) FILTER (WHERE k > 1), MEDIAN(k), COUNT(DISTINCT k), STDDEV(k), FIRST(a) FROM S",
        "SELECT k FROM S ORDER BY k LIMIT 1",
        "SELECT k, RANK() OVER (ORDER BY k), LAG(k) OVER (PARTITION BY a ORDER BY k) FROM S",
        "SELECT k, SUM(k) OVER (ORDER BY k), AVG(k) OVER (), FIRST_VALUE(k) IGNORE NULLS OVER (PARTITION BY a) FROM S",
    ]
    lines = [json.dumps({**case, "query": text, "settings": {"strict": True}}) for text in texts]
    expanded, *incremental = replay(lines, spark)
    assert expanded["error"]["type"] == "RefusedError"
    assert "COLLECT_LIST" in expanded["error"]["message"]
    assert not any("error" in result for result in incremental)


@pytest.mark.spark
def test_aggregates_of_values_of_many_types(spark: SparkSession):
    columns = {"b": "bigint", "d": "decimal(20,2)", "s": "string", "m": "map<string,int>", "a": "array<int>"}
    rows = [[1, [1 << 62, "1.10", "1", [["p", 1]], [1]]], [2, [1 << 62, "2.25", "3", [["p", 2]], [2, 3]]]]
    case = {"streams": {"S": {"columns": columns, "rows": rows}}, "heartbeats": [1, 9]}
    big = str(1 << 62)
    worked = {
        "SELECT TRY_SUM(b), BIT_XOR(b), MODE(m), MODE(a), COUNT(DISTINCT m), MEDIAN(d) FROM S [Range 1]": [
            [0, 1, [None, None, None, None, 0, None]],
            [1, 2, [big, big, [["p", 1]], [1], 1, 1.1]],
            [2, 3, [None, 0, [["p", 1]], [1], 2, 1.675]],
            [3, 4, [big, big, [["p", 2]], [2, 3], 1, 2.25]],
            [4, None, [None, None, None, None, 0, None]],
        ],
        "SELECT SUM(DISTINCT s), MODE(s), PERCENTILE(s, array(0.0, 0.5)), MAX_BY(m, d), LAST(a) FROM S [Range 1]": [
            [0, 1, [None, None, None, None, None]],
            [1, 2, [1.0, "1", [1.0, 1.0], [["p", 1]], [1]]],
            [2, 3, [4.0, "1", [1.0, 2.0], [["p", 2]], [2, 3]]],
            [3, 4, [3.0, "3", [3.0, 3.0], [["p", 2]], [2, 3]]],
            [4, None, [None, None, None, None, None]],
        ],
        "SELECT PERCENTILE(b, 0.5 + 1) FROM S [Range 1]": "1:19: TypeError: b, 0.5 + 1: [DATATYPE_MISMATCH.VALUE_OUT",
    }
    results = replay([json.dumps({**case, "query": query}) for query in worked], spark)
    for (query, wanted), result in zip(worked.items(), results, strict=True):
        if isinstance(wanted, str):
            assert wanted in result["error"]["message"]
        else:
            assert result.get("relation") == wanted, (query, result.get("error"))
