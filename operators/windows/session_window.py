"""Session windows: ``[Session G]``, ``[Session G Partition By A,..]``.

Definition (beyond the papers; Spark's and Flink's sessions): an element closer than G to its predecessor, of its
partition where there is one, shares its session. The elements of a session are valid together in ``[last+G-1,
last+G)``, once: at the last instant at which another element could have joined them.

Columns in: the record, the partition's values, ``__ts`` (the element's instant), ``__n`` (copies). Columns out: the
record, the bounds ``[first, last+G)`` as ``__first`` and ``__past`` (WINDOW_START, WINDOW_END), ``__ts``, ``__te``,
``__n``.

SweepArea: the elements of the sessions that are open at h1, and no others. A session may go on for ever: all of its
elements belong to the result, so no smaller area would do.

>>> spec = SessionSpec(ArrivalSpec(("v",)), gap=3)
>>> bag, carry = sweep(pa.table({"v": ["a", "b", "c"], "__ts": [1, 3, 7], "__n": [1, 1, 1]}), spec, 0, 7)
>>> [tuple(row.values()) for row in bag.to_pylist()]
[('a', 1, 6, 5, 6, 1), ('b', 1, 6, 5, 6, 1)]
>>> carry.column("v").to_pylist()
['c']
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sweeparea.operators.time.ticks import INF, MAX_TICK
from sweeparea.operators.values.bag import TE, TS, N
from sweeparea.operators.windows.arrivals import ArrivalSpec, in_order

FIRST = "__first"
PAST = "__past"


@dataclass(frozen=True)
class SessionSpec:
    """``gap`` G in ticks."""

    arrivals: ArrivalSpec
    gap: int


def sweep(rows: pa.Table, spec: SessionSpec, h0: int, h1: int) -> tuple[pa.Table, pa.Table]:
    """(delta, carry) of the slice ``(h0, h1]``. ``rows``: the carry of the previous slice and the slice's elements."""
    elements = in_order(rows, spec.arrivals)
    group, tick = elements.group, elements.tick
    size = len(tick)
    begins = np.ones(size, np.bool_)
    begins[1:] = (group[1:] != group[:-1]) | (tick[1:] - tick[:-1] >= spec.gap)
    start = np.flatnonzero(begins)
    number = np.cumsum(begins) - 1
    last = tick[np.append(start[1:], size) - 1] if size else tick
    # beyond the time domain a session never closes
    closes = np.where(last > MAX_TICK - spec.gap + 1, INF, last + (spec.gap - 1))[number]
    closed = np.flatnonzero(closes <= h1)
    ticks = closes[closed]
    columns = list(spec.arrivals.columns)
    taken = rows.select(columns).take(pa.array(elements.row[closed]))
    bag = pa.Table.from_arrays(
        [
            *taken.columns,
            *map(pa.array, (tick[start[number[closed]]], ticks + 1, ticks, ticks + 1, elements.n[closed])),
        ],
        names=[*columns, FIRST, PAST, TS, TE, N],
    )
    return bag, rows.take(pa.array(elements.row[closes > h1]))
