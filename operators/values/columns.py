"""Arrow tables column by column: what the sweeps and their tasks do with the shape of rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from sweeparea.operators.values.bag import BAG

BAG_FIELDS = tuple(pa.field(name, pa.int64()) for name in BAG)
"""The columns that every signed temporal bag ends with."""


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of ``schema``, by name, in its order and types."""
    if rows.schema.equals(schema, check_metadata=True):
        return rows
    return pa.Table.from_arrays([rows.column(f.name).cast(f.type) for f in schema], schema=schema)


def as_bag(rows: pa.Table, ts: np.ndarray, te: np.ndarray, n: np.ndarray) -> pa.Table:
    """``rows`` with ``__ts``, ``__te`` and ``__n`` behind their columns."""
    for name, values in zip(BAG, (ts, te, n), strict=True):
        rows = rows.append_column(name, pa.array(values))
    return rows


def with_columns(rows: pa.Table, columns: Mapping[str, np.ndarray]) -> pa.Table:
    """``rows`` with other values in some of their columns.

    >>> with_columns(pa.table({"k": [7], "__ts": [1]}), {"__ts": np.array([4])}).to_pylist()
    [{'k': 7, '__ts': 4}]
    """
    arrays = [pa.array(columns[c]) if c in columns else rows.column(c) for c in rows.column_names]
    return pa.Table.from_arrays(arrays, schema=rows.schema)


def chosen(rows: pa.Table, mask: np.ndarray) -> pa.Table:
    """The rows where a mask is true, most often all: then nothing is copied."""
    return rows if mask.all() else rows.filter(pa.array(mask))
