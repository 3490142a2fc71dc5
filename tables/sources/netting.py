"""Netting: rows that were added and removed cancel, so that what is left is a bag difference."""

# pyarrow.compute makes its functions when it is imported, where a type checker cannot see them.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

N = "__n"
"""The column that counts copies: positive added, negative removed (BIGINT)."""


def net(rows: pa.Table) -> pa.Table:
    """``rows`` with equal rows merged into one whose ``__n`` is their sum, without those that come to 0.

    NULL equals NULL and NaN equals NaN. Rows that were only added stay as they are: a bag needs no merging.
    """
    counts = rows.column(N)
    if rows.num_rows == 0 or pc.min(counts).as_py() > 0:
        return rows
    keys: dict[str, pa.ChunkedArray] = {}
    for name in rows.column_names:
        if name != N:
            for part in _comparable(rows.column(name)):
                keys[f"k{len(keys)}"] = part
    numbered = pa.table({**keys, "n": counts, "row": pa.array(np.arange(rows.num_rows))})
    groups = numbered.group_by(list(keys), use_threads=False).aggregate([("n", "sum"), ("row", "min")])
    kept = groups.filter(pc.not_equal(groups.column("n_sum"), 0)).sort_by("row_min")
    picked = rows.take(kept.column("row_min")).drop_columns([N])
    return picked.append_column(N, kept.column("n_sum"))


def _comparable(column: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    """Columns that are equal exactly where ``column`` is, of types that Arrow can group by."""
    if pa.types.is_struct(column.type):
        parts = [column.is_valid()]
        for child in column.flatten():
            parts += _comparable(child)
        return parts
    if pa.types.is_nested(column.type):
        return [pa.chunked_array([pa.array([repr(value) for value in column.to_pylist()], pa.string())])]
    return [column]
