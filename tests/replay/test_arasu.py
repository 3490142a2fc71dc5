"""Arasu et al. 2003: queries that are one and the same by sections 5.1, 7.1 and 7.2, run as they are written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sweeparea.spark_jobs.cases.replay import replay
from tests.replay.test_rewrites import BASE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW_OF_S = "SELECT a, x FROM S [Now] WHERE a = 1"
PAIRS = {
    "7.2.1 window reduction": (
        "ISTREAM(SELECT a, x FROM S [Range Unbounded] WHERE a = 1)",
        f"RSTREAM({NOW_OF_S} EVERY 1)",
    ),
    "a stream is the Rstream of now, and the Istream of all of it": (
        "SELECT ISTREAM(a, x) FROM (RSTREAM(SELECT * FROM S [Now] EVERY 1)) [Range Unbounded] AS s",
        "SELECT ISTREAM(a, x) FROM S [Range Unbounded]",
    ),
    "7.2.2 filter-window commutativity": (
        "DSTREAM(SELECT a FROM (SELECT a, x FROM S WHERE x IS NOT NULL) [Range 3] AS s)",
        "DSTREAM(SELECT a FROM S [Range 3] WHERE x IS NOT NULL)",
    ),
    "7.1 a stream-only operator is Rstream over Now windows": (
        "ISTREAM(SELECT S.a, c, S.ts AS at FROM S [Now], T [Now] WHERE S.a = T.a)",
        "SELECT ISTREAM(a, c, at) FROM (RSTREAM(SELECT S.a, c, S.ts AS at FROM S [Now], T [Now] WHERE S.a = T.a"
        " EVERY 1)) [Now] AS j",
    ),
    "5.1 Rstream alone is enough: Istream is what is there now and was not a tick ago": (
        "ISTREAM(SELECT a FROM S [Range 3])",
        "RSTREAM(SELECT a FROM (RSTREAM(SELECT a FROM S [Range 3] EVERY 1)) [Now] AS now EXCEPT ALL"
        " SELECT a FROM (RSTREAM(SELECT a FROM S [Range 3] EVERY 1)) [Range 1 Lag 1] AS before EVERY 1)",
    ),
}


@pytest.mark.spark
@pytest.mark.parametrize(
    "pair", [pytest.param(p, marks=[pytest.mark.slow] if i else [], id=p) for i, p in enumerate(PAIRS)]
)
def test_queries_of_a_pair_give_the_same_stream(spark: SparkSession, pair: str):
    cases = [
        json.dumps({**BASE, "name": q, "query": q, "heartbeats": cuts, "settings": {"rewrites": "none"}})
        for q, cuts in zip(PAIRS[pair], ([3, 14], [6, 14]), strict=True)
    ]
    one, other = (result.get("stream", result) for result in replay(cases, spark))
    assert one
    assert one == other
