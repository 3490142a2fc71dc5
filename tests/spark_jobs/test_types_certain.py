"""What is accepted without Spark is accepted by Spark's analyzer, and what plan accepts where Spark checks types is
processed: no slice fails on types later.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING

import pytest

from sweeparea.cql.binding.binder import bind_select
from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.cql.functions.column_types import Untyped
from sweeparea.cql.text.errors import TypeError_
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.cases.replay import replay
from sweeparea.spark_jobs.declarations.analysis import Checking, _Analysis, analyzer, faults_of, types_of
from tests.cql.typed_expressions import INPUT, WIDE, Expressions, Wide

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WIDE_INPUT = {"S": InputSchema("S", SchemaKind.STREAM, WIDE)}


def _wrongly_accepted(spark: SparkSession, seed: int, wanted: int) -> list[str]:
    """Of so many queries that the binder takes, those that Spark refuses, with what it says."""
    made, taken, wrong = Expressions(Random(seed)), 0, []
    while taken < wanted:
        text = made.query(made.random.randint(1, 3))
        try:
            plan = bind_select(text, INPUT)
        except SweepAreaError:
            continue
        taken += 1
        wrong += [f"{text}\n  {fault}" for fault in faults_of(spark, plan.root)]
    return wrong


@pytest.mark.spark
def test_what_is_accepted_has_types_that_fit(spark: SparkSession):
    wrong = _wrongly_accepted(spark, seed=1, wanted=40)
    assert not wrong, "\n".join(wrong)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_what_is_accepted_has_types_that_fit_at_length(spark: SparkSession, seed: int):
    wrong = _wrongly_accepted(spark, seed, wanted=1000)
    assert not wrong, "\n".join(wrong)


def _plan(spark: SparkSession, text: str) -> bool:
    """Whether a query is accepted where Spark checks types; if so, nothing may be wrong with the plan that is run."""
    checking = Checking(analyzer(spark), lambda: spark)
    try:
        plan = bind_select(text, WIDE_INPUT, analyze=checking)
    except SweepAreaError as error:
        for each in getattr(error, "errors", (error,)):
            assert not isinstance(each, TypeError_) or each.place is not None, text
        return False
    assert not faults_of(spark, plan.root), text
    known = types_of(spark, plan.root)
    wrong = [c.label for c in plan.root.columns if "void" in known[c.id] or (c.type or known[c.id]) != known[c.id]]
    assert not wrong, f"{text}\n  {wrong}"
    return True


@pytest.mark.spark
def test_parts_of_a_union_that_do_not_fit_are_told_by_name(spark: SparkSession):
    (union,) = [
        n for n in bind_select("SELECT d FROM S UNION ALL SELECT t FROM S", WIDE_INPUT).root.walk() if n.by_position
    ]
    first, second = (child.columns[0].id for child in union.inputs)
    with pytest.raises(Untyped, match="INCOMPATIBLE_COLUMN_TYPE"):
        _Analysis(spark, {first: "interval day", second: "double"}).of(union)


def _accepted(spark: SparkSession, parts: Iterator[str], query: str, wanted: int) -> list[str]:
    """So many of ``parts`` with which a query is accepted."""
    found: list[str] = []
    for part in parts:
        if _plan(spark, query.format(part)):
            found.append(part)
            if len(found) == wanted:
                break
    return found


def _processed(spark: SparkSession, queries: list[str]) -> list[str]:
    """Of queries over one row of NULLs those that fail on anything but data."""
    streams = {"S": {"columns": dict(WIDE), "rows": [[1, [None] * len(WIDE)]]}}
    cases = [json.dumps({"name": q, "streams": streams, "query": q, "heartbeats": [1]}) for q in queries]
    results = replay(cases, spark)
    return [
        f"{r['name']}\n  {r['error']}" for r in results if r.get("error", {}).get("type") not in (None, "DataError")
    ]


@pytest.mark.spark
def test_what_plan_accepts_is_processed(spark: SparkSession):
    made = Wide(Random(11))
    values = _accepted(spark, (made.of("any", 2) for _ in range(99)), "SELECT {} AS z FROM S", 8)
    calls = _accepted(spark, (made.aggregate(2) for _ in range(99)), "SELECT {} AS z FROM S [Range 5]", 6)
    keys = _accepted(spark, (made.of("any", 2) for _ in range(99)), "SELECT DISTINCT {} AS z FROM S [Range 5]", 3)
    rows = "FROM S [Range 5] WHERE k > 0"  # none, so that no data can be wrong
    queries = [
        f"SELECT {', '.join(f'{e} AS z{i}' for i, e in enumerate(values))} FROM S WHERE k > 0",
        f"SELECT {', '.join(f'{e} AS z{i}' for i, e in enumerate(calls))} {rows} GROUP BY {', '.join(keys)}",
        "SELECT k FROM S [Range 5] WHERE s AND k > 0 GROUP BY k, s HAVING s AND k > 0"
        " QUALIFY COUNT(*) OVER (ORDER BY k) > 0 AND s",
    ]
    assert not _processed(spark, queries)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 30))
def test_what_plan_accepts_is_processed_at_length(spark: SparkSession, seed: int):
    made = Wide(Random(seed))
    texts = (made.query(made.random.randint(1, 3)).replace("FROM S", "FROM S [Range 5]") for _ in range(300))
    accepted = [text for text in texts if _plan(spark, text)]
    assert len(accepted) > 100
    wrong = _processed(spark, accepted[::5])
    assert not wrong, "\n".join(wrong)
