"""Which files of a table can hold rows of a range, and reading them: pruned by the statistics in the Delta log.

A plan for a scan is a list of files plus a row filter. Small plans are read here, as Arrow; large ones are handed to
Spark by path. Both give the same rows.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sweeparea.tables.log import stats
from sweeparea.tables.log.delta_log import DataFile, DeltaLog
from sweeparea.tables.log.folders import filesystem

SMALL_BYTES = 8 << 20
"""Plans up to this many bytes are read as Arrow by the driver."""
_BATCH = 1 << 16
"""Rows that are read at a time."""
PARQUET = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")
"""Spark's own form of an instant, which somebody's OPTIMIZE may write, holds years that nanoseconds do not."""


def bounds(file: DataFile, column: str) -> tuple[int | None, int | None]:
    """Least and greatest value of a BIGINT or TIMESTAMP (in microseconds) column in a file; None where the log does
    not tell.
    """
    return stats.bounds(file.stats, column)


def comparable(value: int, kind: pa.DataType) -> pa.Scalar:
    """A bound of a range as a scalar of the column's type: microseconds for a TIMESTAMP column."""
    return pa.scalar(value, pa.int64()).cast(kind)


def prune(files: Sequence[DataFile], column: str, low: int | None, high: int | None) -> list[DataFile]:
    """Files that may hold a row with ``low <= column <= high`` (None: open)."""
    kept = []
    for file in files:
        least, greatest = bounds(file, column)
        if (low is not None and greatest is not None and greatest < low) or (
            high is not None and least is not None and least > high
        ):
            continue
        kept.append(file)
    return kept


def near(files: Sequence[DataFile], column: str, values: np.ndarray, reach: int = 0) -> list[DataFile]:
    """Files that may hold a row whose ``column`` lies within ``reach`` of one of ``values`` (ascending int64)."""
    kept = []
    for file in files:
        least, greatest = bounds(file, column)
        first = 0 if least is None else np.searchsorted(values, least - reach)
        if first < len(values) and (greatest is None or values[first] <= greatest + reach):
            kept.append(file)
    return kept


def dataset(paths: Sequence[str], schema: pa.Schema) -> ds.Dataset:
    """Parquet files, here or on an object store, as one dataset; a column that a file lacks is NULL there."""
    found = [filesystem(path) for path in paths]
    return ds.dataset([path for _, path in found], schema=schema, format=PARQUET, filesystem=found[0][0])


def within(schema: pa.Schema, ranges: Sequence[tuple[str, int | None, int | None]]) -> pc.Expression | None:
    """That columns lie in all ranges (column, low, high; both inclusive, None: open), as ``comparable`` has bounds."""
    found = None
    for name, low, high in ranges:
        kind = schema.field(name).type
        tests = [] if low is None else [pc.field(name) >= comparable(low, kind)]
        tests += [] if high is None else [pc.field(name) <= comparable(high, kind)]
        for test in tests:
            found = test if found is None else found & test
    return found


def pieces(
    path: str, schema: pa.Schema, columns: Sequence[str], condition: pc.Expression | None
) -> Callable[[int, int], Iterator[pa.Table]]:
    """Reads a file batch by batch: a function of (part, parts), which gives the rows of part ``part`` of so many, by
    row groups. Columns have the types of ``schema``; one that the file lacks is NULL.
    """
    whole = dataset([path], schema)
    wanted = pa.schema([schema.field(c) for c in columns])

    def read(part: int, parts: int) -> Iterator[pa.Table]:
        for fragment in whole.get_fragments():
            groups = fragment.num_row_groups if parts > 1 else 1
            mine = range(groups * part // parts, groups * (part + 1) // parts)
            if parts > 1:
                if not mine:
                    continue
                fragment = fragment.subset(row_group_ids=list(mine))
            # a worker has one core
            scanner = fragment.scanner(
                schema=whole.schema, columns=list(columns), filter=condition, batch_size=_BATCH, use_threads=False
            )
            for batch in scanner.to_batches():
                if batch.num_rows:
                    yield pa.Table.from_batches([batch]).cast(wanted)

    return read


@dataclass(frozen=True)
class ScanPlan:
    """Files of one table to read together, by absolute path."""

    schema: pa.Schema
    paths: tuple[str, ...]
    bytes: int
    rows: int

    @property
    def small(self) -> bool:
        return self.bytes <= SMALL_BYTES

    def read(self, columns: Sequence[str], condition: pc.Expression | None = None) -> pa.Table:
        """The rows as Arrow. A column that a file lacks is NULL there."""
        wanted = pa.schema([self.schema.field(c) for c in columns])
        if not self.paths:
            return wanted.empty_table()
        whole = dataset(self.paths, self.schema)
        return whole.to_table(columns=list(columns), filter=condition).cast(wanted)

    def first(self, number: int, columns: Sequence[str], condition: pc.Expression | None = None) -> pa.Table:
        """As ``read``, of the first rows so many: no more of the files is read than that takes, about."""
        wanted = pa.schema([self.schema.field(c) for c in columns])
        if not self.paths:
            return wanted.empty_table()
        return dataset(self.paths, self.schema).head(number, columns=list(columns), filter=condition).cast(wanted)

    def batches(self, columns: Sequence[str], condition: pc.Expression | None = None) -> Iterator[pa.Table]:
        """As ``read``, file by file and batch by batch: no more than some batches are in memory."""
        for path in self.paths:
            yield from pieces(path, self.schema, columns, condition)(0, 1)


def plan(log: DeltaLog, files: Sequence[DataFile] | None = None) -> ScanPlan:
    """A plan over ``files`` (default: all live files of the table)."""
    chosen = list(log.files()) if files is None else list(files)
    return ScanPlan(log.schema(), tuple(log.uris(chosen)), sum(f.size for f in chosen), sum(f.rows for f in chosen))
