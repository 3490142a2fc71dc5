"""Rows with a count of copies, ``__n``: how many they are, added and removed ones apart, and portions of them."""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.operators.values import keys
from sweeparea.spark_jobs.admission.judging.judge import PIECE, PIECE_BYTES, pieces


def copies(rows: pa.Table) -> int:
    """Rows with their copies, taken back or not."""
    return int(np.abs(keys.int64_of(rows.column("__n"))).sum())


def added_and_removed(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """A version's signed rows, apart."""
    plus = pc.greater(rows.column("__n"), 0)
    return rows.filter(plus), rows.filter(pc.invert(plus))


def many(tables: Iterable[pa.Table], rows: int) -> bool:
    """Whether tables together have more than so many rows, or more bytes than are judged at a time."""
    held = list(tables)
    return sum(t.num_rows for t in held) > rows or sum(t.nbytes for t in held) > PIECE_BYTES


def sized(rows: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Rows in portions that are judged at a time: small ones together, large ones in parts."""
    held: list[pa.Table] = []
    for table in rows:
        for part in pieces(table):
            if held and many([*held, part], PIECE):
                yield pa.concat_tables(held)
                held = []
            held.append(part)
    if held:
        yield pa.concat_tables(held)
