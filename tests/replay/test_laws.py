"""Laws S1, S2, R1 and R2 on random cases: in any slicing the engine gives what plain SQL gives at every instant."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from sweeparea.spark_jobs.cases.replay import replay
from tests.replay.compare import MEMBERS, broken_law, difference
from tests.replay.generate import generate
from tests.replay.oracle import Oracle, expected
from tests.replay.slicing import one_slice, reslice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(2005, 2011)


def _check(spark: SparkSession, seed: int) -> None:
    chance = random.Random(seed)
    case = generate(chance, rows=10)
    slicings: list[dict[str, Any]] = [case, one_slice(case), reslice(case, chance)]
    wanted = expected(case)
    for sliced, result in zip(slicings, replay(map(json.dumps, slicings), spark), strict=True):
        wrong = difference(wanted, result, MEMBERS)
        if not wrong and "error" not in result:
            wrong = broken_law(result, Oracle(case).tick)
        assert not wrong, f"seed {seed}; as a replay line:\n{json.dumps(sliced)}\n{wrong}"


@pytest.mark.spark
@pytest.mark.parametrize("seed", SEEDS)
def test_laws_hold_for_random_cases(spark: SparkSession, seed: int):
    _check(spark, seed)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(10_000, 10_150))
def test_laws_hold_for_many_random_cases(spark: SparkSession, seed: int):
    _check(spark, seed)
