"""Joins with a non-retroactive relation against the same query over a stream whose elements are enriched already."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from sweeparea.spark_jobs.cases.replay import replay
from tests.replay.compare import MEMBERS, difference
from tests.replay.oracle import expected
from tests.replay.slicing import one_slice, reslice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WINDOWS = ["", "[Range 3]", "[Rows 2]", "[Now]", "[Session 3]", "[Partition By k Rows 1]", "[Tumbling 4]"]
QUERIES = [
    "SELECT k, v, w FROM E {window}",
    "SELECT k, COUNT(*) AS n, MAX(w) AS w FROM E {window} GROUP BY k",
    "DSTREAM(SELECT v, w FROM E {window} WHERE v > 0)",
]


def _case(rng: random.Random) -> dict[str, Any]:
    """A stream S, a relation N that changes, before START too and often where an element comes, and slices."""
    start = rng.choice([0, 0, 4, -3])
    end = start + rng.randint(4, 14)
    rows = [
        [rng.randint(start - 2, end), [rng.choice([1, 1, 2, None]), rng.randint(0, 3)]]
        for _ in range(rng.randint(0, 15))
    ]
    changes, held = [], []
    ticks = [rng.randint(start - 4, end) for _ in range(rng.randint(0, 9))]
    for tick in sorted(ticks + [tick for tick, _ in rows if rng.random() < 0.4]):
        if held and rng.random() < 0.4:
            changes.append([tick, "-", held.pop(rng.randrange(len(held)))])
        else:
            held.append([rng.choice([1, 1, 2, None]), rng.choice(["a", "b"])])
            changes.append([tick, "+", held[-1]])
    cuts = sorted({rng.randint(start, end) for _ in range(3)} | {end})
    return {
        "streams": {"S": {"columns": {"k": "int", "v": "int"}, "rows": rows}},
        "relations": {"N": {"columns": {"j": "int", "w": "string"}, "changes": changes, "retroactive": False}},
        "start_at": start,
        "heartbeats": cuts,
    }


def _enriched(case: dict[str, Any], left: bool) -> list[list[Any]]:
    """The elements of S with what N held from changes before each."""
    rows = []
    for tick, (k, v) in case["streams"]["S"]["rows"]:
        contents: Counter[tuple] = Counter()
        for at, sign, record in case["relations"]["N"]["changes"]:
            if at < tick:
                contents[tuple(record)] += 1 if sign == "+" else -1
        found = [(j, w) for j, w in contents.elements() if j is not None and j == k]
        rows += [[tick, [k, v, j, w]] for j, w in found or ([(None, None)] if left else [])]
    return rows


def _check(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    case, left = _case(rng), rng.random() < 0.5
    window, query = rng.choice(WINDOWS), rng.choice(QUERIES)
    join = f"S {window} {'LEFT ' if left else ''}JOIN N ON k = j"
    case["query"] = query.replace("E {window}", join)
    columns = {"k": "int", "v": "int", "j": "int", "w": "string"}
    twin = {
        "streams": {"E": {"columns": columns, "rows": _enriched(case, left)}},
        "query": query.replace("{window}", window),
        "start_at": case["start_at"],
        "heartbeats": case["heartbeats"],
    }
    wanted = expected(twin)
    slicings = [case, one_slice(case), reslice(case, rng)]
    # another slicing may end apart: only cases that end together are compared
    slicings = [s for s in slicings if _end(s) == _end(case)]
    for sliced, result in zip(slicings, replay(map(json.dumps, slicings), spark), strict=True):
        wrong = difference(wanted, result, MEMBERS)
        assert not wrong, f"seed {seed}; as a replay line:\n{json.dumps(sliced)}\n{wrong}"


def _end(case: dict[str, Any]) -> int:
    given = case["heartbeats"]
    ends = [[h for h in v if h is not None][-1] for v in given.values()] if isinstance(given, dict) else [given[-1]]
    return min(ends)


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(6))
def test_enriched_elements(spark: SparkSession, seed: int):
    _check(spark, seed)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_enriched_elements(spark: SparkSession, seed: int):
    _check(spark, seed)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("retroactive", "first", "relation"),
    [
        (False, 0, [[3, 7, [3, 100]], [5, 9, [5, 100]], [6, 10, [6, 200]]]),
        (False, -1, [[0, 4, [0, 100]], [3, 7, [3, 100]], [5, 9, [5, 100]], [6, 10, [6, 200]]]),
        (True, 0, [[0, 4, [0, 100]], [3, 5, [3, 100]], [5, 7, [3, 200]], [5, 9, [5, 200]], [6, 10, [6, 200]]]),
    ],
)
def test_the_example_of_the_documentation(spark: SparkSession, retroactive: bool, first: int, relation: list[Any]):
    """docs/relations.md, by hand: an element sees what changed before its instant, not at it."""
    changes = [[first, "+", [1, 100]], [5, "-", [1, 100]], [5, "+", [1, 200]]]
    columns = {"k": "int", "price": "int"}
    case = {
        "streams": {"s": {"columns": {"k": "int"}, "rows": [[tick, [1]] for tick in (0, 3, 5, 6)]}},
        "relations": {"prices": {"columns": columns, "changes": changes, "retroactive": retroactive}},
        "query": "SELECT s.ts AS at, price FROM s [Range 3] JOIN prices ON s.k = prices.k",
        "heartbeats": [4, 20],
    }
    [result] = replay([json.dumps(case)], spark)
    assert sorted(result["relation"]) == relation
