"""Plans of aggregates, grouping sets, window functions, ORDER BY LIMIT and generators against DuckDB running the SQL
that they were bound from, over random tables with ties and NULLs.

Where SQL leaves an order open, the twin says the total order that semantics section 2 prescribes.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import duckdb
import pytest
import sqlglot

from tests.cql.plan_oracle import Table, evaluate
from tests.cql.schemas import plan

SAME = """
SELECT a, count(*) AS n, sum(x) AS s, avg(a) AS m, min(b) AS lo, max(x) AS hi FROM S GROUP BY a
SELECT count(DISTINCT b) AS n, sum(DISTINCT a) AS s FROM S
SELECT a, count(DISTINCT b) FILTER (WHERE x > 1) AS n, sum(x) FILTER (WHERE b = 'p') AS s FROM S GROUP BY a
SELECT a % 2 AS k, count(x) AS n FROM S GROUP BY A  % 2 HAVING count(*) > 1
SELECT bool_and(a > 1) AS e, bool_or(a > 1) AS s FROM S
SELECT b, stddev(x) AS s, corr(x, a) AS c, regr_count(x, a) AS rc, regr_avgx(x, a) AS ra FROM S GROUP BY b
SELECT b, median(x) AS m, percentile_cont(0.25) WITHIN GROUP (ORDER BY x DESC) AS p FROM S GROUP BY b
SELECT b, percentile_disc(0.5) WITHIN GROUP (ORDER BY x) AS p, mode() WITHIN GROUP (ORDER BY a) AS m FROM S GROUP BY b
SELECT bit_and(a) AS p, bit_or(a) AS q, bit_xor(a) AS r FROM S
SELECT a, b, sum(x) AS s FROM S GROUP BY ROLLUP(a, b)
SELECT a, b, sum(x) AS s, grouping(a) AS g, count(a) AS n FROM S GROUP BY CUBE(a, b)
SELECT a, b, count(*) AS n FROM S GROUP BY GROUPING SETS ((a), (b), (a, b))
SELECT a, b, x, count(*) AS n FROM S GROUP BY a, ROLLUP(b, x)
SELECT a, grouping_id(a, b) AS g, count(*) AS n FROM S GROUP BY CUBE(a, b) HAVING grouping_id(a, b) > 0
SELECT a, b, count(*) AS n FROM S GROUP BY ALL
SELECT a + 1 AS k, sum(sum(x)) OVER (ORDER BY a + 1) AS c FROM S GROUP BY k
SELECT a, rank() OVER (ORDER BY a) AS r, dense_rank() OVER (PARTITION BY b ORDER BY x DESC) AS d FROM S
SELECT a, percent_rank() OVER (ORDER BY x) AS p, cume_dist() OVER (PARTITION BY b ORDER BY a) AS c FROM S
SELECT a, b, sum(x) OVER (PARTITION BY b ORDER BY a) AS s, count(*) OVER () AS n FROM S
SELECT a, x, sum(a) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM S
SELECT a, sum(x) FILTER (WHERE a > 1) OVER (PARTITION BY b) AS s FROM S
SELECT a, sum(x) OVER w AS s, max(b) OVER (w ORDER BY a) AS m FROM S WINDOW w AS (PARTITION BY b)
SELECT a, b FROM S QUALIFY rank() OVER (PARTITION BY b ORDER BY x) = 1
SELECT b, sum(x) AS s FROM S GROUP BY b QUALIFY rank() OVER (ORDER BY sum(x) DESC) <= 2
SELECT a, b, x FROM S ORDER BY x DESC, a, b NULLS LAST LIMIT 4
SELECT a, b, x FROM S ORDER BY ALL LIMIT 3 OFFSET 2
SELECT a AS k, count(*) AS n FROM S GROUP BY a ORDER BY count(*) DESC, k LIMIT 2
SELECT DISTINCT a, b FROM S ORDER BY b, a LIMIT 3
SELECT a FROM S UNION ALL SELECT a FROM T ORDER BY a DESC LIMIT 4
SELECT a FROM S ORDER BY 1 OFFSET 2
SELECT CASE WHEN a > 1 THEN 'hi' ELSE b END AS c, a + 1 AS d, d * 2 AS e FROM S
""".strip().splitlines()
"""Text for both."""

ORDER = "a NULLS FIRST, b NULLS FIRST, x NULLS FIRST"
TWINS = {
    "SELECT count_if(a > 1) AS c FROM S": "SELECT count(CASE WHEN a > 1 THEN 1 END) AS c FROM S",
    "SELECT first(b) AS f, last(x) AS l, any_value(b) AS v FROM S": f"SELECT first(b ORDER BY {ORDER}) AS f, "
    f"last(x ORDER BY {ORDER}) AS l, first(b ORDER BY {ORDER}) AS v FROM S",
    "SELECT a, first(b) IGNORE NULLS AS f FROM S GROUP BY a": f"SELECT a, first(b ORDER BY {ORDER}) FILTER (WHERE b IS "
    "NOT NULL) AS f FROM S GROUP BY a",
    "SELECT a, collect_list(b) AS l, collect_set(x) AS s FROM S GROUP BY a": f"SELECT a, coalesce(list(b ORDER BY "
    f"{ORDER}) FILTER (WHERE b IS NOT NULL), []) AS l, coalesce(list(DISTINCT x ORDER BY x) FILTER (WHERE x IS NOT "
    "NULL), []) AS s FROM S GROUP BY a",
    "SELECT listagg(b, '-') WITHIN GROUP (ORDER BY x DESC) AS l FROM S": "SELECT string_agg(b, '-' ORDER BY x DESC "
    f"NULLS LAST, {ORDER}) AS l FROM S",
    "SELECT a, max_by(b, x) AS m, min_by(x, b) AS n FROM S GROUP BY a": "SELECT a, first(b ORDER BY x DESC NULLS LAST, "
    f"{ORDER}) FILTER (WHERE x IS NOT NULL) AS m, first(x ORDER BY b, {ORDER}) FILTER (WHERE b IS NOT NULL) AS n "
    "FROM S GROUP BY a",
    "SELECT b, mode(a) AS m FROM S GROUP BY b": "SELECT b, (SELECT first(a ORDER BY n DESC, a) FROM (SELECT a, "
    "count(*) AS n FROM S AS i WHERE i.b IS NOT DISTINCT FROM o.b AND a IS NOT NULL GROUP BY a)) AS m FROM (SELECT "
    "DISTINCT b FROM S) AS o",
    "SELECT a, b, x, row_number() OVER (PARTITION BY b ORDER BY x) AS r FROM S": "SELECT a, b, x, row_number() OVER "
    f"(PARTITION BY b ORDER BY x NULLS FIRST, {ORDER}) AS r FROM S",
    "SELECT a, b, x, lag(a, 1, -1) OVER (ORDER BY b) AS p, lead(x) OVER (ORDER BY b) AS n FROM S": "SELECT a, b, x, "
    f"lag(a, 1, -1) OVER (ORDER BY b NULLS FIRST, {ORDER}) AS p, lead(x) OVER (ORDER BY b NULLS FIRST, {ORDER}) AS n "
    "FROM S",
    "SELECT a, b, x, ntile(3) OVER (ORDER BY a) AS t FROM S": f"SELECT a, b, x, ntile(3) OVER (ORDER BY {ORDER}) AS t "
    "FROM S",
    "SELECT a, b, x, sum(x) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM S": "SELECT a, b, x, "
    f"sum(x) OVER (ORDER BY b NULLS FIRST, {ORDER} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM S",
    "SELECT a, b, x, first_value(a) OVER (PARTITION BY b ORDER BY x) AS f FROM S": "SELECT a, b, x, first_value(a "
    f"ORDER BY x NULLS FIRST, {ORDER}) OVER (PARTITION BY b ORDER BY x NULLS FIRST) AS f FROM S",
    "SELECT a, b, x, last_value(b) OVER (PARTITION BY a ORDER BY x) AS l FROM S": "SELECT a, b, x, last_value(b ORDER "
    f"BY x NULLS FIRST, {ORDER}) OVER (PARTITION BY a ORDER BY x NULLS FIRST) AS l FROM S",
    "SELECT a, b, x, last_value(b) IGNORE NULLS OVER (PARTITION BY a ORDER BY x) AS l FROM S": "SELECT a, b, x, "
    f"last_value(b ORDER BY x NULLS FIRST, {ORDER} IGNORE NULLS) OVER (PARTITION BY a ORDER BY x NULLS FIRST) AS l "
    "FROM S",
    "SELECT a, b, x, last_value(b) OVER (PARTITION BY a) AS l FROM S": f"SELECT a, b, x, last_value(b) OVER (PARTITION "
    f"BY a ORDER BY {ORDER} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS l FROM S",
    "SELECT a, b, x, max_by(b, x) OVER (PARTITION BY a) AS m FROM S": "SELECT a, b, x, (SELECT first(b ORDER BY x DESC "
    f"NULLS LAST, {ORDER}) FILTER (WHERE x IS NOT NULL) FROM S AS i WHERE i.a IS NOT DISTINCT FROM S.a) AS m FROM S",
    "SELECT a, b, x FROM S ORDER BY b LIMIT 3": f"SELECT a, b, x FROM S ORDER BY b NULLS FIRST, {ORDER} LIMIT 3",
    "SELECT b FROM S ORDER BY x + 1 DESC LIMIT 3": "SELECT b FROM S ORDER BY x + 1 DESC NULLS LAST, b NULLS FIRST "
    "LIMIT 3",
    "SELECT a, b FROM S QUALIFY row_number() OVER (PARTITION BY a ORDER BY x) = 1": "SELECT a, b FROM S QUALIFY "
    f"row_number() OVER (PARTITION BY a ORDER BY x NULLS FIRST, {ORDER}) = 1",
    "SELECT a, e FROM S LATERAL VIEW explode(array(a, a + 1)) t AS e": "SELECT a, unnest([a, a + 1]) AS e FROM S",
    "SELECT a, id FROM S, range(3)": "SELECT a, id FROM S, range(3) AS r(id)",
    "SELECT b, e FROM S, LATERAL posexplode(array(x, 1e0)) AS t(p, e) WHERE p = 0": "SELECT b, x AS e FROM S",
}
"""Text, and what DuckDB is asked instead."""


def rows(generator: random.Random, count: int) -> list[tuple[Any, ...]]:
    return [
        (
            generator.choice([None, 1, 2, 3, 4]),
            generator.choice([None, "p", "q", "r"]),
            generator.choice([None, 0.5, 1.0, 1.5, 2.5]),
        )
        for _ in range(count)
    ]


def rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_rounded(v) for v in row)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else round(value, 9)
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize("text", [*SAME, *TWINS])
def test_the_plan_means_what_the_text_says(text: str) -> None:
    twin = TWINS.get(text) or sqlglot.transpile(text, read="spark", write="duckdb")[0]
    root = plan(text).root
    sets = any(word in text for word in ("ROLLUP", "CUBE", "SETS"))
    for seed, count in enumerate((0, 9, 20)):
        if sets and count == 0:
            continue  # no rows, no groups: Spark's Expand has it so, DuckDB has the row of all
        generator = random.Random(seed)
        s, t = rows(generator, count), [(1, 2), (3, 4), (None, 1)]
        found = evaluate(root, {"S": Table(("a", "b", "x"), s), "T": Table(("a", "c"), t)})
        with duckdb.connect() as db:
            db.execute("CREATE TABLE S (a INT, b VARCHAR, x DOUBLE); CREATE TABLE T (a INT, c DECIMAL(10, 2))")
            if s:
                db.executemany("INSERT INTO S VALUES (?, ?, ?)", s)
            db.executemany("INSERT INTO T VALUES (?, ?)", t)
            wanted = db.execute(twin).fetchall()
        assert Counter(map(rounded, found.elements())) == Counter(map(rounded, wanted)), f"seed {seed}"
