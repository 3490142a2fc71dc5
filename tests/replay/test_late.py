"""Law L1: after repair everything is as if every element had been on time, whatever the lateness and the slicing."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from sweeparea.spark_jobs.replay import replay
from tests.replay.compare import MEMBERS, broken_law, difference
from tests.replay.generate import Generator
from tests.replay.late import late
from tests.replay.many_slices import long_case
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
    _check(spark, [CHAIN, *map(_case, range(6))])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("block", range(20))
def test_much_random_lateness(spark: SparkSession, block: int):
    _check(spark, [_case(seed) for seed in range(100 + block * 20, 120 + block * 20)])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(20))
def test_lateness_over_many_slices(spark: SparkSession, seed: int):
    chance = random.Random(seed)
    _check(spark, [late(long_case(chance), chance, 0.1) for _ in range(2)])
