"""What a query keeps changes how it is computed, never what: each table is as if all were kept."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from sweeparea.spark_jobs.cases.replay import replay
from tests.replay.compare import difference
from tests.replay.generate import Generator
from tests.replay.oracle import expected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT = (["istream"], ["dstream"], ["istream", "dstream"], ["relation"], ["relation", "dstream"])
GROUPED = (
    "SELECT k, SUM(v) AS s, COUNT(*) AS n FROM S [Range 5] GROUP BY k",
    "SELECT SUM(v) AS s FROM S [Range 3] GROUP BY k",
    "SELECT k, MIN(v) AS m FROM S [Range 4 Slide 2] GROUP BY k HAVING MIN(v) > 1",
    "SELECT COUNT(*) AS n, SUM(v) AS s FROM S [Range 6]",
    "SELECT k, MAX(d) AS m, SUM(d) AS s FROM S [Now] GROUP BY k",
    "SELECT d, COUNT(v) AS n FROM S [Partition By k Rows 2] GROUP BY d",
    "SELECT k, SUM(v) AS s FROM S GROUP BY k",
    "SELECT s AS z, k FROM (SELECT k, SUM(v) AS s FROM S [Range 5] GROUP BY k) AS q WHERE s <> 3",
)
"""Groups' results are told without looking for equal ones where none can be."""


def _grouped(seed: int) -> dict:
    chance = random.Random(seed)
    rows = [
        [
            chance.randint(0, 25),
            [
                chance.choice([1, 2, None]),
                chance.choice([1, 2, -1, None]),
                chance.choice([0.0, -0.0, "NaN", 1.5, None]),
            ],
        ]
        for _ in range(14)
    ]
    ends = sorted(chance.sample(range(26), 3))
    return {
        "streams": {"S": {"columns": {"k": "int", "v": "int", "d": "double"}, "rows": rows}},
        "query": GROUPED[seed % len(GROUPED)],
        "heartbeats": chance.choice([[40], [*ends, 40]]),
        "strategy": chance.choice(["upa", "negative", "direct"]),
    }


def _check(spark: SparkSession, cases: list[dict]) -> None:
    for number, case in enumerate(cases):
        case["materialize"] = KEPT[number % len(KEPT)]
    lines = [json.dumps(case) for case in cases]
    for case, line, result in zip(cases, lines, replay(lines, spark), strict=True):
        members = ("columns", *(m for m in case["materialize"] if m in result))
        wrong = difference(expected(case), result, members)
        assert not wrong, f"as a replay line:\n{line}\n{wrong}"
        assert "error" in result or set(case["materialize"]) <= result.keys()


@pytest.mark.spark
def test_whatever_is_kept(spark: SparkSession):
    _check(spark, [*map(_grouped, range(8)), *(Generator(random.Random(seed), 10).case() for seed in range(2))])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("block", range(10))
def test_whatever_is_kept_of_many_queries(spark: SparkSession, block: int):
    seeds = range(1000 + 20 * block, 1020 + 20 * block)
    _check(spark, [*map(_grouped, seeds), *(Generator(random.Random(seed), 12).case() for seed in seeds)])
