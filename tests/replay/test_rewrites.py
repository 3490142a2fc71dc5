"""The engine gives the same with rewrites and without (law S4), and window reduction emits each element once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from sweeparea.spark_jobs.cases.replay import replay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = {
    "columns": {"a": "int", "x": "double"},
    "rows": [[1, [1, 0.0]], [1, [1, -0.0]], [2, [1, 0.0]], [4, [2, None]], [4, [1, 0.5]], [7, [1, 0.0]], [9, [3, 1.0]]],
}
T = {"columns": {"a": "int", "c": "string"}, "rows": [[1, [1, "u"]], [5, [1, "u"]], [5, [2, None]], [8, [3, "w"]]]}
R = {"columns": {"a": "int", "d": "string"}, "changes": [[0, "+", [1, "r"]], [3, "+", [2, "s"]], [6, "-", [1, "r"]]]}
BASE = {"streams": {"S": S, "T": T}, "relations": {"R": R}}
SLICINGS = pytest.mark.parametrize(
    "heartbeats", [[3, 12], pytest.param([1, 3, 6, 12], marks=pytest.mark.slow)], ids=["two slices", "four slices"]
)
"""Each slice of each query is run twice; what slicing does is tested elsewhere."""


def results(cases: list[dict[str, Any]], heartbeats: list[int], spark: SparkSession) -> list[dict[str, Any]]:
    given = {**BASE, "heartbeats": heartbeats}
    found = list(replay([json.dumps({**given, "name": str(i), **case}) for i, case in enumerate(cases)], spark))
    for case, result in zip(cases, found, strict=True):
        assert "error" not in result, (case, result)
        del result["name"]
    return found


REDUCED = [
    "SELECT a, x FROM S WHERE a = 1",
    "SELECT a FROM S UNION ALL SELECT a + 1 FROM T",
    "SELECT S.a, x, c FROM S, T WHERE S.a = T.a",
    "SELECT a FROM S [From 2 Until 7]",
    "SELECT a, at FROM (SELECT a, ts AS at FROM S WHERE x IS NOT NULL) AS s",
]


@pytest.mark.spark
@SLICINGS
def test_window_reduction_emits_each_element_once(spark: SparkSession, heartbeats: list[int]) -> None:
    whole = results([{"query": q, "settings": {"rewrites": "none"}} for q in REDUCED], heartbeats, spark)
    reduced = results([{"query": q, "materialize": ["istream"]} for q in REDUCED], heartbeats, spark)
    for full, each in zip(whole, reduced, strict=True):
        assert full["stream"]
        assert each["stream"] == full["stream"]
        assert "relation" not in each


REWRITTEN = [
    "SELECT S.a, d FROM S [Range 3] LEFT JOIN R ON S.a = R.a WHERE d IS NOT NULL AND S.a = 1",
    "SELECT a, at FROM (SELECT a, ts AS at FROM (SELECT ISTREAM(a) FROM S WHERE x < 1) [Range 2]) w",
    "SELECT DISTINCT S.a FROM S [Range 2], T [Range 4] WHERE S.a = T.a",
    "SELECT a, n FROM (SELECT a, COUNT(*) AS n FROM S [Range 4] GROUP BY a) g WHERE a > 1",
    "WITH g AS (SELECT a, COUNT(*) AS n FROM S [Range 3] GROUP BY a) SELECT p.a, q.n FROM g p, g q WHERE p.n = q.a",
    "SELECT T.c, d FROM S [Range 5], T [Rows 2], R WHERE S.a = T.a AND T.a = R.a AND S.a = 1",
    "SELECT a FROM (SELECT a FROM S [Range 3] EXCEPT ALL SELECT a FROM T [Range 2]) e WHERE a = 1",
]


@pytest.mark.spark
@SLICINGS
def test_results_are_the_same_with_and_without_rewrites(spark: SparkSession, heartbeats: list[int]) -> None:
    plain = results([{"query": q, "settings": {"rewrites": "none"}} for q in REWRITTEN], heartbeats, spark)
    rewritten = results([{"query": q} for q in REWRITTEN], heartbeats, spark)
    for query, before, after in zip(REWRITTEN, plain, rewritten, strict=True):
        assert before["relation"], query
        assert after == before, query
