"""Text that other dialects, or no dialect, would take: nothing of it is silently ignored, and each refusal says what to
write instead."""

from __future__ import annotations

import pytest

from sweeparea.cql.text.errors import BindError, CqlError, CqlErrors, ParseError, RefusedError, TypeError_
from sweeparea.operators.nodes import TopK
from tests.cql.schemas import nodes, plan

REFUSED = {
    "SELECT * REPLACE (a + 1 AS a) FROM S": "* EXCEPT (a), a + 1 AS a",
    "SELECT * RENAME (a AS z) FROM S": "* EXCEPT (a), a AS b",
    "SELECT a FROM S ORDER BY a FETCH FIRST 3 ROWS WITH TIES": "RANK()",
    "SELECT a FROM S ORDER BY a LIMIT 3 WITH TIES": "RANK()",
    "SELECT a FROM S ORDER BY a LIMIT 10 PERCENT": "RANK()",
    "SELECT a FROM S ORDER BY a LIMIT 3 BY a": "ROW_NUMBER()",
    "SELECT a, b FROM S UNION BY NAME SELECT b, a FROM S": "List the columns in one order",
    "SELECT a FROM S CROSS APPLY (SELECT 1 AS o) t": "CROSS JOIN LATERAL",
    "SELECT a FROM S OUTER APPLY (SELECT 1 AS o) t": "LEFT JOIN LATERAL",
    "SELECT a FROM S TABLESAMPLE (10 PERCENT)": "a % 10 = 0",
    "SELECT a FROM S PIVOT (SUM(x) FOR b IN ('a', 'b'))": "FILTER (WHERE",
    "SELECT {'a': 1} AS s, a FROM S": "struct(",
    "SELECT {{ a }} FROM S": "struct(",
    "SELECT CAST(b AS DATE FORMAT 'YYYY') AS d FROM S": "to_date",
    "SELECT a FROM S GROUP BY a WITH TOTALS": "ROLLUP",
    "SELECT SUM(a) OVER (ORDER BY a ROWS 2 PRECEDING EXCLUDE CURRENT ROW) AS s FROM S": "Subtract",
    "SELECT a FROM S SORT BY a": "ORDER BY .. LIMIT",
    "SELECT DISTINCT ON (a) a, b FROM S": "QUALIFY",
    "SELECT a FROM S WHERE b COLLATE UTF8_LCASE = 'x'": "LOWER(a)",
    "SELECT collate(b, 'UTF8_LCASE') AS c FROM S": "LOWER(a)",
    "SELECT transform(array(1), y -> EXISTS (SELECT 1 FROM R)) AS l FROM S": "LATERAL VIEW",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_spark_lacks_is_refused_with_the_way_out(text: str) -> None:
    with pytest.raises(RefusedError) as caught:
        plan(text)
    assert REFUSED[text] in caught.value.hint
    assert caught.value.place is not None


def test_several_are_told_at_once() -> None:
    with pytest.raises(CqlErrors) as caught:
        plan("SELECT * REPLACE (1 AS a), nope FROM S ORDER BY a LIMIT 3 WITH TIES")
    assert len(caught.value.errors) == 3


@pytest.mark.parametrize(
    "text",
    [
        *(f"SELECT {item} FROM S" for item in ("upper(b,)", "(a,)", "array(1,)[0]", "struct(a,)", "* EXCEPT (a,)")),
        "SELECT a FROM S,",
        "SELECT a FROM S, , T",
        "SELECT a FROM S WHERE a IN (1,)",
        "SELECT a FROM S WHERE a IN (1,,2)",
        "SELECT a FROM S GROUP BY a,",
        "SELECT a FROM S GROUP BY ROLLUP (a,)",
        "SELECT SUM(a) OVER (PARTITION BY a, ORDER BY x) AS s FROM S",
        "SELECT a FROM S JOIN R USING (a,)",
        "SELECT a FROM S JOIN VALUES (1,), (2) AS v(k) ON k = a",
        "SELECT ISTREAM(a,) FROM S",
    ],
)
def test_a_comma_has_something_on_both_sides(text: str) -> None:
    with pytest.raises(ParseError, match="comma"):
        plan(text)


@pytest.mark.parametrize(
    ("literal", "said"),
    [
        ("DATE '2020-13-45'", "is no DATE"),
        ("TIMESTAMP 'nope'", "is no TIMESTAMP"),
        ("300Y", "is no TINYINT"),
        ("99999999999999999999L", "is no BIGINT"),
        ("9" * 39, "38 digits"),
        ("1.5e400BD", "38 digits"),
        ("X'ZZ'", "hexadecimal"),
        ("INTERVAL 1 FORTNIGHT", "no unit of an INTERVAL"),
        ("INTERVAL 'x' DAY", "no number of days"),
    ],
)
def test_literals_that_are_none(literal: str, said: str) -> None:
    with pytest.raises(ParseError, match=said) as caught:
        plan(f"SELECT a,\n {literal} AS z FROM S")
    assert caught.value.place is not None
    assert (caught.value.place.line, caught.value.place.column) == (2, 2)


def test_an_unsigned_shift_is_a_function() -> None:
    with pytest.raises(ParseError, match=r"1:12: .*>>> is not offered.*shiftrightunsigned\(a, n\)"):
        plan("SELECT a >>> 1 AS z FROM S")


def test_a_time_of_day_would_be_one_of_today() -> None:
    for value in ("TIMESTAMP '12:30:00'", "CAST('12:30' AS TIMESTAMP)"):
        with pytest.raises(RefusedError, match="not deterministic"):
            plan(f"SELECT a, {value} AS z FROM S")


@pytest.mark.parametrize(
    "literal",
    [
        *("DATE '2020'", "DATE '2020-1'", "DATE '2020-01-01T'", "TIMESTAMP '2020-01-01T00:00:00Z'", "DATE 'epoch'"),
        *("127Y", "3L", "1.5BD", "1e300", "0." + "0" * 37 + "1", "X'1F'", "INTERVAL '1-2' YEAR TO MONTH"),
        *("INTERVAL 1 DAY 2 HOURS", "INTERVAL -3 DAYS", "INTERVAL '1 day 2 hours' > INTERVAL '1' HOUR"),
    ],
)
def test_literals_as_spark_has_them(literal: str) -> None:
    plan(f"SELECT a FROM S WHERE ({literal}) IS NOT NULL")


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("CASE WHEN a THEN TRUE END", "WHEN needs a condition"),
        ("NOT a", "NOT needs a condition"),
        ("a IN (1, DATE '2020-01-01')", "IN cannot take"),
        ("a BETWEEN 1 AND TRUE", "BETWEEN cannot take"),
        ("CASE WHEN a > 1 THEN 1 ELSE DATE '2020-01-01' END = 1", "CASE cannot take"),
        ("CASE a WHEN DATE '2020-01-01' THEN TRUE END", "CASE cannot take"),
    ],
)
def test_values_of_one_expression_have_one_type(condition: str, said: str) -> None:
    with pytest.raises(TypeError_, match=said):
        plan(f"SELECT a FROM S WHERE {condition}")


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("SELECT a FROM S WHERE a IN ()", ParseError, "IN holds no value"),
        ("SELECT a FROM S WHERE EXISTS ()", ParseError, "EXISTS holds no query"),
        ("SELECT a.b FROM S", BindError, "a is of type INT and has no field b"),
        ("SELECT * EXCEPT (aa) FROM S", BindError, "EXCEPT names aa, which * does not have"),
        ("SELECT values FROM S", ParseError, "If it is a name, write `values`"),
    ],
)
def test_further_faults(text: str, error: type[CqlError], said: str) -> None:
    with pytest.raises(error) as caught:
        plan(text)
    assert said in str(caught.value)


def test_all_unknown_names_of_from_are_told() -> None:
    with pytest.raises(CqlErrors, match=r"Nix(.|\n)*Nope"):
        plan("SELECT x FROM Nix, S JOIN Nope ON a = 1")


def test_a_wrong_key_does_not_hide_the_rest() -> None:
    with pytest.raises(CqlErrors) as caught:
        plan("SELECT a, nope, zz(1) FROM S WHERE k = 1 GROUP BY u HAVING w > 1")
    told = str(caught.value)
    assert all(name in told for name in ("nope", "zz", "column k", "column u", "column w"))
    assert "neither grouped" not in told


# -- windows and the query around --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "window",
    [
        *("[Range S.a]", "[Rows S.a]", "[Range INTERVAL S.a SECONDS]", "[Tumbling 5 Anchor S.a]", "[From S.a]"),
        *("[Partition By S.b Rows 5]", "[Partition By b Rows 5]", "[Tumbling When (S.a > T.a)]", "[Session S.a]"),
    ],
)
def test_windows_cannot_depend_on_the_query_around(window: str) -> None:
    for text in (
        f"SELECT a FROM S WHERE EXISTS (SELECT 1 FROM T {window})",
        f"SELECT S.a FROM S, LATERAL (SELECT T.a AS o FROM T {window}) u",
    ):
        with pytest.raises(TypeError_, match="windows cannot depend on") as caught:
            plan(text)
        assert "in WHERE" in caught.value.hint


# -- what is offered ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("VALUES (1, 'x'), (2, 'y') UNION ALL SELECT a, b FROM S", ["col1", "col2"]),
        ("(VALUES (1), (2) ORDER BY col1 LIMIT 1) UNION SELECT a FROM S", ["col1"]),
        ("SELECT a FROM S INTERSECT VALUES (1) ORDER BY a LIMIT 2", ["a"]),
        ("WITH v(k) AS (VALUES (1), (2)) SELECT S.a FROM S JOIN v ON k = S.a", ["a"]),
        ("TABLE S", ["a", "b", "x"]),
        ("SELECT a FROM ((S)) WHERE a > 1", ["a"]),
        ("SELECT x.a FROM ((S [Range 5]) AS x)", ["a"]),
        ("SELECT t.true + 1 AS o FROM (SELECT a AS `true` FROM S) t", ["o"]),
        ("SELECT `größe.x` + 1 AS g FROM (SELECT a AS `größe.x` FROM S) t", ["g"]),
    ],
)
def test_unusual_forms(text: str, columns: list[str]) -> None:
    assert [c.label for c in plan(text).root.columns] == columns


def test_fetch_is_limit() -> None:
    [top] = nodes(plan("SELECT a FROM S ORDER BY a OFFSET 1 ROWS FETCH NEXT 3 ROWS ONLY").root, TopK)
    assert (top.limit, top.offset) == (3, 1)


# -- strict ------------------------------------------------------------------------------------------------------------


def test_strict_refuses_snapshot_expansion_when_the_query_is_bound() -> None:
    strict = {"strict": "true"}
    with pytest.raises(RefusedError, match=r"window functions \(OVER\) would run by snapshot expansion") as caught:
        plan("SELECT COLLECT_LIST(a) OVER (ORDER BY a) AS r FROM S [Range 5]", defaults=strict)
    assert caught.value.place is not None
    assert "Leave strict out" in caught.value.hint
    plan("SELECT SUM(a) AS s FROM S [Range 5]", defaults=strict)
    plan(
        "SELECT ROW_NUMBER() OVER (ORDER BY a) AS r, LAG(a) OVER (ORDER BY a) AS before, SUM(a) OVER (ORDER BY a) AS s"
        " FROM S [Range 5]",
        defaults=strict,
    )
