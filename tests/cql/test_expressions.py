"""Scalar expressions reach Spark token by token as they were written: only columns are replaced."""

from __future__ import annotations

import re

import pytest

from sweeparea.cql.binding.binder import bind_select
from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.operators.nodes import Project, StreamScan
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from tests.cql.schemas import nodes

COLUMNS = (
    ("a", "int"),
    ("b", "string"),
    ("x", "double"),
    ("d", "date"),
    ("t", "timestamp"),
    ("arr", "array<int>"),
    ("m", "map<string,int>"),
    ("st", "struct<f:int,g:struct<h:int>>"),
    ("dec", "decimal(10,2)"),
    ("bin", "binary"),
    ("range", "int"),
    ("my col", "int"),
    ("rows", "int"),
    ("now", "int"),
    ("list", "array<int>"),
    ("slide", "int"),
)
INPUTS = {"S": InputSchema("S", SchemaKind.STREAM, COLUMNS, TimeDomain(TimeKind.TIMESTAMP, 1))}

EXPRESSIONS = r"""
a / x
a || b
b || 'x' || "dq"
CAST(a AS DECIMAL(10, 2))
CAST(b AS VARCHAR(10))
a::bigint
TRY_CAST(b AS INT)
INTERVAL 6 HOURS
INTERVAL '1' DAY
INTERVAL '1 02:03:04' DAY TO SECOND
INTERVAL 1 DAY 2 HOURS
t - INTERVAL 30 MINUTES
CASE WHEN a > 1 THEN 'x' WHEN a IS NULL THEN b ELSE NULL END
CASE a WHEN 1 THEN 2 END
date_add(d, 1)
date_sub(d, a)
datediff(d, d)
timestampdiff(HOUR, t, t)
timestampadd(MINUTE, 5, t)
dateadd(DAY, 1, d)
date_trunc('hour', t)
trunc(d, 'MM')
date_format(t, 'yyyy-MM-dd')
to_date(b, 'dd/MM/yyyy')
to_timestamp(b)
unix_timestamp(t)
from_unixtime(a, 'yyyy')
year(d) * 100 + month(t)
extract(DOW FROM d)
extract(YEAR FROM t)
'it\'s'
'a\nb\\c\u0041\0'
r'raw\d'
'it''s'
'a' 'b'
X'1F'
transform(arr, v -> v + a)
filter(arr, (v, i) -> v > i)
aggregate(arr, 0, (acc, v) -> acc + v)
exists(arr, v -> v = 1)
zip_with(arr, arr, (p, q) -> p + q)
map_filter(m, (k, v) -> v > 1)
array_sort(arr, (l, r) -> case when l < r then -1 else 1 end)
1.5BD
1.50BD * dec
1e0
1E-3
1e3BD
5L
3S
2Y
1.5D
1.5F
.5
a % 2
a DIV 2
-a
+a
- -a
~a & 3 | 4 ^ 1
a << 1
a >> 1
a <=> NULL
a == 1
a <> 1
a != 1
NOT a = 1
! (a = 1)
a BETWEEN 1 AND 2 AND b LIKE 'x%'
b NOT LIKE '%!%%' ESCAPE '!'
b LIKE ANY ('a%', 'b%')
b LIKE ALL ('a%', 'b%')
b ILIKE 'x'
b RLIKE '^a.*'
b REGEXP 'x'
a IN (1, 2, 3)
a NOT IN (1, 2)
a IS DISTINCT FROM 1
a IS NOT DISTINCT FROM 1
x IS NOT NULL
(a = 1) IS TRUE
(a = 1) IS NOT UNKNOWN
arr[0]
arr[a + 1]
m['k']
st.f
st.g.h + 1
element_at(arr, 1)
try_element_at(m, 'k')
size(arr)
array(1, 2, a)[0]
map('a', a)['a']
list[0]
split(b, ',')[0]
(arr)[a]
filter(arr, v -> v > a)[0]
CAST(arr AS ARRAY<BIGINT>)[0]
array(array(a))[0][a]
struct(a + 0 AS k, b AS c).c
named_struct('x', a, 'y', b)
TIMESTAMP '2013-01-01 00:00:00'
TIMESTAMP_NTZ '2013-01-01 00:00:00'
DATE '2013-01-01'
DATE'2013-01-01'
from_utc_timestamp(t, 'Europe/Berlin')
convert_timezone('UTC', 'Europe/Berlin', TIMESTAMP_NTZ '2020-01-01')
substring(b FROM 1 FOR 2)
substring(b, 1, 2)
substr(b, 2)
trim(b)
trim(BOTH 'x' FROM b)
trim(LEADING FROM b)
overlay(b PLACING 'x' FROM 1)
position('x' IN b)
left(b, 2) || right(b, 2)
nvl(a, 0)
coalesce(a, 0)
if(a > 1, 'y', 'n')
nullif(a, 1)
get_json_object(b, '$.a')
from_json(b, 'a INT')
regexp_extract(b, '(\\d+)', 1)
split(b, ',')
log(2, x)
pow(a, 2)
round(x, 2)
ceil(x) + floor(x, 1)
greatest(a, 1)
decode(bin, 'UTF-8')
decode(a, 1, 'x', 2, 'y', 'z')
char(65)
initcap(b)
`my col` + `range`
range + rows + now + slide
int(b)
date(t)
timestamp(b)
mod(a, 2)
CAST(st AS STRUCT<f: INT, g: STRUCT<h: INT>>)
CAST(m AS MAP<STRING, BIGINT>)
CAST('1' AS INTERVAL DAY)
mask(b, lowerChar => 'q')
true AND false OR NULL
unix_micros(ts)
""".strip().splitlines()


def spark_text(expression: str) -> tuple[str, str | None]:
    """The expression as Spark gets it, with ids turned back into names; and its type."""
    bound = bind_select(f"SELECT {expression} AS z FROM S [Now]", INPUTS)
    [project] = nodes(bound.root, Project)
    (column, expr) = project.outputs[0]
    [scan] = nodes(bound.root, StreamScan)
    text = expr.sql
    for c in scan.columns:
        text = text.replace(f"`{c.id}`", c.label)
    return text, column.type


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression_survives(expression: str) -> None:
    assert spark_text(expression)[0] == expression.replace("`", "")


def test_comments_and_line_ends_become_spaces() -> None:
    assert spark_text("a /* one */ + -- two\n 1")[0] == "a + 1"
    assert spark_text("'-- no comment' || b")[0] == "'-- no comment' || b"


def test_a_column_in_quotes_is_replaced_and_a_string_is_not() -> None:
    assert spark_text("`a` + length('a')")[0] == "a + length('a')"


def test_star_in_a_function_stands_for_its_columns() -> None:
    assert spark_text("hash(*)")[0] == f"hash({', '.join(name for name, _ in COLUMNS)})"


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("struct(a, S.b, st.f, a + 1)", "struct(a AS `a`, b AS `b`, st.f, a + 1)"),
        ("to_json(struct(A, x AS y)).q", "to_json(struct(a AS `A`, x AS y)).q"),
        ("(a, b)", "(a AS `a`, b AS `b`)"),
    ],
)
def test_fields_of_a_struct_keep_the_names_of_their_columns(written: str, sent: str) -> None:
    assert spark_text(written)[0] == sent


def test_a_struct_over_keys_keeps_its_names() -> None:
    bound = bind_select("SELECT struct(a, b || 'x') AS z FROM S [Now] GROUP BY a, b || 'x'", INPUTS)
    [(_, expr)] = nodes(bound.root, Project)[-1].outputs
    assert re.sub(r"`c\d+`", "k", expr.sql) == "struct(k AS `a`, k AS `col2`)"
    star = bind_select("SELECT struct(p.*) AS z FROM (SELECT a, b FROM S [Now]) p", INPUTS)
    assert re.sub(r"`c\d+`", "k", nodes(star.root, Project)[-1].outputs[0][1].sql) == "struct(k AS `a`, k AS `b`)"


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("a", "int"),
        ("a + 1", "int"),
        ("a + 5L", "bigint"),
        ("a / 2", "double"),
        ("a DIV 2", "bigint"),
        ("x * 2", "double"),
        ("a > 1", "boolean"),
        ("a IS NULL", "boolean"),
        ("b || 'x'", "string"),
        ("upper(b)", "string"),
        ("1.50", "decimal(3,2)"),
        ("1.5BD", "decimal(2,1)"),
        ("1e0", "double"),
        ("2147483648", "bigint"),
        ("-2147483648", "int"),
        ("-a", "int"),
        ("CAST(a AS DECIMAL(5))", "decimal(5,0)"),
        ("CAST(b AS VARCHAR(3))", "string"),
        ("int(b)", "int"),
        ("if(a > 1, 1, 2L)", "bigint"),
        ("coalesce(b, 'x')", "string"),
        ("CASE WHEN a > 1 THEN 1 END", "int"),
        ("year(d)", "int"),
        ("ts", "timestamp"),
        ("st.f", "int"),
        ("st.g.h", "int"),
        ("arr[0]", "int"),
        ("m['k']", "int"),
        ("x + dec", "double"),
        ("dec + 1", "decimal(11,2)"),
        ("dec * dec", "decimal(21,4)"),
        ("dec / a", "decimal(21,13)"),
        ("to_json(st)", "string"),
        ("coalesce(a, dec)", "decimal(12,2)"),
        ("NULL", "string"),
        ("array(1, 2L)", "array<bigint>"),
        ("struct(a, b AS c)", "struct<a:int,c:string>"),
        ("element_at(m, 'k')", "int"),
        ("map_keys(m)", "array<string>"),
        ("t - INTERVAL 1 DAY", "timestamp"),
        ("from_json(b, 'a INT')", None),
        ("transform(arr, v -> v + 1)", None),
    ],
)
def test_types_are_known_where_certain(expression: str, type_: str | None) -> None:
    assert spark_text(expression)[1] == type_


def test_ids_are_unique_in_a_plan() -> None:
    bound = bind_select("SELECT p.a, q.b FROM S [Now] p, S [Now] q WHERE p.a = q.a", INPUTS)
    ids = [c.id for scan in nodes(bound.root, StreamScan) for c in scan.columns]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"c\d+", i) for i in ids)
