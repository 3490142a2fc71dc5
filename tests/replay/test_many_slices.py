"""Queries over many slices, whose SweepAreas are merged meanwhile, shared by numbers of workers that change."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from sweeparea.spark_jobs import slice as slices
from sweeparea.spark_jobs.replay import replay
from tests.replay.compare import MEMBERS, broken_law, difference
from tests.replay.many_slices import QUERIES, Workers, case, random_case
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


def _share(monkeypatch: pytest.MonkeyPatch, *counts: int) -> None:
    workers = Workers(*counts)
    monkeypatch.setattr(slices, "SMALL_SLICE", workers)
    monkeypatch.setattr(slices, "ROWS_PER_PARTITION", workers)
