"""UNION, INTERSECT, EXCEPT, VALUES, SELECT without FROM and WITH: what they give against DuckDB, types and faults."""

from __future__ import annotations

import pytest

from sweeparea.cql.text.errors import BindError, ParseError, RefusedError, TypeError_
from sweeparea.operators.nodes import Aggregate, Difference, Intersect, OneRow, Project, UnionAll
from tests.cql.against_duckdb import planned, run_by_duckdb
from tests.cql.schemas import nodes, plan, tree

ROWS = {
    "A": [(1, 1, "x"), (1, 1, "x"), (1, 2, "x"), (2, None, "y"), (None, 3, None), (None, 0, "y")],
    "B": [(1, 2, "x"), (2, None, "x"), (2, 1, None), (None, None, "y"), (5, 5, "z")],
    "C": [(1, 1, "y"), (2, 3, "y"), (2, 3, "x"), (7, 7, "x")],
}


@pytest.mark.parametrize("second", ["UNION", "INTERSECT", "EXCEPT ALL"])
@pytest.mark.parametrize("first", ["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
def test_two_operations(first: str, second: str) -> None:
    """INTERSECT binds tighter, the others go from left to right; in parentheses as written."""
    for text in (
        f"SELECT k FROM A {first} SELECT k FROM B",
        f"SELECT k FROM A {first} SELECT k FROM B {second} SELECT k FROM C",
        f"SELECT k FROM A {first} (SELECT k FROM B {second} SELECT k FROM C)",
        f"SELECT k, s FROM A {first} SELECT k, s FROM B {second} SELECT k, u FROM C",
    ):
        assert planned(text, ROWS) == run_by_duckdb(text, ROWS), text


@pytest.mark.parametrize(
    ("word", "steps"), [("UNION", 15), ("UNION", 16), ("EXCEPT", 16), ("EXCEPT ALL", 17), ("INTERSECT", 16)]
)
def test_long_chains(word: str, steps: int) -> None:
    """Of a long chain of UNION or EXCEPT one operator is made, as of a chain of UNION ALL."""
    first = "(SELECT k, a FROM A UNION ALL SELECT k, b FROM B UNION ALL SELECT k, a FROM A) v"
    parts = [f"SELECT k, {'bc'[i % 2]} FROM {'BC'[i % 2]} WHERE k = {i % 3}" for i in range(steps)]
    keys = [part.replace(", b", "").replace(", c", "") for part in parts]
    for text in (
        f"SELECT k, a FROM {first} {word} {f' {word} '.join(parts)}",
        f"SELECT k FROM A UNION SELECT b FROM B {word} {f' {word} '.join(keys)} UNION ALL SELECT k FROM C",
    ):
        assert planned(text, ROWS) == run_by_duckdb(text, ROWS), text
    joined = f" {word} ".join(f"SELECT a FROM S [Range 5] WHERE a = {i}" for i in range(steps + 1))
    made = [n for n in plan(joined).root.walk() if isinstance(n, (Aggregate, Difference, Intersect))]
    assert len(made) == (1 if steps >= 16 and word != "INTERSECT" else steps)


def test_a_long_chain_over_several_types_is_compared_step_by_step() -> None:
    """As DOUBLE, 9007199254740993 and 9007199254740992 are one; as BIGINT they are two."""
    parts = [f"SELECT CAST({i} AS BIGINT) AS k FROM S [Range 5]" for i in range(21)]
    assert len(nodes(plan(" EXCEPT ".join(parts)).root, Difference)) == 1
    assert len(nodes(plan(" EXCEPT ".join([*parts, "SELECT 7.5D FROM S [Range 5]"])).root, Difference)) == 21


@pytest.mark.parametrize(
    ("text", "duck"),
    [
        ("SELECT k FROM A MINUS SELECT k FROM B", "SELECT k FROM A EXCEPT SELECT k FROM B"),
        ("SELECT k FROM A MINUS ALL SELECT k FROM B", "SELECT k FROM A EXCEPT ALL SELECT k FROM B"),
        ("SELECT k FROM A EXCEPT DISTINCT SELECT k FROM B", "SELECT k FROM A EXCEPT SELECT k FROM B"),
        ("SELECT k FROM A UNION DISTINCT SELECT k FROM B", "SELECT k FROM A UNION SELECT k FROM B"),
        (
            "SELECT k FROM A UNION ALL SELECT k FROM B ORDER BY k DESC NULLS LAST LIMIT 3",
            "SELECT k FROM A UNION ALL SELECT k FROM B ORDER BY k DESC NULLS LAST LIMIT 3",
        ),
        (
            "SELECT k, v.b FROM A JOIN (VALUES (1, 'p'), (2, NULL)) AS v(i, b) ON v.i = A.k",
            "SELECT k, v.b FROM A JOIN (VALUES (1, 'p'), (2, NULL)) AS v(i, b) ON v.i = A.k",
        ),
        ("SELECT k, v.x FROM A, VALUES (1), (2) AS v(x)", "SELECT k, v.x FROM A, (VALUES (1), (2)) AS v(x)"),
        ("SELECT k FROM A UNION ALL SELECT 7", "SELECT k FROM A UNION ALL SELECT 7"),
        ("SELECT k FROM A WHERE EXISTS (SELECT 1 WHERE A.k = 1)", "SELECT k FROM A WHERE k = 1"),
        ("SELECT k, t.o FROM A, (SELECT 1 AS o) t", "SELECT k, 1 FROM A"),
        ("SELECT k FROM A EXCEPT SELECT COUNT(*)", "SELECT k FROM A EXCEPT SELECT 1"),
        (
            "WITH a(x) AS (SELECT k FROM A), b AS (SELECT x FROM a WHERE x > 1) "
            "SELECT x FROM a EXCEPT ALL SELECT x FROM b",
            "WITH a1(x) AS (SELECT k FROM A), b1 AS (SELECT x FROM a1 WHERE x > 1) "
            "SELECT x FROM a1 EXCEPT ALL SELECT x FROM b1",
        ),
    ],
)
def test_further_forms(text: str, duck: str) -> None:
    assert planned(text, ROWS) == run_by_duckdb(duck, ROWS)


def test_nodes() -> None:
    root = plan("SELECT a FROM S EXCEPT SELECT a FROM T INTERSECT ALL SELECT a FROM R").root
    assert isinstance(root, Difference)
    assert not root.all
    [inner] = nodes(root, Intersect)
    assert inner.all
    root = plan("SELECT a FROM R MINUS ALL SELECT a FROM q").root
    assert isinstance(root, Difference)
    assert root.all


def test_a_chain_of_union_all_is_one_node() -> None:
    root = plan(" UNION ALL ".join(["SELECT a FROM R"] * 300)).root
    assert isinstance(root, UnionAll)
    assert len(root.parts) == 300


def test_union_without_all_is_distinct() -> None:
    root = plan("SELECT a FROM R UNION SELECT a FROM q UNION ALL SELECT a FROM T [Rows 2]").root
    assert isinstance(root, UnionAll)
    assert len(nodes(root, Aggregate)) >= 1


def test_names_come_from_the_first_part_and_types_are_common() -> None:
    root = plan("SELECT a AS first, 'p' AS s FROM R UNION ALL SELECT n, d FROM q JOIN R ON R.a = q.a").root
    assert [(c.label, c.type) for c in root.columns] == [("first", "bigint"), ("s", "string")]
    text = [e.sql for n in nodes(root, Project) for _, e in n.outputs]
    assert any("CAST(" in sql and "AS bigint" in sql for sql in text)


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ("named_struct('v', a)", "named_struct('V', x)", "struct<v:double>"),
        ("array(a)", "array(x)", "array<double>"),
        ("map(b, a)", "map(b, x)", "map<string,double>"),
        (
            "array(named_struct('v', a, 'w', b))",
            "array(named_struct('v', 1.5, 'w', b))",
            "array<struct<v:decimal(11,1),w:string>>",
        ),
        ("coalesce(named_struct('v', a), named_struct('v', x))", "named_struct('v', a)", "struct<v:double>"),
        ("nvl2(b, a, x)", "a", "double"),
        ("named_struct('v', a)", "named_struct('w', x)", None),
        ("array_union(array(a), array(x))", "array(a)", None),
    ],
)
def test_nested_types_are_as_wide_as_both_inside(first: str, second: str, both: str | None) -> None:
    """A struct of INT beside one of DOUBLE holds DOUBLE: cast to the first part's type, 1.5 would become 1. Unknown
    (None) stays unknown, and Spark widens by itself.
    """
    root = plan(f"SELECT {first} AS k FROM S UNION ALL SELECT {second} FROM S").root
    assert nodes(root, UnionAll)[0].columns[0].type == both


def test_null_takes_the_other_parts_type() -> None:
    root = plan("SELECT a FROM R UNION ALL SELECT NULL").root
    assert root.columns[0].type in ("int", None)


def test_streams_in_set_operations_are_read_as_relations() -> None:
    root = plan("ISTREAM(SELECT a FROM R) UNION ALL SELECT a FROM S").root
    assert "Window(RelationToStream" in tree(root)
    assert plan("SELECT a FROM S INTERSECT SELECT a FROM T").stream == "istream"
    assert plan("SELECT a FROM S EXCEPT SELECT a FROM T").stream is None


def test_a_select_without_from_has_one_row() -> None:
    root = plan("SELECT a FROM R UNION ALL SELECT 1 + 1").root
    assert len(nodes(root, OneRow)) == 1


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            "SELECT a FROM S EXCEPT SELECT a, c FROM T",
            TypeError_,
            "EXCEPT needs as many columns on both sides, found 1 and 2",
        ),
        ("SELECT a FROM S INTERSECT SELECT b = 'x' FROM S", TypeError_, "INTERSECT cannot put BOOLEAN and INT"),
        ("SELECT a FROM S UNION SELECT array(a) FROM S", TypeError_, "UNION cannot put ARRAY<INT> and INT"),
        ("SELECT struct(a) AS s FROM S UNION ALL SELECT b FROM S", TypeError_, "into one column s"),
        ("SELECT CAST(b AS BINARY) AS y FROM S EXCEPT SELECT a FROM S", TypeError_, "cannot put BINARY and INT"),
        (
            "SELECT map(a, b) AS m FROM S EXCEPT SELECT map(a, b) FROM S",
            TypeError_,
            "EXCEPT cannot compare m, which is a MAP",
        ),
        ("SELECT a FROM S, VALUES (1), (1, 2) AS v(x)", TypeError_, "all rows of VALUES have as many columns"),
        ("SELECT a FROM S, VALUES (1, 2) AS v(x)", BindError, "the alias names 1 column, but there are 2"),
        ("SELECT a FROM S, VALUES (S.a) AS v(x)", BindError, "S.a is unknown here"),
        ("SELECT 1 AS o", RefusedError, "the query reads no stream and no relation"),
        ("SELECT *", BindError, "* needs a FROM"),
        ("SELECT a FROM S, (VALUES (1)) [Range 5] AS v(x)", ParseError, ""),
        ("SELECT a FROM q__istream", BindError, "q keeps no istream, so there is no q__istream"),
    ],
)
def test_faults(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        plan(text)
    assert message in str(caught.value)
