"""Rows of a result table as a case shows them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.operators.values.order import record_sort_indices
from sweeparea.spark_jobs.spark import json_values


def sorted_rows(table: pa.Table, width: int, time: TimeDomain) -> list[list[Any]]:
    """Rows as ``[tick, values]`` or ``[ts, te, values]``, sorted by instants and the total order of records."""
    names = [f"c{i}" for i in range(table.num_columns)]
    table = table.rename_columns(names)
    instants, record = names[width:], names[:width]
    if time.kind == TimeKind.TIMESTAMP:
        for name in instants:
            at = names.index(name)
            table = table.set_column(at, name, table.column(name).cast(pa.timestamp("us")).cast(pa.int64()))
    keyed = table
    if len(instants) > 1:
        last = pc.fill_null(table.column(instants[1]), (1 << 63) - 1)
        keyed = keyed.set_column(width + 1, instants[1], last)
    table = table.take(pa.array(record_sort_indices(keyed, [*instants, *record])))
    shown = [_instants(table.column(name).to_pylist(), time) for name in instants]
    values = json_values.rows(table, range(width))
    return [[*moments, row] for *moments, row in zip(*shown, values, strict=True)]


def _instants(ticks: list[int | None], time: TimeDomain) -> list[Any]:
    return [json_values.iso(t) if t is not None and time.kind == TimeKind.TIMESTAMP else t for t in ticks]
