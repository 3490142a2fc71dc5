"""Streams that need no difference of neighbouring instants, because the delta's rows tell it already.

Of a relation whose rows come and never go each new row is an element, once, when it begins. Definition (Arasu et al.
2003, section 7.2.1): ``Istream(L(S [Range Unbounded]))`` is ``Rstream(L(S [Now]))``. Equal rows count as often as they
come. Which plans are of that kind is decided when they are made (``Plan.emits_each``).

Of a relation whose delta is *net*, in which no record ends where an equal one begins, Istream and Dstream (Arasu et
al. 2003, section 5.1) are the rows where they begin and where they end. The delta of an aggregation is net: a group
has one row at an instant, and its next row is another record (``aggregate.sweep``).

Columns in: the record, checks, ``__ts``, ``__te``, ``__n``. Columns out: as ``relation_to_stream.sweep``, with an empty
Rstream and history.

SweepArea: none.

>>> from sweeparea.operators.sweeps.relation_to_stream import MaterializeSpec
>>> rows = pa.table({"v": [7, 7], "__ts": [1, 2], "__te": [2, 3], "__n": [1, 2]})
>>> [tuple(row.values()) for row in emit(rows, MaterializeSpec(("v",), each=True), 0, 9).istream.to_pylist()]
[(7, 1), (7, 2), (7, 2)]
>>> rows = pa.table({"v": [5, 7, 9], "__ts": [1, 1, 4], "__te": [INF, 4, INF], "__n": [-1, 1, 1]})
>>> out = changes(rows, MaterializeSpec(("v",), istream=True, dstream=True, net=True), 0, 9)
>>> [tuple(row.values()) for stream in (out.istream, out.dstream) for row in stream.to_pylist()]
[(7, 1), (9, 4), (5, 1), (7, 4)]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.sweeps.relation_to_stream import FROM, TICK, TO, Materialized, MaterializeSpec
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys as key_codes
from sweeparea.operators.values import shared_rows
from sweeparea.operators.values.bag import BAG, TE, TS, N


def emit(rows: pa.Table, spec: MaterializeSpec, h0: int, h1: int) -> Materialized:
    """Outputs of the slice ``(h0, h1]``. SweepAreaError: a row starts outside of it, or takes one away."""
    start, n = (key_codes.int64_of(rows.column(c)) for c in (TS, N))
    if len(start) and (start.min() <= h0 or start.max() > h1 or n.min() < 0):
        raise SweepAreaError(
            "A row was taken back, though the query's plan says that rows only come. Nothing was published. This is a"
            " defect of the engine: please report the query, and set rewrites = 'none' in it to go on meanwhile."
        )
    record = _record(rows, spec)
    every = np.arange(len(start))
    return _streams(record, _elements(record, every, start, n), _elements(record, every[:0], start[:0], n[:0]))


def changes(rows: pa.Table, spec: MaterializeSpec, h0: int, h1: int) -> Materialized:
    """Outputs of the slice ``(h0, h1]`` for a net delta. SweepAreaError: a row begins or ends outside of it."""
    start, end, n = (key_codes.int64_of(rows.column(c)) for c in (TS, TE, N))
    ends = np.flatnonzero(end != INF)
    at, copies = np.append(np.arange(len(n)), ends), np.append(n, -n[ends])
    tick = np.append(start, end[ends])
    if len(tick) and (tick.min() <= h0 or tick.max() > h1):
        raise SweepAreaError(
            "A row of an aggregation begins or ends outside of the slice that it is a change of. Nothing was published."
            " This is a defect of the engine: please report the query."
        )
    record = _record(rows, spec)
    plus = np.flatnonzero(copies > 0) if spec.istream else at[:0]
    minus = np.flatnonzero(copies < 0) if spec.dstream else at[:0]
    return _streams(
        record,
        _elements(record, at[plus], tick[plus], copies[plus]),
        _elements(record, at[minus], tick[minus], -copies[minus]),
    )


def _record(rows: pa.Table, spec: MaterializeSpec) -> pa.Table:
    return key_codes.canonical(rows.select([*spec.columns, *spec.checks]))


def _elements(record: pa.Table, at: np.ndarray, tick: np.ndarray, n: np.ndarray) -> pa.Table:
    """The rows ``at``, ``n`` times each, with their ticks."""
    if (n != 1).any():
        at, tick = np.repeat(at, n), np.repeat(tick, n)
    columns = shared_rows.taken(record, at).columns
    return pa.Table.from_arrays([*columns, pa.array(tick)], names=[*record.column_names, TICK])


def _streams(record: pa.Table, istream: pa.Table, dstream: pa.Table) -> Materialized:
    def none(*ticks: str) -> pa.Table:
        fields = [*record.schema, *(pa.field(name, pa.int64()) for name in ticks)]
        return pa.schema(fields).empty_table()

    return Materialized(istream, dstream, none(FROM, TO), none(FROM), none(*BAG), none(TICK), 0)
