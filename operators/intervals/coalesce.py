"""Coalesce: adjacent intervals of equal records become one (Kraemer & Seeger 2005, section 4.3.2.10, Algorithm 10).

Definition: an element ``[ts, te)`` whose record equals that of an earlier result ``[s, ts)`` makes it ``[s, te)``,
unless that is already longer than ``most``: then it is not enlarged any more, so that an endless sequence cannot keep
it back. Snapshots stay as they are. Fewer rows travel and are kept, for expiry that is noticed later; ``split.py`` is
the inverse.

Columns in and out: the record, ``__ts``, ``__te``, ``__n``, which is positive. SweepArea: none, the bag is whole.

>>> bag = pa.table({"k": [7, 7, 7, 8], "__ts": [1, 4, 9, 4], "__te": [4, 9, 12, 6], "__n": [1, 2, 1, 1]})
>>> [tuple(row.values()) for row in coalesce(bag, ["k"]).to_pylist()]
[(7, 1, 12, 1), (7, 4, 9, 1), (8, 4, 6, 1)]
>>> [tuple(row.values()) for row in coalesce(bag.slice(0, 3), ["k"], most=5).to_pylist()]
[(7, 1, 9, 1), (7, 4, 12, 1)]
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys
from sweeparea.operators.values.bag import TE, TS, N
from sweeparea.operators.values.columns import with_columns


def coalesce(bag: pa.Table, columns: Sequence[str], most: int = INF) -> pa.Table:
    """The bag in as few rows as its adjacent intervals allow; ``columns`` are the record's. In the order of ``__ts``.

    Of several results that an element could enlarge it enlarges the one that was made first.
    """
    start, end, n = (keys.int64_of(bag.column(c)) for c in (TS, TE, N))
    codes = keys.codes([bag.column(c) for c in columns])[0] if columns and len(n) else np.zeros(len(n), np.int64)
    used = np.flatnonzero(end > start)
    touching = _touching(codes[used], start[used], end[used])
    alone, used = used[~touching], used[touching]
    rows, ts, te, copies = (
        np.append(np.array(made, np.int64), column[alone])
        for made, column in zip(
            _enlarged(codes, start, end, n, used, most), (np.arange(len(n)), start, end, n), strict=True
        )
    )
    order = np.argsort(ts, kind="stable")
    return with_columns(bag.take(pa.array(rows[order])), {TS: ts[order], TE: te[order], N: copies[order]})


def _touching(codes: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Which rows begin where an equal one ends, or end where one begins: few, as a rule."""
    size = len(codes)
    code, tick = np.tile(codes, 2), np.append(start, end)
    order = np.lexsort((tick, code))
    change = np.append(True, (np.diff(code[order]) != 0) | (np.diff(tick[order]) != 0))[: 2 * size]
    run = np.cumsum(change) - 1
    begins, ends = (np.bincount(run, weights=order < size), np.bincount(run, weights=order >= size))
    marked = np.empty(2 * size, np.bool_)
    marked[order] = ((begins > 0) & (ends > 0))[run]
    return marked[:size] | marked[size:]


def _enlarged(
    codes: np.ndarray, start: np.ndarray, end: np.ndarray, n: np.ndarray, used: np.ndarray, most: int
) -> Iterable[Sequence[int]]:
    """Rows, starts, ends and copies of the results of the rows ``used``."""
    order = used[np.lexsort((end[used], codes[used], start[used]))]
    made: list[list[int]] = []  # row, start, end, copies
    growing: dict[tuple[int, int], deque[int]] = defaultdict(deque)  # (code, end) -> places in ``made``
    for row in order.tolist():
        code, ts, te, copies = int(codes[row]), int(start[row]), int(end[row]), int(n[row])
        waiting = growing.get((code, ts))
        while waiting and copies:
            place = waiting.popleft()
            _, since, until, there = made[place]
            if until - since > most:
                continue
            merged = min(copies, there)
            if merged < there:  # some copies stay behind, and may be enlarged by the next element
                made.append([made[place][0], since, until, there - merged])
                waiting.appendleft(len(made) - 1)
            made[place][2:] = [te, merged]
            growing[code, te].append(place)
            copies -= merged
        if copies:
            growing[code, te].append(len(made))
            made.append([row, ts, te, copies])
    return zip(*made, strict=True) if made else ([], [], [], [])
