"""From a scan plan to a DataFrame: small plans travel inside the query as Arrow, large ones are read by Spark from
the files.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sweeparea.tables.files import filesystem, remove_folder
from sweeparea.tables.scan import ScanPlan, comparable
from sweeparea.tables.schema import arrow_type, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


LOCAL_ROWS = 50_000
"""Tables of up to so many rows travel inside the query; more would cost Spark more than reading files (measured)."""


def ddl(schema: pa.Schema) -> str:
    """Spark's DDL text of an Arrow schema, names quoted."""
    return ", ".join(f"`{f.name.replace('`', '``')}` {spark_type(f.type)}" for f in schema)


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def from_arrow(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame over rows that the driver holds.

    In one chunk: Spark takes two empty chunks in a row, as a filtered scan leaves them, for the end of the table.
    """
    return spark.createDataFrame(table.combine_chunks(), schema=ddl(table.schema))  # pyright: ignore[reportCallIssue, reportArgumentType]


ROW = "__row"
"""The position of a row in a table that reached Spark as a file."""


@contextmanager
def as_file(spark: SparkSession, table: pa.Table, scratch: str) -> Iterator[DataFrame]:
    """A DataFrame over many rows that the driver holds, through a file in ``scratch``; their position is ``ROW``."""
    folder = f"{scratch}/{uuid.uuid4().hex}"
    fs, base = filesystem(folder)
    fs.create_dir(base, recursive=True)
    numbered = table.append_column(ROW, pa.array(np.arange(table.num_rows)))
    try:
        pq.write_table(numbered, f"{base}/rows.parquet", filesystem=fs, compression="lz4", coerce_timestamps="us")
        yield spark.read.schema(ddl(numbered.schema)).parquet(f"{folder}/rows.parquet")
    finally:
        remove_folder(folder, quietly=True)


def read(
    spark: SparkSession,
    plan: ScanPlan,
    columns: Sequence[str],
    ranges: Sequence[tuple[str, int | None, int | None]] = (),
) -> DataFrame | None:
    """``columns`` of the plan's rows whose columns lie in all ``ranges`` (column, low, high; both inclusive; BIGINT,
    or microseconds for TIMESTAMP).

    None when the plan holds no file, or none of a small plan's rows is in range: then the input is known to be empty.
    """
    if not plan.paths:
        return None
    bounds = [(name, low, ">=") for name, low, _ in ranges if low is not None]
    bounds += [(name, high, "<=") for name, _, high in ranges if high is not None]
    if plan.small:
        condition = None
        for name, value, sign in bounds:
            bound = comparable(value, plan.schema.field(name).type)
            test = pc.field(name) >= bound if sign == ">=" else pc.field(name) <= bound
            condition = test if condition is None else condition & test
        table = plan.read(columns, condition)
        if table.num_rows <= LOCAL_ROWS:
            return from_arrow(spark, table) if table.num_rows else None
    frame = spark.read.schema(ddl(plan.schema)).parquet(*plan.paths)
    for name, value, sign in bounds:
        bound = f"timestamp_micros({value}L)" if pa.types.is_timestamp(plan.schema.field(name).type) else f"{value}L"
        frame = frame.where(f"{quoted(name)} {sign} {bound}")
    return frame.selectExpr(*(quoted(c) for c in columns))


__all__ = ["arrow_type", "ddl", "from_arrow", "quoted", "read", "spark_type"]


def concatenated(bags: Sequence[DataFrame]) -> DataFrame:
    """The rows of all frames, whose columns stand in the same order."""
    total = bags[0]
    for other in bags[1:]:
        total = total.union(other)
    return total


def fields(frame: DataFrame, names: Sequence[str]) -> list[pa.Field]:
    """Arrow fields of columns of a DataFrame: one analysis, no job."""
    types = {f.name: f.dataType for f in frame.schema}
    return [pa.field(name, arrow_type(types[name].simpleString())) for name in names]
