"""What is accepted without Spark is accepted by Spark's analyzer: no slice fails on types later."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from sweeparea.cql.binder import bind_select
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.deployment.analysis import faults_of
from tests.cql.typed_expressions import INPUT, Expressions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _wrongly_accepted(spark: SparkSession, seed: int, wanted: int) -> list[str]:
    """Of so many queries that the binder takes, those that Spark refuses, with what it says."""
    made, taken, wrong = Expressions(Random(seed)), 0, []
    while taken < wanted:
        text = made.query(made.random.randint(1, 3))
        try:
            plan = bind_select(text, INPUT)
        except SweepAreaError:
            continue
        taken += 1
        wrong += [f"{text}\n  {fault}" for fault in faults_of(spark, plan.root)]
    return wrong


@pytest.mark.spark
def test_what_is_accepted_has_types_that_fit(spark: SparkSession):
    wrong = _wrongly_accepted(spark, seed=1, wanted=40)
    assert not wrong, "\n".join(wrong)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_what_is_accepted_has_types_that_fit_at_length(spark: SparkSession, seed: int):
    wrong = _wrongly_accepted(spark, seed, wanted=1000)
    assert not wrong, "\n".join(wrong)
