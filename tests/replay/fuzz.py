"""``python -m tests.replay.fuzz --seed S --n N``: random cases against the oracle until one fails; prints it, shrunk.

Hypothesis draws and shrinks the case; afterwards rows, heartbeats and inputs are dropped as long as it still fails. The
output is a replay line, what was expected and what came. Exit code 1 if a case failed.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from sweeparea.spark_jobs.replay import replay
from sweeparea.spark_jobs.session import spark_session
from tests.replay.compare import MEMBERS, broken_law, difference
from tests.replay.generate import generate
from tests.replay.oracle import Oracle, expected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Mismatch(AssertionError):
    pass


def wrong(case: dict[str, Any], spark: SparkSession) -> str:
    """What the engine gets wrong about a case; empty if nothing."""
    result = next(iter(replay([json.dumps(case)], spark)))
    found = difference(expected(case), result, MEMBERS)
    return found or ("" if "error" in result else broken_law(result, Oracle(case).tick))


def _smaller(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The case with one thing less."""
    for group, member in (("streams", "rows"), ("relations", "changes")):
        for name in case.get(group, ()):
            without = copy.deepcopy(case)
            del without[group][name]
            if isinstance(without["heartbeats"], dict):
                del without["heartbeats"][name]
            yield without
            for i in range(len(case[group][name][member])):
                without = copy.deepcopy(case)
                del without[group][name][member][i]
                yield without
    if isinstance(case["heartbeats"], list):
        for i in range(len(case["heartbeats"])):
            yield {**case, "heartbeats": case["heartbeats"][:i] + case["heartbeats"][i + 1 :]}
    for member in ("queries", "settings", "relations", "strategy"):
        if member in case:
            yield {k: v for k, v in case.items() if k != member}


def shrink(case: dict[str, Any], spark: SparkSession, tries: int = 120) -> dict[str, Any]:
    """Drops one thing after the other while the case still fails in the same way."""
    error = "error" in wrong(case, spark)
    progress = True
    while progress and tries > 0:
        progress = False
        for candidate in _smaller(case):
            tries -= 1
            if tries <= 0:
                break
            try:
                found = wrong(candidate, spark)
            except Exception:  # the case has become one that the oracle cannot read
                continue
            if found and ("error" in found) == error:
                case, progress = candidate, True
                break
    return case


def fuzz(first: int, n: int, spark: SparkSession, rows: int = 10) -> dict[str, Any] | None:
    """The shrunk first failing case of ``n``, or None."""
    failing: list[dict[str, Any]] = []

    @seed(first)
    @settings(
        max_examples=n,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
        report_multiple_bugs=False,
    )
    @given(st.randoms(use_true_random=False))
    def check(rng: random.Random) -> None:
        case = generate(rng, rows)
        if found := wrong(case, spark):
            failing.append(case)
            raise Mismatch(found)

    try:
        check()
    except Mismatch:
        return shrink(failing[-1], spark)
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.replay.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="where chance starts (default 0)")
    parser.add_argument("--n", type=int, default=100, help="how many cases (default 100; about a second each)")
    options = parser.parse_args()
    with spark_session() as spark:
        case = fuzz(options.seed, options.n, spark)
        if case is None:
            print(f"{options.n} cases from seed {options.seed}: engine and oracle agree on all of them.")
            return 0
        print(json.dumps(case, ensure_ascii=False))
        print(wrong(case, spark))
        return 1


if __name__ == "__main__":
    sys.exit(main())
