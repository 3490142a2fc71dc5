"""What Spark's analyzer is certain to refuse is refused without it, with its place; what it takes is taken."""

from __future__ import annotations

import pytest

from sweeparea.cql.binding.binder import bind_select
from sweeparea.cql.functions.untyped_nulls import as_written
from sweeparea.cql.text.errors import CqlErrors, TypeError_
from sweeparea.operators.nodes import Select
from sweeparea.operators.sql.sql_text import parts, substituted
from tests.cql.typed_expressions import INPUT


@pytest.mark.parametrize(
    ("before", "at"),
    [
        ("", "s = INTERVAL '1' DAY"),
        ("", "k < INTERVAL '1 02:03:04' DAY TO SECOND"),
        ("", "'1' = INTERVAL '1' DAY"),
        ("s BETWEEN ", "INTERVAL '1' DAY AND INTERVAL '2' DAY"),
        ("k IN (", "INTERVAL '1' DAY)"),
        ("s IN ('a', ", "INTERVAL '1' DAY)"),
        ("", "INTERVAL '1' DAY < INTERVAL '1' MONTH"),
        ("", "t - t > INTERVAL '1-2' YEAR TO MONTH"),
        ("", "t - t > 5"),
        ("k IN (", "ARRAY(1))"),
        ("k IN (s, ", "TRUE)"),
        ("p IN (", "p)"),
        ("k BETWEEN 1 AND ", "a"),
        ("CASE k WHEN ", "INTERVAL '1' DAY THEN TRUE END"),
        ("CASE WHEN ", "s THEN TRUE END"),
        ("CASE WHEN ", "'true' THEN TRUE END"),
        ("CASE WHEN b THEN INTERVAL '1' DAY ELSE ", "1 END IS NULL"),
        ("IF(b, INTERVAL '1' DAY, ", "INTERVAL '1' MONTH) IS NULL"),
        ("IF(", "a, TRUE, FALSE)"),
        ("COALESCE(k, k, k, k, ", "a) IS NULL"),
        ("map(1, s, ", "a, s) IS NULL"),
        ("", "a = 'x'"),
        ("", "struct(1) >= 1"),
        ("", "array(NULL) = l"),
        ("size(", "'abc') > 1"),
        ("", "-b IS NULL"),
        ("", "~s IS NULL"),
        ("NOT ", "a"),
        ("", "- NULL"),
        ("", "s AND NULL OR b"),
        ("", "NULL - s > 1"),
        ("", "'1' - '1' > 1"),
        ("", "array('a') >= a"),
        ("", "m || k"),
        ("", "substring(s, 1)"),
        ("a[", "'1'] > 0"),
        ("a[", "f] > 0"),
        ("k > 1 AND ", "b IN (SELECT x FROM S)"),
        ("", "k > ALL (SELECT INTERVAL '1' DAY FROM S)"),
        ("", "CAST(X'01' AS DECIMAL(10, 2)) > 1"),
        ("", "s OR '1'"),
        ("", "'true' OR 'true'"),
        ("b AND (", "'true' OR r'x')"),
        ("b AND ", "X'01'"),
        ("", "b OR abs(NULL)"),
        ("", "nullif(NULL, 1) OR s"),
        ("", "(- NULL) AND b"),
        ("concat('1', ", "array(1, 2)) IN ('1')"),
        ("concat(a, ", "'1') IS NULL"),
        ("concat(a, a, ", "'1', s) IS NULL"),
        ("concat(s, k, ", "a) IS NULL"),
        ("concat(NULL, ", "array(NULL)) IS NULL"),
        ("concat(array(struct(1)), ", "NULL) IS NULL"),
        ("concat(s, s, ", "p) IS NULL"),
        ("concat(", "r, r, r) IS NULL"),
        ("", "'1' || array(1, 2)"),
        ("", "array(struct(1)) || 'x'"),
        ("", "a || array(d)"),
        ("IF(b, r, ", "struct(1)) IS NULL"),
        ("COALESCE(r, NULL, ", "struct(k)) IS NULL"),
        ("CASE WHEN b THEN array(r) ELSE ", "array(struct(1)) END IS NULL"),
        ("map(1, r, 2, ", "struct(1)) IS NULL"),
        ("COALESCE(r, ", "named_struct('f', a)) IS NULL"),
        ("r IN (r, ", "struct(1, 2))"),
        ("", "r = struct(1, 2)"),
        ("", "array(r) || array(struct(1))"),
        ("concat(array(r), ", "array(struct(1))) IS NULL"),
        ("COALESCE(a, ", "array(d)) IS NULL"),
        ("INTERVAL '1' MONTH IN (", "abs(NULL))"),
        ("d IN (t, ", "- NULL)"),
        ("a BETWEEN ", "NULL + 1 AND NULL"),
        ("x BETWEEN x AND ", "NULL - NULL"),
        ("r IN (", "upper(NULL))"),
        ("", "p = round(NULL)"),
        ("", "substring(NULL, NULL) < INTERVAL '1' DAY"),
        ("", "'1' + d"),
        ("", "t + '1'"),
        ("", "m div '1'"),
    ],
)
def test_refused_with_its_place(before: str, at: str):
    head = "SELECT k FROM S WHERE "
    with pytest.raises(TypeError_) as caught:
        bind_select(f"{head}{before}{at}", INPUT)
    assert str(caught.value).startswith(f"<query>:1:{len(head + before) + 1}: TypeError: ")


@pytest.mark.parametrize(
    "condition",
    [
        "INTERVAL '1' DAY < INTERVAL '1' HOUR",
        "t - t > INTERVAL '1' DAY",
        "k IN (1, s, 2.5)",
        "d IN (t, s, NULL)",
        "k BETWEEN s AND 2.5",
        "s BETWEEN 1 AND DATE '2024-01-01'",
        "CASE s WHEN 1 THEN TRUE WHEN DATE '2024-01-01' THEN FALSE END",
        "a IN (a, array(1L), array(NULL))",
        "NOT s",
        "(b AND NULL) OR s",
        "r = struct(1)",
        "INTERVAL '1' DAY IN (NULL)",
        "a[y] > a[NULL]",
        "p['x'] > 0",
        "m IN (SELECT s FROM S)",
        "CASE WHEN NULL THEN b END",
        "IF(NULL, NULL, NULL)",
        "b OR '1'",
        "r IN (r, struct(1))",
        "nullif(r, struct(1)) IS NULL",
        "array(r) = array(struct(1))",
        "COALESCE(r, named_struct('F', 1)) = struct(1L)",
        "CASE r WHEN struct(1) THEN TRUE END",
        "b OR coalesce(NULL, NULL)",
        "(CASE WHEN b THEN NULL END AND b) OR '1'",
        "(b AND nullif(NULL, 1)) IS NULL",
        "concat('1', k, x, d) = '1'",
        "concat(a, array('a'), array(NULL))[0] = 'a'",
        "concat(NULL, NULL) = '1'",
        "'1' || INTERVAL '1' DAY = '1'",
        "INTERVAL '1' MONTH IN (coalesce(NULL, NULL), CASE WHEN b THEN NULL END)",
        "r = nullif(NULL, 1)",
        "d BETWEEN greatest(NULL, NULL) AND NULL",
        "k IN (abs(NULL), - NULL)",
        "date_add(d, '1') > d",
        "INTERVAL '1' DAY * '2' > INTERVAL '1' DAY",
    ],
)
def test_taken(condition: str):
    plan = bind_select(f"SELECT k FROM S WHERE {condition}", INPUT)
    words = "Semi join ON m = s" if "SELECT" in condition else f"Select {condition}"
    assert words in [node.words(plan.time) for node in plan.root.walk()]


@pytest.mark.parametrize(
    ("query", "conditions"),
    [
        ("SELECT k FROM S WHERE s AND k > 0", ["CAST(`s` AS BOOLEAN)", "`k` > 0"]),
        ("SELECT k FROM S WHERE k > 0 AND (b AND 'true')", ["`k` > 0", "`b`", "CAST('true' AS BOOLEAN)"]),
        ("SELECT k FROM S WHERE (s AND (b AND k > 0))", ["CAST(`s` AS BOOLEAN)", "`b`", "`k` > 0"]),
        ("SELECT k FROM S WHERE s AND k > 0 OR b", ["`s` AND `k` > 0 OR `b`"]),
        ("SELECT k, s FROM S GROUP BY k, s HAVING s AND k > 0", ["CAST(`s` AS BOOLEAN)", "`k` > 0"]),
        ("SELECT k, MAX(s) AS z FROM S GROUP BY k HAVING k > 0 AND MAX(s)", ["`k` > 0", "CAST(`max(s)` AS BOOLEAN)"]),
        ("SELECT k FROM S QUALIFY COUNT(*) OVER (ORDER BY k) > 1 AND s", ["`n` > 1", "CAST(`s` AS BOOLEAN)"]),
        ("SELECT v.k FROM S v JOIN S w ON v.k = w.k AND v.s", ["CAST(`s` AS BOOLEAN)"]),
    ],
)
def test_a_string_that_and_connects_with_a_boolean_is_one(query: str, conditions: list[str]):
    root = bind_select(query, INPUT).root
    names = {c.id: "n" if c.label.startswith("count") else c.label for node in root.walk() for c in node.columns}
    found = [part for node in root.walk() if isinstance(node, Select) for part in parts(node.condition.sql)]
    assert sorted(substituted(part, {i: f"`{n}`" for i, n in names.items()}) for part in found) == sorted(conditions)


@pytest.mark.parametrize("condition", ["s", "s AND 'true'", "s AND NULL", "'1' AND upper(s)", "b AND (s AND s)", "(s)"])
def test_strings_alone_are_no_condition(condition: str):
    with pytest.raises((TypeError_, CqlErrors), match=r"needs a condition, but .* of type STRING"):
        bind_select(f"SELECT k FROM S WHERE {condition}", INPUT)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SELECT COUNT(*) AS n FROM S GROUP BY ", ""),
        ("SELECT k, COUNT(", ") AS n FROM S GROUP BY k"),
        ("SELECT COUNT(DISTINCT k, ", ") AS n FROM S"),
        ("SELECT MAX_BY(k, ", ") AS n FROM S"),
        ("SELECT COLLECT_LIST(array(k) ORDER BY ", ") AS n FROM S"),
        ("SELECT k FROM S ORDER BY ", " LIMIT 1"),
        ("SELECT k, COUNT(*) OVER (PARTITION BY ", ") AS n FROM S"),
        ("SELECT k, ROW_NUMBER() OVER (ORDER BY ", ") AS n FROM S"),
        ("SELECT k FROM S [Partition By ", " Rows 1]"),
    ],
)
def test_what_no_table_holds_is_not_remembered(before: str, after: str):
    for kept in ("d - DATE '2024-01-01'", "array(t - t)", "struct(INTERVAL '1' MONTH)"):
        with pytest.raises(TypeError_, match=r"INTERVAL .*no table holds.*timestampdiff") as caught:
            bind_select(f"{before}{kept}{after}", INPUT)
        assert str(caught.value).startswith(f"<query>:1:{len(before) + 1}: TypeError: ")


def test_a_long_list_is_looked_at_once_a_type():
    listed = ", ".join(f"{i}, '{i}', {i}.5" for i in range(5000))
    bind_select(f"SELECT k FROM S WHERE k IN ({listed})", INPUT)


def test_a_stored_null_inside_keeps_the_names_of_fields_and_is_read_as_written():
    text = "SELECT k, z.n + 1 AS y FROM (SELECT DISTINCT k, named_struct('n', NULL, 'q', k) AS z FROM S) v"
    plan = bind_select(text, INPUT)
    inner = plan.root.inputs[0]
    kept = {c.type or "" for node in inner.walk() for c in node.columns}
    assert any(type_.startswith("struct<n:string,") for type_ in kept)
    assert as_written("`c1`", "array<struct<Ab:void,`c D`:map<string,void>>>") == (
        "transform(`c1`, __v0 -> IF(__v0 IS NULL, NULL, named_struct('Ab', NULL, 'c D', "
        "transform_values(__v0.`c D`, (__k2, __v2) -> NULL))))"
    )
