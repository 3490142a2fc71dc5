"""Generators: LATERAL VIEW, the select list, FROM; and the stars of structs."""

from __future__ import annotations

import pytest

from sweeparea.cql.binding.binder import bind_select
from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.cql.text.errors import CqlError
from sweeparea.operators.nodes import Generate
from sweeparea.operators.plan.plan import Plan
from tests.cql.readable import Readable
from tests.cql.schemas import TICKS, nodes, tree

INPUTS = TICKS | {
    "N": InputSchema(
        "N",
        SchemaKind.STREAM,
        (
            ("k", "int"),
            ("arr", "array<int>"),
            ("m", "map<string,double>"),
            ("st", "struct<f:int,g:struct<h:int,i:string>>"),
            ("rows_", "array<struct<p:int,q:string>>"),
            ("j", "string"),
            ("v", "variant"),
            ("u", None),
        ),
    )
}


def bind(text: str) -> Plan:
    return bind_select(text, INPUTS, filename="q")


@pytest.mark.parametrize(
    ("view", "generator", "columns", "outer"),
    [
        ("explode(arr) t AS e", "explode(arr)", "e:int", False),
        ("OUTER explode(arr) t", "explode(arr)", "col:int", True),
        ("explode_outer(m) t", "explode(m)", "key:string value:double", True),
        ("posexplode(arr) t AS p, e", "posexplode(arr)", "p:int e:int", False),
        ("inline(rows_) t", "inline(rows_)", "p:int q:string", False),
        ("stack(2, k, j, k + 1, 'x') t AS y, z", "stack(2, k, j, k + 1, 'x')", "y:int z:string", False),
        ("json_tuple(j, 'a', 'b') t", "json_tuple(j, 'a', 'b')", "c0:string c1:string", False),
        ("variant_explode(v) t", "variant_explode(v)", "pos:int key:string value:variant", False),
        ("explode(u) t AS e", "explode(u)", "e:None", False),
        ("explode(u) t AS y, z", "explode(u)", "y:None z:None", False),
    ],
)
def test_lateral_view(view: str, generator: str, columns: str, outer: bool) -> None:
    bound = bind(f"SELECT t.* FROM N [Now] LATERAL VIEW {view}")
    [node] = nodes(bound.root, Generate)
    assert Readable(bound).sql(node.generator) == generator
    assert " ".join(f"{c.label}:{c.type}" for c in node.outputs) == columns
    assert node.outer is outer
    assert [c.label for c in bound.root.columns] == [c.split(":")[0] for c in columns.split()]


def test_views_see_those_before() -> None:
    bound = bind(
        "SELECT k, w FROM N LATERAL VIEW explode(rows_) a AS r LATERAL VIEW explode(array(r.p)) b AS w WHERE w > 1"
    )
    assert tree(bound.root) == "Project(Select(Generate(Generate(Window(StreamScan)))))"
    assert bound.root.columns[1].type == "int"


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("SELECT k, explode(arr) AS e FROM N", "Project(Generate(Window(StreamScan)))"),
        ("SELECT inline(rows_) AS (y, z) FROM N", "Project(Generate(Window(StreamScan)))"),
        ("SELECT explode(collect_list(k)) FROM N", "Project(Generate(Aggregate(Window(StreamScan))))"),
        (
            "SELECT explode(arr) AS e, row_number() OVER (ORDER BY k) AS r FROM N",
            "Project(Analytic(Generate(Window(StreamScan))))",
        ),
        ("SELECT x FROM N, LATERAL explode(arr) AS t(x)", "Project(Generate(Window(StreamScan)))"),
        ("SELECT t.col FROM N JOIN LATERAL explode(arr) t", "Project(Generate(Window(StreamScan)))"),
        ("SELECT x FROM N JOIN LATERAL explode(arr) t(x) ON x > k", "Project(Select(Generate(Window(StreamScan))))"),
        ("SELECT id, k FROM range(5), N", "Project(Join(Generate(OneRow), Window(StreamScan)))"),
    ],
)
def test_where_generators_stand(text: str, shape: str) -> None:
    assert tree(bind(text).root) == shape


def test_window_functions_see_generated_rows() -> None:
    bound = Readable(bind("SELECT explode(arr) AS e, row_number() OVER (ORDER BY k) AS r FROM N"))
    assert bound.overs() == [["ROW_NUMBER() OVER (ORDER BY k, arr, m, st, rows_, j, u, e)"]]


def test_a_left_join_keeps_rows() -> None:
    [node] = nodes(bind("SELECT k, x FROM N LEFT JOIN LATERAL explode(arr) AS t(x) ON TRUE").root, Generate)
    assert node.outer


@pytest.mark.parametrize(
    ("call", "sql"),
    [
        ("range(3)", "explode(sequence(0L, 2L, 1L))"),
        ("range(1, 10, 4)", "explode(sequence(1L, 9L, 4L))"),
        ("range(3, -3, -2)", "explode(sequence(3L, -1L, -2L))"),
        ("range(5, 5)", "explode(CAST(array() AS ARRAY<BIGINT>))"),
    ],
)
def test_range(call: str, sql: str) -> None:
    [node] = nodes(bind(f"SELECT id FROM N, {call}").root, Generate)
    assert node.generator.sql == sql


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT st.* FROM N", "f:int g:struct<h:int,i:string>"),
        ("SELECT N.st.g.*, k FROM N", "h:int i:string k:int"),
        ("SELECT st.g.* EXCEPT (h) FROM N", "i:string"),
        ("SELECT st.* FROM N GROUP BY st", "f:int g:struct<h:int,i:string>"),
        ("SELECT st.* FROM N AS st", "k:int"),
    ],
)
def test_the_star_of_a_struct(text: str, columns: str) -> None:
    found = " ".join(f"{c.label}:{c.type}" for c in bind(text).root.columns)
    assert found == columns or found.startswith(columns + " arr")


WRONG = {
    "SELECT k FROM N LATERAL VIEW explode(k) t": "TypeError: explode cannot take k, which is of type INT. It takes "
    "ARRAY or MAP.",
    "SELECT k FROM N LATERAL VIEW explode(arr) t AS y, z": "BindError: explode makes 1 column, and the alias names 2. "
    "Its columns are col.",
    "SELECT k FROM N LATERAL VIEW explode(u) t": "TypeError: how many columns explode(u) has cannot be told here: its "
    "type is not known. Name its columns: AS (k, v), or CAST the argument to its type.",
    "SELECT k FROM N LATERAL VIEW upper(j) t": "TypeError: LATERAL VIEW needs a generator, and upper is none. "
    "Generators are explode, posexplode, inline, stack, json_tuple and variant_explode.",
    "SELECT explode(arr) + 1 AS e FROM N": "TypeError: EXPLODE makes rows, so it stands alone in the select list, not "
    "inside SELECT. Write LATERAL VIEW explode(..) t AS x, and use its columns.",
    "SELECT explode(arr), explode(arr) FROM N": "TypeError: a select list has one generator at most. Put the other "
    "into LATERAL VIEW.",
    "SELECT x FROM N, explode(arr) AS t(x)": "BindError: column arr is unknown. To see the columns before it, write "
    "LATERAL explode(..).",
    "SELECT * FROM range(1.5)": "TypeError: range takes constant whole numbers. Write range(0, 10).",
    "SELECT * FROM frobnicate(3)": "RefusedError: the table function frobnicate is not offered by this version. "
    "Offered are generators, such as explode, and range.",
    "SELECT k.* FROM N": "TypeError: k.* needs a STRUCT, and k is of type INT. Write k.",
    "SELECT u.* FROM N": "RefusedError: u.* is not offered: the type of u is not known here. Name the fields.",
    "SELECT k AS (y, z) FROM N": "TypeError: only a generator has several columns to name. Write stack(1, a, b) "
    "AS (x, y).",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_told(text: str) -> None:
    with pytest.raises(CqlError) as caught:
        bind(text)
    assert str(caught.value).splitlines()[0].split(": ", 1)[1] == WRONG[text]
