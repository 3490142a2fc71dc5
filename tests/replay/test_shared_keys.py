"""Keys that several workers share (``operators/hot_keys.py``), through whole queries against the oracle."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from sweeparea.operators.hot_keys import StretchesTask
from sweeparea.spark_jobs.cases.replay import replay
from sweeparea.spark_jobs.evaluation import hot_keys
from tests.replay.compare import MEMBERS, difference
from tests.replay.many_slices import shared_by
from tests.replay.oracle import expected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = (
    "SELECT k, SUM(v) AS s, AVG(v) AS a, MIN(v) AS m, COUNT(*) AS n FROM S [Range 8] GROUP BY k",
    "SELECT k, COUNT(*) AS n, COUNT(DISTINCT v) AS d, COUNT(DISTINCT v) FILTER (WHERE v > 1) AS e,"
    " COUNT(DISTINCT v % 2) AS f, MAX(v) AS m FROM S [Range 9] GROUP BY k",
    "SELECT COUNT(DISTINCT v) AS d, SUM(v) AS s, COUNT(DISTINCT k) AS e FROM S",
    "SELECT SUM(v) AS s, MAX(v) AS m, COUNT(*) AS n FROM S [Range 5]",
    "SELECT k, v, r FROM (SELECT k, v, RANK() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM S [Range 7]) AS q"
    " WHERE r <= 2",
    # groups whose rows are taken back
    "SELECT n, COUNT(*) AS c, COUNT(DISTINCT s) AS d FROM (SELECT k, COUNT(*) AS n, SUM(v) AS s FROM S [Range 6]"
    " GROUP BY k) AS q GROUP BY n",
)


def _case(rng: random.Random, query: str, heartbeats: list[int]) -> dict[str, Any]:
    """Bursts of rows, two of three of one key."""
    ticks = sorted(rng.randint(0, 40) for _ in range(60))
    rows = [[tick, [rng.choice([1, 1, 2, None]), rng.choice([1, 2, 3, 4, None])]] for tick in ticks]
    return {
        "streams": {"S": {"columns": {"k": "int", "v": "int"}, "rows": rows}},
        "query": query,
        "heartbeats": heartbeats,
    }


def _check(spark: SparkSession, seeds: range, heartbeats: list[int]) -> None:
    cases = [_case(random.Random(seed), query, heartbeats) for seed in seeds for query in QUERIES]
    lines = [json.dumps(case) for case in cases]
    for case, line, result in zip(cases, lines, replay(lines, spark), strict=True):
        wrong = difference(expected(case), result, MEMBERS)
        assert not wrong, f"as a replay line:\n{line}\n{wrong}"


@pytest.mark.spark
def test_workers_that_share_keys_find_what_the_definition_says(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    plain, found = hot_keys.divided, []

    def noted(*given: Any) -> StretchesTask | None:
        found.append((given[3], plain(*given)))
        return found[-1][1]

    monkeypatch.setattr(hot_keys, "divided", noted)
    with shared_by((3, 2)):
        _check(spark, range(1), [20, 60])
    made = [(sweep, task) for sweep, task in found if task is not None]
    assert {bool(sweep.keys) for sweep, _ in made} == {False, True}
    assert {sweep.values is None for sweep, _ in made} == {False, True}
    assert any(len([pair for pairs in task.stretches for pair in pairs]) > 2 for _, task in made)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("first", range(10, 40, 5))
def test_many_cases_of_keys_that_workers_share(spark: SparkSession, first: int):
    with shared_by((3, 1, 2, 5)):
        _check(spark, range(first, first + 5), [9, 10, 25, 26, 41, 60])
