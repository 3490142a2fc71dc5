"""Queries over many slices, whose SweepAreas are merged meanwhile, shared by numbers of workers that change."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sweeparea.operators.state.sweep_area import SweepArea
from sweeparea.spark_jobs.cases.replay import replay
from sweeparea.spark_jobs.evaluation.areas import SweepAreas
from tests.replay.compare import MEMBERS, broken_law, difference
from tests.replay.many_slices import QUERIES, case, long_case, random_case, shared_by
from tests.replay.oracle import Oracle, expected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _check(spark: SparkSession, cases: Sequence[dict[str, Any]]) -> None:
    lines = [json.dumps(one) for one in cases]
    for one, line, result in zip(cases, lines, replay(lines, spark), strict=True):
        wrong = difference(expected(one), result, MEMBERS)
        if not wrong and "error" not in result:
            wrong = broken_law(result, Oracle(one).tick)
        assert not wrong, f"as a replay line:\n{line}\n{wrong}"


def _watched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """(rows in all files, those that count, as they were counted) of each SweepArea at the beginning of each slice."""
    seen, keyed = [], SweepAreas.keyed

    def watched(areas: SweepAreas, op: str, *given: Any) -> SweepArea:
        area = keyed(areas, op, *given)
        rows = [pq.read_table(file.path).cast(area.stored) for file in area.files]
        everything = pa.concat_tables([area.stored.empty_table(), *rows])
        counted = replace(area, partitions=1).held(everything).num_rows
        seen.append((everything.num_rows, counted, areas.counts.get(op, 0)))
        return area

    monkeypatch.setattr(SweepAreas, "keyed", watched)
    return seen


@pytest.mark.spark
@pytest.mark.parametrize("seeds", [(0, 6, 25), pytest.param((22, 23), marks=pytest.mark.slow)])
def test_groups_and_differences(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, seeds: tuple[int, ...]):
    seen = _watched(monkeypatch)
    with shared_by((1, 2, 3, 2)):
        _check(spark, [case(random.Random(seed), QUERIES[seed], most=12) for seed in seeds])
    assert any(live for _, live, _ in seen)
    assert all(live == counted for _, live, counted in seen)
    # what a slice leaves at most, after the merge of all files and before the next
    assert all(rows <= 4 * live + 8 + 80 for rows, live, _ in seen)


@pytest.mark.spark
def test_no_task_runs_a_sweep_for_two_of_its_workers(spark: SparkSession):
    maps = {"columns": {"k": "map<int,int>", "v": "int"}, "rows": [[2, [[], 1]], [4, [[[2, 2], [1, 1]], 2]]]}
    numbers = {"columns": {"k": "int", "v": "int"}, "rows": [[2, [1, 1]], [4, [2, 2]], [5, [3, 1]], [9, [4, 5]]]}
    # Spark cannot hash a map: one worker has all groups, behind those of W-Expire
    grouped = {
        "streams": {"S": maps},
        "query": "SELECT k, AVG(v) AS a, COUNT(DISTINCT v) AS d FROM S [Range 8] GROUP BY k",
        "strategy": "negative",
        "heartbeats": [3, 20],
    }
    # the stream is all that is kept, so no sweep of its own stands above the two
    streams = {
        "streams": {"S": numbers, "T": numbers},
        "query": "SELECT k FROM (ISTREAM(SELECT DISTINCT k FROM S [Range 3])) AS a"
        " UNION ALL SELECT k FROM (ISTREAM(SELECT DISTINCT k FROM T [Range 2])) AS b",
        "materialize": ["istream"],
        "heartbeats": [4, 20],
    }
    with shared_by((2,)):
        first, second = replay([json.dumps(grouped), json.dumps(streams)], spark)
    assert not difference(expected(grouped), first, MEMBERS)
    assert not difference(expected(streams), second, ("columns", "stream"))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("workers", [(1,), (2,), (1, 2, 3, 1, 3, 2, 2)])
@pytest.mark.parametrize("first", range(0, len(QUERIES) * 3, 6))
def test_many_of_each_kind(spark: SparkSession, first: int, workers: tuple[int, ...]):
    with shared_by(workers):
        _check(spark, [case(random.Random(seed), QUERIES[seed % len(QUERIES)]) for seed in range(first, first + 6)])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(70_000, 70_060, 4))
def test_random_queries(spark: SparkSession, seed: int):
    with shared_by((1, 2, 3)):
        _check(spark, [random_case(random.Random(one)) for one in range(seed, seed + 4)])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(80_000, 80_040, 2))
def test_long_cases(spark: SparkSession, seed: int):
    with shared_by((1, 3, 2)):
        _check(spark, [long_case(random.Random(one)) for one in range(seed, seed + 2)])
