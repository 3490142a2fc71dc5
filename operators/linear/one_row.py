"""The relation that holds one record without columns at every instant: what SELECT without FROM reads.

Valid from START on, it is one row ``[START, INF)`` that the first slice brings and that never ends. No state.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.plan.edge import MONOTONIC, Edge
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import TE, TS, N

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@stored("OneRow")
@dataclass(frozen=True)
class OneRow(Node):
    """The relation that holds one record without columns at every instant."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return ()

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    def words(self, time: TimeDomain) -> str:
        return "One row"

    def edge(self, below: Sequence[Edge], static: Container[str]) -> Edge:
        return MONOTONIC

    @property
    def looks_back(self) -> int:
        return 0

    def settled(self, static: Container[str]) -> bool:
        return True

    @property
    def readable_again(self) -> bool:
        return True


def apply(spark: SparkSession, since: int) -> DataFrame:
    """The one row, valid from ``since`` on."""
    return spark.range(1).selectExpr(f"{since}L AS {TS}", f"{INF}L AS {TE}", f"1L AS {N}")
