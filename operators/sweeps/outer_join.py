"""Left and full outer join (and the right one, with its sides exchanged).

Definition, at every instant: the inner join, and each copy of a left record without a match, with NULL for the right
record; of the full outer join also each copy of a right record without a match. The condition is any, three-valued as
in SQL. Columns out: both records, ``__ts``, ``__te``, ``__n``.

    L left R  =  L join R  +  pad(L anti R)
    L full R  =  L join R  +  pad(L anti R)  +  pad(R anti L)

SweepArea: that of the inner join and of each anti join (``semi_join.py``). Expiry is unknown: the first match takes the
padded record back (Golab & Oezsu 2005, section 5.2: a strict non-monotonic operator), and the last one's expiry brings
it again at that very instant.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sweeparea.operators.sweeps.join import Join, JoinKind
from sweeparea.operators.values.bag import BAG
from sweeparea.tables.log.schema import ddl_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def unmatched(node: Join) -> tuple[Join, ...]:
    """The anti joins whose results are padded: that of the left side, of a full outer join that of the right as well.

    >>> from sweeparea.operators.nodes import RelationScan
    >>> [j.left.name for j in unmatched(Join(RelationScan("L", ()), RelationScan("R", ()), kind=JoinKind.FULL))]
    ['L', 'R']
    """
    left = replace(node, kind=JoinKind.ANTI)
    return (left,) if node.kind == JoinKind.LEFT else (left, replace(left, left=node.right, right=node.left))


def pad(node: Join, bag: DataFrame, like: DataFrame) -> DataFrame:
    """``bag`` of one side's records with NULL for the other side's. ``like`` has the types of the result's columns."""
    types = {f.name: ddl_type(f.dataType) for f in like.schema}
    has = set(bag.columns)
    columns = (c.id if c.id in has else f"CAST(NULL AS {types[c.id]}) AS {c.id}" for c in node.columns)
    return bag.selectExpr(*columns, *BAG)
