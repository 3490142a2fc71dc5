"""Inner join (Kraemer & Seeger 2005, section 3.1 and Algorithm 6): matching records for as long as both are valid.

On signed bags the join is bilinear: counts multiply and intervals intersect. What a slice adds is therefore

    new(L) x (held(R) + new(R))  +  held(L) x new(R)

where held(X) are the rows of X that earlier slices made and that can still match something after h0. Spark's own hash
join does the matching; the interval overlap is part of its condition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeparea.operators.bag import TE, TS, N

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sweeparea.operators.logical import Join

_LEFT, _RIGHT = ("__lts", "__lte", "__ln"), ("__rts", "__rte", "__rn")


def apply(node: Join, left: DataFrame, right: DataFrame) -> DataFrame:
    """Two bags in, the bag of ``node.columns`` out. Where held rows come from is the caller's business."""

    def side(bag: DataFrame, ids: list[str], names: tuple[str, str, str]) -> DataFrame:
        return bag.selectExpr(*ids, *(f"{a} AS {b}" for a, b in zip((TS, TE, N), names, strict=True)))

    ids_left, ids_right = ([c.id for c in x.columns] for x in (node.left, node.right))
    overlap = "__lts < __rte AND __rts < __lte"
    condition = f"({node.condition.sql}) AND {overlap}" if node.condition else overlap
    # as text: a product under a filter is one join to Spark, and needs no Column of the session's own kind
    joined = side(left, ids_left, _LEFT).crossJoin(side(right, ids_right, _RIGHT)).where(condition)
    return joined.selectExpr(
        *ids_left,
        *ids_right,
        f"greatest(__lts, __rts) AS {TS}",
        f"least(__lte, __rte) AS {TE}",
        f"__ln * __rn AS {N}",
    )
