"""Inner join and product: matching records for as long as both are valid.

Definition, at every instant (Kraemer & Seeger 2005, section 3.2.3, eq. 3, and 3.4, eq. 11; Patroumpas & Sellis 2006,
section 4.1): a pair of records for which the condition is TRUE has n1 * n2 copies. On signed bags the join is
bilinear: counts multiply and intervals intersect. What a slice adds is therefore

    new(L) x (held(R) + new(R))  +  held(L) x new(R)

where held(X) are the rows of X that earlier slices made and that can still match something after h0: the ripple join of
Kraemer & Seeger's Algorithm 5, a slice at a time. Spark's own hash join does the matching; the interval overlap is part
of its condition. A negative tuple meets what its element has met, and takes that back (Hammad et al., sections 4.5 and
4.6).

Columns in: each side's record, ``__ts``, ``__te``, ``__n``. Columns out: both records, ``__ts``, ``__te``, ``__n``.

SweepArea: of each side the rows that are valid after h1, and only while the other side can still bring new ones (a
static relation cannot); none where they can be read again from the inputs (``patterns.readable_again``), else a log by
expiry (``expiry_log.py``). No row waits for order: a slice's bag has none.

What Spark is asked for, with text in the place of DataFrames:

>>> from sweeparea.operators.plan.logical import Column, Expr, Join, RelationScan
>>> class Asked(str):
...     def selectExpr(self, *columns):
...         return Asked(f"SELECT {', '.join(columns)} FROM ({self})") if "JOIN" in self else self
...     def crossJoin(self, other):
...         return Asked(f"{self} JOIN {other}")
...     def where(self, condition):
...         return Asked(f"{self} ON {condition}")
>>> left, right = (RelationScan(name, ((Column(c, "v"), "v"),)) for name, c in (("L", "a"), ("R", "b")))
>>> print(apply(Join(left, right, Expr("a = b", columns=frozenset("ab"))), Asked("L"), Asked("R")))
SELECT a, b, greatest(__lts, __rts) AS __ts, least(__lte, __rte) AS __te, __ln * __rn AS __n FROM (L JOIN R ON (a = b) \
AND __lts < __rte AND __rts < __lte)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeparea.operators.values.bag import TE, TS, N

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sweeparea.operators.plan.logical import Join

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
