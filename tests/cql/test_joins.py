"""Joins of every kind with ON, USING and NATURAL: what they give against DuckDB, their columns, what may be pushed, and
streams enriched with non-retroactive relations."""

from __future__ import annotations

from collections import Counter

import pytest

from sweeparea.cql.binding.binder import bind_select
from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.cql.text.errors import BindError, ParseError, TypeError_
from sweeparea.operators.nodes import Enrich, Join, RelationScan, Select, StreamScan, Window
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from tests.cql.against_duckdb import planned, run_by_duckdb
from tests.cql.plan_oracle import Relation, Stream, evaluate
from tests.cql.schemas import TICKS, nodes, plan, tree

ROWS = {
    "A": [(1, 1, "x"), (1, 1, "x"), (2, None, "y"), (None, 3, None), (3, 0, "y")],
    "B": [(1, 2, "x"), (1, None, "x"), (2, 1, None), (None, None, "y"), (5, 5, "z")],
    "C": [(1, 1, "y"), (2, 3, "y"), (2, 3, "x"), (7, 7, "x")],
}


def kinds(root: Node) -> list[str]:
    return [n.kind for n in nodes(root, Join)]


# -- against DuckDB ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "on", ["A.k = B.k", "A.k < B.k AND A.s = B.s", "A.k = B.k AND B.b > 1", "A.a = 1", "FALSE", "TRUE"]
)
@pytest.mark.parametrize("word", ["JOIN", "LEFT JOIN", "RIGHT OUTER JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"])
def test_on(word: str, on: str) -> None:
    columns = "A.k, a" if word in ("SEMI JOIN", "ANTI JOIN") else "A.k, a, B.k AS bk, b"
    text = f"SELECT {columns} FROM A {word} B ON {on}"
    assert planned(text, ROWS) == run_by_duckdb(text, ROWS)


@pytest.mark.parametrize("word", ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
def test_using(word: str) -> None:
    for text in (
        f"SELECT k, a, b FROM A {word} B USING (k)",
        f"SELECT k, A.k AS ak, B.k AS bk FROM A {word} B USING (k)",
        f"SELECT k, s, a, b FROM A {word} B USING (k, s)",
        f"SELECT k, a, b, c FROM A {word} B USING (k) {word} C USING (k)",
        f"SELECT k, s, a, b FROM A NATURAL {word} B",
    ):
        assert planned(text, ROWS) == run_by_duckdb(text, ROWS), text


@pytest.mark.parametrize("word", ["SEMI", "ANTI"])
def test_using_of_semi_and_anti_joins(word: str) -> None:
    text = f"SELECT * FROM A {word} JOIN B USING (k)"
    assert planned(text, ROWS) == run_by_duckdb(text, ROWS)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT A.k, b FROM A LEFT JOIN B ON A.k = B.k WHERE b IS NULL",
        "SELECT A.k, b FROM A LEFT JOIN B ON A.k = B.k WHERE A.a = 1 AND b > 1",
        "SELECT A.k, b FROM A RIGHT JOIN B ON A.k = B.k WHERE A.a IS NULL AND b IS NOT NULL",
        "SELECT A.k, b FROM A FULL JOIN B ON A.k = B.k WHERE A.a IS NULL OR b = 2",
        "SELECT A.k, b, c FROM A LEFT JOIN (B JOIN C ON B.k = C.k) ON A.k = B.k WHERE c IS NULL OR c > 1",
        "SELECT A.k, b, c FROM A LEFT JOIN B ON A.k = B.k JOIN C ON C.k = A.k WHERE b > c",
        "SELECT A.k, b, c FROM A, B FULL JOIN C ON B.k = C.k WHERE A.k = B.k OR c > 3",
    ],
)
def test_where_above_outer_joins(text: str) -> None:
    assert planned(text, ROWS) == run_by_duckdb(text, ROWS)


ON = "A.k = B.k AND (EXISTS (SELECT 1 FROM C WHERE C.k = A.k AND C.c > B.b) OR A.s IN (SELECT u FROM C WHERE c = B.b))"
"""Its subqueries read both sides, which DuckDB allows in inner joins only."""


@pytest.mark.parametrize(
    ("text", "duck"),
    [
        (
            f"SELECT A.k, a, b FROM A LEFT JOIN B ON {ON}",
            f"SELECT A.k, a, t.b FROM A LEFT JOIN LATERAL (SELECT * FROM B WHERE {ON}) t ON TRUE",
        ),
        (
            f"SELECT A.k, a, b FROM A RIGHT JOIN B ON {ON}",
            f"SELECT t.k, t.a, b FROM B LEFT JOIN LATERAL (SELECT * FROM A WHERE {ON}) t ON TRUE",
        ),
        (
            f"SELECT A.k, a, b FROM A FULL JOIN B ON {ON}",
            f"SELECT A.k, a, t.b FROM A LEFT JOIN LATERAL (SELECT * FROM B WHERE {ON}) t ON TRUE "
            f"UNION ALL SELECT NULL, NULL, b FROM B WHERE NOT EXISTS (SELECT 1 FROM A WHERE {ON})",
        ),
        (f"SELECT k, a FROM A SEMI JOIN B ON {ON}", f"SELECT k, a FROM A WHERE EXISTS (SELECT 1 FROM B WHERE {ON})"),
        (
            f"SELECT k, a FROM A ANTI JOIN B ON {ON}",
            f"SELECT k, a FROM A WHERE NOT EXISTS (SELECT 1 FROM B WHERE {ON})",
        ),
        (
            "SELECT A.k, b FROM A LEFT JOIN B ON A.k = B.k AND A.a IN (SELECT c FROM C WHERE C.k = A.k)",
            "SELECT A.k, t.b FROM A LEFT JOIN LATERAL "
            "(SELECT * FROM B WHERE A.k = B.k AND A.a IN (SELECT c FROM C WHERE C.k = A.k)) t ON TRUE",
        ),
        (
            "SELECT A.k, b FROM A LEFT JOIN B ON A.k = B.k AND b >= (SELECT COUNT(*) FROM C WHERE C.k = B.k)",
            "SELECT A.k, t.b FROM A LEFT JOIN LATERAL "
            "(SELECT * FROM B WHERE A.k = B.k AND b >= (SELECT COUNT(*) FROM C WHERE C.k = B.k)) t ON TRUE",
        ),
    ],
)
def test_subqueries_in_on(text: str, duck: str) -> None:
    assert planned(text, ROWS) == run_by_duckdb(duck, ROWS)


# -- columns -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("SELECT * FROM R JOIN q USING (a)", ["a", "d", "n"]),
        ("SELECT * FROM S RIGHT JOIN R USING (a)", ["a", "b", "x", "d"]),
        ("SELECT * FROM S FULL JOIN T USING (a)", ["a", "b", "x", "c"]),
        ("SELECT * FROM T FULL JOIN R USING (a) FULL JOIN S USING (a)", ["a", "c", "d", "b", "x"]),
        ("SELECT * FROM S SEMI JOIN T ON S.a = T.a", ["a", "b", "x"]),
        ("SELECT * FROM R ANTI JOIN S USING (a)", ["a", "d"]),
        ("SELECT R.*, S.b FROM S FULL JOIN R USING (a)", ["a", "d", "b"]),
        ("SELECT * FROM S NATURAL JOIN T", ["a", "b", "x", "c"]),
        ("SELECT * FROM (SELECT b FROM S) u NATURAL JOIN (SELECT c FROM T) v", ["b", "c"]),
        ("SELECT * FROM S LEFT JOIN T ON S.a = T.a", ["a", "b", "x", "a_2", "c"]),
    ],
)
def test_star(text: str, labels: list[str]) -> None:
    assert [c.label for c in plan(text).root.columns] == labels


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT T.c FROM S SEMI JOIN T ON S.a = T.a", BindError, "T.c is unknown here"),
        ("SELECT c FROM S ANTI JOIN T USING (a)", BindError, "column c is unknown"),
        ("SELECT 1 AS o FROM S LEFT JOIN T USING (b)", BindError, "USING names b, which the right side"),
        ("SELECT 1 AS o FROM S NATURAL LEFT JOIN T ON S.a = T.a", ParseError, "NATURAL takes neither"),
        ("SELECT 1 AS o FROM S RIGHT SEMI JOIN T", ParseError, "there is no RIGHT SEMI JOIN"),
        ("SELECT 1 AS o FROM (SELECT a = 1 AS a FROM S) u JOIN T USING (a)", TypeError_, "a is BOOLEAN on the left"),
        ("SELECT 1 AS o FROM S LEFT JOIN T ON S.a", TypeError_, "ON needs a condition"),
        ("SELECT a FROM S LEFT JOIN T ON S.a = T.a", BindError, "column a is ambiguous"),
    ],
)
def test_faults(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        plan(text)
    assert message in str(caught.value)


# -- shapes ------------------------------------------------------------------------------------------------------------


def test_a_right_join_is_a_left_join_with_its_sides_exchanged() -> None:
    [join] = nodes(plan("SELECT S.a, T.c FROM S RIGHT JOIN T ON S.a = T.a").root, Join)
    assert join.kind == "left"
    assert isinstance(join.left, Window)
    assert isinstance(join.left.input, StreamScan)
    assert join.left.input.name == "T"


@pytest.mark.parametrize(
    ("join", "shape"),
    [
        ("LEFT JOIN T ON S.a = T.a AND T.c > 1", "Join(Window(StreamScan), Select(Window(StreamScan)))"),
        ("LEFT JOIN T ON S.a = T.a AND S.x > 1", "Join(Window(StreamScan), Window(StreamScan))"),
        ("ANTI JOIN T ON S.a = T.a AND S.x > 1", "Join(Window(StreamScan), Window(StreamScan))"),
        ("FULL JOIN T ON S.a = T.a AND S.x > 1 AND T.c > 1", "Join(Window(StreamScan), Window(StreamScan))"),
    ],
)
def test_on_goes_only_where_it_may(join: str, shape: str) -> None:
    """Row windows, so that no rewriting moves a selection further."""
    root = plan(f"SELECT S.a FROM S {join}".replace(" T ", " T [Rows 5] ").replace("FROM S ", "FROM S [Rows 5] ")).root
    [node] = nodes(root, Join)
    assert tree(node) == shape


@pytest.mark.parametrize(("word", "monotonic"), [("JOIN", True), ("SEMI JOIN", True), ("LEFT JOIN", False),
                                                 ("FULL JOIN", False), ("ANTI JOIN", False)])  # fmt: skip
def test_only_inner_and_semi_joins_are_monotonic(word: str, monotonic: bool) -> None:
    assert (plan(f"SELECT S.a FROM S {word} T ON S.a = T.a").stream == "istream") is monotonic


# -- non-retroactive relations -----------------------------------------------------------------------------------------

INPUTS = TICKS | {
    "N": InputSchema("N", SchemaKind.RELATION, (("a", "int"), ("d", "string")), retroactive=False),
    "M": InputSchema("M", SchemaKind.RELATION, (("a", "int"), ("m", "int")), retroactive=False),
}


def bound(text: str) -> Plan:
    return bind_select(text, INPUTS)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT S.a, N.d FROM S [Range 5] JOIN N ON S.a = N.a",
        "SELECT S.a, N.d FROM S [Range 5], N WHERE S.a = N.a",
        "SELECT a, d FROM S [Range 5] JOIN N USING (a)",
        "SELECT S.a, N.d FROM S [Rows 5] LEFT JOIN N ON S.a = N.a",
    ],
)
def test_a_non_retroactive_relation_enriches_the_stream_below_its_window(text: str) -> None:
    root = bound(text).root
    [enrich] = nodes(root, Enrich)
    [window] = nodes(root, Window)
    assert isinstance(enrich.stream, StreamScan)
    assert isinstance(enrich.relation, RelationScan)
    assert enrich.condition is not None
    assert any(node is enrich for node in window.walk())
    assert nodes(root, Join) == []


def test_several_non_retroactive_relations() -> None:
    root = bound(
        "SELECT S.a, N.d, m FROM S [Rows 5] JOIN N ON S.a = N.a LEFT JOIN M ON M.a = S.a JOIN R ON R.a = S.a"
    ).root
    outer = nodes(root, Enrich)[-1]
    assert outer.kind == "left"
    assert isinstance(outer.stream, Enrich)
    assert kinds(root) == ["inner"]


def test_where_joins_a_comma_joined_one_and_filters_a_left_joined_one() -> None:
    root = bound("SELECT S.a FROM S [Rows 5], N, R WHERE S.a = N.a AND N.d = 'x' AND S.x > 1 AND R.a = N.a").root
    [enrich] = nodes(root, Enrich)
    assert "'x'" in enrich.condition.sql
    assert "> 1" not in enrich.condition.sql
    root = bound("SELECT S.a FROM S [Rows 5] LEFT JOIN N ON S.a = N.a WHERE N.d IS NULL").root
    [enrich] = nodes(root, Enrich)
    assert "NULL" not in enrich.condition.sql
    assert len(nodes(root, Select)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM N",
        "SELECT N.a FROM N JOIN S ON S.a = N.a",
        "SELECT N.a FROM N, S WHERE S.a = N.a",
        "SELECT N.a FROM S RIGHT JOIN N ON S.a = N.a",
        "SELECT N.a FROM S FULL JOIN N ON S.a = N.a",
        "SELECT S.a FROM S ANTI JOIN N ON S.a = N.a",
        "SELECT N.a FROM R JOIN N ON R.a = N.a",
        "SELECT N.a FROM S JOIN T ON S.a = T.a JOIN N ON N.a = S.a",
        "SELECT w.a FROM S JOIN (SELECT a FROM N) w ON w.a = S.a",
        "SELECT a FROM S WHERE a IN (SELECT a FROM N)",
        "SELECT a FROM S UNION ALL SELECT a FROM N",
        "WITH w AS (SELECT a FROM N) SELECT a FROM w",
    ],
)
def test_elsewhere_a_non_retroactive_relation_is_a_type_error(text: str) -> None:
    with pytest.raises(TypeError_, match="N is a non-retroactive relation"):
        bound(text)


def test_an_element_is_enriched_with_what_was_there_before_it() -> None:
    inputs = {
        "S": Stream(("a", "b", "x"), [(5, (1, "p", 0.0)), (6, (1, "q", 0.0)), (7, (2, "r", 0.0))]),
        "N": Relation(("a", "d"), [(0, 1, (1, "old")), (5, -1, (1, "old")), (5, 1, (1, "new"))]),
    }
    text = "SELECT b, d FROM S [Range 9] LEFT JOIN N ON S.a = N.a"
    assert evaluate(bound(text).root, inputs, 7) == Counter({("p", "old"): 1, ("q", "new"): 1, ("r", None): 1})
    text = "SELECT b, d FROM S [Rows 2], N WHERE S.a = N.a"  # the last two enriched elements
    assert evaluate(bound(text).root, inputs, 7) == Counter({("p", "old"): 1, ("q", "new"): 1})
