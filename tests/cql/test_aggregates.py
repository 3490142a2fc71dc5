"""Aggregates: one name for each meaning, complete orders, types, and what is told of wrong ones."""

from __future__ import annotations

import pytest

from sweeparea.cql.binding.binder import bind_select
from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.cql.functions import functions
from sweeparea.cql.functions.aggregates import AGGREGATES, GROUPING
from sweeparea.cql.text.errors import CqlError
from tests.cql.readable import Readable
from tests.cql.schemas import plan

CALLS = {
    "count(*)": ("COUNT(*)", "bigint"),
    "count(a)": ("COUNT(a)", "bigint"),
    "count(a, b)": ("COUNT(IF((a) IS NULL OR (b) IS NULL, NULL, 1))", "bigint"),
    "count(DISTINCT a)": ("COUNT(DISTINCT a)", "bigint"),
    "count(DISTINCT a, b)": (
        "COUNT(DISTINCT IF((a) IS NULL OR (b) IS NULL, NULL, struct((a) AS f0, (b) AS f1)))",
        "bigint",
    ),
    "count_if(a > 1)": ("COUNT(IF(a > 1, 1, NULL))", "bigint"),
    "sum(a)": ("SUM(a)", "bigint"),
    "sum(DISTINCT x) FILTER (WHERE b = 'p')": ("SUM(DISTINCT x) FILTER b = 'p'", "double"),
    "mean(x)": ("AVG(x)", "double"),
    "try_sum(a)": ("TRY_SUM(a)", "bigint"),
    "min(DISTINCT b)": ("MIN(b)", "string"),
    "bool_and(a > 1)": ("MIN(a > 1)", "boolean"),
    "every(a > 1)": ("MIN(a > 1)", "boolean"),
    "some(a > 1)": ("MAX(a > 1)", "boolean"),
    "any(a > 1)": ("MAX(a > 1)", "boolean"),
    "std(x)": ("STDDEV_SAMP(x)", "double"),
    "stddev(x)": ("STDDEV_SAMP(x)", "double"),
    "variance(x)": ("VAR_SAMP(x)", "double"),
    "kurtosis(a)": ("KURTOSIS(a)", "double"),
    "corr(a, x)": ("CORR(a, x)", "double"),
    "regr_slope(x, a)": ("REGR_SLOPE(x, a)", "double"),
    "regr_count(x, a)": ("COUNT(IF((x) IS NULL OR (a) IS NULL, NULL, 1))", "bigint"),
    "regr_avgx(x, a)": ("AVG(IF((x) IS NULL, NULL, CAST((a) AS DOUBLE)))", "double"),
    "bit_xor(a)": ("BIT_XOR(a)", "int"),
    "median(a)": ("PERCENTILE(a, 0.5D)", "double"),
    "percentile(x, 0.25)": ("PERCENTILE(x, 0.25)", "double"),
    "percentile(x, array(0.25, 0.5))": ("PERCENTILE(x, array(0.25, 0.5))", "array<double>"),
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC)": ("PERCENTILE_CONT(x, 0.5) ORDER BY x DESC", "double"),
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY x)": ("PERCENTILE_DISC(x, 0.5) ORDER BY x", "double"),
    "mode(b)": ("MODE(b) ORDER BY b", "string"),
    "mode() WITHIN GROUP (ORDER BY b DESC)": ("MODE(b) ORDER BY b DESC", "string"),
    "first(a)": ("FIRST(a) ORDER BY a", "int"),
    "first_value(x)": ("FIRST(x) ORDER BY a, b, x", "double"),
    "any_value(b)": ("FIRST(b) ORDER BY a, b", "string"),
    "last(b) IGNORE NULLS": ("LAST(b) IGNORE NULLS ORDER BY a, b", "string"),
    "last(b, true)": ("LAST(b) IGNORE NULLS ORDER BY a, b", "string"),
    "last(b) RESPECT NULLS": ("LAST(b) ORDER BY a, b", "string"),
    "last(a) WITHIN GROUP (ORDER BY x DESC)": ("LAST(a) ORDER BY x DESC, a", "int"),
    "last(ts)": ("LAST(ts) ORDER BY a, b, x, ts", "bigint"),
    "collect_list(b)": ("COLLECT_LIST(b) ORDER BY a, b", "array<string>"),
    "array_agg(b)": ("COLLECT_LIST(b) ORDER BY a, b", "array<string>"),
    "array_agg(b ORDER BY x NULLS LAST)": ("COLLECT_LIST(b) ORDER BY x NULLS LAST, a, b", "array<string>"),
    "collect_list(DISTINCT b)": ("COLLECT_LIST(DISTINCT b) ORDER BY b", "array<string>"),
    "collect_set(b)": ("COLLECT_LIST(DISTINCT b) ORDER BY b", "array<string>"),
    "listagg(b)": ("LISTAGG(b) ORDER BY a, b", "string"),
    "string_agg(b, '; ') WITHIN GROUP (ORDER BY x)": ("LISTAGG(b, '; ') ORDER BY x, a, b", "string"),
    "listagg(DISTINCT b, ',') WITHIN GROUP (ORDER BY b DESC)": ("LISTAGG(DISTINCT b, ',') ORDER BY b DESC", "string"),
    "max_by(b, x)": ("MAX_BY(b, x) ORDER BY x DESC, a, b", "string"),
    "min_by(b, x)": ("MIN_BY(b, x) ORDER BY x NULLS LAST, a, b", "string"),
    "max_by(b, x, 2)": ("MAX_BY(b, x, 2) ORDER BY x DESC, a, b", "array<string>"),
}


@pytest.mark.parametrize("text", CALLS)
def test_a_call(text: str) -> None:
    bound = Readable(plan(f"SELECT {text} AS z FROM S [Now]"))
    assert (bound.aggregates(), bound.types) == ([CALLS[text][0]], [CALLS[text][1]])


def test_equal_calls_are_one() -> None:
    bound = Readable(
        plan("SELECT sum(x) AS p, SUM( x ) + 1 AS q FROM S [Now] HAVING sum(x) > 1 ORDER BY sum(x) LIMIT 1")
    )
    assert bound.aggregates() == ["SUM(x)"]


def test_the_declared_sequence_orders_before_the_record() -> None:
    inputs = {
        "E": InputSchema("E", SchemaKind.STREAM, (("a", "int"), ("n", "bigint"), ("b", "string")), sequence_by="n")
    }
    assert Readable(bind_select("SELECT last(b) AS z FROM E [Now]", inputs)).aggregates() == [
        "LAST(b) ORDER BY n, a, b"
    ]


def test_decimals_have_sparks_digits() -> None:
    bound = Readable(plan("SELECT sum(c) AS s, avg(c) AS m, max(c) AS h FROM T [Now]"))
    assert bound.types == ["decimal(20,2)", "decimal(14,6)", "decimal(10,2)"]


WRONG = {
    "sum(b > 'x')": "TypeError: SUM cannot take b > 'x', which is of type BOOLEAN. It takes numbers.",
    "max(map(a, b))": "TypeError: MAX cannot take map(a, b), which is of type MAP<INT,STRING>. It takes types that "
    "have an order.",
    "count()": "TypeError: COUNT needs an argument. Write COUNT(*).",
    "sum(a, x)": "TypeError: SUM takes one argument, found 2. Write SUM(a).",
    "sum(*)": "TypeError: SUM takes one argument, found *. Write SUM(a).",
    "corr(a)": "TypeError: CORR takes two arguments, found 1. Write CORR(a, b).",
    "corr(a, ts > 1)": "TypeError: CORR cannot take ts > 1, which is of type BOOLEAN. It takes numbers or STRING.",
    "sum(max(a))": "BindError: the aggregate MAX cannot stand inside the aggregate SUM. Aggregate in a subquery first.",
    "sum(a) IGNORE NULLS": "TypeError: SUM does not take IGNORE NULLS. FIRST, LAST, ANY_VALUE, NTH_VALUE, LAG "
    "and LEAD do.",
    "sum(a) WITHIN GROUP (ORDER BY b)": "TypeError: SUM does not take WITHIN GROUP (ORDER BY ..): its value does not "
    "depend on an order. Leave it out.",
    "percentile_cont(0.5)": "TypeError: PERCENTILE_CONT needs WITHIN GROUP (ORDER BY ..). Write PERCENTILE_CONT(0.5) "
    "WITHIN GROUP (ORDER BY x).",
    "percentile(x, a)": "TypeError: the percentage of PERCENTILE must be a constant, found a. Write a literal.",
    "percentile(x, 2)": "TypeError: the percentage of PERCENTILE lies between 0 and 1. The median is 0.5.",
    "first(a, x)": "TypeError: the second argument of FIRST says TRUE or FALSE: whether NULLs are left out. Write "
    "FIRST(a) IGNORE NULLS.",
    "listagg(DISTINCT b) WITHIN GROUP (ORDER BY x)": "TypeError: LISTAGG(DISTINCT ..) can be ordered by its argument b "
    "alone. Equal values are one here, so no other column of theirs is left.",
    "sum(a) FILTER (WHERE b)": "TypeError: FILTER of SUM needs a condition, but b is of type STRING. Write a "
    "comparison, such as b = 'x'.",
    "abs(a) FILTER (WHERE a > 1)": "TypeError: abs is no aggregate, so it takes no FILTER, WITHIN GROUP or IGNORE "
    "NULLS. Leave it out.",
    "approx_count_distinct(a)": "RefusedError: approx_count_distinct is approximate: its answer depends on the order "
    "of the rows, so no two runs agree. The exact answer is COUNT(DISTINCT a).",
    "theta_union_agg(b)": "RefusedError: theta_union_agg is approximate: its answer depends on the order of the rows, "
    "so no two runs agree. Use COUNT(DISTINCT a) or PERCENTILE(a, 0.5).",
    "measure(a)": "RefusedError: measure(..) is not offered: it reads metric views. Write the aggregate itself.",
    "array_agg(a ORDER BY b LIMIT 2)": "RefusedError: ARRAY_AGG with LIMIT inside is not offered. Take a part of the "
    "array: slice(.., 1, n).",
    "grouping(a)": "TypeError: GROUPING needs GROUP BY with GROUPING SETS, ROLLUP or CUBE. Otherwise every key is "
    "grouped.",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_told(text: str) -> None:
    with pytest.raises(CqlError) as caught:
        plan(f"SELECT {text} AS z FROM S", filename="q")
    place, told = str(caught.value).splitlines()[0].split(": ", 1)
    assert told == WRONG[text]
    assert place.startswith("q:1:")


def test_the_caret_is_under_the_call() -> None:
    with pytest.raises(CqlError) as caught:
        plan("SELECT a, sum(b > 'x') AS s FROM S GROUP BY a", filename="q.cql")
    line, text, caret = str(caught.value).splitlines()
    assert line.startswith("q.cql:1:11: TypeError")
    assert text[caret.index("^") :].startswith("sum(")


def test_every_aggregate_of_spark_is_classified() -> None:
    known = set(AGGREGATES) | set(GROUPING) | functions.SKETCHES | {"MEASURE"}
    for name in known - {"MEASURE"}:
        assert name.lower() in functions.spark_functions(), name
    wrong = [n for n in functions.spark_functions() if n.endswith("_agg") and n.upper() not in known]
    assert wrong == []


@pytest.mark.parametrize("where", ["WHERE sum(a) > 1", "GROUP BY sum(a)"])
def test_places_without_aggregates(where: str) -> None:
    with pytest.raises(CqlError) as caught:
        plan(f"SELECT 1 AS o FROM S {where}")
    assert "aggregate" in caught.value.message
