"""Long expressions in Spark: settings under which its time grows with their length, not with the square of it.

Spark's optimizer compares every condition of a conjunction with every other, at every link of the chain
(BooleanSimplification, the inference of constraints), and the search for common subexpressions does so again for each
task. Whole-stage code generation makes one Java method of them all, which takes seconds to compile and is then too
large to be run. What an expression means depends on none of them. `has_many_levels` says which plans need more room
on the stack than Python gives a thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.sharing import nodes
from sweeparea.spark_jobs.spark.held_settings import settings_held

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = 5_000
"""Characters of an expression that is long: some 400 conditions."""
MANY_LEVELS = 40
"""Nodes below one another in a plan: each is some five calls of ours and some ten of Spark Connect's client."""
_RULES = "spark.sql.optimizer.excludedRules"
_SIMPLIFICATION = "org.apache.spark.sql.catalyst.optimizer.BooleanSimplification"
_SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.subexpressionElimination.enabled": "false",
}


def has_long_expressions(plan: Plan) -> bool:
    """Whether one expression of the plan is ``LONG`` or longer."""
    return any(len(each.sql) >= LONG for node in nodes(plan.root) for each in node.expressions())


def has_many_levels(plan: Plan) -> bool:
    """Whether the plan, or what Spark makes of it, nests deeper than Python's calls commonly may."""
    depth: dict[int, int] = {}
    for node in nodes(plan.root):  # inputs first
        depth[id(node)] = 1 + max((depth[id(child)] for child in node.inputs), default=0)
    return depth[id(plan.root)] >= MANY_LEVELS


@contextmanager
def room_for_expressions(spark: SparkSession, plan: Plan) -> Iterator[None]:
    """While inside, ``spark`` is fit for the expressions of ``plan``; when all threads have left it is as it was."""
    if not has_long_expressions(plan):
        yield
        return
    rules = (spark.conf.get(_RULES, "") or "").split(",")
    excluded = [*(rule for rule in rules if rule not in ("", _SIMPLIFICATION)), _SIMPLIFICATION]
    wanted = {**_SETTINGS, _RULES: ",".join(excluded)}
    with settings_held(spark, wanted):
        yield
