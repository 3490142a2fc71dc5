"""Corrections: what a query's inputs changed at instants that the query has committed already.

An admitted stream or relation tells them by their sequence: rows at or below the query's instant that came after the
sequence it has pinned. A query's corrections to what it has published stand, signed and with their cause, in
``<query>__corrections``, for its readers and for people.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Mapping
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
    ticks = admitted_between(log, "__tick", seen, pin, last)
    if scale > 1:
        ticks = pa.chunked_array([pa.array(keys.int64_of(ticks) // scale)])
    if application.is_static(name) and len(ticks):
        return Stretch(max(min(pc.min(ticks).as_py(), upto), plan.start), INF)
    if name not in application.catalog.streams:
        # what happened before START holds at START, and what changes a relation lasts
        return Stretch(max(pc.min(ticks).as_py(), plan.start), INF) if len(ticks) else None
    ticks = ticks.filter(pc.greater_equal(ticks, plan.start))
    return Stretch(pc.min(ticks).as_py(), pc.max(ticks).as_py()) if len(ticks) else None


def admitted_between(log: DeltaLog, column: str, seen: int, pin: int, last: int | None) -> pa.ChunkedArray:
    """A column of the rows that came into an admitted table after commit ``seen`` and up to ``pin``, none with a tick
    beyond ``last`` (None: all).
    """
    files = scan.prune(scan.prune(log.files(), "__seq", seen + 1, pin), "__tick", None, last)
    condition = (pc.field("__seq") > seen) & (pc.field("__seq") <= pin)
    if last is not None:
        condition &= pc.field("__tick") <= last
    return scan.plan(log, files).read([column], condition).column(column)


def _of_result(application: Application, plan: Plan, name: str, seen: int, pin: int) -> Stretch | None:
    owner = application.owner(name)
    log = DeltaLog(application.layout.result(f"{owner}__corrections"))
    if not log.exists():
        return None
    kind = application.plans.plan(owner).kind if name == owner else name.rpartition("__")[2]
    files = scan.prune(log.files(), "seq", seen + 1, pin)
    condition = (pc.field("seq") > seen) & (pc.field("seq") <= pin) & (pc.field("kind") == kind)
    rows = scan.plan(log, files).read(log.schema().names, condition)
    if not rows.num_rows:
        return None
    ticks = rows.column("ts")
    if plan.time.kind == TimeKind.TIMESTAMP:
        ticks = pc.divide(ticks.cast(pa.int64()), plan.time.chronon)
    first, last = max(pc.min(ticks).as_py(), plan.start), pc.max(ticks).as_py()
    if kind != ResultKind.RELATION:
        return Stretch(first, last) if last >= first else None
    codes, count = keys.codes([rows.column("row")])
    net = np.bincount(codes, keys.int64_of(rows.column("sign")), count)
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
