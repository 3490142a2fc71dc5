"""Bags in DuckDB: what the linear operators and the joins ask of a DataFrame, evaluated without a JVM."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

from sweeparea.operators.sql.expressions import Column
from sweeparea.operators.values.columns import BAG_FIELDS

LAST = 12
V, W = Column("c0", "v", "bigint"), Column("c1", "w", "string")
RECORD = [pa.int64(), pa.string()]
ROWS = st.lists(
    st.tuples(
        st.tuples(st.sampled_from([1, 2, 3, None]), st.sampled_from(["x", "y", None])),
        st.integers(0, LAST),
        st.integers(1, 9),
        st.sampled_from([1, 1, 2, -1]),
    ).map(lambda row: (row[0], row[1], row[1] + row[2], row[3])),
    max_size=8,
)
"""Rows ``(record, ts, te, n)``, negative tuples among them."""
SLICES = st.lists(ROWS, min_size=1, max_size=3)
"""The rows that each slice brings."""


def duckdb_text(sql: str) -> str:
    """Spark SQL in DuckDB's dialect, as far as operators write it."""
    sql = re.sub(r"(\d+)L\b", r"CAST(\1 AS BIGINT)", sql).replace("`", '"').replace("<=>", "IS NOT DISTINCT FROM")
    sql = re.sub(r"explode\((\S+)\) AS \((\w+)\)", r"unnest(\1) AS \2", sql)
    return re.sub(r"explode_outer\((\S+)\) AS \((\w+)\)", r"unnest(IF(len(\1) > 0, \1, [NULL])) AS \2", sql)


class Frame:
    """The methods of a DataFrame, by their names in Spark, over a relation of DuckDB's."""

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self.relation = relation

    @property
    def columns(self) -> list[str]:
        return self.relation.columns

    def selectExpr(self, *columns: str) -> Frame:
        return Frame(self.relation.project(", ".join(map(duckdb_text, columns))))

    def where(self, condition: str) -> Frame:
        return Frame(self.relation.filter(duckdb_text(condition)))

    def crossJoin(self, other: Frame) -> Frame:
        return Frame(self.relation.cross(other.relation))

    def union(self, other: Frame) -> Frame:
        return Frame(self.relation.union(other.relation))


def frame(database: duckdb.DuckDBPyConnection, rows: Sequence[tuple], names=("c0", "c1"), types=RECORD) -> Any:
    """A bag of rows ``(record, ts, te, n)`` as what operators take for a DataFrame."""
    schema = pa.schema([*zip(names, types, strict=True), *BAG_FIELDS])
    columns = list(zip(*((*record, *rest) for record, *rest in rows), strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return Frame(database.from_arrow(pa.Table.from_arrays(arrays, schema=schema)))


def rows_of(bag: Any) -> list[tuple]:
    """``(record, ts, te, n)`` of each row."""
    return [(row[:-3], *row[-3:]) for row in bag.relation.fetchall()]
