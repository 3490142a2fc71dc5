"""COUNT(DISTINCT x) of a group that several workers share: each counts the values that it has, then all are summed up.

A value is there or not, whatever other values do. So a worker that has all rows of some values of a group, and only of
these, can tell at each instant how many of them are there; the sum over the workers is the number of the group. What a
worker makes of its rows (``counted``) is a row for each instant at which its numbers change, and by how much, for all
calls together: counts beside a number, as the aggregation's sweep takes them. Other rows pass as they are.

>>> from sweeparea.operators.aggregates.calls import BaseCall
>>> call = BaseCall("d", "COUNT", pa.int64(), "v", pa.int64(), distinct=True)
>>> spec = AggregateSpec((("k", pa.string()),), (call,), expiry_known=True)
>>> bag = [{"k": "x", "a0": v, "__ts": s, "__te": s + 9, "__n": 1, "__kind": 2} for s, v in [(1, 5), (2, 8), (4, 5)]]
>>> rows = pa.Table.from_pylist([{c: b.get(c) for c in rows_schema(spec).names} for b in bag], rows_schema(spec))
>>> [(row["__ts"], row["m0"]) for row in counted(rows, 0, 11, spec)[0].to_pylist()]
[(1, 1), (2, 1), (11, -1)]
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.operators.aggregates import instants as kinds
from sweeparea.operators.aggregates.calls import BaseCall
from sweeparea.operators.kernels import holistic as values_kernel
from sweeparea.operators.kernels import instants
from sweeparea.operators.state.due import bag_due
from sweeparea.operators.state.sweep import ByValue, Sweep
from sweeparea.operators.sweeps import aggregate
from sweeparea.operators.sweeps.aggregate import AggregateSpec, Aggregation, combined, delta_schema, rows_schema
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys as key_codes
from sweeparea.operators.values.bag import TE, TS, N
from sweeparea.operators.values.key_hash import key_hash

_FIRSTS = ("MIN", "MAX", "FIRST")


def sweep_of(spec: AggregateSpec) -> Sweep:
    """The sweep of an aggregation, and how workers can share a group: by values where some are counted, then by time
    where a stretch needs little of what came before: sums, and the values that may yet be the first.
    """
    schema, result = rows_schema(spec), delta_schema(spec)
    sweep = Sweep(tuple(k for k, _ in spec.keys), schema, result, bag_due, partial(aggregate.sweep, spec=spec))
    then = summed(spec)
    if then is not None:
        of_then = sweep_of(then)
        return sweep if of_then.carried is None else replace(sweep, values=_by_value(spec, of_then))
    short = all(call.additive or (spec.expiry_known and call.function in _FIRSTS) for call in spec.calls)
    return replace(sweep, carried=partial(_combined, spec=spec)) if short else sweep


def _by_value(spec: AggregateSpec, then: Sweep) -> ByValue:
    return ByValue(
        partial(_combined, spec=spec),
        partial(places, spec=spec),
        partial(counts_of, spec=spec),
        partial(counted, spec=spec),
        then,
        partial(remembered, spec=spec),
    )


def _combined(rows: pa.Table, h0: int, spec: AggregateSpec) -> pa.Table:
    return combined(rows, spec, h0)


def _of_values(call: BaseCall) -> bool:
    return call.function == "COUNT" and call.distinct and call.column is None


def summed(spec: AggregateSpec) -> AggregateSpec | None:
    """The aggregation of what has been ``counted``; None: there is nothing to count."""
    calls = tuple(replace(call, distinct=False) if _of_values(call) else call for call in spec.calls)
    return None if calls == spec.calls else replace(spec, calls=calls)


def places(rows: pa.Table, workers: int, spec: AggregateSpec) -> np.ndarray:
    """Which of the workers has each of ``rows`` (combined ones): those of one value are together, others anywhere."""
    kind = key_codes.int64_of(rows.column(kinds.KIND))
    found = key_hash([rows.column(TS), rows.column(TE)], rows.num_rows).view(np.uint64) % np.uint64(workers)
    for i, call in enumerate(spec.calls):
        if _of_values(call):
            at = np.flatnonzero(kind == kinds.VALUE + i)
            values = rows.column(f"a{i}").take(pa.array(at))
            found[at] = key_hash([values], len(at)).view(np.uint64) % np.uint64(workers)
    return found.astype(np.int64)


def counts_of(rows: pa.Table, spec: AggregateSpec) -> np.ndarray:
    """Which of ``rows`` (combined or carried ones) are values that are counted."""
    kind = key_codes.int64_of(rows.column(kinds.KIND))
    return np.isin(kind, [kinds.VALUE + i for i, call in enumerate(spec.calls) if _of_values(call)])


def counted(rows: pa.Table, h0: int, h1: int, spec: AggregateSpec) -> tuple[pa.Table, pa.Table]:
    """(rows for the sweep of ``summed``, carry) of a worker's part of ``rows``, combined ones of ``rows_schema``.

    Errors (DataError): fewer than no copies of a value.
    """
    of_values = counts_of(rows, spec)
    then = summed(spec)
    assert then is not None
    others = _as_rows_of(then, rows.filter(pa.array(~of_values)))
    part = _WorkersValues(rows.filter(pa.array(of_values)), replace(spec, global_=False), h0, h1)
    return pa.concat_tables([others, *part.changes(rows_schema(then))]), part.carried()


def remembered(carry: pa.Table, spec: AggregateSpec) -> pa.Table:
    """What the sweep of ``summed`` carries as that of ``spec`` has it: the numbers of values are known from these."""
    then = summed(spec)
    assert then is not None
    said = (key_codes.int64_of(carry.column(kinds.KIND)) != kinds.SUMS) | (key_codes.int64_of(carry.column(N)) != 0)
    for i, call in enumerate(then.calls):
        if call.additive and call.column is None and call.argument is not None and not _of_values(spec.calls[i]):
            said |= key_codes.int64_of(carry.column(f"m{i}")) != 0
            if f"p{i}" in carry.column_names:
                sizes = pc.fill_null(pc.binary_length(carry.column(f"p{i}")), 0)
                said |= sizes.to_numpy(zero_copy_only=False) != 0
    return _as_rows_of(spec, carry.filter(pa.array(said)))


def _as_rows_of(spec: AggregateSpec, rows: pa.Table) -> pa.Table:
    schema, size = rows_schema(spec), rows.num_rows
    known = set(rows.column_names)
    arrays = [rows.column(f.name) if f.name in known else pa.nulls(size, f.type) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


class _WorkersValues(Aggregation):
    """The values of a worker."""

    def changes(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """By how much the numbers of values change, at each instant and for each group."""
        for rows, group in self._blocks(False):
            start, te = instants.gathered(rows, self.start, self.te)
            cut = instants.segments(group, start, te, self.h1, instants.NO_MARK)
            at = kinds.Instants(rows, group, cut, self.elements.copies(rows), self.h0, self._name)
            columns: dict[str, np.ndarray] = {}
            for i, (call, argument) in enumerate(zip(self.spec.calls, self.arguments, strict=True)):
                if argument is not None and _of_values(call):
                    space = np.zeros(argument.ranks + 1, np.int64)
                    change, negative = values_kernel.transitions(cut, argument.rank[rows], argument.copies(rows), space)
                    if negative >= 0:
                        at.negative(negative, f"copies of a value of {call}")
                    columns[f"m{i}"] = np.add.reduceat(change, cut.first[:-1]) if len(change) else change
            said = np.zeros(len(cut.tick), np.bool_)
            for change in columns.values():
                said |= change != 0
            yield self._told(np.flatnonzero(said), cut.tick, at.group, columns, schema)

    def _told(
        self,
        segments: np.ndarray,
        tick: np.ndarray,
        group: np.ndarray,
        columns: dict[str, np.ndarray],
        schema: pa.Schema,
    ) -> pa.Table:
        size = len(segments)
        known = dict(zip((k for k, _ in self.spec.keys), self._keys(group[segments]), strict=True))
        known |= {TS: pa.array(tick[segments]), TE: pa.array(np.full(size, INF)), N: pa.array(np.zeros(size, np.int64))}
        known[kinds.KIND] = pa.array(np.full(size, kinds.SUMS, np.int16))
        known |= {name: pa.array(change[segments]) for name, change in columns.items()}
        arrays = [known[f.name] if f.name in known else pa.nulls(size, f.type) for f in schema]
        return pa.Table.from_arrays(arrays, schema=schema)

    def carried(self) -> pa.Table:
        """The values that are there after the slice, or pending."""
        alive = np.flatnonzero(self.te > self.h1)
        parts = [rows_schema(self.spec).empty_table()]
        for i, argument in enumerate(self.arguments):
            if argument is not None and argument.kind is not None and argument.holds:
                parts.append(self._carried_values(i, argument, alive[argument.copies(alive) != 0]))
        return pa.concat_tables(parts)
