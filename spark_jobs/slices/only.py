"""A query computed for some values of a key only: of inputs, of the published rows and of SweepAreas nothing else."""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.operators.plan.keyed_by import Key, keys
from sweeparea.operators.plan.logical import Node, Plan, RelationScan, StreamScan
from sweeparea.operators.plan.lowering import lowered
from sweeparea.spark_jobs.declarations.application import Application
from sweeparea.spark_jobs.slices.corrections import admitted_between
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.ledger import LedgerRow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_VALUES = 1000
_TYPES = {"tinyint", "smallint", "int", "bigint", "string", "date", "boolean"}
"""Types of which equal values are identical."""


@dataclass(frozen=True)
class Only:
    """The values of a key; None stands for NULL."""

    key: Key
    values: tuple[Any, ...]

    def of(self, frame: DataFrame, column: str) -> DataFrame:
        """The rows whose ``column`` has one of the values."""
        from pyspark.sql.functions import col

        known = [value for value in self.values if value is not None]
        condition = col(column).isin(known)
        return frame.where(condition | col(column).isNull() if None in self.values else condition)

    def where(self, column: pa.ChunkedArray) -> np.ndarray:
        """Which rows of a column have one of the values."""
        found = pc.is_in(column, pa.array(self.values, column.type), skip_nulls=None not in self.values)
        return pc.fill_null(found, False).to_numpy(zero_copy_only=False)

    def carrier(self, columns: list[str]) -> str | None:
        """Which of some column ids carries the key."""
        return next((column for column in columns if column in self.key.ids), None)


def only(
    application: Application, plan: Plan, previous: LedgerRow, pins: Mapping[str, int], names: set[str], upto: int
) -> Only | None:
    """The values of a key that corrections of the inputs ``names`` can touch; None: there is no such key, or they are
    many. ``previous``, ``pins``, ``upto``: as of ``corrections.pending``.
    """
    if not all(name in application.catalog.streams for name in names):
        return None
    root = lowered(plan).root
    best: Only | None = None
    for key in keys(root, names):
        types = {_type(application, node, column) for node, column in _carrying(root, key)}
        if len(types) != 1 or not types <= _TYPES:
            continue
        values: set[Any] = set()
        for node, column in _carrying(root, key):
            if node.name in names:
                seen = previous.pins[node.name]["seq"]
                values |= _values(application, node.name, column, seen, pins[node.name], upto)
        if len(values) <= MOST_VALUES and (best is None or len(values) < len(best.values)):
            best = Only(key, tuple(values))
    return best


def _carrying(root: Node, key: Key) -> Iterator[tuple[StreamScan | RelationScan, str]]:
    """The scans that are selected from, each with the column of its input."""
    for node in root.walk():
        if isinstance(node, StreamScan | RelationScan):
            for column, name in node.source:
                if column.id in key.ids:
                    yield node, name


def _type(application: Application, node: StreamScan | RelationScan, column: str) -> str:
    types = {name.lower(): kind for name, kind in application.input_schema(node.name).columns}
    return types.get(column.lower()) or ""


def _values(application: Application, name: str, column: str, seen: int, pin: int, upto: int) -> set[Any]:
    log = DeltaLog(application.layout.admitted(name))
    return set(admitted_between(log, column, seen, pin, upto).unique().to_pylist())
