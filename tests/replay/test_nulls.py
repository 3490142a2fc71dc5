"""NULL without a type at every place that takes an expression: the rows that Spark SQL gives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sweeparea.spark_jobs.cases.replay import replay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = [[1, "a", [1, 2]], [2, "b", []], [None, None, None], [2, "b", []]]
T = [[1], [3], [None]]
COLUMNS = {"S": ("k int, s string, a array<int>", S), "T": ("k int", T)}
# NULL? is a condition: NULL here, CAST(NULL AS BOOLEAN) in Spark SQL, which takes no bare one
QUERIES = (
    "SELECT k FROM S{} WHERE (NULL?) OR k > 1",
    "SELECT k FROM S{} WHERE k > 0 AND NULL?",
    "SELECT k, COUNT(*) AS n FROM S{} GROUP BY k HAVING NULL?",
    "SELECT S.k, T.k AS j FROM S{} FULL JOIN T{} ON NULL?",
    "SELECT S.k FROM S{} LEFT ANTI JOIN T{} ON S.k = T.k AND NULL?",
    "SELECT k, ROW_NUMBER() OVER (PARTITION BY NULL ORDER BY k, s) AS n FROM S{} QUALIFY NULL? OR n < 3",
    "SELECT CASE WHEN NULL? THEN 1 ELSE 2 END AS z, CASE k WHEN NULL THEN 1 END AS y, CASE WHEN k > 1 THEN NULL END"
    " AS x, IF(NULL?, 1, 2) AS w, IF(k > 1, NULL, NULL) AS v, NULLIF(NULL, k) AS u, ARRAY(NULL, k) AS t, k IN (NULL, 1)"
    " AS q, STRUCT(NULL, k) AS p, ARRAY(NULL) AS o, -NULL AS i, COALESCE(NULL, NULL) AS h, MAP('a', NULL)['a']"
    " AS g FROM S{}",
    "SELECT COUNT(*) FILTER (WHERE NULL?) AS a, SUM(k) FILTER (WHERE NULL?) AS b, COLLECT_LIST(k) FILTER (WHERE NULL?)"
    " AS c, SUM(NULL) AS d, MIN(NULL) AS e, COUNT(NULL) AS f, AVG(NULL) AS g, FIRST(NULL) AS h, STDDEV(NULL) AS i,"
    " MAX_BY(k, NULL) AS j, BOOL_AND(NULL) AS l, COUNT_IF(NULL) AS m, MEDIAN(NULL) AS o, COLLECT_LIST(NULL) AS p,"
    " COUNT(DISTINCT NULL) AS q FROM S{}",
    "SELECT NULL AS z, COUNT(*) AS n FROM S{} GROUP BY NULL",
    "SELECT z, k, COUNT(*) AS n, COALESCE(z, 7) AS y, SUM(z + 1) AS x FROM (SELECT NULL AS z, k FROM S{}) v"
    " GROUP BY z, k",
    "SELECT z + 1 AS y, COALESCE(z, ARRAY(1)) AS x FROM (SELECT DISTINCT NULL AS z FROM S{}) v",
    "SELECT NULL AS z FROM S{} UNION SELECT k FROM T{} UNION SELECT NULL FROM T{}",
    "SELECT NULL AS z FROM S{} INTERSECT ALL SELECT NULL FROM T{}",
    "SELECT k, z FROM (SELECT NULL AS z, k FROM S{}) v ORDER BY z, NULL, k LIMIT 2",
    "SELECT v.k, T.k AS j FROM (SELECT k, NULL AS z FROM S{}) v LEFT JOIN T{} ON v.z = T.k",
    "SELECT k, LAG(NULL) OVER (ORDER BY k, s) AS n, LAG(k, 1, NULL) OVER (ORDER BY k, s) AS m FROM S{}",
    "SELECT k, COUNT(DISTINCT s, NULL) AS a, MIN(array(NULL)) AS b, COUNT(DISTINCT array(NULL)) AS c FROM S{}"
    " GROUP BY k",
    "SELECT v.k, T.k AS j FROM (SELECT k, array(NULL) AS z FROM S{}) v LEFT JOIN T{} ON v.z = array(T.k)",
    "SELECT k, z.`c D` + 1 AS y, COALESCE(z.Ab, 7) AS x FROM (SELECT DISTINCT k, named_struct('Ab', NULL, 'c D', k) AS"
    " z FROM S{}) v",
)


@pytest.mark.spark
@pytest.mark.parametrize("queries", [QUERIES[:1] + QUERIES[6:10], pytest.param(QUERIES, marks=pytest.mark.slow)])
def test_null_is_what_spark_sql_has(spark: SparkSession, queries: tuple[str, ...]):
    for name, (columns, rows) in COLUMNS.items():
        spark.createDataFrame([tuple(r) for r in rows], columns).createOrReplaceTempView(name)
    streams = {
        name: {"columns": dict(c.split(" ") for c in columns.split(", ")), "rows": [[1, row] for row in rows]}
        for name, (columns, rows) in COLUMNS.items()
    }
    texts = [query.replace("{}", " [Range 5]").replace("NULL?", "NULL") for query in queries]
    cases = [json.dumps({"name": t, "streams": streams, "query": t, "heartbeats": [1]}) for t in texts]
    results = replay(cases, spark)
    try:
        expected = [_rows(spark, query) for query in queries]
    finally:
        for name in COLUMNS:
            spark.catalog.dropTempView(name)
    for query, result, rows in zip(queries, results, expected, strict=True):
        assert "error" not in result, f"{query}\n{result['error']}"
        assert sorted(json.dumps([_plain(row[2])]) for row in result["relation"]) == rows, query


def _rows(spark: SparkSession, query: str) -> list[str]:
    frame = spark.sql(query.replace("{}", "").replace("NULL?", "CAST(NULL AS BOOLEAN)"))
    return sorted(json.dumps([_plain(row.asDict(recursive=True))]) for row in frame.collect())


def _plain(value: object) -> object:
    """Structs and maps as the lists of what is in them, in order."""
    if isinstance(value, dict):
        return [_plain(v) for v in value.values()]
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value
