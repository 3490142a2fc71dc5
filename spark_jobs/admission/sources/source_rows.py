"""The signed rows of one version of a source in pieces, whatever its size.

A small version is read and netted as one Arrow table. A large one is read in pieces; where it also takes rows away,
which may cancel with rows anywhere in it, the pieces are spilled to files and netted by Spark. So neither 10^7 appended
rows nor a DELETE that rewrites files of 10^7 rows has to fit into the driver.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sweeparea.spark_jobs.admission.judging.copies import Pile
from sweeparea.spark_jobs.spark import frames
from sweeparea.tables.log.files import QUICK
from sweeparea.tables.log.folders import filesystem, remove_folder
from sweeparea.tables.sources.netting import N, net
from sweeparea.tables.sources.source import SourceTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIECE = 500_000
"""Rows of a piece."""
LARGE = 1_000_000
"""Versions that read more rows are not held in memory as a whole."""


def signed_rows(spark: SparkSession | None, source: SourceTable, version: int, scratch: str) -> Iterator[pa.Table]:
    """What ``version`` added and took away: the source's columns and ``__n``, netted, in at least one piece.

    ``scratch`` is a folder that Spark can read, for the time of the call. Spark is asked of large versions only.
    """
    if source.size(version) <= LARGE:
        yield source.changes(version)
    elif source.only_adds(version):
        yield from pieces_of(source.pieces(version))
    else:
        assert spark is not None, f"a version of more than {LARGE} rows that also takes some away cannot be read here"
        with netted(spark, source.pieces(version), scratch) as rows:
            yield from rows()


@contextmanager
def added_and_removed(
    spark: SparkSession, source: SourceTable, version: int, scratch: str, by: str | None = None
) -> Iterator[tuple[Iterator[pa.Table], Iterator[pa.Table]]]:
    """As ``signed_rows``, apart: the rows that a version added and those that it took away, each in pieces."""
    if source.only_adds(version):
        yield pieces_of(source.pieces(version)), iter(())
        return
    with netted(spark, source.pieces(version), scratch, by) as rows:
        yield apart(rows)


def apart(rows: Callable[[], Iterator[pa.Table]]) -> tuple[Iterator[pa.Table], Iterator[pa.Table]]:
    """Signed rows as those that were added and those that were taken away, each in pieces."""
    removed = (part for piece in rows() if (part := piece.filter(pc.less(piece.column(N), 0))).num_rows)
    added = (part for piece in rows() if (part := piece.filter(pc.greater(piece.column(N), 0))).num_rows)
    return added, removed


@contextmanager
def netted(
    spark: SparkSession, pieces: Iterable[pa.Table], scratch: str, by: str | None = None
) -> Iterator[Callable[[], Iterator[pa.Table]]]:
    """Signed rows netted over all ``pieces``: a function that gives them in pieces, as often as it is called. In memory
    where there are few, else by Spark, in the order of the column ``by``.
    """
    held = Pile()
    rest = iter(pieces)
    for piece in rest:
        held.add(piece)
        if held.over(LARGE):
            break
    else:
        yield partial(iter, [net(held.joined())] if held.tables else [])
        return
    folder = f"{scratch}/{uuid.uuid4().hex}"
    try:
        schema = held.tables[0].schema
        _spill(chain(held.emptied(), rest), schema, f"{folder}/signed")
        signed = frames.of_files(spark, frames.ddl(schema), f"{folder}/signed")
        grouped = signed.groupBy(*(frames.quoted(name) for name in schema.names if name != N))
        total = grouped.agg({N: "sum"}).withColumnRenamed(f"sum({N})", N).where(f"{N} <> 0")
        total = total if by is None else total.sort(frames.quoted(by))
        total.write.parquet(f"{folder}/netted")
        yield lambda: pieces_of(_spilled(f"{folder}/netted", schema))
    finally:
        remove_folder(folder, quietly=True)


def pieces_of(tables: Iterable[pa.Table], size: int = PIECE) -> Iterator[pa.Table]:
    """``tables`` put together into pieces of about ``size`` rows; at least one where there is any table."""
    held = Pile()
    for table in tables:
        held.add(table)
        if held.over(size - 1):
            yield held.joined()
    if held.tables:
        yield held.joined()


def _spill(pieces: Iterable[pa.Table], schema: pa.Schema, folder: str) -> None:
    """Writes pieces to files of a folder, one after the other."""
    fs, base = filesystem(folder)
    fs.create_dir(base, recursive=True)
    for i, piece in enumerate(pieces_of(pieces)):
        pq.write_table(piece.cast(schema), f"{base}/{i:06d}.parquet", filesystem=fs, compression=QUICK)


def _spilled(folder: str, schema: pa.Schema) -> Iterator[pa.Table]:
    from pyarrow.fs import FileSelector

    fs, base = filesystem(folder)
    for info in sorted(fs.get_file_info(FileSelector(base)), key=lambda each: each.path):
        if info.path.endswith(".parquet"):
            with pq.ParquetFile(info.path, filesystem=fs) as file:
                for batch in file.iter_batches(batch_size=131_072):
                    yield pa.Table.from_batches([batch]).cast(schema)
