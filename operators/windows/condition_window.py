"""Value-based windows: ``[Tumbling When (condition)]``, ``[Tumbling When (condition) Partition By A,..]``.

Definition (Patroumpas & Sellis 2006, section 3.1, value-based windows, and 3.3, tumbling windows whose end a predicate
determines): an element for which the condition is TRUE ends a bucket, which holds it and the elements after the
previous such element, of its partition where there is one. The bucket is visible from that element's instant until the
next bucket ends. R(t) is taken after all elements of t, so of several buckets that end at one instant only the last is
seen.

Columns in: the record, the partition's values, ``__when`` (the condition), ``__ts`` (the element's instant), ``__n``
(copies). Columns out: the record, ``__ts``, ``__te``, ``__n``, delta-encoded (``arrivals``).

SweepArea: a partition's visible bucket and the elements that no bucket holds yet, since all of them belong to results.

>>> spec = ArrivalSpec(("v",))
>>> when = [False, True, False, True, False]
>>> rows = pa.table({"v": [1, 9, 2, 8, 3], "__when": when, "__ts": [1, 2, 4, 6, 7], "__n": [1, 1, 1, 1, 1]})
>>> bag, carry = sweep(rows, spec, 0, 7)
>>> [tuple(row.values()) for row in bag.to_pylist()[:2]]
[(1, 2, 6, 1), (9, 2, 6, 1)]
>>> carry.column("v").to_pylist()
[2, 8, 3]
"""

from __future__ import annotations

import pyarrow as pa

from sweeparea.operators.kernels import arrivals as kernel
from sweeparea.operators.values.keys import numpy_of, one_array
from sweeparea.operators.windows.arrivals import ArrivalSpec, Visits, carried, delta, in_order

MEETS = "__when"


def sweep(rows: pa.Table, spec: ArrivalSpec, h0: int, h1: int) -> tuple[pa.Table, pa.Table]:
    """(delta, carry) of the slice ``(h0, h1]``. ``rows``: the carry of the previous slice and the slice's elements."""
    elements = in_order(rows, spec)
    meets = numpy_of(one_array(rows.column(MEETS)), False).astype(bool)[elements.row]
    place, n, enter, leave = kernel.condition_visits(elements.group, elements.tick, elements.n, meets)
    visits = Visits(elements.row[place], n, enter, leave)
    stays = leave > h1
    return delta(rows, visits, spec.columns, h0, h1), carried(rows, elements.row[place[stays]], n[stays])
