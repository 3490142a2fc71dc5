"""Queries that together have every kind of node, window, call and key with every field that plan identities tell."""

from __future__ import annotations

from dataclasses import replace

from sweeparea.cql.binding.binder import bind_select
from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.operators.nodes import Analytic
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan, UserFunction, UserKind
from tests.cql.schemas import TICKS, TIMES

FUNCTIONS = (
    UserFunction("celsius", UserKind.FUNCTION, "readings:celsius", "double"),
    UserFunction("spread", UserKind.AGGREGATE, "readings:spread", "double"),
    UserFunction("summed", UserKind.AGGREGATE, "tests.cql.user_states:summed", "bigint", running=True),
    UserFunction("hold_for", UserKind.WINDOW, "readings:hold_for", "WK"),
    UserFunction("for_ever", UserKind.WINDOW, "readings:for_ever", "monotonic"),
)
HISTORY = InputSchema("H", SchemaKind.RELATION, (("a", "int"), ("d", "string")), retroactive=False)
ORDERED = InputSchema("O", SchemaKind.STREAM, (("a", "int"), ("no", "bigint")), sequence_by="no")
INPUTS = {**TICKS, **TIMES, "H": HISTORY, "O": ORDERED}

WINDOWS = {
    "now": "[Now]",
    "range": "[Range 5]",
    "unbounded": "[Range Unbounded]",
    "slide": "[Range 5 Slide 3]",
    "slide_lag": "[Range 5 Slide 3 Lag 2 Anchor 1]",
    "tumbling": "[Tumbling 4]",
    "tumbling_anchor": "[Tumbling 4 Anchor 1]",
    "hopping": "[Hopping 9 Slide 3]",
    "hopping_anchor": "[Hopping 10 Slide 4 Anchor 3]",
    "fixed": "[Fixed 5]",
    "fixed_anchor": "[Fixed 5 Anchor 2]",
    "from": "[From 3]",
    "until": "[Until 9]",
    "band": "[From 3 Until 9]",
    "rows": "[Rows 3]",
    "rows_slide": "[Rows 4 Slide 2]",
    "rows_range": "[Partition By a Rows 4 Range 9]",
    "partitioned": "[Partition By a, b Rows 3]",
    "session": "[Session 4]",
    "session_partitioned": "[Session 4 Partition By a]",
    "when": "[Tumbling When (x > 1.5)]",
    "when_partitioned": "[Tumbling When (x > 1.5) Partition By b]",
    "user": "[hold_for(a)]",
    "user_monotonic": "[for_ever()]",
}

QUERIES = {
    **{f"window_{name}": f"SELECT a, COUNT(*) AS n FROM S {text} GROUP BY a" for name, text in WINDOWS.items()},
    "window_calendar": "SELECT dest, COUNT(*) AS n FROM flights [Tumbling By month In 'Europe/Berlin'] GROUP BY dest",
    "window_calendar_utc": "SELECT dest, COUNT(*) AS n FROM flights [Tumbling By day] GROUP BY dest",
    "window_bounds": "SELECT WINDOW_START(S) AS ws, WINDOW_END(S) AS we, a, SUM(x) AS s FROM S [Tumbling 4] "
    "GROUP BY WINDOW_START(S), WINDOW_END(S), a",
    "window_sequence": "SELECT a FROM O [Rows 3]",
    "time_range": "SELECT origin, AVG(dep_delay) AS d FROM flights [RANGE INTERVAL 6 HOURS SLIDE INTERVAL 1 HOUR] "
    "GROUP BY origin HAVING COUNT(*) >= 5",
    "scan_stream": "SELECT a, b FROM S WHERE x > 1",
    "scan_instant": "SELECT a, ts AS at FROM S [Range 5]",
    "scan_relation": "SELECT a, d FROM R",
    "scan_derived": "SELECT a, n + 1 AS m FROM q",
    "one_row": "SELECT one, a FROM (SELECT 1 AS one) AS o LEFT JOIN R ON a = one",
    "select": "SELECT a FROM S [Range 5] WHERE x > 1 AND b LIKE 'a%' OR a IS NULL",
    "project": "SELECT CAST(a AS bigint) * 2 AS twice, upper(b) AS u, CASE WHEN x > 0 THEN 1 END AS c FROM S [Range 5]",
    "generate": "SELECT a, e FROM S [Range 5] LATERAL VIEW explode(split(b, ',')) l AS e",
    "generate_outer": "SELECT a, i, e FROM S [Range 5] LATERAL VIEW OUTER posexplode(split(b, ',')) l AS i, e",
    "join_inner": "SELECT S.a, c FROM S [Range 5], T [Rows 9] WHERE S.a = T.a",
    "join_cross": "SELECT b, d FROM S [Now] CROSS JOIN R",
    "join_left": "SELECT S.a, d FROM S [Range 5] LEFT JOIN R ON S.a = R.a AND x > 1",
    "join_right": "SELECT S.a, d FROM S [Range 5] RIGHT JOIN R ON S.a = R.a",
    "join_full": "SELECT S.a, c FROM S [Range 5] FULL JOIN T [Range 3] ON S.a = T.a",
    "join_semi": "SELECT a FROM S [Range 5] LEFT SEMI JOIN R ON S.a = R.a",
    "join_anti": "SELECT a FROM S [Range 5] LEFT ANTI JOIN R ON S.a = R.a",
    "join_static": "SELECT S.a, e FROM S [Range 5] JOIN Fixed ON S.a = Fixed.a",
    "in": "SELECT a FROM S [Range 5] WHERE a IN (SELECT a FROM R)",
    "not_in": "SELECT a FROM S [Range 5] WHERE a NOT IN (SELECT a FROM T [Now])",
    "exists": "SELECT a FROM S [Range 5] WHERE EXISTS (SELECT 1 FROM R WHERE R.a = S.a AND d < b)",
    "exists_marked": "SELECT a, EXISTS (SELECT 1 FROM R WHERE R.a = S.a) AS known FROM S [Range 5]",
    "scalar": "SELECT a, (SELECT d FROM R) AS only FROM S [Range 5]",
    "scalar_correlated": "SELECT a, (SELECT MAX(c) FROM T [Range 3] WHERE T.a = S.a) AS m FROM S [Range 5]",
    "enrich": "SELECT S.a, d FROM S [Range 5] JOIN H ON S.a = H.a",
    "enrich_left": "SELECT S.a, d FROM S [Range 5] LEFT JOIN H ON S.a = H.a",
    "enrich_cross": "SELECT S.a, d FROM S [Range 5], H",
    "union_all": "SELECT a FROM S [Range 5] UNION ALL SELECT a FROM T [Now]",
    "union": "SELECT a FROM S [Range 5] UNION SELECT a FROM R",
    "except_all": "SELECT a FROM S [Range 5] EXCEPT ALL SELECT a FROM R",
    "except": "SELECT a FROM S [Range 5] EXCEPT SELECT a FROM T [Range 3]",
    "intersect_all": "SELECT a FROM S [Range 5] INTERSECT ALL SELECT a FROM R",
    "intersect": "SELECT a FROM S [Range 5] INTERSECT SELECT a FROM T [Range 3]",
    "distinct": "SELECT DISTINCT a, b FROM S [Range 5]",
    "global": "SELECT COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m, MIN(b) AS lo, MAX(b) AS hi FROM S [Range 5]",
    "grouped": "SELECT a, MAX(x) - MIN(x) AS r, STDDEV(x) AS s FROM S [Range 5] GROUP BY a HAVING COUNT(*) > 1",
    "calls_distinct": "SELECT a, COUNT(DISTINCT b) AS n, SUM(x) AS s FROM S [Range 5] GROUP BY a",
    "calls_one_distinct": "SELECT a, COUNT(DISTINCT b) AS n FROM S [Range 5] GROUP BY a",
    "calls_filter": "SELECT a, COUNT(*) FILTER (WHERE x > 1) AS n, COLLECT_LIST(b) FILTER (WHERE x > 2) AS l "
    "FROM S [Range 5] GROUP BY a",
    "calls_extra": "SELECT CORR(a, x) AS c, PERCENTILE(x, 0.5) AS p, MAX_BY(b, x) AS m FROM S [Range 5]",
    "calls_order": "SELECT a, FIRST(b) AS f, LAST(x) IGNORE NULLS AS l, COLLECT_LIST(b) AS c "
    "FROM S [Range 5] GROUP BY a",
    "calls_within": "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x DESC) AS p FROM S [Range 5]",
    "grouping_sets": "SELECT a, b, COUNT(*) AS n FROM S [Range 5] GROUP BY ROLLUP (a, b)",
    "user_code": "SELECT a, spread(DISTINCT x, b) AS s, MAX(celsius(x)) AS c FROM S [Range 5] GROUP BY a",
    "user_state": "SELECT a, summed(a) AS s FROM S [Range 5] GROUP BY a",
    "user_state_over": "SELECT a, summed(a) OVER (PARTITION BY b) AS s FROM S [Range 5]",
    "analytic": "SELECT a, ROW_NUMBER() OVER (PARTITION BY b ORDER BY x DESC NULLS FIRST) AS r, "
    "LAG(x, 2) IGNORE NULLS OVER (PARTITION BY b ORDER BY a) AS l FROM S [Range 5]",
    "analytic_frame": "SELECT a, SUM(x) FILTER (WHERE a > 1) OVER (PARTITION BY b ORDER BY a "
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s, MAX(x) OVER () AS m FROM S [Range 5]",
    "analytic_rows": "SELECT a, LAG(x) OVER (PARTITION BY b ORDER BY a) AS l FROM S [Range 5]",
    "top": "SELECT a, x FROM S [Range 5] ORDER BY x DESC LIMIT 3",
    "top_offset": "SELECT a, x FROM S [Range 5] ORDER BY a NULLS LAST, x LIMIT 3 OFFSET 2",
    "top_from": "SELECT a FROM S [Range 5] ORDER BY a OFFSET 2",
    "top_correlated": "SELECT a, (SELECT c FROM T [Range 3] WHERE T.a = S.a ORDER BY c DESC LIMIT 1) AS m "
    "FROM S [Range 5]",
    "top_ranks": "SELECT a, r, n FROM (SELECT a, RANK() OVER (PARTITION BY b ORDER BY x) AS r, "
    "ROW_NUMBER() OVER (PARTITION BY b ORDER BY x) AS n FROM S [Range 5]) AS q WHERE r <= 3",
    "istream": "ISTREAM(SELECT a, COUNT(*) AS n FROM S [Range 5] GROUP BY a)",
    "dstream": "DSTREAM(SELECT a FROM S [Range 5])",
    "rstream": "RSTREAM(SELECT a, SUM(x) AS s FROM S [Range 5] GROUP BY a)",
    "rstream_every": "RSTREAM(SELECT a, SUM(x) AS s FROM S [Range 5] GROUP BY a EVERY 5 ANCHOR 2)",
    "stream_inside": "SELECT a, COUNT(*) AS n FROM (SELECT ISTREAM(a) FROM S [Rows 2]) [Range 9] AS w GROUP BY a",
    "stream_inside_instant": "SELECT a, ts AS at FROM (DSTREAM(SELECT a FROM S [Range 5])) [Range 9] AS w",
    "stream_inside_every": "SELECT a FROM (RSTREAM(SELECT a FROM R EVERY 5 ANCHOR 2)) [Range 9] AS w",
    "with": "WITH g AS (SELECT a, COUNT(*) AS n FROM S [Range 5] GROUP BY a) "
    "SELECT p.a, q.n FROM g AS p, g AS q WHERE p.n = q.a",
}
STRATEGIES = ("upa", "negative", "direct")


def bound(name: str, strategy: str = "upa") -> Plan:
    """The plan of one of ``QUERIES``, with all rewrites."""
    return bind_select(QUERIES[name], INPUTS, {"strategy": strategy}, name=name, functions=FUNCTIONS)


def with_distinct() -> Plan:
    """A plan with the one field that no text reaches: DISTINCT of a window function is not offered."""
    plan = bound("analytic")

    def distinct(node: Node) -> Node:
        node = node.with_inputs(tuple(map(distinct, node.inputs)))
        if not isinstance(node, Analytic):
            return node
        return replace(node, calls=tuple((column, replace(call, distinct=True)) for column, call in node.calls))

    return replace(plan, root=distinct(plan.root))
