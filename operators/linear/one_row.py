"""The relation that holds one record without columns at every instant: what SELECT without FROM reads.

Valid from START on, it is one row ``[START, INF)`` that the first slice brings and that never ends. No state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import TE, TS, N

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def apply(spark: SparkSession, since: int) -> DataFrame:
    """The one row, valid from ``since`` on."""
    return spark.range(1).selectExpr(f"{since}L AS {TS}", f"{INF}L AS {TE}", f"1L AS {N}")
