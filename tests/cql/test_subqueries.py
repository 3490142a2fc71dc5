"""Subqueries anywhere: what their plans give against DuckDB, the plans' shapes, and what is said of wrong ones."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from sweeparea.cql.binding.subqueries.correlation import FreeColumns
from sweeparea.cql.binding.subqueries.dependent_join import DependentJoin, Domain
from sweeparea.cql.text.errors import BindError, Place, RefusedError, TypeError_
from sweeparea.operators.linear.map import Map
from sweeparea.operators.nodes import Aggregate, Analytic, Join, Project, RelationScan, RelationToStream, Select, TopK
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.time.domain import TimeDomain
from tests.cql.against_duckdb import MANY, planned, run_by_duckdb
from tests.cql.nested_queries import random_query, random_tables
from tests.cql.schemas import nodes, plan

ROWS = {
    "A": [(1, 1, "x"), (1, 1, "x"), (2, None, "y"), (None, 3, None), (3, 0, "y")],
    "B": [(1, 2, "x"), (1, None, "x"), (2, 1, None), (None, None, "y")],
    "C": [(1, 1, "y"), (2, 3, "y"), (2, 3, "x")],
}


def kinds(root: Plan | Node) -> list[str]:
    return [n.kind for n in nodes(root.root if isinstance(root, Plan) else root, Join)]


# -- against DuckDB ----------------------------------------------------------------------------------------------------

SAME = [
    # conjuncts
    "SELECT k, a FROM A WHERE EXISTS (SELECT 1 FROM B WHERE B.k = A.k)",
    "SELECT k, a FROM A WHERE NOT EXISTS (SELECT 1 FROM B WHERE B.k = A.k AND B.b > A.a)",
    "SELECT k, a FROM A WHERE k IN (SELECT k FROM B)",
    "SELECT k, a FROM A WHERE k NOT IN (SELECT k FROM B)",
    "SELECT k, a FROM A WHERE k NOT IN (SELECT k FROM B WHERE k IS NOT NULL)",
    "SELECT k, a FROM A WHERE k NOT IN (SELECT k FROM B WHERE FALSE)",
    "SELECT k, a FROM A WHERE a NOT IN (SELECT b FROM B WHERE B.k = A.k)",
    "SELECT k, a FROM A WHERE NOT (NOT (k IN (SELECT k FROM C)))",
    "SELECT k, a FROM A WHERE NOT k IN (SELECT k FROM C)",
    "SELECT k, a FROM A WHERE k + 1 IN (SELECT k + A.a FROM C WHERE C.c > A.a)",
    "SELECT k FROM A WHERE EXISTS ((SELECT k FROM B WHERE B.k = A.k) UNION (SELECT k FROM C WHERE C.c = A.a))",
    "SELECT k FROM A WHERE k IN ((SELECT k FROM B) INTERSECT (SELECT k FROM C WHERE C.k = A.k))",
    "SELECT k FROM A WHERE EXISTS (SELECT MAX(b) FROM B WHERE B.k = A.k)",
    "SELECT k FROM A WHERE NOT EXISTS (SELECT MAX(b) FROM B WHERE B.k = A.k)",
    "SELECT k FROM A WHERE EXISTS (SELECT MAX(b) FROM B WHERE B.k = A.k HAVING COUNT(*) > 1)",
    "SELECT k FROM A WHERE EXISTS (SELECT k FROM B WHERE B.k = A.k GROUP BY k HAVING COUNT(*) > 1)",
    "SELECT k FROM A WHERE EXISTS (SELECT k FROM B WHERE B.k = A.k ORDER BY k LIMIT 0)",
    "SELECT k FROM A WHERE a IN (SELECT MAX(b) FROM B WHERE B.k = A.k)",
    "SELECT k FROM A WHERE a NOT IN (SELECT MAX(b) FROM B WHERE B.k > A.k)",
    # marks
    "SELECT k, EXISTS (SELECT 1 FROM B WHERE B.k = A.k) AS e FROM A",
    "SELECT k, k IN (SELECT k FROM B) AS e, k NOT IN (SELECT k FROM B WHERE k > 1) AS f FROM A",
    "SELECT k, a IN (SELECT b FROM B WHERE B.k = A.k) AS e, a NOT IN (SELECT b FROM B WHERE B.k > A.k) AS f FROM A",
    "SELECT k FROM A WHERE k IN (SELECT k FROM B WHERE B.s = A.s) OR a > 2",
    "SELECT k FROM A WHERE CASE WHEN EXISTS (SELECT 1 FROM B WHERE b > a) THEN k = 1 ELSE TRUE END",
    "SELECT k, COALESCE(k IN (SELECT k FROM B), FALSE) AS e FROM A",
    "SELECT k FROM A WHERE a = 1 OR k IN (SELECT k FROM B) OR EXISTS (SELECT 1 FROM C WHERE c = a) OR s = 'y'",
    # ANY, SOME and ALL
    *(
        f"SELECT k, a FROM A WHERE {word} ({inner})"
        for word in (
            *("a > ALL", "a >= ANY", "k <> ALL", "k = ANY", "k <> SOME", "a = ALL", "NOT a < ANY", "NOT a <= ALL"),
        )
        for inner in ("SELECT b FROM B", "SELECT c FROM C WHERE C.k = A.k", "SELECT b FROM B WHERE FALSE")
    ),
    *(
        f"SELECT k, a {sign} ANY ({inner}) AS e, a {sign} ALL ({inner}) AS f FROM A"
        for sign in ("=", "<>", "<", "<=", ">", ">=")
        for inner in (
            "SELECT b FROM B WHERE b > 1",
            "SELECT b FROM B WHERE B.k >= A.k",
            "SELECT c FROM C WHERE k = A.k",
        )
    ),
    "SELECT k FROM A WHERE s >= ALL (SELECT s FROM B) OR a + 1 < ANY (SELECT a + c FROM C WHERE C.c > A.a)",
    "SELECT k FROM A GROUP BY k HAVING COUNT(*) >= ALL (SELECT COUNT(*) FROM A GROUP BY k)",
    "SELECT A.k, B.b FROM A LEFT JOIN B ON A.k = B.k AND B.b >= ALL (SELECT b FROM B AS x WHERE x.k = B.k)",
    "SELECT k, CASE WHEN a >= ALL (SELECT b FROM B WHERE B.k = A.k) THEN 1 ELSE 0 END AS e FROM A",
    "SELECT SUM(CASE WHEN a < ANY (SELECT b FROM B) THEN 1 ELSE 0 END) AS n FROM A",
    "SELECT k FROM A WHERE a > ALL (SELECT b FROM B WHERE b > ANY (SELECT c FROM C WHERE C.k = A.k))",
    # VALUES
    "SELECT k FROM A WHERE k IN (VALUES (1), (3))",
    "SELECT k FROM A WHERE k > ALL (VALUES (1), (2)) OR EXISTS (VALUES (NULL))",
    "SELECT k FROM A UNION ALL VALUES (1), (2)",
    "(VALUES (1, 'x'), (2, 'y')) INTERSECT SELECT k, s FROM A",
    "SELECT k, (VALUES (3)) AS v FROM A",
    # scalars
    "SELECT k, (SELECT MAX(b) FROM B) AS m FROM A",
    "SELECT k, (SELECT COUNT(*) FROM B WHERE B.k = A.k) AS n FROM A",
    "SELECT k, (SELECT COUNT(*) + 10 * COUNT(b) FROM B WHERE B.k < A.k) AS n FROM A",
    "SELECT k, (SELECT COUNT(*) FROM B WHERE B.k = A.k HAVING COUNT(*) <> 1) AS n FROM A",
    "SELECT k, (SELECT SUM(b + a) FROM B WHERE B.k = A.k) AS n FROM A",
    "SELECT k, (SELECT a + MAX(b) FROM B) AS n FROM A",
    "SELECT k, (SELECT b FROM B WHERE B.k = A.k ORDER BY b DESC NULLS LAST LIMIT 1) AS n FROM A",
    "SELECT k, (SELECT b FROM B WHERE B.k <> A.k ORDER BY b DESC NULLS LAST, k LIMIT 1) AS n FROM A",
    "SELECT k, (SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM B WHERE B.k = A.k GROUP BY s) t) AS n FROM A",
    "SELECT k, (SELECT DISTINCT s FROM B WHERE B.k = A.k AND s IS NOT NULL) AS n FROM A",
    "SELECT k, (SELECT k + 1) AS n FROM A",
    "SELECT k FROM A WHERE a > (SELECT AVG(x.a) FROM A AS x WHERE x.k = A.k)",
    "SELECT k, (SELECT MAX(b) FROM B WHERE B.k = A.k AND A.a = 1) AS n FROM A",
    "SELECT SUM((SELECT MAX(b) FROM B WHERE B.k = A.k)) AS n, COUNT(*) AS m FROM A",
    # above GROUP BY
    "SELECT k, COUNT(*) AS n FROM A GROUP BY k HAVING COUNT(*) > (SELECT COUNT(*) FROM C WHERE C.k = A.k)",
    "SELECT k, COUNT(*) AS n FROM A GROUP BY k HAVING k IN (SELECT k FROM B) OR COUNT(*) > 1",
    "SELECT k, MAX(a) AS n, (SELECT COUNT(*) FROM B WHERE B.k = A.k) AS c FROM A GROUP BY k",
    "SELECT (SELECT MAX(b) FROM B WHERE B.k = A.k) AS g, COUNT(*) AS n FROM A "
    "GROUP BY (SELECT MAX(b) FROM B WHERE B.k = A.k)",
    # several levels
    "SELECT k FROM A WHERE EXISTS (SELECT 1 FROM B WHERE B.k = A.k AND EXISTS (SELECT 1 FROM C WHERE C.c = A.a))",
    "SELECT k FROM A WHERE EXISTS (SELECT 1 FROM B WHERE b > (SELECT COUNT(*) FROM C WHERE C.k = A.k AND C.c >= B.b))",
    "SELECT k, (SELECT SUM((SELECT COUNT(*) FROM C WHERE C.k >= A.k AND C.k = B.k)) FROM B) AS n FROM A",
    "SELECT k FROM A WHERE k IN (SELECT k FROM B WHERE B.b IN (SELECT c FROM C WHERE C.k = A.k OR C.k = B.k))",
    "SELECT k FROM A WHERE k NOT IN (SELECT k FROM B WHERE EXISTS (SELECT 1 FROM C WHERE C.c > A.a) OR B.b = 1)",
    # set operations, joins, groups, windows and CTEs inside
    "SELECT k FROM A WHERE a IN (SELECT b FROM B WHERE B.k = A.k EXCEPT SELECT c FROM C WHERE C.k = A.k)",
    "SELECT k, (SELECT COUNT(*) FROM (SELECT b FROM B WHERE B.k = A.k UNION ALL SELECT c FROM C) t) AS n FROM A",
    "SELECT k, (SELECT COUNT(*) FROM (SELECT b FROM B WHERE b >= A.k INTERSECT ALL SELECT c FROM C) t) AS n FROM A",
    "SELECT k, (SELECT COUNT(*) FROM B FULL JOIN C ON B.k = C.k AND B.b > A.a) AS n FROM A",
    "SELECT k, (SELECT COUNT(*) FROM B LEFT JOIN C ON B.k = C.k AND C.c = A.a WHERE B.k = A.k) AS n FROM A",
    "SELECT k, (SELECT COUNT(*) FROM (SELECT * FROM B WHERE b > A.a) x FULL JOIN (SELECT * FROM C WHERE c > A.a) y "
    "ON x.k = y.k) AS n FROM A",
    "SELECT k FROM A WHERE 2 IN (SELECT ROW_NUMBER() OVER (ORDER BY b NULLS FIRST, s NULLS FIRST) "
    "FROM B WHERE B.k = A.k)",
    "WITH w AS (SELECT k, MAX(b) AS m FROM B GROUP BY k) SELECT k FROM A WHERE a < (SELECT m FROM w WHERE w.k = A.k)",
    "SELECT k FROM A WHERE EXISTS (WITH w AS (SELECT b FROM B WHERE B.k = A.k) SELECT 1 FROM w WHERE b > 1)",
    "SELECT k FROM A WHERE EXISTS (SELECT 1 FROM (SELECT * FROM B WHERE B.k = A.k) t WHERE t.b = 2)",
    # LATERAL
    "SELECT A.k, t.m FROM A, LATERAL (SELECT MAX(b) AS m FROM B WHERE B.k = A.k) t",
    "SELECT A.k, t.b FROM A LEFT JOIN LATERAL (SELECT b FROM B WHERE B.k = A.k AND B.b > A.a) t ON TRUE",
    "SELECT A.k, t.b FROM A JOIN LATERAL (SELECT b FROM B WHERE B.k > A.k ORDER BY b NULLS FIRST LIMIT 1) t ON TRUE",
    "SELECT A.k, t.b, u.n FROM A, LATERAL (SELECT b FROM B WHERE B.k = A.k) t, "
    "LATERAL (SELECT COUNT(*) AS n FROM C WHERE C.c > t.b OR C.k = A.k) u",
    # in ON
    "SELECT A.k, B.b FROM A JOIN B ON A.k = B.k AND EXISTS (SELECT 1 FROM C WHERE C.k = A.k AND C.c > B.b)",
    "SELECT A.k, B.b FROM A JOIN B ON A.k = B.k OR B.b IN (SELECT c FROM C WHERE C.k = A.k)",
]


@pytest.mark.parametrize("text", SAME)
def test_plan_gives_what_duckdb_gives(text: str) -> None:
    assert planned(text, ROWS) == run_by_duckdb(text, ROWS)


DIFFERENT_TEXT = [
    (  # an aggregate of the query around
        "SELECT k FROM A GROUP BY k HAVING EXISTS (SELECT 1 FROM C WHERE C.c = MAX(A.a))",
        "SELECT k FROM (SELECT k, MAX(a) AS m FROM A GROUP BY k) g WHERE EXISTS (SELECT 1 FROM C WHERE C.c = g.m)",
    ),
    (  # COLLECT_LIST of nothing is an empty list
        "SELECT k, size((SELECT COLLECT_LIST(b) FROM B WHERE B.k = A.k)) AS n FROM A",
        "SELECT k, (SELECT COUNT(b) FROM B WHERE B.k = A.k) AS n FROM A",
    ),
    (
        "SELECT k, (a, s) IN (SELECT c, u FROM C) AS e FROM A",
        "SELECT k, (SELECT CASE WHEN bool_or(c = a AND u = s) THEN TRUE WHEN bool_or((c = a AND u = s) IS NULL) "
        "THEN NULL ELSE FALSE END FROM C) AS e FROM A",
    ),
    (
        "SELECT k FROM A WHERE (a, s) NOT IN (SELECT b, s FROM B WHERE B.k = A.k)",
        "SELECT k FROM A WHERE NOT EXISTS (SELECT 1 FROM B WHERE B.k = A.k AND COALESCE(b = a AND B.s = A.s, TRUE))",
    ),
    ("SELECT k FROM A WHERE k IN (1, (SELECT MAX(b) FROM B))", "SELECT k FROM A WHERE k IN (1, 2)"),
]


@pytest.mark.parametrize(("text", "duck"), DIFFERENT_TEXT)
def test_plan_gives_what_another_text_gives(text: str, duck: str) -> None:
    assert planned(text, ROWS) == run_by_duckdb(duck, ROWS)


@pytest.mark.parametrize("seed", range(120))
def test_random_queries(seed: int) -> None:
    """Joins of every kind, set operations and subqueries up to two deep, correlated with any query around."""
    rng = random.Random(seed)
    query, tables = random_query(rng, depth=1 if seed % 2 else 2), random_tables(rng)
    assert planned(query.cql, tables) == run_by_duckdb(query.duck, tables), query.cql


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, (SELECT k FROM B) AS b FROM A",
        "SELECT k, (SELECT b FROM B WHERE B.k = A.k) AS b FROM A",
        "SELECT k FROM A WHERE a > (SELECT b FROM B WHERE B.k = A.k)",
    ],
)
def test_more_than_one_row_of_a_scalar_subquery(text: str) -> None:
    assert planned(text, ROWS) == MANY


def test_rows_that_no_outer_row_asks_for_are_no_error() -> None:
    """B has two rows of k 1, but A has no such row."""
    assert planned("SELECT k, (SELECT b FROM B WHERE B.k = A.k) AS b FROM A WHERE A.k = 2", ROWS) == {(2, 1): 1}


# -- shapes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("EXISTS (SELECT 1 FROM R WHERE R.a = S.a)", "semi"),
        ("S.a IN (SELECT a FROM R)", "semi"),
        ("NOT EXISTS (SELECT 1 FROM R WHERE R.a < S.a)", "anti"),
        ("S.a NOT IN (SELECT a FROM R WHERE R.d = S.b)", "anti"),
        ("NOT (S.a IN (SELECT a FROM R))", "anti"),
    ],
)
def test_a_conjunct_is_one_join(where: str, kind: str) -> None:
    root = plan(f"SELECT a FROM S WHERE {where}").root
    assert kinds(root) == [kind]
    assert nodes(root, Aggregate) == []


def test_not_in_takes_what_might_be_equal_for_equal() -> None:
    [join] = nodes(plan("SELECT a FROM S WHERE a NOT IN (SELECT a FROM R)").root, Join)
    assert join.condition.sql.startswith("coalesce(")


def test_correlation_by_equality_needs_no_domain() -> None:
    root = plan("SELECT a, (SELECT COUNT(*) FROM R WHERE R.a = S.a) AS n FROM S").root
    [grouped] = nodes(root, Aggregate)
    assert [c.label for c, _ in grouped.keys] == ["a"]
    assert kinds(root) == ["left"]


def test_the_latest_of_each_key_needs_no_domain() -> None:
    root = plan("SELECT S.a, t.d FROM S, LATERAL (SELECT d FROM R WHERE R.a = S.a ORDER BY d DESC LIMIT 1) t").root
    [top] = nodes(root, TopK)
    assert len(top.keys) == 1
    assert nodes(root, Aggregate) == []


def test_window_functions_stay_within_an_outer_row() -> None:
    text = (
        "SELECT a FROM S WHERE EXISTS (SELECT 1 FROM (SELECT rank() OVER (ORDER BY d) AS r FROM R WHERE R.a = S.a) t "
    )
    [analytic] = nodes(plan(text + "WHERE r = 2)").root, Analytic)
    assert len(analytic.calls[0][1].partition) == 1


def test_other_correlation_goes_by_the_distinct_outer_values() -> None:
    root = plan("SELECT a, (SELECT COUNT(*) FROM R WHERE R.a < S.a) AS n FROM S").root
    domain, grouped = nodes(root, Aggregate)
    assert [c.label for c, _ in domain.keys] == ["a"]
    assert domain.calls == ()
    assert len(grouped.keys) == 1
    assert "<=>" in nodes(root, Join)[-1].condition.sql


def test_the_same_subquery_is_computed_once() -> None:
    value = "(SELECT MAX(a) FROM R WHERE R.a < S.a)"
    root = plan(f"SELECT a, {value} AS m FROM S WHERE {value} > 1 ORDER BY {value} LIMIT 3").root
    assert kinds(root).count("left") == 1


def test_the_outer_plan_appears_once_for_each_domain() -> None:
    """So plans grow with the number of subqueries and not faster."""
    wheres = [f"a IN (SELECT a FROM R WHERE R.a > S.x + {i})" for i in range(6)]
    assert sum(1 for _ in plan(f"SELECT a FROM S WHERE {' OR '.join(wheres)}").root.walk()) < 200


def test_in_is_monotonic_and_not_in_is_not() -> None:
    assert plan("SELECT a FROM S WHERE a IN (SELECT a FROM T)").stream == "istream"
    assert plan("SELECT a FROM S WHERE a NOT IN (SELECT a FROM T)").stream is None
    assert plan("SELECT a FROM S WHERE a IN (SELECT a FROM T) OR x > 1").stream is None


def test_a_windowed_stream_inside() -> None:
    root = plan("SELECT a, (SELECT COUNT(*) FROM T [Range 5] WHERE T.a = S.a) AS n FROM S [Range 9]").root
    assert kinds(root) == ["left"]
    root = plan("SELECT a FROM S WHERE EXISTS (SELECT 1 FROM T [Range 5] WHERE T.a = S.a AND T.ts < S.ts)").root
    assert kinds(root) == ["semi"]


@pytest.mark.parametrize(
    ("where", "tree"),
    [
        ("a > ANY (SELECT a FROM T)", ["semi"]),
        ("NOT (a > ALL (SELECT a FROM T))", ["semi"]),
        ("a <> ALL (SELECT a FROM T)", ["anti"]),
        ("a <=> ANY (SELECT a FROM T)", ["semi"]),
        ("a > ALL (SELECT a FROM T)", ["inner"]),  # beside the greatest and the least
        ("a > ALL (SELECT a FROM T WHERE T.c = S.x)", ["left"]),
        ("a <=> ALL (SELECT a FROM T)", ["left"]),
    ],
)
def test_any_and_all_as_conditions(where: str, tree: list[str]) -> None:
    found = plan(f"SELECT a FROM S WHERE {where}")
    assert kinds(found)[-1:] == tree
    assert (found.stream == "istream") == (tree == ["semi"])


def test_a_test_of_order_needs_no_pairs_of_rows() -> None:
    root = plan("SELECT a, a >= ALL (SELECT a FROM T) AS e FROM S").root
    [extremes] = nodes(root, Aggregate)
    assert [call.function for _, call in extremes.calls] == ["MIN", "COUNT", "COUNT"] or [
        call.function for _, call in extremes.calls
    ] == ["MAX", "COUNT", "COUNT"]


def test_streams_as_subqueries_are_unbounded_as_in_from() -> None:
    """Semantics section 6: a stream without a window is Unbounded, wherever it stands."""
    for where in (
        "EXISTS (ISTREAM(SELECT a FROM T [Now]))",
        "a IN (ISTREAM(SELECT a FROM T [Now]))",
        "a IN ((ISTREAM(SELECT a FROM T [Now])) UNION ALL VALUES (1))",
        "a > ANY (DSTREAM(SELECT a FROM T [Now]))",
        "a = (RSTREAM(SELECT MAX(a) AS a FROM T [Now] EVERY 5))",
    ):
        found = plan(f"SELECT a FROM S WHERE {where}")
        assert any("has no window: [Range Unbounded] is taken" in note for note in found.notes), where
        assert nodes(found.root, RelationToStream), where


# -- faults ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT a FROM S WHERE a IN (SELECT a, d FROM R)", TypeError_, "IN compares 1 value with the 2 columns"),
        ("SELECT a FROM S WHERE (a, b) IN (SELECT a FROM R)", TypeError_, "IN compares 2 values with the 1 column"),
        ("SELECT a FROM S WHERE a IN (SELECT d = 'x' FROM R)", TypeError_, "IN cannot compare a"),
        ("SELECT (SELECT a, d FROM R) AS v FROM S", TypeError_, "a scalar subquery has one column, found 2"),
        ("SELECT a FROM S WHERE (SELECT MAX(d) FROM R)", TypeError_, "WHERE needs a condition"),
        ("SELECT a FROM S WHERE ANY (SELECT a FROM R) = a", TypeError_, "belongs right of a comparison"),
        ("SELECT a FROM S WHERE b LIKE ALL (SELECT d FROM R)", TypeError_, "write EXISTS (SELECT .. WHERE ..)"),
        ("SELECT a FROM S WHERE (a, b) < ANY (SELECT a, d FROM R)", RefusedError, "Only = ANY and <> ALL take (a, b)"),
        ("SELECT a FROM S WHERE a < ANY (SELECT a, d FROM R)", TypeError_, "< ANY compares 1 value with the 2 columns"),
        ("SELECT a FROM S WHERE a > ALL (SELECT d = 'x' FROM R)", TypeError_, "> ALL cannot compare a"),
        ("SELECT transform(array(1), y -> y > ALL (SELECT a FROM R)) AS l FROM S", RefusedError, "inside a lambda"),
        ("SELECT a FROM S WHERE EXISTS (SELECT zz FROM R)", BindError, "column zz is unknown"),
        ("SELECT a FROM S WHERE EXISTS (SELECT S.zz FROM R)", BindError, "S has no column zz"),
        ("SELECT S.a FROM S, (SELECT MAX(R.a) AS m FROM R WHERE R.a = S.a) t", BindError, "S.a is unknown here"),
        (
            "SELECT b, (SELECT MAX(R.a) FROM R WHERE R.a = S.a) AS m FROM S GROUP BY b",
            BindError,
            "column S.a of the query around is neither grouped nor inside an aggregate",
        ),
        (
            "SELECT a FROM S WHERE EXISTS (SELECT 1 FROM (SELECT a FROM T WHERE T.a = S.a) [Range 5] w)",
            TypeError_,
            "from below a window or a relation-to-stream operator",
        ),
        (
            "SELECT a FROM S WHERE EXISTS (SELECT 1 FROM ISTREAM(SELECT a FROM T WHERE T.a = S.a) w)",
            TypeError_,
            "from below a window or a relation-to-stream operator",
        ),
        (
            "SELECT transform(array(1), y -> y + (SELECT MAX(a) FROM R)) AS l FROM S",
            RefusedError,
            "a subquery inside a lambda function",
        ),
        ("SELECT a FROM S [Tumbling When (a > (SELECT MAX(a) FROM R))]", RefusedError, "a subquery in"),
        ("SELECT S.a FROM S FULL JOIN LATERAL (SELECT 1 AS o) t ON TRUE", TypeError_, "LATERAL joins are inner"),
        ("SELECT o FROM LATERAL (SELECT 1 AS o) t", TypeError_, "LATERAL needs an entry before it"),
    ],
)
def test_faults(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        plan(text)
    assert message in str(caught.value)


def test_all_faults_of_inner_and_outer_query_at_once() -> None:
    with pytest.raises(Exception, match="nope") as caught:
        plan("SELECT nope FROM S WHERE a IN (SELECT a FROM R WHERE nix = 1) AND neither = 2")
    assert all(word in str(caught.value) for word in ("nope", "nix", "neither"))


def test_projected_columns_are_only_those_asked_for() -> None:
    root = plan("SELECT * FROM R WHERE a > (SELECT AVG(a) FROM R r2)").root
    assert isinstance(root, Project)
    assert [c.label for c in root.columns] == ["a", "d"]


@dataclass(frozen=True)
class Sampled(Map):
    """An operator of which the dependent join has not been told."""

    by: Expr

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns

    def words(self, time: TimeDomain) -> str:
        return "Sampled"


def test_a_correlated_subquery_below_an_operator_that_no_rule_takes_apart_names_the_operator():
    free, own = Column("c0", "a", "int"), Column("c1", "b", "int")
    scan = RelationScan("R", ((own, "b"),))
    domain = Domain(RelationScan("S", ((free, "a"),)), (free,), lambda label, type_: Column("d0", label, type_))
    correlated = Expr("`c0` = `c1`", "a = b", frozenset({"c0", "c1"}))
    join = DependentJoin(domain, FreeColumns(), Place("q.cql", 1, 1, "SELECT"))
    assert join.of(Select(scan, correlated))[1] == {"c0": Column("d0", "a", "int")}
    with pytest.raises(TypeError_, match="from below Sampled") as told:
        join.of(Sampled(scan, correlated))
    assert "window" not in str(told.value)
