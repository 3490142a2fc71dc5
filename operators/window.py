"""Time windows as a map on a stream's bag: each element ``[s, s+1)`` becomes its interval of validity. Linear, no
state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeparea.operators.bag import TE, TS, N

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sweeparea.operators.logical import Window
from sweeparea.operators.windows import TimeWindow


def apply(node: Window, stream: DataFrame) -> DataFrame:
    """Bag of elements in, bag of windowed rows out; elements that are never valid are dropped."""
    ids = [c.id for c in node.columns]
    assert isinstance(node.spec, TimeWindow)  # the others sweep
    start, end = node.spec.sql(TS)
    return stream.selectExpr(*ids, f"{start} AS {TS}", f"{end} AS {TE}", N).where(f"{TS} < {TE}")
