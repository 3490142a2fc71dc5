"""What Spark's analyzer is certain to refuse is refused without it, with its place; what it takes is taken."""

from __future__ import annotations

import pytest

from sweeparea.cql.binding.binder import bind_select
from sweeparea.cql.functions.untyped_nulls import as_written
from sweeparea.cql.text.errors import TypeError_
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
    ],
)
def test_taken(condition: str):
    plan = bind_select(f"SELECT k FROM S WHERE {condition}", INPUT)
    words = "Semi join ON m = s" if "SELECT" in condition else f"Select {condition}"
    assert words in [node.words(plan.time) for node in plan.root.walk()]


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
