"""Row windows: ``[Rows N]``, ``[Rows N Slide k]``, ``[Partition By A,.. Rows N]``, ``.. Rows N Range T]``.

Definition (Arasu et al. 2003, sections 6.1.2 and 6.1.3; Patroumpas & Sellis 2006, section 3.2, count-based and
partitioned windows; hops of several tuples: 3.1): an element is in the window until the N-th later element, of its
partition where there is one. With Slide k the window shows the last N elements as of the greatest multiple of k
arrivals since START. With Range T an element also leaves T ticks after its instant. R(t) is taken after all elements of
t, so an element that N others of its own instant follow is never seen.

Columns in: the record, the partition's values, ``__ts`` (the element's instant), ``__n`` (copies), ``__at``: the number
of the last copy among the partition's arrivals, 0 for a new row. Columns out: the record, ``__ts``, ``__te``, ``__n``,
delta-encoded (``arrivals``).

SweepArea: a FIFO a partition, of its last N elements, N + k - 1 with Slide k: no matter how many have arrived. With
Range T those that T has ended are gone too.

>>> spec = RowsSpec(ArrivalSpec(("v",)), count=2)
>>> arrivals = pa.table({"v": ["a", "b", "c"], "__ts": [1, 2, 4], "__n": [1, 1, 1], "__at": [0, 0, 0]})
>>> bag, carry = sweep(arrivals, spec, 0, 4)
>>> [tuple(row.values()) for row in bag.to_pylist()[:1]]
[('a', 1, 4, 1)]
>>> carry.column("v").to_pylist()
['b', 'c']
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from sweeparea.operators.kernels import arrivals as kernel
from sweeparea.operators.kernels.sorting import sorted_order
from sweeparea.operators.time.ticks import INF, MAX_TICK
from sweeparea.operators.values import keys
from sweeparea.operators.windows.arrivals import ArrivalSpec, Visits, carried, delta, in_order

AT = "__at"

_MOST = 1 << 61  # no partition will ever have had so many arrivals


@dataclass(frozen=True)
class RowsSpec:
    """``count`` N, ``slide`` k, ``length`` T in ticks (half-open) or None."""

    arrivals: ArrivalSpec
    count: int
    slide: int = 1
    length: int | None = None


def sweep(rows: pa.Table, spec: RowsSpec, h0: int, h1: int) -> tuple[pa.Table, pa.Table]:
    """(delta, carry) of the slice ``(h0, h1]``. ``rows``: the carry of the previous slice and the slice's elements."""
    # equal elements of one instant keep the places that they have been given
    elements = in_order(rows, replace(spec.arrivals, ties=(*spec.arrivals.ties, AT)))
    known = keys.int64_of(rows.column(AT))[elements.row]
    last = kernel.positions(elements.group, elements.n, known)
    slide = min(spec.slide, _MOST)
    place, n, enter, leave = kernel.visits(
        elements.group, elements.tick, elements.n, last, min(spec.count, _MOST), slide
    )
    end = None if spec.length is None else _ends(elements.tick[place], spec.length)
    visits = Visits(elements.row[place], n, enter, leave, end)
    stays = leave > h1
    if end is not None:
        stays &= end > h1 + 1
    place, n = place[stays], n[stays]
    if slide > 1:  # the newest element of a partition tells how many there have been
        place, n = _with_newest(elements.group, place, n)
    stamped = rows.set_column(rows.schema.get_field_index(AT), AT, pa.array(_scattered(elements.row, last)))
    return delta(rows, visits, spec.arrivals.columns, h0, h1), carried(stamped, elements.row[place], n)


def _ends(tick: np.ndarray, length: int) -> np.ndarray:
    if length > MAX_TICK:
        return np.full(len(tick), INF)
    return np.where(tick > MAX_TICK - length, INF, tick + length)


def _with_newest(group: np.ndarray, place: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    missing = np.append(group[1:] != group[:-1], True) if len(group) else np.zeros(0, np.bool_)
    missing[place] = False
    added = np.flatnonzero(missing)
    place, n = np.append(place, added), np.append(n, np.zeros(len(added), np.int64))
    order = sorted_order((place,))
    return place[order], n[order]


def _scattered(row: np.ndarray, values: np.ndarray) -> np.ndarray:
    out = np.empty(len(values), np.int64)
    out[row] = values
    return out
