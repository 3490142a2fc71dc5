"""Bag union: UNION ALL.

Definition (Kraemer & Seeger 2005, section 3.2.8, eq. 8; Patroumpas & Sellis 2006, section 4.1): the copies of a record
add up. The sum of signed bags is their concatenation, so it is linear; where Kraemer & Seeger's Algorithm 9 waits to
keep elements in order, a slice's bag has none. Golab & Oezsu 2005, section 5.2, rule 2: the more complex of the inputs'
update patterns.

Columns in: each input's record, ``__ts``, ``__te``, ``__n``. Columns out: ``node.columns``, which the inputs' fill by
position, ``__ts``, ``__te``, ``__n``. SweepArea: none. Spark concatenates; what it is asked for, with text in the place
of DataFrames:

>>> from sweeparea.operators.plan.logical import Column, RelationScan, UnionAll
>>> class Asked(str):
...     def selectExpr(self, *columns):
...         return Asked(f"{self}({', '.join(columns)})")
...     def union(self, other):
...         return Asked(f"{self} + {other}")
>>> parts = [RelationScan(name, ((Column(c, "v"), "v"),)) for name, c in (("R", "c0"), ("S", "c1"))]
>>> print(apply(UnionAll(tuple(parts), (Column("c2", "v"),)), [(0, Asked("R")), (1, Asked("S"))]))
R(c0 AS c2, __ts, __te, __n) + S(c1 AS c2, __ts, __te, __n)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sweeparea.operators.values.bag import BAG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sweeparea.operators.plan.logical import Difference, Intersect, UnionAll


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
