"""Join of a stream with a non-retroactive relation: each element with what the relation held just before it.

Definition (Golab & Oezsu 2005, section 4.1, the NRR join; semantics, section 8): an element at s is joined with the
relation's contents from changes with timestamp < s. Later changes undo nothing, so the result is a stream again, whose
elements have the instants of the stream's; no negative tuple ever leaves, whatever happens to the relation.

Columns in: the stream's record with ``__ts``, ``__te``, ``__n``; the relation's with ``__from``, ``__to``: the
intervals of its history, with ``__copies``. Columns out: both records, ``__ts``, ``__te``, ``__n``; of the left
join the relation's are NULL where it held no match.

SweepArea: the relation's contents and no element: all changes before s are known when s is processed. A static
relation has none, it is read anew.

>>> changes = pa.table({"r": ["x", "x"], "__ts": [1, 4], "__te": [1 << 62, 1 << 62], "__n": [1, -1]})
>>> held, carry = intervals(changes, 0, 9, ["r"])
>>> [tuple(row.values()) for row in held.to_pylist()], carry.num_rows
([('x', 1, 4, 1)], 0)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators.sweeps import relation_to_stream as history
from sweeparea.operators.values.bag import TE, TS, N

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sweeparea.operators.plan.logical import Enrich

FROM, TO, COPIES = "__from", "__to", "__copies"


def intervals(rows: pa.Table, h0: int, h1: int, columns: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """(history, carry) of a relation for the slice ``(h0, h1]``: the intervals that reach into it, and its contents.

    ``rows``: record, ``__ts``, ``__te``, ``__n``: the carry of the previous slice and the changes of this one.
    """
    out = history.sweep(rows, history.MaterializeSpec(tuple(columns), relation=True), h0, h1)
    ended = out.closed.append_column(N, pa.array([1] * out.closed.num_rows, pa.int64()))
    ended = ended.rename_columns([*columns, TS, TE, N])
    opened = out.carry
    return pa.concat_tables([ended, opened.select(ended.schema.names)]), opened


def apply(node: Enrich, stream: DataFrame, relation: DataFrame) -> DataFrame:
    """Joins a bag of elements with the relation's history (``intervals``)."""
    from pyspark.sql.functions import expr

    ids = [c.id for c in node.relation.columns]
    held = relation.selectExpr(*ids, f"{TS} AS {FROM}", f"{TE} AS {TO}", f"{N} AS {COPIES}")
    # a change at tick t is seen by elements from t+1 on
    condition = f"{FROM} < {TS} AND {TS} <= {TO}"
    if node.condition is not None:
        condition = f"({node.condition.sql}) AND {condition}"
    joined = stream.join(held, expr(condition), "left" if node.kind == "left" else "inner")
    return joined.selectExpr(*(c.id for c in node.columns), TS, TE, f"{N} * coalesce({COPIES}, 1L) AS {N}")
