"""``python -m tests.replay.fuzz --seed S --n N``: random cases against the oracle until one fails; prints it, shrunk.

Hypothesis draws and shrinks the case; afterwards rows, heartbeats and inputs are dropped as long as it still fails. The
output is a replay line, what was expected and what came. Exit code 1 if a case failed.

``--long``: cases of 20 to 60 slices instead, that ask for SweepAreas of every layout, with keys of nested types,
and that as many workers run in turn as ``--workers`` says.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from sweeparea.infra.errors import exit_code_of
from sweeparea.spark_jobs.cases.replay import replay
from sweeparea.spark_jobs.spark.session import spark_session
from tests.replay.compare import MEMBERS, broken_law, difference
from tests.replay.generate import generate
from tests.replay.many_slices import long_case, shared_by
from tests.replay.oracle import Oracle, expected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Wrong = Callable[[dict[str, Any], "SparkSession"], str]


class Mismatch(AssertionError):
    pass


def wrong(case: dict[str, Any], spark: SparkSession) -> str:
    """What the engine gets wrong about a case; empty if nothing."""
    result = next(iter(replay([json.dumps(case)], spark)))
    found = difference(expected(case), result, MEMBERS)
    return found or ("" if "error" in result else broken_law(result, Oracle(case).tick))


def wrong_if_shared(counts: Sequence[int]) -> Wrong:
    """As ``wrong``, of cases whose slices so many workers run in turn."""

    def check(case: dict[str, Any], spark: SparkSession) -> str:
        with shared_by(counts):
            return wrong(case, spark)

    return check


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


def shrink(case: dict[str, Any], spark: SparkSession, judge: Wrong = wrong, tries: int = 120) -> dict[str, Any]:
    """Drops one thing after the other while the case still fails in the same way."""
    error = "error" in judge(case, spark)
    progress = True
    while progress and tries > 0:
        progress = False
        for candidate in _smaller(case):
            tries -= 1
            if tries <= 0:
                break
            try:
                found = judge(candidate, spark)
            except Exception:  # the case has become one that the oracle cannot read
                continue
            if found and ("error" in found) == error:
                case, progress = candidate, True
                break
    return case


def fuzz(
    first: int, n: int, spark: SparkSession, made: Callable[[random.Random], dict[str, Any]], judge: Wrong = wrong
) -> dict[str, Any] | None:
    """The shrunk first failing case of the ``n`` that ``made`` makes by chance, or None."""
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
        case = made(rng)
        if found := judge(case, spark):
            if not failing:
                print(f"this one fails and is shrunk now:\n{json.dumps(case, ensure_ascii=False)}", file=sys.stderr)
            failing.append(case)
            raise Mismatch(found)

    try:
        check()
    except Mismatch:
        return shrink(failing[-1], spark, judge)
    return None


def _workers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.replay.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="where chance starts (default 0)")
    parser.add_argument("--n", type=int, default=100, help="how many cases (default 100; about a second each)")
    parser.add_argument("--long", action="store_true", help="cases of many slices (about ten seconds each)")
    parser.add_argument(
        "--workers", type=_workers, default=(1, 2, 3), help="with --long: how many run a slice, in turn (default 1,2,3)"
    )
    options = parser.parse_args()
    made, judge = (long_case, wrong_if_shared(options.workers)) if options.long else (partial(generate, rows=10), wrong)
    with spark_session() as spark:
        case = fuzz(options.seed, options.n, spark, made, judge)
        if case is None:
            print(f"{options.n} cases from seed {options.seed}: engine and oracle agree on all of them.")
            return 0
        print(json.dumps(case, ensure_ascii=False))
        print(judge(case, spark))
        return 1


if __name__ == "__main__":
    sys.exit(exit_code_of(main, "run the same command again"))
