"""Corrections: what a query's inputs changed at instants that the query has committed already.

An admitted stream or relation tells them by their sequence: rows at or below the query's instant that came after the
sequence it has pinned. A query's corrections to what it has published stand, signed and with their cause, in
``<query>__corrections``, for its readers and for people.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.operators.plan.touched import Stretch
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.operators.time.ticks import INF, own_ticks
from sweeparea.operators.values import keys
from sweeparea.spark_jobs.spark.instants import stored_type
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.ledger import LedgerRow

if TYPE_CHECKING:
    from sweeparea.spark_jobs.application import Application


COMPARED = 1_000_000
"""Up to so many corrections of a relation are looked at for whether they cancel after a while; more are taken to
last."""


class Corrected(SweepAreaError):
    """Inputs have corrections for instants that a slice would take for known; they have to be repaired first."""


def announced(application: Application, plan: Plan, previous: LedgerRow, head: Mapping[str, LedgerRow]) -> list[str]:
    """The inputs that have been corrected since a query pinned them, whatever the instants."""
    found = []
    for name in plan.inputs:
        seen, row = previous.pins.get(name, {}).get("seq"), head.get(application.owner(name))
        if seen is not None and row is not None and row.correction_seq > seen:
            found.append(name)
    return found


def pending(
    application: Application,
    plan: Plan,
    previous: LedgerRow,
    head: Mapping[str, LedgerRow],
    pins: Mapping[str, int],
    upto: int,
) -> dict[str, Stretch]:
    """Per input the instants at or below ``upto`` at which it differs from what the query has read of it.

    ``previous`` is the query's ledger row, ``pins`` the sequences up to which inputs are read now.
    """
    found = {}
    for name in announced(application, plan, previous, head):
        seen = previous.pins[name]["seq"]
        if application.is_query(application.owner(name)):
            stretch = _of_result(application, plan, name, seen, pins[name])
        else:
            stretch = _of_admitted(application, plan, name, seen, pins[name], upto)
        if stretch is not None and stretch.first <= upto:
            found[name] = stretch
    return found


def _of_admitted(application: Application, plan: Plan, name: str, seen: int, pin: int, upto: int) -> Stretch | None:
    log, scale = DeltaLog(application.layout.admitted(name)), application.scale(name, plan.time)
    last = own_ticks(None, upto, scale)[1]
    if application.is_static(name):
        last = None  # what a refresh changes, even if it lies ahead: no SweepArea has counted on that
    is_stream = name in application.catalog.streams
    ends: tuple[int, int] | None = None
    for part in admitted_between(log, "__tick", seen, pin, last):
        ticks = keys.int64_of(part) // scale
        ticks = ticks[ticks >= plan.start] if is_stream else ticks
        if len(ticks):
            ends = _widened(ends, int(ticks.min()), int(ticks.max()))
    if ends is None:
        return None
    if application.is_static(name):
        return Stretch(max(min(ends[0], upto), plan.start), INF)
    # what happened before START holds at START, and what changes a relation lasts
    return Stretch(*ends) if is_stream else Stretch(max(ends[0], plan.start), INF)


def _widened(ends: tuple[int, int] | None, low: int, high: int) -> tuple[int, int]:
    return (low, high) if ends is None else (min(ends[0], low), max(ends[1], high))


def admitted_between(log: DeltaLog, column: str, seen: int, pin: int, last: int | None) -> Iterator[pa.ChunkedArray]:
    """A column of the rows that came into an admitted table after commit ``seen`` and up to ``pin``, none with a tick
    beyond ``last`` (None: all), in pieces.
    """
    files = scan.prune(scan.prune(log.files(), "__seq", seen + 1, pin), "__tick", None, last)
    condition = (pc.field("__seq") > seen) & (pc.field("__seq") <= pin)
    if last is not None:
        condition &= pc.field("__tick") <= last
    return (rows.column(column) for rows in scan.plan(log, files).batches([column], condition))


def _of_result(application: Application, plan: Plan, name: str, seen: int, pin: int) -> Stretch | None:
    owner = application.owner(name)
    log = DeltaLog(application.layout.result(f"{owner}__corrections"))
    if not log.exists():
        return None
    kind = application.plans.plan(owner).kind if name == owner else name.rpartition("__")[2]
    files = scan.prune(log.files(), "seq", seen + 1, pin)
    condition = (pc.field("seq") > seen) & (pc.field("seq") <= pin) & (pc.field("kind") == kind)
    chosen, count = scan.plan(log, files), 0
    ends: tuple[int, int] | None = None
    for rows in chosen.batches(["ts"], condition):
        ticks = rows.column("ts")
        if plan.time.kind == TimeKind.TIMESTAMP:
            ticks = pc.divide(ticks.cast(pa.int64()), plan.time.chronon)
        count += rows.num_rows
        ends = _widened(ends, pc.min(ticks).as_py(), pc.max(ticks).as_py())
    if ends is None:
        return None
    first, last = max(ends[0], plan.start), ends[1]
    if kind != ResultKind.RELATION:
        return Stretch(first, last) if last >= first else None
    if count > COMPARED:
        return Stretch(first, INF)
    rows = chosen.read(["row", "sign"], condition)
    codes, different = keys.codes([rows.column("row")])
    net = np.bincount(codes, keys.int64_of(rows.column("sign")), different)
    if np.any(net != 0):
        return Stretch(first, INF)
    return Stretch(first, last - 1) if last > first else None


def schema(record: pa.Schema, time: TimeDomain) -> pa.Schema:
    """The columns of a query's corrections.

    ``row`` has ``sign`` copies more from the instant ``ts`` on (of a stream: at it) in the table ``kind`` (relation,
    istream, dstream, rstream); ``cause``: why, in words; ``seq``: the commit that made them.
    """
    told = [("row", pa.struct(list(record))), ("ts", stored_type(time)), ("sign", pa.int64()), ("kind", pa.string())]
    return pa.schema([*told, ("cause", pa.string()), ("seq", pa.int64())])


def rows(records: pa.Table, ticks: np.ndarray, signs: np.ndarray, kind: str, time: TimeDomain) -> pa.Table:
    """Corrections as ``schema`` has them, without cause and commit. ``records``: a row each."""
    wanted = schema(records.schema, time)
    structs = pa.StructArray.from_arrays(
        [keys.one_array(column) for column in records.columns], fields=list(records.schema)
    )
    stored = pa.array(ticks * time.stored_scale, pa.int64())
    columns = [structs, stored.cast(wanted.field("ts").type), pa.array(signs, pa.int64())]
    columns.append(pa.repeat(pa.scalar(kind, pa.string()), len(signs)))
    return pa.Table.from_arrays(columns, schema=pa.schema(list(wanted)[:4]))


def told(rows: pa.Table, cause: str, seq: int) -> pa.Table:
    """``rows`` with their cause and commit, in the order of time."""
    count = rows.num_rows
    rows = rows.append_column("cause", pa.repeat(pa.scalar(cause, pa.string()), count))
    return rows.append_column("seq", pa.repeat(pa.scalar(seq, pa.int64()), count)).sort_by("ts")
