"""Bag union (Kraemer & Seeger 2005, section 3.1): the sum of signed bags is their concatenation. Linear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sweeparea.operators.bag import BAG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sweeparea.operators.logical import Difference, Intersect, UnionAll


def apply(node: UnionAll | Difference | Intersect, bags: Sequence[tuple[int, DataFrame]]) -> DataFrame:
    """``bags`` are (position of the part, its bag); parts known to be empty are left out. No state.

    Of a difference or an intersection it gives the columns and their types.
    """
    renamed = [
        bag.selectExpr(*(f"{a.id} AS {b.id}" for a, b in zip(node.inputs[i].columns, node.outputs, strict=True)), *BAG)
        for i, bag in bags
    ]
    total = renamed[0]
    for other in renamed[1:]:
        total = total.union(other)
    return total
