"""A query computed for some values of a key only: of inputs, of the published rows and of SweepAreas nothing else."""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sweeparea.operators.nodes import RelationScan, StreamScan
from sweeparea.operators.plan.keyed_by import Key, keys
from sweeparea.operators.plan.lowering import lowered
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.evaluation.only import Only
from sweeparea.spark_jobs.slices.corrections import admitted_between
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.ledger import LedgerRow

MOST_VALUES = 1000
_TYPES = {"tinyint", "smallint", "int", "bigint", "string", "date", "boolean"}
"""Types of which equal values are identical."""


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
    types = {name.lower(): kind for name, kind in application.plans.input_schema(node.name).columns}
    return types.get(column.lower()) or ""


def _values(application: Application, name: str, column: str, seen: int, pin: int, upto: int) -> set[Any]:
    log = DeltaLog(application.layout.admitted(name))
    found: set[Any] = set()
    for values in admitted_between(log, column, seen, pin, upto):
        found |= set(values.unique().to_pylist())
        if len(found) > MOST_VALUES:
            break
    return found
