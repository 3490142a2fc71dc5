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


class Pile:
    """Tables of one schema that are put together, counted as they come."""

    def __init__(self) -> None:
        self.tables: list[pa.Table] = []
        self.rows = self.bytes = 0

    def add(self, table: pa.Table) -> None:
        self.tables.append(table)
        self.rows += table.num_rows
        self.bytes += table.nbytes

    def over(self, rows: int, more: pa.Table | None = None) -> bool:
        """Whether it has, with ``more``, more than so many rows, or more bytes than are judged at a time."""
        count, size = (0, 0) if more is None else (more.num_rows, more.nbytes)
        return self.rows + count > rows or self.bytes + size > PIECE_BYTES

    def joined(self) -> pa.Table:
        """All of them as one table; none are left."""
        return pa.concat_tables(self.emptied())

    def emptied(self) -> Iterator[pa.Table]:
        """The tables, each let go when the next is asked for."""
        tables, self.tables = self.tables, []
        self.rows = self.bytes = 0
        while tables:
            yield tables.pop(0)


def together(tables: Iterable[pa.Table], most: int) -> Iterator[pa.Table]:
    """Tables of one schema put together, as many as have up to ``most`` rows, and as few bytes as are judged at a time;
    one that has more stays alone.
    """
    held = Pile()
    for table in tables:
        if held.tables and held.over(most, table):
            yield held.joined()
        held.add(table)
    if held.tables:
        yield held.joined()


def sized(rows: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Rows in portions that are judged at a time: small ones together, large ones in parts."""
    return together((part for table in rows for part in pieces(table)), PIECE)
