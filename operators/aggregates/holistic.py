"""Holistic calls: order statistics, the most frequent value, bits. They keep the values, with their numbers of copies.

No sum tells the median of a bag (Gray et al. 1997, "Data cube", section 5), so the state is the bag itself: one row for
each group, value and end, never more than the live (and pending) elements; calls over one argument share it. DISTINCT
needs only whether a value is there: where every end is known, one interval for each value, and pending ones that a gap
parts from it (Golab & Oezsu 2005, section 5.3.1). What an instant costs is O(log n): a Fenwick tree over the group's
values in their order finds the element of a number, a tournament tree the most frequent one.

>>> from sweeparea.operators.aggregates.calls import BaseCall
>>> from sweeparea.operators.sweeps.aggregate import AggregateSpec, rows_schema, sweep
>>> spec = AggregateSpec((), (BaseCall("m", "PERCENTILE", pa.float64(), "v", pa.int64()),), global_=True)
>>> bag = [{"a0": v, "__ts": s, "__te": s + 9, "__n": 1, "__kind": 0} for s, v in [(1, 5), (2, 8), (4, 6)]]
>>> schema = rows_schema(spec)
>>> rows = pa.Table.from_pylist([{name: b.get(name) for name in schema.names} for b in bag], schema)
>>> delta, carry = sweep(rows, spec, -1, 9)
>>> [(r["m"], r["__ts"], r["__te"]) for r in delta.to_pylist() if r["__te"] < 99]
[(None, 0, 1), (5.0, 1, 2), (6.5, 2, 4)]
>>> sorted(v for v in carry.column("a0").to_pylist() if v is not None)
[5, 6, 8]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sweeparea.operators.aggregates.calls import Argument, BaseCall
from sweeparea.operators.aggregates.instants import Elements, Instants, Result
from sweeparea.operators.kernels import holistic as kernel
from sweeparea.operators.values import keys as key_codes


class Percentile(Argument):
    """PERCENTILE(x) by linear interpolation, PERCENTILE_DISC(x), as Spark SQL computes them: in doubles."""

    def results(self, at: Instants, call: BaseCall, present: np.ndarray, copies: np.ndarray) -> Result:
        place, rows = self.places(at)
        discrete = call.function == "PERCENTILE_DISC"
        low, high, weight, negative = kernel.order_statistics(
            at.cut, place, copies, len(rows), float(call.share), discrete
        )
        if negative >= 0:
            at.negative(negative, f"copies of a value of {call}")
        valid = low >= 0
        below, above = self._doubles(rows, low), self._doubles(rows, high)
        with np.errstate(invalid="ignore", over="ignore"):
            between = (1.0 - weight) * below + weight * above
        values = np.where(low == high, below, between) + 0.0
        return Result(_one_nan(values).view(np.int64), valid)

    def _doubles(self, rows: np.ndarray, place: np.ndarray) -> np.ndarray:
        """The values of places as doubles; 0 where there is none."""
        used, back = np.unique(place, return_inverse=True)
        shown = self.array.take(pa.array(rows[used[used >= 0]]))
        if pa.types.is_decimal(shown.type):
            known = np.array([float(v) for v in shown.to_pylist()], np.float64)
        else:
            known = key_codes.numpy_of(shown, 0).astype(np.float64)
        return np.append(np.zeros(int(used[0] < 0) if len(used) else 0), known)[back]


class Mode(Argument):
    """MODE(x): of the most frequent values the least, or with ``descending`` the greatest."""

    def results(self, at: Instants, call: BaseCall, present: np.ndarray, copies: np.ndarray) -> Result:
        place, rows = self.places(at)
        best, negative = kernel.most_frequent(at.cut, place, copies, len(rows))
        if negative >= 0:
            at.negative(negative, f"copies of a value of {call}")
        valid = best >= 0
        return Result(rows[best] if len(rows) else best, valid, lookup=self.array)


class Bits(Argument):
    """BIT_AND(x), BIT_OR(x), BIT_XOR(x) of whole numbers: of each bit the number of values that have it set."""

    def __init__(self, elements: Elements, table: pa.Table, i: int, call: BaseCall):
        super().__init__(elements, table, i, call)
        self.words = key_codes.int64_of(self.array)

    def results(self, at: Instants, call: BaseCall, present: np.ndarray, copies: np.ndarray) -> Result:
        space = np.zeros(self.ranks + 1, np.int64)
        _, negative = kernel.transitions(at.cut, self.rank[at.rows], copies, space)
        if negative >= 0:
            at.negative(negative, f"copies of a value of {call}")
        function = ("BIT_AND", "BIT_OR", "BIT_XOR").index(call.function)
        return Result(kernel.bits(at.cut, self.words[at.rows], copies, function), at.running(copies) > 0)


def _one_nan(values: np.ndarray) -> np.ndarray:
    values[np.isnan(values)] = np.nan
    return values
