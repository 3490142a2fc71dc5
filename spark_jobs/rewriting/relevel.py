"""New starts of open levels in the SweepArea that holds a result's levels, where a closed stretch has changed them.

A record that is valid at the query's instant can have another ``valid_from`` after a repair that ended before it. The
levels of such records are replaced; their pending ends stay.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sweeparea.operators.state import splice
from sweeparea.operators.state.area_files import HASH, growth
from sweeparea.operators.state.sweep_area import SweepArea
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys
from sweeparea.operators.values.bag import TE, TS, N
from sweeparea.operators.values.columns import conform, with_columns
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile, describe_file, list_files, write_file


def relevel(
    log: DeltaLog, op: str, ids: Sequence[str], levels: pa.Table, seq: int, h: int, attempt: str
) -> tuple[list[DataFile], list[DataFile], int]:
    """Files to add and to remove, and how many rows more count then, so that the records of ``levels`` are open since
    the instants given there.

    ``levels``: the record's columns under ``ids`` and ``__from`` (ticks), a row for each copy: all levels of these
    records that are open at ``h``, the query's instant. ``log``: the SweepArea ``op``.
    """
    files = log.files()
    if HASH not in log.schema().names:
        return _whole(log, files, op, ids, levels, h, attempt)
    area = SweepArea.beside(log.uri, op, log.schema(), ids, files, seq, h)
    schema = area.schema
    named = pa.table(
        [levels.column(f.name) if f.name in ids else pa.nulls(levels.num_rows, f.type) for f in schema], schema=schema
    )
    held = area.held(named)
    area.stage(_replaced(held.select(schema.names), ids, levels, h), held, attempt, 0)
    adds = [describe_file(log.uri, path) for path in list_files(log.uri, attempt) if f"/{op}.c-" in path]
    return [file for file in adds if file.rows], [], sum(growth(file) for file in adds)


def _whole(
    log: DeltaLog, files: list[DataFile], op: str, ids: Sequence[str], levels: pa.Table, h: int, attempt: str
) -> tuple[list[DataFile], list[DataFile], int]:
    rows = log.read()
    before, after = splice.record_codes(rows, levels, ids)
    concerned = np.isin(before, after)
    kept = rows.filter(pa.array(~concerned))
    new = pa.concat_tables([kept, _replaced(rows.filter(pa.array(concerned)), ids, levels, h)])
    return [write_file(new, log.uri, attempt, op)] if new.num_rows else [], files, 0


def _replaced(held: pa.Table, ids: Sequence[str], levels: pa.Table, h: int) -> pa.Table:
    """The rows of the records of ``levels``, which ``held`` has, with these levels in place of the old ones."""
    start = keys.int64_of(held.column(TS))
    pending = held.filter(pa.array(start > h))
    before, after = splice.record_codes(held, levels, ids)
    # what belongs to a record (the truths of constraints) is taken from the rows that were there
    row_of = np.zeros(int(max(before.max(initial=0), after.max(initial=0))) + 1, np.int64)
    row_of[before] = np.arange(held.num_rows)
    template = held.take(pa.array(row_of[after]))
    ticks = {TS: keys.int64_of(levels.column("__from")), TE: np.full(levels.num_rows, INF)}
    opened = with_columns(template, {**ticks, N: np.ones(levels.num_rows, np.int64)})
    return conform(pa.concat_tables([opened, pending.select(opened.column_names)]), held.schema)
