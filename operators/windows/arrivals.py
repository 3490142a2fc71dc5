"""What windows that depend on later elements have in common: elements in their order, the delta of their visibility.

Such a window (rows, sessions, conditions) is a sweep over the elements of a slice together with those that the last
slice left: a pure function of rows in the order of (partition, tick, ties), since R(t) is taken after all elements of
instant t, in the total order (semantics, section 3). A row of n copies is n elements that follow each other.

The result is delta-encoded (Hammad et al., section 3.2: negative tuples), for the end is unknown when an element
enters: +n ``[t, INF)`` where it does, -n ``[t, INF)`` where it leaves; ``[t, t')`` where both lie in one slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sweeparea.operators.kernels.sorting import group_order
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys
from sweeparea.operators.values.bag import TE, TS, N
from sweeparea.operators.values.order import record_ranks

UNKNOWN = INF
"""The instant of what has not happened yet."""


@dataclass(frozen=True)
class ArrivalSpec:
    """The rows of such a sweep. ``columns``: the record; ``partition``: further columns, the values of PARTITION BY,
    in which NULL is a value like any other; ``ties``: columns of the record that order the elements of one instant.
    """

    columns: tuple[str, ...]
    partition: tuple[str, ...] = ()
    ties: tuple[str, ...] = ()


@dataclass(frozen=True)
class Arrivals:
    """Elements in their order: ``row[i]`` is the i-th one's row in the input, ``group`` its partition's code.

    ``tick`` is its instant, ``n`` its copies.
    """

    row: np.ndarray
    group: np.ndarray
    tick: np.ndarray
    n: np.ndarray


def in_order(rows: pa.Table, spec: ArrivalSpec) -> Arrivals:
    """The elements of ``rows`` (record, partition, ``__ts``, ``__n`` > 0) by partition, instant and ties."""
    tick, n = keys.int64_of(rows.column(TS)), keys.int64_of(rows.column(N))
    if spec.partition:
        group, groups = keys.codes([rows.column(c) for c in spec.partition])
    else:
        group, groups = np.zeros(len(tick), np.int64), 1
    order = group_order(group, groups, tick)
    order = _ties_broken(rows, spec.ties, order, group[order], tick[order])
    return Arrivals(order, group[order], tick[order], n[order])


def _ties_broken(
    rows: pa.Table, ties: Sequence[str], order: np.ndarray, group: np.ndarray, tick: np.ndarray
) -> np.ndarray:
    # ranks cost more than all the rest: only what really meets at an instant is ranked
    if len(order) < 2 or not ties:
        return order
    same = (group[1:] == group[:-1]) & (tick[1:] == tick[:-1])
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if not len(tied):
        return order
    among = order[tied]
    ranks = record_ranks(rows.take(pa.array(among)), ties)[0]
    order = order.copy()
    order[tied] = among[np.lexsort((ranks, tick[tied], group[tied]))]
    return order


@dataclass(frozen=True)
class Visits:
    """When elements are visible: ``n`` copies of ``row`` from ``enter`` until ``leave``, ``UNKNOWN`` what lies ahead.

    ``end``: when they leave at the latest, known from the start; None: no such end.
    """

    row: np.ndarray
    n: np.ndarray
    enter: np.ndarray
    leave: np.ndarray
    end: np.ndarray | None = None


def delta(rows: pa.Table, visits: Visits, columns: Sequence[str], h0: int, h1: int) -> pa.Table:
    """The bag that the slice ``(h0, h1]`` adds: record, ``__ts``, ``__te``, ``__n``."""
    end = np.full(len(visits.row), INF) if visits.end is None else visits.end
    until = np.minimum(visits.leave, end)
    comes = (visits.enter > h0) & (visits.enter <= h1) & (visits.enter < until)
    goes = (visits.enter <= h0) & (visits.leave <= h1) & (visits.leave < end)
    ts = np.concatenate([visits.enter[comes], visits.leave[goes]])
    te = np.concatenate([until[comes], end[goes]])
    n = np.concatenate([visits.n[comes], -visits.n[goes]])
    taken = rows.select(list(columns)).take(pa.array(np.concatenate([visits.row[comes], visits.row[goes]])))
    return pa.Table.from_arrays([*taken.columns, *map(pa.array, (ts, te, n))], names=[*columns, TS, TE, N])


def carried(rows: pa.Table, row: np.ndarray, n: np.ndarray) -> pa.Table:
    """``rows`` at the positions ``row`` with ``n`` copies each; equal positions, which follow each other, become one
    row.
    """
    if len(row):
        first = np.flatnonzero(np.append(True, row[1:] != row[:-1]))
        row, n = row[first], np.add.reduceat(n, first)
    table = rows.take(pa.array(row))
    return table.set_column(table.schema.get_field_index(N), N, pa.array(n, pa.int64()))
