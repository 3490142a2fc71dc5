"""Calls that choose one element: the least of an order. A heap of the group's values gives it at every instant.

MIN and MAX order by the value itself. FIRST orders by the columns of its order, complete with its ties, and gives the
value beside them; LAST, MAX_BY and MIN_BY are FIRST of other orders. SINGLE_VALUE is what a scalar subquery gives: the
value of the one row, NULL of none. Where every end is known an element besides which another one is valid all its time,
and as good, can be forgotten: what is kept is what may yet be the first alone, so of those that are alive at most one
element for each group and end. These are the values of Kraemer & Seeger 2005, Algorithm 8, which keeps the aggregate of
each stretch of the time to come. Else the live elements are kept.

>>> from sweeparea.operators.sweeps.aggregate import AggregateSpec, rows_schema, sweep
>>> spec = AggregateSpec((), (BaseCall("m", "MIN", pa.int64(), "v", pa.int64()),), global_=True, expiry_known=True)
>>> bag = [{"a0": v, "__ts": s, "__te": s + 9, "__n": 1, "__kind": 0} for s, v in [(1, 5), (2, 8), (4, 6), (5, 7)]]
>>> schema = rows_schema(spec)
>>> rows = pa.Table.from_pylist([{name: b.get(name) for name in schema.names} for b in bag], schema)
>>> sorted(v for v in sweep(rows, spec, -1, 9)[1].column("a0").to_pylist() if v is not None)
[5, 6, 7]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sweeparea.infra.errors import DataError
from sweeparea.operators.aggregates.calls import Argument, BaseCall
from sweeparea.operators.aggregates.instants import Elements, Instants, Result
from sweeparea.operators.kernels import aggregate as kernel
from sweeparea.operators.values import keys as key_codes
from sweeparea.operators.values.order import ranks


class Extremum(Argument):
    """MIN(x), MAX(x): the less its ``rank``, the better a value, whichever of the two."""

    def __init__(self, elements: Elements, table: pa.Table, i: int, call: BaseCall):
        super().__init__(elements, table, i, call)
        count = self.ranks
        self.position = np.zeros(count + 1, np.int64)  # of a row whose value has this rank
        self.position[self.rank] = np.arange(len(self.rank))
        self.lookup, self.shows = self.array, np.ones(count + 1, np.bool_)
        self.space = kernel.Candidates(
            np.zeros(count + 1, np.int64), np.zeros(count + 1, np.bool_), np.empty(count + 1, np.int64)
        )

    def _ranked(self, call: BaseCall) -> tuple[np.ndarray, int]:
        rank, count = super()._ranked(call)
        return (count - 1 - rank, count) if call.function == "MAX" else (rank, count)

    def results(self, at: Instants, call: BaseCall, present: np.ndarray, copies: np.ndarray) -> Result:
        least, negative = kernel.running_least(at.cut, self.rank[at.rows], copies, self.space)
        if negative >= 0:
            at.negative(negative, f"copies of a value of {call}")
        return Result(self.position[least], (least >= 0) & self.shows[least], lookup=self.lookup)


class First(Extremum):
    """FIRST(v) in the order of ``call.order``: of structs of the order's columns and ``v``, NULL for what does not
    count.
    """

    def __init__(self, elements: Elements, table: pa.Table, i: int, call: BaseCall):
        super().__init__(elements, table, i, call)
        self.lookup = self.array.flatten()[self.array.type.get_field_index("v")]
        # rows of one value are one position, so that another first row with an equal value is no change
        code, count = key_codes.column_codes(self.lookup)
        a_row = np.zeros(count + 1, np.int64)
        a_row[code] = np.arange(len(code))
        if len(code):
            self.position = a_row[code[self.position]]
            self.shows = self.lookup.is_valid().to_numpy(zero_copy_only=False)[self.position]

    def _ranked(self, call: BaseCall) -> tuple[np.ndarray, int]:
        t = self.array.type
        fields = pa.Table.from_arrays(self.array.flatten(), names=[t.field(k).name for k in range(t.num_fields)])
        rank = ranks(fields, call.order)
        return rank, int(rank.max(initial=-1)) + 1


class Single(Extremum):
    """SINGLE_VALUE(x): the value of the only element, NULL where there is none; more than one are an error."""

    def results(self, at: Instants, call: BaseCall, present: np.ndarray, copies: np.ndarray) -> Result:
        elements = at.running(self.elements.copies(at.rows))
        bad = np.flatnonzero((elements > 1) & (at.tick > at.h0))
        if len(bad):
            raise DataError(
                f"A scalar subquery has more than one row ({elements[bad[0]]}) at {at.place(int(bad[0]))}. Make it an"
                " aggregate (MIN, MAX, COUNT, ..), give it ORDER BY .. LIMIT 1, or compare with IN or EXISTS instead."
            )
        return super().results(at, call, present, copies)
