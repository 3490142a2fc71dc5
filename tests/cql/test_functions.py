"""Functions: what is not deterministic, which types Spark's functions take and give, complete lists."""

from __future__ import annotations

import pytest

from sweeparea.cql.binding.binder import bind_select
from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.cql.functions import functions, signatures
from sweeparea.cql.functions.column_types import unknown
from sweeparea.cql.text.errors import RefusedError, TypeError_
from sweeparea.operators.nodes import Project
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from tests.cql.schemas import plan

INPUTS = {
    "S": InputSchema(
        "S",
        SchemaKind.STREAM,
        (
            ("a", "int"),
            ("b", "string"),
            ("t", "timestamp"),
            ("d", "date"),
            ("arr", "array<int>"),
            ("nested", "array<struct<f:int>>"),
            ("m", "map<string,int>"),
            ("dec", "decimal(10,2)"),
            ("flag", "boolean"),
        ),
        TimeDomain(TimeKind.TIMESTAMP, 1),
    )
}


def bind(expression: str):
    return bind_select(f"SELECT {expression} AS z FROM S [Now]", INPUTS, filename="q")


def computed(expression: str) -> str:
    """What the plan computes, in the author's words."""
    projection = bind(expression).root
    assert isinstance(projection, Project)
    [(_, expr)] = projection.outputs
    return expr.text


UNREPEATABLE = {
    "uniform(0, 1)": "Derive numbers from the row itself: pmod(hash(a, b), 100)",
    "randstr(5)": "Derive numbers from the row itself: pmod(hash(a, b), 100)",
    "current_time()": "Use the stream's instant ts, or a column that the source fills",
    "unix_timestamp()": "Use the stream's instant ts, or a column that the source fills",
    "uuid()": "Derive an id from the row itself: sha2(a, 256)",
    "current_catalog()": "Write the value itself as a literal",
    "current_schema()": "Write the value itself as a literal",
    "current_path()": "Write the value itself as a literal",
    "session_user()": "Write the value itself as a literal",
    "version()": "Write the value itself as a literal",
    "current_timezone()": "The engine's time zone is UTC: write 'UTC'",
    "reflect('java.util.UUID', 'randomUUID')": "Register a function of your own: CREATE FUNCTION f AS 'module:object'",
    "input_file_name()": "Have the source put the file's name into a column",
    "shuffle(arr)": "Derive numbers from the row itself: pmod(hash(a, b), 100)",
}


@pytest.mark.parametrize("text", UNREPEATABLE)
def test_what_differs_from_run_to_run_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(RefusedError) as caught:
        bind(text)
    assert "is not deterministic: its value depends on when and where a slice is run" in caught.value.message
    assert caught.value.hint == UNREPEATABLE[text]


def test_the_current_instant_is_refused_with_its_reason() -> None:
    with pytest.raises(RefusedError) as caught:
        bind("CURRENT_INSTANT()")
    assert str(caught.value) == (
        "q:1:8: RefusedError: current_instant is not offered: a result that holds the instant would change at every "
        "tick. The result's ts or valid_from is that instant; for ages, choose a window: S [Range INTERVAL 1 HOUR].\n"
        "    SELECT CURRENT_INSTANT() AS z FROM S [Now]\n"
        "           ^"
    )


@pytest.mark.parametrize(
    "text",
    [
        "TIMESTAMP 'now'",
        "DATE 'today'",
        "CAST('yesterday' AS DATE)",
        "'tomorrow'::timestamp",
        "timestamp('now UTC')",
        "to_date(' today ')",
        "datediff('today', d)",
        "t > 'now'",
        "'now' <= d",
        "t BETWEEN 'yesterday' AND '2020-01-01'",
        "coalesce(t, 'now')",
        "CASE WHEN a > 1 THEN t ELSE 'now' END",
        "year('today')",
    ],
)
def test_words_for_the_current_time_are_refused_where_they_are_times(text: str) -> None:
    with pytest.raises(RefusedError) as caught:
        bind(text)
    assert "as a time is not deterministic" in caught.value.message


@pytest.mark.parametrize("text", ["b = 'now'", "upper('today')", "concat(b, 'tomorrow')", "unix_timestamp(t)"])
def test_they_are_strings_elsewhere(text: str) -> None:
    assert computed(text) == text


def test_encryption_with_a_random_vector() -> None:
    with pytest.raises(RefusedError, match="draws a new one for each row"):
        bind("aes_encrypt(b, 'key')")
    bind("aes_encrypt(b, 'key', 'ECB')")
    bind("aes_encrypt(b, 'key', 'CBC', 'DEFAULT', 'iv')")


WRONG = {
    "upper()": "UPPER takes 1 argument, found 0. Write UPPER(a).",
    "lpad(b)": "LPAD takes 2 to 3 arguments, found 1. Write LPAD(a, b).",
    "year(m)": "YEAR cannot take m, which is of type MAP<STRING,INT>. It takes STRING, DATE or TIMESTAMP there.",
    "sqrt(flag)": "SQRT cannot take flag, which is of type BOOLEAN. It takes numbers or STRING there.",
    "date_add(d, t)": "DATE_ADD cannot take t, which is of type TIMESTAMP. It takes TINYINT, SMALLINT, INT or STRING "
    "there.",
    "date_add(d, 3000000000)": "DATE_ADD cannot take 3000000000, which is of type BIGINT. It takes TINYINT, SMALLINT, "
    "INT or STRING there.",
    "size(array('a') || array(1) || 2.5)": "|| cannot take array('a') || array(1), which is ARRAY<BIGINT>, and 2.5, "
    "which is DECIMAL(2,1). CAST one of them.",
    "size(a)": "SIZE cannot take a, which is of type INT. It takes ARRAY or MAP there.",
    "array_contains(arr, t)": "ARRAY_CONTAINS cannot take t, which is of type TIMESTAMP. It takes numbers or "
    "STRING there.",
    "a + m": "+ cannot take a, which is INT, and m, which is MAP<STRING,INT>. CAST one of them.",
    "a = flag": "a comparison cannot take a, which is INT, and flag, which is BOOLEAN. CAST one of them.",
    "d < a": "a comparison cannot take d, which is DATE, and a, which is INT. CAST one of them.",
    "m = m": "a comparison cannot take m, which is MAP<STRING,INT>, and m, which is MAP<STRING,INT>. CAST one of them.",
    "transform(arr, v -> v + m)": "+ cannot take m, which is MAP<STRING,INT>. CAST it.",
    "a AND flag": "AND cannot take a, which is INT, and flag, which is BOOLEAN. CAST one of them.",
    "CAST(arr AS INT)": "arr, which is of type ARRAY<INT>, cannot be cast to INT. Cast to a type that can hold it.",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_arguments(text: str) -> None:
    with pytest.raises(TypeError_) as caught:
        bind(text)
    assert str(caught.value).splitlines()[0].split(": ", 2)[2] == WRONG[text]


@pytest.mark.parametrize(
    "text",
    [
        "upper(a)",
        "a + '1'",
        "a = '1'",
        "t > '2020-01-01'",
        "array_contains(nested, nested[0])",
        "array_append(nested, struct(1 AS f))",
        "element_at(m, 'k')",
        "round(dec, 1)",
        "nvl(a, NULL)",
        "a + NULL",
        "concat(arr, arr)",
        "aggregate(arr, 0, (acc, v) -> acc + v)",
        "mask(b, lowerChar => 'q')",
    ],
)
def test_what_spark_takes_is_not_refused(text: str) -> None:
    assert computed(text) == text


@pytest.mark.parametrize(
    ("name", "types", "result"),
    [
        ("+", ["int", "bigint"], "bigint"),
        ("+", ["float", "int"], "double"),
        ("/", ["int", "int"], "double"),
        ("upper", ["string"], "string"),
        ("map_values", ["map<date,array<int>>"], "array<array<int>>"),
        ("map_keys", ["map<date,array<int>>"], "array<date>"),
        ("abs", ["decimal(7,3)"], "decimal(7,3)"),
        ("date_add", ["timestamp", "int"], "date"),
        ("size", ["array<struct<f:int>>"], "int"),
        ("array_max", ["array<decimal(3,1)>"], "decimal(3,1)"),
        ("from_json", ["string", "string"], None),
        ("coalesce", ["date", "timestamp"], "timestamp"),
        ("collect_list", ["map<string,int>"], "array<map<string,int>>"),
    ],
)
def test_result_types(name: str, types: list[str], result: str | None) -> None:
    assert signatures.result(name, types) == result


def test_the_classes_name_functions_of_spark() -> None:
    names = functions.spark_functions() | {"current_instant"}
    classes = (functions.NON_DETERMINISTIC, functions.SKETCHES, functions.WINDOW_ONLY, functions.SPARK_STREAMING)
    assert [n for names_ in classes for n in names_ if n.lower() not in names] == []


def test_unknown_types_are_asked_for_once() -> None:
    asked: list[object] = []

    def analyze(root):
        asked.append(root)
        return {c.id: "struct<a:int>" for c in unknown(root)}

    text = "SELECT z, count(*) AS n FROM (SELECT from_json(b, 'a INT') AS z FROM S [Now]) w GROUP BY ROLLUP(z)"
    assert any(c.type is None for c in plan(text).root.columns)
    bound = bind_select(text, INPUTS, analyze=analyze)
    assert len(asked) == 1
    assert not unknown(bound.root)
    assert [c.type for c in bound.root.columns] == ["struct<a:int>", "bigint"]
    bind_select("SELECT a + 1 AS z FROM S [Now]", INPUTS, analyze=analyze)
    assert len(asked) == 1
