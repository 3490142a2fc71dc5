"""The sweep below difference, intersection and semi join: per record two counts and what is made of them.

A record has n1 copies in the left bag and n2 in the right one; its copies in the result are a function of both, at
every instant (Kraemer & Seeger 2005, sections 3.2.5 and 3.6 to 3.8; Golab & Oezsu 2005, section 2.1, eq. 1; Hammad et
al., section 4.3). All records of a partition are swept at once in the order of (record, tick): what starts and what
ends at one tick is counted before the result is looked at, so a copy of the left that expires together with one of the
right changes nothing, and an expiry on the right is answered at its own instant (Hammad et al., Figure 7).

Where both inputs know every expiry and more rows can only make the result larger, it is *interval* encoded: each
slice adds the intervals by which its rows enlarge the result, also beyond the slice's end, and no negative tuple ever
leaves. Where more rows can make it smaller, the same can be asked for, with negative rows as corrections. Else it is
*delta* encoded: +n ``[t, INF)`` and -n ``[t, INF)``, or ``[t, t')`` for what comes and goes within the slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sweeparea.infra.errors import DataError
from sweeparea.operators.kernels import two_counts as kernel
from sweeparea.operators.kernels.aggregate import united
from sweeparea.operators.kernels.instants import segments
from sweeparea.operators.kernels.sorting import group_order, sorted_order
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys
from sweeparea.operators.values.bag import BAG, TE, TS, N, below_zero
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.operators.values.netting import changes_after

SIDE = "__side"
"""TINYINT: ``LEFT`` or ``RIGHT``, and ``CARRIED`` more for a row that an earlier slice left."""
LEFT, RIGHT, CARRIED = 0, 1, 2


@dataclass(frozen=True)
class Operation:
    """What becomes of the two counts. ``code`` is the kernel's.

    ``grows``: more copies in either bag never make the result smaller. ``presence``: of which bags (left, right) only
    matters whether a record is there at all.
    """

    code: int
    grows: bool
    presence: tuple[bool, bool]


DIFFERENCE = Operation(kernel.DIFFERENCE, False, (False, False))
EXCEPT = Operation(kernel.EXCEPT, False, (True, True))
STRICT_DIFFERENCE = Operation(kernel.STRICT, False, (False, True))
INTERSECT_ALL = Operation(kernel.INTERSECT_ALL, True, (False, False))
INTERSECT = Operation(kernel.INTERSECT, True, (True, True))
SEMI = Operation(kernel.SEMI, True, (False, True))
MAX_UNION = Operation(kernel.MAX_UNION, True, (False, False))
DISTINCT = Operation(kernel.DISTINCT, True, (True, True))


@dataclass(frozen=True)
class TwoCountsSpec:
    """What to compute, and of which records. ``known``: whether each row of the (left, right) bag has its final end.

    ``expected``: where both have, the result's rows carry the ends that hold if nothing more comes, and negative rows
    correct them (Golab & Oezsu 2005, section 5.3.2: negative tuples for premature expiry alone).
    """

    columns: tuple[str, ...]
    operation: Operation
    known: tuple[bool, bool] = (False, False)
    expected: bool = False

    @property
    def ahead(self) -> bool:
        """Whether the result's rows carry their ends."""
        return (self.operation.grows or self.expected) and all(self.known)

    def sweep(self, rows: pa.Table, h0: int, h1: int) -> tuple[pa.Table, pa.Table]:
        """``sweep`` of this spec."""
        return sweep(rows, self, h0, h1)


def rows_schema(record: Sequence[pa.Field]) -> pa.Schema:
    """Schema of the sweep's input and carry: the record, ``__ts``, ``__te``, ``__n``, ``__side``."""
    return pa.schema([*record, *BAG_FIELDS, pa.field(SIDE, pa.int8())])


def sweep(rows: pa.Table, spec: TwoCountsSpec, h0: int, h1: int) -> tuple[pa.Table, pa.Table]:
    """(what the slice ``(h0, h1]`` adds to the result, carry). ``rows`` (``rows_schema``, in any order): carry and new.

    Result: the record, ``__ts``, ``__te``, ``__n``. Carry: per record and side its count and one row for each future
    instant at which that is known to change; where only presence matters and every end is known, the intervals in
    which the record is there, none touching another: one from h1 on, and pending ones that a gap parts from it.

    Errors (DataError): a record of which a bag holds fewer than no copies.
    """
    return _TwoBags(rows, spec, h0, h1).run()


def whole(left: pa.Table, right: pa.Table, columns: Sequence[str], operation: Operation) -> pa.Table:
    """The result for two bags (record, ``__ts``, ``__te``, ``__n``) that are known to the end of time."""
    schema = rows_schema([left.schema.field(c) for c in columns])
    sides = []
    for bag, side in ((left, LEFT), (right, RIGHT)):
        given = bag.select([*columns, *BAG]).columns
        sides.append(pa.Table.from_arrays([*given, pa.array(np.full(bag.num_rows, side, np.int8))], schema=schema))
    rows = pa.concat_tables(sides)
    start = keys.int64_of(rows.column(TS))
    return sweep(rows, TwoCountsSpec(tuple(columns), operation), int(start.min(initial=0)) - 1, INF - 1)[0]


def refuse_negative_tuples(what: str, known: Sequence[bool], n: np.ndarray, right: np.ndarray, new: np.ndarray) -> None:
    """DataError where a side whose ends are ``known`` has a new row with fewer than no copies."""
    if any(each and np.any((n < 0) & (right == side) & new) for side, each in enumerate(known)):
        raise DataError(
            f"{what} whose input was said to know every element's expiry got a negative tuple: the plan is wrong about"
            " expiry."
        )


class _TwoBags:
    def __init__(self, rows: pa.Table, spec: TwoCountsSpec, h0: int, h1: int) -> None:
        self.spec, self.h0, self.h1 = spec, h0, h1
        n, side = keys.int64_of(rows.column(N)), keys.int64_of(rows.column(SIDE))
        start, end = keys.int64_of(rows.column(TS)), keys.int64_of(rows.column(TE))
        carried = side >= CARRIED
        start = np.maximum(start, np.where(carried, h0, h0 + 1))
        used = (end > start) & (n != 0)
        if not used.all():
            rows = rows.filter(pa.array(used))
            n, side, start, end, carried = n[used], side[used], start[used], end[used], carried[used]
        self.rows, self.start, self.end, self.n = rows, start, end, n
        self.carried, self.right = carried, (side & RIGHT).astype(np.bool_)
        refuse_negative_tuples("A difference or intersection", spec.known, n, self.right, ~carried)
        names = spec.columns
        self.group, self.groups = keys.codes([rows.column(c) for c in names]) if names else (np.zeros(len(n), int), 1)

    def run(self) -> tuple[pa.Table, pa.Table]:
        return self._result(), self._carry()

    def _result(self) -> pa.Table:
        if not len(self.n):
            return self._table(np.zeros(0, np.int64), self.start, self.end, self.n)
        order = group_order(self.group, self.groups, self.start)
        group, start, end = self.group[order], self.start[order], self.end[order]
        last = self.h1
        if self.spec.ahead:  # also what is known of the time to come
            last = max(int(start[-1] if self.groups == 1 else start.max()), int(end[end != INF].max(initial=self.h1)))
        cut = segments(group, start, end, min(last, INF - 1))
        rows = kernel.SidedRows(self.right[order], self.carried[order], self.n[order])
        op = self.spec.operation
        source, ts, te, n, negative = kernel.emissions(
            cut, rows, op.code, self.spec.ahead, not op.grows, self.h0, self.h1
        )
        if negative >= 0:
            self._below_zero(int(order[cut.a_row(negative)]), int(cut.tick[negative]))
        return self._table(order[cut.a_row(source)], ts, te, n)

    def _below_zero(self, row: int, tick: int) -> None:
        record = {c: self.rows.column(c)[row].as_py() for c in self.spec.columns}
        raise below_zero(record, tick)

    def _table(self, at: np.ndarray, ts: np.ndarray, te: np.ndarray, n: np.ndarray) -> pa.Table:
        record = keys.canonical(self.rows.select(list(self.spec.columns)).take(pa.array(at)))
        arrays = [*record.columns, pa.array(ts), pa.array(te), pa.array(n)]
        return pa.Table.from_arrays(arrays, schema=pa.schema([*record.schema, *((c, pa.int64()) for c in BAG)]))

    def _carry(self) -> pa.Table:
        parts = [self._carried_side(right) for right in (False, True)]
        return pa.concat_tables(parts)

    def _carried_side(self, right: bool) -> pa.Table:
        at = np.flatnonzero((self.end > self.h1) & (self.right == right))
        group, start, end, n = self.group[at], np.maximum(self.start[at], self.h1), self.end[at], self.n[at]
        if self.spec.known[right] and self.spec.operation.presence[right]:
            row, start, end = united(sorted_order((group, start)), group, start, end)
            table = self._table(at[row], start, end, np.ones(len(row), np.int64))
        else:
            group, start, n = changes_after(group, start, end, n, self.h1)
            a_row = np.zeros(self.groups, np.int64)
            a_row[self.group] = np.arange(len(self.group))
            table = self._table(a_row[group], start, np.full(len(n), INF), n)
        side = np.full(table.num_rows, CARRIED + right, np.int8)
        return table.append_column(pa.field(SIDE, pa.int8()), pa.array(side))
