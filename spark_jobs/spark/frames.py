"""From a scan plan to a DataFrame: small plans travel inside the query as Arrow, large ones are read by Spark from
the files.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sweeparea.spark_jobs.spark.deferred import Types, deferred, types_of, united
from sweeparea.spark_jobs.spark.errors import UnheldTypeError
from sweeparea.tables.log import scan
from sweeparea.tables.log.files import QUICK
from sweeparea.tables.log.folders import filesystem, remove_folder
from sweeparea.tables.log.scan import ScanPlan
from sweeparea.tables.log.schema import arrow_type, ddl_type, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType


LOCAL_ROWS = 50_000
"""Tables of up to so many rows travel inside the query; more would cost Spark more than reading files (measured)."""
SELECTED_ROWS = 200_000
"""From so many rows on they are chosen by their values here: Spark would pass each of them through its join."""
SELECTED_BYTES = 1 << 30
"""Files of more bytes are left to Spark and its executors."""


def ddl(schema: pa.Schema) -> str:
    """Spark's DDL text of an Arrow schema, names quoted."""
    return ", ".join(f"`{f.name.replace('`', '``')}` {spark_type(f.type)}" for f in schema)


def storable(kind: DataType, void: bool = False) -> bool:
    """Whether a table can hold values of a type: at no depth VOID (``void``: that is no matter), INTERVAL, VARIANT, or
    a STRUCT without fields.
    """
    from pyspark.sql import types

    if isinstance(kind, types.StructType):
        return bool(kind.fields) and all(storable(f.dataType, void) for f in kind.fields)
    if isinstance(kind, types.ArrayType):
        return storable(kind.elementType, void)
    if isinstance(kind, types.MapType):
        return storable(kind.keyType, void) and storable(kind.valueType, void)
    intervals = (types.DayTimeIntervalType, types.YearMonthIntervalType, types.CalendarIntervalType)
    return (void or not isinstance(kind, types.NullType)) and not isinstance(kind, (types.VariantType, *intervals))


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def from_arrow(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame over rows that the driver holds.

    In one chunk: Spark takes two empty chunks in a row, as a filtered scan leaves them, for the end of the table.
    """

    def make() -> DataFrame:
        return spark.createDataFrame(table.combine_chunks(), schema=ddl(table.schema))  # pyright: ignore[reportCallIssue, reportArgumentType]

    return deferred(spark, make, kinds(table.schema))


def mapped(spark: SparkSession, frame: DataFrame, task: Callable[..., Any], schema: pa.Schema) -> DataFrame:
    """What a task makes of a DataFrame's rows, of which Spark needs not know before it is asked for them."""
    return deferred(spark, lambda: frame.mapInArrow(task, ddl(schema)), kinds(schema))


def workers(spark: SparkSession, number: int) -> DataFrame:
    """A row for each of so many workers, which need nothing but their number."""
    return deferred(spark, lambda: spark.range(0, number, 1, number), {"id": "bigint"})


def kinds(schema: pa.Schema) -> Types:
    """The columns of an Arrow schema as Spark has them."""
    return {f.name: spark_type(f.type) for f in schema}


def of_files(spark: SparkSession, schema: str | StructType, *paths: str) -> DataFrame:
    """The rows of Parquet files, or folders of such, of ours. Brackets, braces or stars in the folders' names are no
    pattern, which Spark takes them for unless it is told.
    """
    return spark.read.schema(schema).option("__globPaths__", "false").parquet(*paths)


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
        pq.write_table(numbered, f"{base}/rows.parquet", filesystem=fs, compression=QUICK, coerce_timestamps="us")
        yield of_files(spark, ddl(numbered.schema), f"{folder}/rows.parquet")
    finally:
        remove_folder(folder, quietly=True)


class Values:
    """The distinct values that an expression has in a DataFrame of few rows; computed when they are asked for."""

    def __init__(self, frame: DataFrame, sql: str) -> None:
        self._frame, self._sql = frame, sql

    @cached_property
    def array(self) -> pa.Array | None:
        """The values, without NULL; None: they are many, or of a type of which equal values may differ."""
        found = self._frame.selectExpr(f"({self._sql}) AS value").limit(LOCAL_ROWS + 1).toArrow()
        kind = found.schema.field("value").type
        alike = pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_date(kind)
        return found.column("value").unique().drop_null() if alike and found.num_rows <= LOCAL_ROWS else None


Range = tuple[str, int | None, int | None]
"""A column and its least and greatest value, None: open; BIGINT, or microseconds of a TIMESTAMP."""
Among = Mapping[str, Values]
"""By column values of which one must be there in a row for anybody to need it."""


def read(
    spark: SparkSession,
    plan: ScanPlan,
    columns: Sequence[str],
    ranges: Sequence[Range] = (),
    among: Among | None = None,
) -> DataFrame | None:
    """``columns`` of the plan's rows whose columns lie in all ``ranges``. Rows that are not ``among`` some values may
    be left out.

    None when the plan holds no file, or none of the rows is in range, as far as they are read here: then the input is
    known to be empty.
    """
    return read_as(spark, plan, columns, ranges, local(plan, columns, ranges, among)) if plan.paths else None


def read_as(
    spark: SparkSession, plan: ScanPlan, columns: Sequence[str], ranges: Sequence[Range], table: pa.Table | None
) -> DataFrame | None:
    """``read``, where ``local`` has given ``table``."""
    if table is None:
        return from_files(spark, plan, columns, ranges)
    return from_arrow(spark, table) if table.num_rows else None


def from_files(spark: SparkSession, plan: ScanPlan, columns: Sequence[str], ranges: Sequence[Range] = ()) -> DataFrame:
    """As ``read``, by Spark alone."""
    frame = deferred(spark, lambda: of_files(spark, ddl(plan.schema), *plan.paths), kinds(plan.schema))
    bounds = [(name, low, ">=") for name, low, _ in ranges if low is not None]
    bounds += [(name, high, "<=") for name, _, high in ranges if high is not None]
    for name, value, sign in bounds:
        bound = f"timestamp_micros({value}L)" if pa.types.is_timestamp(plan.schema.field(name).type) else f"{value}L"
        frame = frame.where(f"{quoted(name)} {sign} {bound}")
    return frame.selectExpr(*(quoted(c) for c in columns))


def local(
    plan: ScanPlan, columns: Sequence[str], ranges: Sequence[Range] = (), among: Among | None = None
) -> pa.Table | None:
    """As ``read``, rows so few that the driver has read them; None: they are for workers to read."""
    chosen = _chosen(plan, among or {})
    if not plan.small and not chosen:
        return None
    condition = scan.within(plan.schema, ranges)
    for test in chosen:
        condition = test if condition is None else condition & test
    if plan.rows <= LOCAL_ROWS:
        return plan.read(columns, condition)
    table = plan.first(LOCAL_ROWS + 1, columns, condition)
    return table if table.num_rows <= LOCAL_ROWS else None


def _chosen(plan: ScanPlan, among: Among) -> list[pc.Expression]:
    """Conditions by which the driver reads few rows of a plan that is large, but not too large for it."""
    if plan.small or not among or not plan.rows >= SELECTED_ROWS or plan.bytes > SELECTED_BYTES:
        return []
    found = {name: values.array for name, values in among.items()}
    return [
        pc.field(name).isin(values)
        for name, values in found.items()
        if values is not None and values.type == plan.schema.field(name).type
    ]


__all__ = ["arrow_type", "ddl", "from_arrow", "quoted", "read", "spark_type"]


def concatenated(bags: Sequence[DataFrame]) -> DataFrame:
    """The rows of all frames, whose columns stand in the same order."""
    return united(bags)


def comparable_types(frame: DataFrame, names: Sequence[str]) -> dict[str, pa.DataType]:
    """Arrow types of those columns that a table can hold and whose texts, if they are any, are compared by bytes."""
    found: dict[str, pa.DataType] = {}
    for name, kind in types_of(frame).items():
        text = kind if isinstance(kind, str) else ddl_type(kind) if storable(kind) else None
        if name in names and text is not None and "collate" not in text:
            found[name] = arrow_type(text)
    return found


def fields(frame: DataFrame, names: Sequence[str]) -> list[pa.Field]:
    """Arrow fields of columns of a DataFrame: one analysis, no job. UnheldTypeError where no table holds them."""
    types = types_of(frame)
    return [pa.field(name, _held(name, types[name])) for name in names]


def _held(name: str, kind: str | DataType) -> pa.DataType:
    if isinstance(kind, str):
        return arrow_type(kind)
    if not storable(kind):
        raise UnheldTypeError(name, kind.simpleString())
    return arrow_type(ddl_type(kind))
