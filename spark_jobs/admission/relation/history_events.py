"""HISTORY BY (valid_from, valid_to): rows with an interval of validity as changes of a relation's contents.

A row that is valid in ``[from, to)`` is one copy more of its record from the instant ``from`` on and one copy less from
``to`` on; without ``to`` it stays. What a source version removes counts the other way round. A version is taken as one:
its changes are netted per record and instant, so that a row whose end was filled in is that end and nothing else
(semantics, section 8).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sweeparea.operators.values import keys
from sweeparea.operators.values.bag import N

FROM, TO, TICK = "__from", "__to", "__tick"


def events(rows: pa.Table, record: Sequence[str]) -> pa.Table:
    """The changes that the rows of one source version amount to.

    ``rows``: the source's columns, ``__from`` and ``__to`` (BIGINT ticks, no ``__from`` NULL; ``__to`` may be) and
    ``__n`` (copies added, or negative: removed). Returns the source's columns, ``__tick`` and ``__n``, never 0: one
    row a record (``record``: its columns) and instant, which stands for those that made the change.

    >>> rows = pa.table({"r": ["x", "x"], "__from": [3, 3], "__to": [None, 9], "__n": [-1, 1]})
    >>> events(rows, ["r"]).to_pylist()
    [{'r': 'x', '__tick': 9, '__n': -1}]
    """
    n, start = keys.int64_of(rows.column(N)), keys.int64_of(rows.column(FROM))
    ends = np.flatnonzero(rows.column(TO).is_valid().to_numpy())
    code = keys.codes([rows.column(c) for c in record])[0]
    row = np.append(np.arange(rows.num_rows), ends)
    tick = np.append(start, keys.int64_of(rows.column(TO))[ends])
    copies = np.append(n, -n[ends])
    at, ticks, net = representatives(code[row], tick, copies)
    kept = rows.drop_columns([FROM, TO, N]).take(pa.array(row[at]))
    return kept.append_column(TICK, pa.array(ticks)).append_column(N, pa.array(net))


def representatives(code: np.ndarray, tick: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(position, tick, net n) of each (code, tick) whose net is not 0: the position is that of the last one that goes
    the same way as the net.

    >>> [part.tolist() for part in representatives(np.array([0, 0, 0]), np.array([4, 4, 7]), np.array([1, -1, 2]))]
    [[2], [7], [2]]
    """
    if not len(code):
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.lexsort((n, tick, code))
    code, tick, n = code[order], tick[order], n[order]
    first = np.flatnonzero(np.append(True, (code[1:] != code[:-1]) | (tick[1:] != tick[:-1])))
    last = np.append(first[1:], len(code)) - 1
    net = np.add.reduceat(n, first)
    # in each run the negative ones stand first
    at = np.where(net < 0, order[first], order[last])
    there = net != 0
    return at[there], tick[first][there], net[there]
