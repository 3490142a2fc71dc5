"""The sweep of semi and anti joins by key: left rows for as long as the right side has any row of their key, or none.

Definition, at every instant: E is 1 for a key of which the right side has a row, else 0. Of each left record the semi
join has L x E copies, the anti join L x (1 - E) (Golab & Oezsu 2005, section 2.1: negation; ``semi_join.py``). Both
are bilinear, so that a slice adds

    new(L) x E  +  held(L) x new(E)          new(L) x (1 - E)  -  held(L) x new(E)

where E is what all rows say that have come and new(E) how that differs from what the carried ones said: a left row is
looked at again only where its key appears or goes. Results carry the ends that are expected by what is known, also
beyond the slice's end; where later rows make that otherwise, rows of either sign say so at once (their section 5.3.2).
Where both inputs know every expiry, a semi join's rows are all positive.

Equal keys are those of ``values/keys``. A NULL is equal to nothing, unless the key is null-safe.

Columns in: the left record, the keys (they may be columns of the record), ``__ts``, ``__te``, ``__n``, ``__side``
(``two_counts.SIDE``); rows of the right side have NULL but in the keys. Columns out: the left record, ``__ts``,
``__te``, ``__n``. SweepArea, by key: the left rows that are valid after h1, netted where negative tuples come; of the
right side the intervals in which there is any row of the key where every end is known, else its count at h1 and each
later change of it. A left row that can match nothing is not kept.

>>> from dataclasses import replace
>>> from sweeparea.operators.sweeps.two_counts import rows_schema
>>> schema = rows_schema([pa.field("k", pa.int64()), pa.field("v", pa.string())])
>>> given = [(1, "a", 2, 9, 1, 0), (2, "b", 2, 9, 1, 0), (1, None, 4, 6, 3, 1)]
>>> rows = pa.Table.from_pylist([dict(zip(schema.names, row)) for row in given], schema)
>>> spec = ExistenceSpec(("k",), (False,), ("k", "v"), anti=False, known=(True, True))
>>> [tuple(row.values()) for row in sweep(rows, spec, 0, 5)[0].to_pylist()]
[(1, 'a', 4, 6, 1)]
>>> [tuple(row.values()) for row in sweep(rows, replace(spec, anti=True), 0, 5)[0].to_pylist()]
[(1, 'a', 2, 4, 1), (1, 'a', 6, 9, 1), (2, 'b', 2, 9, 1)]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sweeparea.operators.intervals.coalesce import coalesce
from sweeparea.operators.kernels import existence as kernel
from sweeparea.operators.kernels.aggregate import united
from sweeparea.operators.kernels.instants import segments
from sweeparea.operators.kernels.sorting import sorted_order
from sweeparea.operators.sweeps.two_counts import CARRIED, LEFT, RIGHT, SIDE, refuse_negative_tuples
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys
from sweeparea.operators.values.bag import BAG, TE, TS, N, below_zero
from sweeparea.operators.values.columns import chosen, with_columns
from sweeparea.operators.values.netting import changes_after, compacted


@dataclass(frozen=True)
class ExistenceSpec:
    """Which left rows to give: those with a match, or ``anti``.

    ``keys``: the columns by which rows meet, at least one, and for each whether it is ``null_safe``; ``columns``: the
    left record; ``known``: whether each row of the (left, right) side has its final end; ``touching``: whether a left
    record may come in pieces that follow each other (``coalesce.py``).
    """

    keys: tuple[str, ...]
    null_safe: tuple[bool, ...]
    columns: tuple[str, ...]
    anti: bool
    known: tuple[bool, bool] = (False, False)
    touching: bool = False

    def sweep(self, rows: pa.Table, h0: int, h1: int) -> tuple[pa.Table, pa.Table]:
        """``sweep`` of this spec."""
        return sweep(rows, self, h0, h1)


def of_side(rows: pa.Table, schema: pa.Schema, side: int) -> pa.Table:
    """Rows of one side as the sweep takes them: in the columns of ``schema``, those that they lack NULL."""
    size, has = rows.num_rows, set(rows.column_names)
    columns = [rows.column(f.name) if f.name in has else pa.nulls(size, f.type) for f in schema if f.name != SIDE]
    at = schema.get_field_index(SIDE)
    columns.insert(at, pa.array(np.full(size, side, np.int8)))
    return pa.Table.from_arrays(columns, names=schema.names)


def sweep(rows: pa.Table, spec: ExistenceSpec, h0: int, h1: int) -> tuple[pa.Table, pa.Table]:
    """(what the slice ``(h0, h1]`` adds to the result, carry), of carry and new rows in any order.

    Errors (DataError): a key of which the right side holds fewer than no rows.
    """
    return _BothSides(rows, spec, h0, h1).run()


class _BothSides:
    def __init__(self, rows: pa.Table, spec: ExistenceSpec, h0: int, h1: int) -> None:
        self.spec, self.h1 = spec, h1
        n, side = keys.int64_of(rows.column(N)), keys.int64_of(rows.column(SIDE))
        start, end = np.maximum(keys.int64_of(rows.column(TS)), h0 + 1), keys.int64_of(rows.column(TE))
        right = (side & RIGHT).astype(np.bool_)
        alone = np.zeros(len(n), np.bool_)
        for key, null_safe in zip(spec.keys, spec.null_safe, strict=True):
            if not null_safe and rows.column(key).null_count:
                alone |= rows.column(key).is_null().to_numpy()
        used = (end > start) & (n != 0) & ~(right & alone)
        self.rows = chosen(rows, used)
        self.n, self.start, self.end, self.right = n[used], start[used], end[used], right[used]
        self.alone, self.carried = alone[used], side[used] >= CARRIED
        refuse_negative_tuples("A semi or anti join", spec.known, self.n, self.right, ~self.carried)
        self.group, self.groups = keys.codes([self.rows.column(c) for c in spec.keys])

    def run(self) -> tuple[pa.Table, pa.Table]:
        return self._result(), self._carry()

    def _result(self) -> pa.Table:
        whole, changed = self._existence()
        new, held = (np.flatnonzero(~self.right & (self.carried == carried)) for carried in (False, True))
        row, ts, te, sign = self._met(new, whole, self.spec.anti)
        again, ts_, te_, sign_ = self._met(held, changed, False)
        at = np.append(new[row], held[again])
        n = self.n[at] * np.append(sign, -sign_ if self.spec.anti else sign_)
        record = self.rows.select(list(self.spec.columns)).take(pa.array(at))
        arrays = [*record.columns, *(pa.array(x) for x in (np.append(ts, ts_), np.append(te, te_), n))]
        return pa.Table.from_arrays(arrays, names=[*record.column_names, *BAG])

    def _met(self, at: np.ndarray, pieces: kernel.Pieces, without: bool) -> tuple[np.ndarray, ...]:
        return kernel.met(self.group[at], self.start[at], self.end[at], pieces, without)

    def _existence(self) -> tuple[kernel.Pieces, kernel.Pieces]:
        at = np.flatnonzero(self.right)
        order = at[sorted_order((self.group[at], self.start[at]))]
        group, start, end = self.group[order], self.start[order], self.end[order]
        last = max(int(start.max(initial=self.h1)), int(end[end != INF].max(initial=self.h1)))
        cut = segments(group, start, end, min(last, INF - 1))
        whole, changed, negative = kernel.existence(cut, self.groups, self.n[order], self.carried[order], self.h1)
        if negative >= 0:
            row = int(order[cut.a_row(negative)])
            key = {c: self.rows.column(c)[row].as_py() for c in self.spec.keys}
            raise below_zero(key, int(cut.tick[negative]))
        return kernel.Pieces(*whole), kernel.Pieces(*changed)

    def _carry(self) -> pa.Table:
        return pa.concat_tables([self._carried_left(), self._carried_right()])

    def _carried_left(self) -> pa.Table:
        at = np.flatnonzero(~self.right & (self.end > self.h1 + 1) & ~self.alone)
        bag = self.rows.take(pa.array(at)).drop_columns([SIDE])
        bag = with_columns(bag, {TS: np.maximum(self.start[at], self.h1)})
        if not self.spec.known[0]:
            bag = compacted(bag, self.h1)
        elif self.spec.touching:
            bag = coalesce(bag, [c for c in bag.column_names if c not in BAG])
        return of_side(bag, self.rows.schema, CARRIED + LEFT).cast(self.rows.schema)

    def _carried_right(self) -> pa.Table:
        # a count has its own row for an end, in whichever slice that was told
        at = np.flatnonzero(self.right & (self.end > self.h1 + self.spec.known[1]))
        group, start, end, n = self.group[at], np.maximum(self.start[at], self.h1), self.end[at], self.n[at]
        if self.spec.known[1]:
            row, start, end = united(sorted_order((group, start)), group, start, end)
            row, n = at[row], np.ones(len(row), np.int64)
        else:
            group, start, n = changes_after(group, start, end, n, self.h1)
            a_row = np.zeros(self.groups, np.int64)
            a_row[self.group[at]] = at
            row, end = a_row[group], np.full(len(n), INF)
        key = keys.canonical(self.rows.select(list(self.spec.keys)).take(pa.array(row)))
        arrays = [*key.columns, pa.array(start), pa.array(end), pa.array(n)]
        bag = pa.Table.from_arrays(arrays, names=[*key.column_names, *BAG])
        return of_side(bag, self.rows.schema, CARRIED + RIGHT).cast(self.rows.schema)
