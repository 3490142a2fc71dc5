"""ON VIOLATION QUARANTINE ROW on a query is a selection before its streams are made: the oracle's tables, divided by
the condition, are the result and the quarantine, in any slicing, under each strategy, and with rows that come late.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from sweeparea.spark_jobs.cases.case import KEPT_OUT
from sweeparea.spark_jobs.cases.replay import replay
from tests.replay.compare import MEMBERS, broken_law, difference
from tests.replay.generate import STRATEGIES, generate
from tests.replay.late import late
from tests.replay.many_slices import shared_by
from tests.replay.oracle import Oracle, expected
from tests.replay.slicing import one_slice, reslice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Obeys = Callable[[list[Any]], bool]
RULE = "rule `no`"
"""A name that has to be quoted wherever it stands."""
QUERIES = (
    "SELECT k, v FROM S",
    "ISTREAM(SELECT k, v FROM S [Range 4])",
    "SELECT k, v FROM S [Range 4]",
    "DSTREAM(SELECT k, v FROM S [Rows 3])",
    "RSTREAM(SELECT k, v FROM S [Range 3])",
    "SELECT k, SUM(v) AS v FROM S [Range 5] GROUP BY k",
    "ISTREAM(SELECT k, COUNT(*) AS v FROM S GROUP BY k)",
    "SELECT k, v FROM S [Partition By k Rows 1]",
    "SELECT a.k, a.v FROM S AS a, S [Range 3] AS b WHERE a.k = b.k",
    "SELECT k, v FROM S UNION ALL SELECT v AS k, k AS v FROM S [Range 2]",
    "SELECT v AS k, v FROM S [Session 2]",
)


def divided(whole: dict[str, Any], obeys: Obeys, reason: str) -> dict[str, Any]:
    """What the oracle says of a query, and which of it a constraint keeps out."""
    if "error" in whole:
        return whole
    found = {member: [row for row in whole[member] if obeys(row[-1])] for member in MEMBERS[1:] if member in whole}
    out = [[*at, [*record, RULE, reason]] for *at, record in whole["relation"] if not obeys(record)]
    return {"columns": whole["columns"], **found, KEPT_OUT: out}


def constrained(case: dict[str, Any], condition: str, **more: Any) -> dict[str, Any]:
    return {**case, "constraints": [{"name": RULE, "expect": condition, "on_violation": "QUARANTINE ROW"}], **more}


def check(spark: SparkSession, cases: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    lines = [json.dumps(case) for case in cases]
    for case, line, want, result in zip(cases, lines, wanted, replay(lines, spark), strict=True):
        wrong = difference(want, result, (*MEMBERS, KEPT_OUT))
        if not wrong and "error" not in result and {"istream", "dstream", "relation"} <= result.keys():
            wrong = broken_law(result, Oracle(case).tick)
        assert not wrong, f"as a replay line:\n{line}\n{wrong}"


def said(condition: str) -> str:
    return f"constraint {RULE} is violated: {condition}"


def condition_of(chance: random.Random, result: dict[str, Any]) -> tuple[str, Obeys]:
    """A condition over the result's columns, and what obeys it."""
    i = chance.randrange(len(result["columns"]))
    column = "`" + result["columns"][i].replace("`", "``") + "`"
    values = [row[-1][i] for row in result.get("relation", ())]
    whole = sorted({v for v in values if isinstance(v, int) and not isinstance(v, bool)})
    if whole and all(v is None or (isinstance(v, int) and not isinstance(v, bool)) for v in values):
        least = chance.choice(whole)
        return f"{column} <> {least}", lambda record: record[i] != least
    return f"{column} IS NOT NULL", lambda record: record[i] is not None


def simple(query: str, chance: random.Random, **more: Any) -> dict[str, Any]:
    rows = [[chance.randint(0, 24), [chance.choice([1, 2, None]), chance.choice([0, 1, 2, None])]] for _ in range(16)]
    ends = sorted(chance.sample(range(24), 3))
    streams = {"S": {"columns": {"k": "int", "v": "int"}, "rows": rows}}
    return {"streams": streams, "query": query, "heartbeats": [*ends, 30], **more}


def on_time(case: dict[str, Any]) -> dict[str, Any]:
    def whole(stream: dict[str, Any]) -> dict[str, Any]:
        rows = [*stream["rows"], *(row for _, *row in stream.get("arrivals", ()))]
        return {**stream, "rows": rows, "arrivals": [], "late": "reject"} if "arrivals" in stream else stream

    return {**case, "streams": {name: whole(stream) for name, stream in case["streams"].items()}}


def written(seed: int, queries: tuple[str, ...]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Each query in three slicings and under a strategy, with late rows and without; and what it must give."""
    cases, wanted = [], []
    for i, query in enumerate(queries):
        chance = random.Random(seed * 100 + i)
        case = simple(query, chance, strategy=STRATEGIES[(seed + i) % 3])
        condition = chance.choice(["v <> 1", "k IN (1, 3)", "v > 0 OR k = 2"])
        obeys: Obeys = {
            "v <> 1": lambda r: r[1] != 1,
            "k IN (1, 3)": lambda r: r[0] in (1, 3, None),
            "v > 0 OR k = 2": lambda r: (r[1] is None or r[1] > 0) or r[0] in (2, None),
        }[condition]
        tried = [case, reslice(case, chance), late(case, chance)]
        if query.startswith("ISTREAM") or "[" not in query:
            # nothing but the stream is kept: of rows that never go as they come
            tried += [{**each, "materialize": ["istream"]} for each in (case, late(case, chance))]
        for each in tried:
            want = divided(expected(on_time(each)), obeys, said(condition))
            left_out = ("relation", "dstream") if "materialize" in each else ()
            cases.append(constrained(each, condition))
            wanted.append({name: rows for name, rows in want.items() if name not in left_out})
    return cases, wanted


@pytest.mark.spark
def test_quarantine_of_queries_of_each_kind(spark: SparkSession):
    check(spark, *written(1, QUERIES))


@pytest.mark.spark
def test_quarantine_however_many_workers_share_a_slice(spark: SparkSession):
    with shared_by((3, 1, 2)):
        check(spark, *written(2, QUERIES[:6]))


def _random(spark: SparkSession, seed: int) -> None:
    chance = random.Random(seed)
    case = generate(chance, rows=10)
    whole = expected(case)
    condition, obeys = ("TRUE", lambda record: True) if "error" in whole else condition_of(chance, whole)
    cases = [case, one_slice(case), reslice(case, chance), late(case, chance)]
    wanted = [divided(expected(on_time(each)), obeys, said(condition)) for each in cases]
    check(spark, [constrained(each, condition) for each in cases], wanted)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(40_000, 40_120))
def test_quarantine_of_many_random_cases(spark: SparkSession, seed: int):
    _random(spark, seed)
