"""The changes of many counts, netted per instant: the least that tells a signed temporal bag."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sweeparea.operators.kernels.sorting import sorted_order
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys
from sweeparea.operators.values.bag import TE, TS, N
from sweeparea.operators.values.columns import with_columns


def netted(group: np.ndarray, tick: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Rows (group, tick, n), one column per (group, tick) in that order, those with a net n of zero dropped.

    >>> netted(np.array([0, 1, 0]), np.array([5, 5, 5]), np.array([2, 1, -2])).tolist()
    [[1], [5], [1]]
    """
    rows, net = netted_rows((group, tick), n)
    return np.stack([group[rows], tick[rows], net])


def netted_rows(columns: Sequence[np.ndarray], n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a row of each combination of ``columns`` whose ``n`` do not sum up to zero, the sums)."""
    if not len(n):
        return np.zeros(0, np.int64), n
    order = sorted_order(columns)
    change = np.zeros(len(order), np.bool_)
    change[0] = True
    for column in columns:
        ordered = column[order]
        change[1:] |= ordered[1:] != ordered[:-1]
    begins = np.flatnonzero(change)
    sums = np.add.reduceat(n[order], begins)
    left = sums != 0
    return order[begins[left]], sums[left]


def changes_after(group: np.ndarray, start: np.ndarray, end: np.ndarray, n: np.ndarray, h1: int) -> np.ndarray:
    """``netted`` changes of each group's count from ``h1`` on: at ``h1`` the count itself, then each future change.

    Rows ``[start, end)`` with n copies; those that ended must have been left out.
    """
    ends = np.flatnonzero(end != INF)
    return netted(np.append(group, group[ends]), np.append(np.maximum(start, h1), end[ends]), np.append(n, -n[ends]))


def gathered(rows: pa.Table) -> pa.Table:
    """Rows with a column ``__n``: those that are equal but for it are one, with the sum of their copies.

    >>> gathered(pa.table({"k": [7, 8, 7], "__ts": [3, 3, 3], "__n": [1, 1, 2]})).to_pylist()
    [{'k': 7, '__ts': 3, '__n': 3}, {'k': 8, '__ts': 3, '__n': 1}]
    """
    names = [c for c in rows.column_names if c != N]
    if not rows.num_rows:
        return rows
    codes, count = keys.codes([rows.column(c) for c in names])
    n = np.zeros(count, np.int64)
    np.add.at(n, codes, keys.int64_of(rows.column(N)))
    return with_columns(rows.take(pa.array(keys.first_rows(codes, count))), {N: n})


def net_changes(rows: pa.Table) -> pa.Table:
    """A bag (its record's columns, then ``__ts``, ``__te``, ``__n``) as one row ``[t, INF)`` for each record and
    instant at which its number of copies changes: where a record ends as an equal one begins there is none.

    >>> bag = pa.table({"k": [1, 1, 1], "__ts": [3, 3, 5], "__te": [INF, 5, INF], "__n": [-1, 1, 1]})
    >>> net_changes(bag).num_rows, net_changes(bag.slice(1)).to_pylist() == [{"k": 1, "__ts": 3, "__te": INF, "__n": 1}]
    (0, True)
    """
    names = [c for c in rows.column_names if c not in (TS, TE, N)]
    start, end, n = (keys.int64_of(rows.column(c)) for c in (TS, TE, N))
    used = np.flatnonzero(end > start)
    codes, count = np.zeros(rows.num_rows, np.int64), min(1, rows.num_rows)
    if names and rows.num_rows:
        codes, count = keys.codes([rows.column(c) for c in names])
    ends = used[end[used] != INF]
    code, tick, net = netted(
        np.append(codes[used], codes[ends]), np.append(start[used], end[ends]), np.append(n[used], -n[ends])
    )
    told = rows.take(pa.array(keys.first_rows(codes, count)[code]))
    return with_columns(told, {TS: tick, TE: np.full(len(tick), INF), N: net})


def compacted(rows: pa.Table, h1: int) -> pa.Table:
    """The rows of a bag (its record's columns, then ``__ts``, ``__te``, ``__n``) that matter after ``h1``, netted.

    Equal records that end together are one row; what began by ``h1`` begins there; a row and its negative tuple are
    gone. So a side of a join that is fed with negative tuples is no larger than what is alive (Hammad et al., section
    4.6; Kraemer & Seeger 2005, section 4.2.3: reorganization).

    >>> bag = pa.table({"k": [1, 1, 2], "__ts": [0, 3, 2], "__te": [INF, INF, 9], "__n": [1, -1, 1]})
    >>> compacted(bag, 5).to_pylist()
    [{'k': 2, '__ts': 5, '__te': 9, '__n': 1}]
    """
    names = [c for c in rows.column_names if c not in (TS, TE, N)]
    start, end, n = (keys.int64_of(rows.column(c)) for c in (TS, TE, N))
    live = np.flatnonzero((end > h1 + 1) & (end > start) & (n != 0))
    rows = rows.take(pa.array(live))
    start, end, n = np.maximum(start[live], h1), end[live], n[live]
    codes = keys.codes([rows.column(c) for c in names])[0] if names and len(live) else np.zeros(len(live), np.int64)
    after_all = int(end[end != INF].max(initial=h1)) + 1  # stands for INF, so that the ends' range stays small
    order = sorted_order((codes, start, np.where(end == INF, after_all, end)))
    codes, start, end, n = codes[order], start[order], end[order], n[order]
    if not len(order):
        return rows
    change = (codes[1:] != codes[:-1]) | (start[1:] != start[:-1]) | (end[1:] != end[:-1])
    first = np.flatnonzero(np.append(True, change))
    net = np.add.reduceat(n, first)
    head = first[net != 0]
    kept = rows.take(pa.array(order[head]))
    columns = {TS: start[head], TE: end[head], N: net[net != 0]}
    return with_columns(kept, columns)
