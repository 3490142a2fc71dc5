"""Law L1: after repair everything is as if every element had been on time, whatever the lateness and the slicing."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from sweeparea.operators.state import open_rows
from sweeparea.spark_jobs.cases.replay import replay
from sweeparea.spark_jobs.rewriting import repair
from tests.replay.compare import MEMBERS, broken_law, difference
from tests.replay.generate import Generator
from tests.replay.late import late
from tests.replay.many_slices import long_case, shared_by
from tests.replay.oracle import Oracle, expected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHAIN = {
    "streams": {
        "S": {
            "columns": {"k": "int", "v": "int"},
            "late": "repair",
            "rows": [[1, [1, 10]], [4, [2, 7]], [8, [1, 1]], [20, [1, 2]], [31, [2, 4]]],
            "arrivals": [[2, 3, [1, 5]], [3, 9, [2, 1]], [3, 30, [2, 4]]],
        }
    },
    "queries": [
        {"name": "a", "query": "SELECT k, SUM(v) AS s FROM S [Range 5] GROUP BY k"},
        {"name": "b", "query": "SELECT s, COUNT(*) AS n FROM a GROUP BY s"},
    ],
    "query": "SELECT n, s FROM b__istream [Range 4] WHERE s > 1",
    "heartbeats": [5, 10, 25, 40],
}
"""A query over a materialization of a query over a query: corrections are passed on."""


@pytest.fixture(autouse=True)
def leaves(monkeypatch):
    """Even a few open rows lie in several files."""
    monkeypatch.setattr(open_rows, "LEAF_ROWS", 2)
    monkeypatch.setattr(open_rows, "FRESH_ROWS", 2)


def _check(spark: SparkSession, cases: list[dict]) -> None:
    lines = [json.dumps(case) for case in cases]
    for case, line, result in zip(cases, lines, replay(lines, spark), strict=True):
        on_time = {**case, "streams": {name: _on_time(s) for name, s in case["streams"].items()}}
        wrong = difference(expected(on_time), result, MEMBERS)
        if not wrong and "error" not in result:
            wrong = broken_law(result, Oracle(on_time).tick)
        assert not wrong, f"as a replay line:\n{line}\n{wrong}"


def _on_time(stream: dict) -> dict:
    rows = [*stream["rows"], *(row for _, *row in stream.get("arrivals", ()))]
    return {**stream, "rows": rows, "arrivals": [], "late": "reject"}


def _case(seed: int, rows: int = 12) -> dict:
    chance = random.Random(seed)
    return late(Generator(chance, rows).case(), chance)


@pytest.mark.spark
def test_random_lateness(spark: SparkSession):
    _check(spark, [CHAIN, *map(_case, range(2))])


@pytest.mark.spark
def test_however_many_workers_share_a_slice(spark: SparkSession):
    with shared_by((3, 1, 2)):
        _check(spark, [CHAIN, _case(100), *map(_keyed_case, range(2))])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("block", range(8))
def test_however_many_workers_share_a_slice_of_many_cases(spark: SparkSession, block: int):
    with shared_by((3, 1, 2)):
        _check(spark, [*map(_case, range(1000 + 5 * block, 1005 + 5 * block)), *map(_keyed_case, range(5))])


KEYED = (
    "SELECT k, v FROM S [Partition By k Rows 2]",
    "SELECT k, SUM(v) AS s, MIN(v) AS m FROM S GROUP BY k",
    "SELECT a.k, a.v, b.v AS u FROM S [Partition By k Rows 1] AS a JOIN T [Range 5] AS b ON a.k = b.k",
    "SELECT a.k, a.v, b.v AS u FROM S AS a LEFT JOIN T [Range 6] AS b ON a.k = b.k",
    "SELECT k, COUNT(*) AS n FROM S [Session 3 Partition By k] GROUP BY k",
    "SELECT DISTINCT k, v FROM S",
    "SELECT k, v FROM S EXCEPT ALL SELECT k, v FROM T [Range 4]",
    "SELECT k, v FROM S WHERE NOT EXISTS (SELECT 1 FROM T [Range 9] AS t WHERE t.k = S.k)",
    "SELECT k, v, COUNT(*) OVER (PARTITION BY k) AS n FROM S [Range 7]",
    "SELECT k, COUNT(*) AS n FROM (ISTREAM(SELECT k, MAX(v) AS v FROM S GROUP BY k)) [Range 6] AS q GROUP BY k",
    "SELECT k, v FROM S [Tumbling When (v > 2) Partition By k]",
    "SELECT k, v FROM S UNION ALL SELECT k, 0 AS v FROM T [Partition By k Rows 1]",
)
"""Of each the result of a key rests on rows with that key."""


def _keyed_case(seed: int) -> dict:
    chance = random.Random(seed)
    query = KEYED[seed % len(KEYED)]
    kind, pool = chance.choice([("int", [1, 2, 3, None]), ("string", ["a", "", "é'", None])])

    def rows() -> list:
        return [[chance.randint(0, 30), [chance.choice(pool), chance.choice([1, 2, 3, None])]] for _ in range(14)]

    streams = {n: {"columns": {"k": kind, "v": "int"}, "rows": rows()} for n in "ST" if f" {n} " in f"{query} "}
    ends = sorted(chance.sample(range(30), 4))
    case = {
        "streams": streams,
        "query": query,
        "heartbeats": [*ends, 40],
        "strategy": chance.choice(["upa", "negative"]),
    }
    return late(case, chance, 0.15)


def _only_some_keys(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, seeds: range) -> int:
    """Checks cases whose repairs compute the keys that were touched alone; how many repairs did."""
    used = []
    monkeypatch.setattr(repair, "FEW_ROWS", -1)
    exchanged = repair._exchanged

    def counted(shadow, *given):
        done = exchanged(shadow, *given)
        used.append(shadow.only is not None)
        return done

    monkeypatch.setattr(repair, "_exchanged", counted)
    _check(spark, [_keyed_case(seed) for seed in seeds])
    return sum(used)


@pytest.mark.spark
def test_only_the_keys_that_are_touched_are_computed(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    assert _only_some_keys(spark, monkeypatch, range(4)) > 3


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("block", range(6))
def test_only_some_keys_of_many_queries(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, block: int):
    assert _only_some_keys(spark, monkeypatch, range(12 * block, 12 * block + 12))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("block", range(20))
def test_much_random_lateness(spark: SparkSession, block: int):
    _check(spark, [_case(seed) for seed in range(100 + block * 20, 120 + block * 20)])


@pytest.mark.slow
@pytest.mark.spark
def test_more_random_lateness(spark: SparkSession):
    _check(spark, [_case(seed) for seed in range(2, 4)])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(20))
def test_lateness_over_many_slices(spark: SparkSession, seed: int):
    chance = random.Random(seed)
    _check(spark, [late(long_case(chance), chance, 0.1) for _ in range(2)])
