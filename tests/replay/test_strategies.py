"""Law S4: how ends travel changes no result. Each strategy gives row for row the same."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from sweeparea.operators.plan.encoding import DELTA, STRATEGIES
from sweeparea.operators.plan.node import Node
from sweeparea.operators.time.ticks import INF
from sweeparea.spark_jobs.cases.replay import replay
from sweeparea.spark_jobs.evaluation.evaluate import Evaluation
from tests.replay.compare import MEMBERS, difference
from tests.replay.generate import generate
from tests.replay.oracle import expected
from tests.replay.test_cases import FILES, cases
from tests.replay.test_rewrites import BASE, R, S, T

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERIES = [
    # joins over windows that are read again, over held sides, DISTINCT, and one window that two readers share
    "SELECT DISTINCT p.a, q.c FROM S [Range 3] p, T [Range 4] q, S [Range 3] r WHERE p.a = q.a AND q.a = r.a",
    # a difference of known ends under a group-by, and what a window shows later
    "SELECT a, COUNT(*) AS n, MAX(a) AS most FROM (SELECT a FROM S [Range 3 Slide 2 Lag 2] EXCEPT ALL"
    " SELECT a FROM T [Range 2]) e GROUP BY a",
    # outer and anti joins, by sums and by counts, with a relation that changes
    "SELECT S.a, c, d FROM S [Range 5] LEFT JOIN T [Range 3] ON S.a = T.a LEFT JOIN R ON S.a + 0 < R.a"
    " WHERE NOT EXISTS (SELECT 1 FROM T [Range 1] t WHERE t.a = S.a)",
    # row windows, a session, an inner stream, expansion
    "SELECT MEDIAN(p.a) AS m, COUNT(*) AS n FROM (SELECT ISTREAM(a) FROM S [Range 2]) [Range 3] p, T [Rows 2] q,"
    " T [Session 2] r WHERE p.a <= q.a",
]


def _strategies(case: dict[str, Any]) -> list[str]:
    return [json.dumps({**case, "strategy": strategy}) for strategy in STRATEGIES]


def _same(case: dict[str, Any], spark: SparkSession) -> list[dict[str, Any]]:
    results = list(replay(_strategies(case), spark))
    for strategy, result in zip(STRATEGIES, results, strict=True):
        wrong = difference(results[0], result, MEMBERS)
        assert not wrong, f"{strategy} differs from upa:\n{json.dumps({**case, 'strategy': strategy})}\n{wrong}"
    return results


@pytest.mark.spark
@pytest.mark.parametrize(
    "query", [pytest.param(q, marks=[pytest.mark.slow] if i != 1 else [], id=str(i)) for i, q in enumerate(QUERIES)]
)
def test_strategies_give_the_same(spark: SparkSession, query: str):
    upa, *_ = _same({**BASE, "name": query, "query": query, "heartbeats": [3, 6, 14]}, spark)
    assert upa["relation"], upa


@pytest.mark.spark
def test_under_negative_no_edge_carries_an_end(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    told: list[tuple[str, int]] = []
    whole = Evaluation.new

    def watched(self: Evaluation, node: Node) -> DataFrame | None:
        first = node not in seen
        seen.append(node)
        bag = whole(self, node)
        if first and bag is not None and self.slice.edges.encoding(node) == DELTA:
            told.append((type(node).__name__, bag.where(f"__te < {INF}L OR __ts > {self.slice.h1}L").count()))
        return bag

    seen: list[Node] = []
    monkeypatch.setattr(Evaluation, "new", watched)
    case = {"name": "one", "streams": {"S": S, "T": T}, "relations": {"R": R}, "heartbeats": [14],
            "strategy": "negative"}  # fmt: skip
    [result] = replay([json.dumps({**case, "query": QUERIES[1]})], spark)
    assert result["relation"], result
    assert {name for name, _ in told} == {"Window", "Project", "Difference", "Aggregate"}
    assert not [name for name, ends in told if ends]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("file", [f for f in FILES if not f.stem.startswith("error_")], ids=lambda f: f.stem)
def test_cases_under_each_strategy(spark: SparkSession, file: Any):
    for case in cases(file):
        for strategy, result in zip(STRATEGIES, replay(_strategies(case), spark), strict=True):
            wrong = difference(case["expected"], result, MEMBERS)
            assert not wrong, f"{case['name']}, {strategy}\n{wrong}"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(40_000, 40_040))
def test_random_cases_under_each_strategy(spark: SparkSession, seed: int):
    case = generate(random.Random(seed), rows=10)
    wrong = difference(expected(case), _same(case, spark)[0], MEMBERS)
    assert not wrong, f"seed {seed}; as a replay line:\n{json.dumps(case)}\n{wrong}"
