"""Istream, Dstream, Rstream and the published history of a relation, from its delta.

Arasu et al. 2003, section 5.1: Istream(R) at t is the bag difference R(t) - R(t-1), Dstream(R) is R(t-1) - R(t),
Rstream(R) is R(t), at each tick or every so many ticks. The difference is per value: a record that ends at t and an
equal one that starts at t cancel (section 5.2). The history is canonical: per record and k the maximal intervals in
which its multiplicity is at least k (coalesced as in Kraemer & Seeger 2005, Algorithm 10, for bags).

Columns in: the record, checks, ``__ts``, ``__te``, ``__n``. Columns out: of the streams the record, checks and
``__tick``, one row for each copy; of the history the record, checks and ``__from``, ``__to``.

SweepArea: of each record the open levels, one row for each instant at which some of them began, and the changes that
are known of its future; without history and Rstream these alone (``sweep``).

>>> rows = pa.table({"v": [7, 7, 7], "__ts": [1, 3, 3], "__te": [3, 5, 9], "__n": [1, 1, 1]})
>>> out = sweep(rows, MaterializeSpec(("v",), istream=True, dstream=True, relation=True), 0, 6)
>>> [[tuple(row.values()) for row in table.to_pylist()] for table in (out.istream, out.dstream, out.closed, out.opened)]
[[(7, 1), (7, 3)], [(7, 5)], [(7, 3, 5)], [(7, 1)]]
>>> [tuple(row.values()) for row in out.carry.to_pylist()] == [(7, 1, INF, 1), (7, 9, INF, -1)]
True
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sweeparea.operators.base.later import later
from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.linear.project import narrowed
from sweeparea.operators.linear.scan import needed_only
from sweeparea.operators.plan.carriers import Carriers
from sweeparea.operators.plan.edge import MONOTONIC, Edge
from sweeparea.operators.plan.influence import Influence, Made
from sweeparea.operators.plan.node import Ends, Ids, Node, ids_of
from sweeparea.operators.plan.stream_kind import StreamKind
from sweeparea.operators.plan.words import every_text
from sweeparea.operators.sql.expressions import Column
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import TE, TS, N, below_zero

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from sweeparea.operators.kernels import relation_to_stream as kernel
    from sweeparea.operators.kernels import sorting
    from sweeparea.operators.values import keys as key_codes
    from sweeparea.operators.values import netting, shared_rows
else:
    np, pa, kernel, sorting, key_codes, netting, shared_rows = later(
        "numpy",
        "pyarrow",
        "sweeparea.operators.kernels.relation_to_stream",
        "sweeparea.operators.kernels.sorting",
        "sweeparea.operators.values.keys",
        "sweeparea.operators.values.netting",
        "sweeparea.operators.values.shared_rows",
    )

TICK = "__tick"
FROM = "__from"
TO = "__to"


@stored("RelationToStream", "input", "kind", "every", "anchor", "instant")
@dataclass(frozen=True)
class RelationToStream(Node):
    """A stream of a relation (Arasu section 5.1). ``every`` / ``anchor`` in ticks, rstream only.

    ``instant`` as in StreamScan: the output's ``ts`` column if something above refers to it.
    """

    input: Node
    kind: StreamKind
    every: int | None = None
    anchor: int = 0
    instant: Column | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        cols = self.input.columns
        return cols if self.instant is None else (*cols, self.instant)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def words(self, time: TimeDomain) -> str:
        return self.kind.capitalize() + every_text(self.every, self.anchor, time)

    def edge(self, below: Sequence[Edge], static: Container[str]) -> Edge:
        return MONOTONIC

    @property
    def is_stream(self) -> bool:
        return True

    @property
    def lengthens(self) -> bool:
        return False

    def cut(self, inputs: tuple[Node, ...], needed: Ids) -> Node:
        whole = narrowed(inputs[0], self.input.columns)
        return replace(self, input=whole, instant=needed_only(self.instant, needed))

    def made(self) -> Iterator[Made]:
        if self.instant is not None:
            yield Made(self.instant.id, frozenset(), time=True)

    def decided_by(self) -> Iterator[tuple[Influence, Ids]]:
        """An element is made when the number of copies of a whole record changes."""
        yield Influence.FILTER, ids_of(self.input)

    def carriers(self, below: Sequence[Carriers]) -> Carriers:
        return below[0]

    @property
    def looks_back(self) -> int:
        """Istream and Dstream compare with the instant before."""
        return 1

    def reaches(self, below: Mapping[str, int]) -> dict[str, int]:
        """The instant at which a row leaves is the last at which an element is made of it, and counted already."""
        return dict(below)

    def kept(self, ends: Ends) -> str | None:
        return "the inner relation's rows that are valid after h1, and their known ends"


@dataclass(frozen=True)
class Every:
    """The instants of an Rstream: ``anchor + k * every``, in ticks."""

    every: int = 1
    anchor: int = 0

    def up_to(self, tick: np.ndarray | int) -> np.ndarray:
        """How many instants lie at or before a tick, counted from the anchor: a difference of two counts is what
        matters.
        """
        return (np.asarray(tick, np.int64) - self.anchor) // self.every


@dataclass(frozen=True)
class MaterializeSpec:
    """Which outputs are wanted. ``columns`` are the record; ``checks`` depend on it and are carried along to all
    outputs. ``rstream``: its instants; ``most``: of how many rows it consists at most. ``each``: the Istream is the
    rows as they come; ``net``: Istream and Dstream are the rows as they come and go (``istream.py``).
    """

    columns: tuple[str, ...]
    istream: bool = False
    dstream: bool = False
    relation: bool = False
    checks: tuple[str, ...] = ()
    rstream: Every | None = None
    most: int = INF
    each: bool = False
    net: bool = False


@dataclass(frozen=True)
class Materialized:
    """Outputs of one slice; those not wanted are empty. Every row begins with the record and its checks.

    ``istream``, ``dstream``, ``rstream``: ``__tick``, one row per copy. ``rstream_rows``: how many rows the Rstream
    has; where they are more than the spec allows it is left empty. ``closed``: ``__from``, ``__to``, the levels that
    ended within the slice. ``opened``: ``__from``, all levels open at h1. ``carry``: ``__ts``, ``__te``, ``__n``, the
    rows for the next slice.
    """

    istream: pa.Table
    dstream: pa.Table
    closed: pa.Table
    opened: pa.Table
    carry: pa.Table
    rstream: pa.Table
    rstream_rows: int


def sweep(rows: pa.Table, spec: MaterializeSpec, h0: int, h1: int) -> Materialized:
    """Outputs of the slice ``(h0, h1]``.

    ``rows``: record, checks, ``__ts``, ``__te``, ``__n`` in any order: the carry of the previous slice and the delta.
    Rows that start at or before h0 are open levels: valid from ``__ts``, ``__te`` INF, ``__n`` of them. Rows that
    start later are changes, those beyond h1 pending. ``__n`` 0 is ignored.

    Carry: per record one row per distinct start of its open levels (only if the relation or Rstream is wanted, the
    other streams do not need them) and one row ``[t, INF)`` per future instant t at which its multiplicity is known to
    change.

    Errors (DataError): a record's multiplicity falls below zero (seen only where levels are kept).
    """
    start, end, n = (key_codes.int64_of(rows.column(c)) for c in (TS, TE, N))
    group, groups = _grouped(rows, spec)
    old = start <= h0
    begins = np.flatnonzero(~old & (n != 0) & (end > start))
    ends = np.flatnonzero((n != 0) & (end != INF) & (end > h0) & (end > start))
    changes = netting.netted(
        np.concatenate([group[begins], group[ends]]),
        np.concatenate([start[begins], end[ends]]),
        np.concatenate([n[begins], -n[ends]]),
    )
    now = changes[:, changes[1] <= h1]
    future = changes[:, changes[1] > h1]
    at = np.flatnonzero(old & (end > h0) & (n != 0))
    opened_before = netting.netted(group[at], start[at], n[at])
    records = _Records(
        key_codes.canonical(rows.select([*spec.columns, *spec.checks])), key_codes.first_rows(group, groups)
    )

    closed = np.empty((4, 0), np.int64)
    opened = np.empty((3, 0), np.int64)
    if spec.relation or spec.rstream:
        closed, opened = _levels(opened_before, now, records)
    plus = now[:, now[2] > 0] if spec.istream else now[:, :0]
    minus = now[:, now[2] < 0] if spec.dstream else now[:, :0]
    was, are = (closed, opened) if spec.relation else (closed[:, :0], opened[:, :0])
    repeated = _repeated(closed, opened, spec, h0, h1)
    carried, since, copies = np.concatenate([opened, future], axis=1)
    shown = records.each(are[0], are[2], {FROM: are[1]})
    lasting = {TS: since, TE: np.full(len(since), INF), N: copies}
    # most often what is carried are the open levels as they are shown
    same = len(carried) == shown.num_rows and not future.size
    return Materialized(
        istream=records.each(plus[0], plus[2], {TICK: plus[1]}),
        dstream=records.each(minus[0], -minus[2], {TICK: minus[1]}),
        closed=records.each(was[0], was[3], {FROM: was[1], TO: was[2]}),
        opened=shown,
        carry=records.beside(shown, lasting) if same else records.table(carried, lasting),
        rstream=records.each(repeated.group, repeated.n, {TICK: repeated.tick}),
        rstream_rows=repeated.rows,
    )


@dataclass(frozen=True)
class _Records:
    """The records and their checks: that of a group is in row ``row_of[group]``."""

    rows: pa.Table
    row_of: np.ndarray

    def table(self, groups: np.ndarray, ticks: dict[str, np.ndarray]) -> pa.Table:
        """The records of groups beside columns of numbers."""
        return self.beside(shared_rows.taken(self.rows, self.row_of[groups]), ticks)

    def beside(self, found: pa.Table, ticks: dict[str, np.ndarray]) -> pa.Table:
        """Records that have been taken, beside columns of numbers."""
        names = self.rows.column_names
        fields = [*(found.schema.field(name) for name in names), *(pa.field(name, pa.int64()) for name in ticks)]
        columns = [*(found.column(name) for name in names), *(pa.array(v) for v in ticks.values())]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    def each(self, groups: np.ndarray, copies: np.ndarray, ticks: dict[str, np.ndarray]) -> pa.Table:
        """``table``, one row for each copy."""
        return self.table(np.repeat(groups, copies), {k: np.repeat(v, copies) for k, v in ticks.items()})

    def of(self, group: int) -> dict[str, Any]:
        """The record of a group, for a message."""
        return {k: v[0] for k, v in self.rows.slice(int(self.row_of[group]), 1).to_pydict().items()}


@dataclass(frozen=True)
class _Repeated:
    group: np.ndarray
    tick: np.ndarray
    n: np.ndarray
    rows: int


def _repeated(closed: np.ndarray, opened: np.ndarray, spec: MaterializeSpec, h0: int, h1: int) -> _Repeated:
    # R(t) at the instants of the slice: each level once for each instant that it spans
    empty = np.zeros(0, np.int64)
    if spec.rstream is None:
        return _Repeated(empty, empty, empty, 0)
    group, n = np.append(closed[0], opened[0]), np.append(closed[3], opened[2])
    since = np.maximum(np.append(closed[1], opened[1]), h0 + 1)
    until = np.minimum(np.append(closed[2], np.full(opened.shape[1], INF)), h1 + 1)
    first = spec.rstream.up_to(since - 1)
    instants = np.maximum(spec.rstream.up_to(until - 1) - first, 0)
    rows = int(np.dot(instants.astype(object), n))  # Python integers: the total may be beyond 64 bits
    if rows > spec.most:
        return _Repeated(empty, empty, empty, rows)
    begin = np.cumsum(instants) - instants
    each = np.repeat(np.arange(len(group)), instants)
    number = first[each] + 1 + np.arange(len(each)) - begin[each]
    return _Repeated(group[each], spec.rstream.anchor + number * spec.rstream.every, n[each], rows)


def _grouped(rows: pa.Table, spec: MaterializeSpec) -> tuple[np.ndarray, int]:
    if not spec.columns:
        return np.zeros(rows.num_rows, np.int64), min(1, rows.num_rows)
    return key_codes.codes([rows.column(c) for c in spec.columns])


def _levels(opened: np.ndarray, now: np.ndarray, records: _Records) -> tuple[np.ndarray, np.ndarray]:
    # all open levels lie before all changes in time, so one order by (group, tick) puts them first
    group, tick, n = np.concatenate([opened, now], axis=1)
    order = sorting.sorted_order((group, tick))
    closed, opened, negative = kernel.levels(group[order], tick[order], n[order])
    if negative >= 0:
        i = order[negative]
        raise below_zero(records.of(group[i]), tick[i])
    return closed, opened
