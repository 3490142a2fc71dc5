"""Grouping with aggregation and duplicate elimination over a signed temporal bag.

Kraemer & Seeger 2005, sections 3.3 and 4.3.2.8 (Algorithm 8); with negative tuples Hammad et al., section 4.3 (W-Group-By);
without calls it is duplicate elimination (Algorithm 6; Golab & Oezsu 2005, section 5.3.1, the delta operator). Instead of one
element at a time, all groups of a partition are swept at once, in the order of (group, tick): all that starts or ends at one
tick is applied before the aggregate row is looked at, so an expiry is reported at its own instant, never at the next arrival.

Sums are exact (``exact.py``): they may subtract, so a sliding sum costs O(1) an event and no slicing can change a bit.
Input rows (``rows_schema``) are raw elements and what the previous slice carried; the result is the delta of the aggregate
relation within ``(h0, h1]`` and the carry for the next slice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from sweeparea.infra.errors import DataError
from sweeparea.operators import keys as key_codes
from sweeparea.operators.bag import TE, TS, N
from sweeparea.operators.kernels import aggregate as kernel
from sweeparea.operators.kernels.instants import NO_MARK, segments
from sweeparea.operators.kernels.sorting import group_order, sorted_order
from sweeparea.operators.order import column_ranks
from sweeparea.operators.ticks import INF

KIND = "__kind"
"""TINYINT: ``RAW``, ``SUMS`` or ``VALUE + i``."""
RAW = 0
"""A raw element of the input."""
SUMS = 1
"""Carried counts and sums of elements of one group that end together; ``__n`` is their net number, which may be 0."""
VALUE = 2
"""``VALUE + i``: a carried value of the extremum ``calls[i]``, in ``a{i}``, with ``__n`` copies."""

_SAFE = float(1 << 61)
_BLOCK = 1 << 16


@dataclass(frozen=True)
class BaseCall:
    """One aggregate over plain columns: ``function`` is COUNT, SUM, MIN or MAX.

    ``output`` is the result's column id, ``type`` its Arrow type (SUM: int64, double, or a decimal of the argument's scale).
    ``argument`` is the argument's column id, None for COUNT(*); ``argument_type`` its Arrow type.
    """

    output: str
    function: str
    type: pa.DataType
    argument: str | None = None
    argument_type: pa.DataType | None = None

    def __str__(self) -> str:
        return f"{self.function}({self.argument or '*'})"


@dataclass(frozen=True)
class AggregateSpec:
    """What to aggregate. ``keys``: (column id, Arrow type) pairs.

    ``global_``: no GROUP BY, one row at every instant from ``start`` on. ``expiry_known``: no element is ever taken away other
    than at its own te, so dominated extremum values need not be kept. ``start``: the query's first instant; what starts
    earlier counts from there.
    """

    keys: tuple[tuple[str, pa.DataType], ...]
    calls: tuple[BaseCall, ...]
    global_: bool = False
    expiry_known: bool = False
    start: int = 0


def rows_schema(spec: AggregateSpec) -> pa.Schema:
    """Schema of the sweep's input and carry.

    The keys; ``__ts``, ``__te``, ``__n`` (ticks and copies, int64); ``__kind`` (int8); for call i with an argument ``a{i}``; for
    SUM and COUNT of an argument ``m{i}``, the net number of non-NULL arguments (int64); for SUM ``p{i}``, the exact sum
    (binary). Raw rows have NULL in m and p, SUMS rows in a. A raw row with ``__n`` 0 says nothing and is ignored.
    """
    fields = [*spec.keys, (TS, pa.int64()), (TE, pa.int64()), (N, pa.int64()), (KIND, pa.int8())]
    for i, call in enumerate(spec.calls):
        if call.argument is not None:
            fields.append((f"a{i}", call.argument_type))
            if call.function in ("SUM", "COUNT"):
                fields.append((f"m{i}", pa.int64()))
            if call.function == "SUM":
                fields.append((f"p{i}", pa.binary()))
    return pa.schema(fields)


def delta_schema(spec: AggregateSpec) -> pa.Schema:
    """Schema of the delta: the keys, the calls' outputs, ``__ts``, ``__te``, ``__n``."""
    outputs = [(call.output, call.type) for call in spec.calls]
    return pa.schema([*spec.keys, *outputs, (TS, pa.int64()), (TE, pa.int64()), (N, pa.int64())])


def sweep(rows: pa.Table, spec: AggregateSpec, h0: int, h1: int) -> tuple[pa.Table, pa.Table]:
    """(delta, carry) of the slice ``(h0, h1]``.

    ``rows`` (``rows_schema``; order immaterial): the carry of the previous slice and the new elements. What starts at or
    before h0 is state that has been published; what starts after h1 waits in the carry. With ``global_`` call it on one partition
    only: also a table without rows yields the row of the empty bag.

    Delta, per group whose row changes within the slice: +1 ``[t1, t2)`` for a row that comes and goes within it, +1
    ``[t, INF)`` for the one that holds at h1, -1 ``[t, INF)`` for the one that held at h0 and ended at t.

    Carry, never more than what is alive at h1 or pending: counts and sums one row per (group, te), or per (group, ts, te) while
    pending; extrema with known expiry the undominated values only, at most one per (group, te), else one row per
    (group, value, te) with a net count; presence alone (no COUNT, no SUM) with known expiry the last te per group.

    Errors (DataError): a net number of elements below zero, SUM beyond its result type at an instant of the slice.
    """
    return _Sweep(rows, spec, h0, h1).run()


class _Sweep:
    """One call of ``sweep``: the input as NumPy arrays, sorted by (group, start)."""

    def __init__(self, rows: pa.Table, spec: AggregateSpec, h0: int, h1: int):
        self.spec, self.h0, self.h1 = spec, h0, h1
        kind, n = int64_of(rows.column(KIND)), int64_of(rows.column(N))
        start, te = int64_of(rows.column(TS)), int64_of(rows.column(TE))
        # at START everything that came before is new: only the inputs know of it (a relation's contents at START)
        self.published = h0 >= spec.start
        start = np.maximum(start, h0 if self.published else spec.start)
        used = (te > start) & ((n != 0) | (kind == SUMS))
        if not used.all():
            rows = rows.filter(pa.array(used))
            kind, n, start, te = kind[used], n[used], start[used], te[used]
        if np.abs(n.astype(np.float64)).sum() > _SAFE:
            raise DataError("The numbers of copies (n) of an aggregate's input add up to more than 2^61.")
        if spec.keys:
            group, self.groups = key_codes.codes([rows.column(k) for k, _ in spec.keys])
        else:
            group, self.groups = np.zeros(len(n), np.int64), 1
        self.rows = rows
        # everything below is in this order; row_of leads back to ``rows``
        self.row_of = order = group_order(group, self.groups, start)
        self.kind, self.n, self.start, self.te, self.group = (a[order] for a in (kind, n, start, te, group))
        self.elements = self.n if spec_has_no_values(spec) else np.where(self.kind <= SUMS, self.n, 0)
        self.arguments = [self._argument(i, call) for i, call in enumerate(spec.calls)]

    def _argument(self, i: int, call: BaseCall) -> _Argument | None:
        if call.argument is None:
            return None
        array = key_codes.one_array(self.rows.column(f"a{i}"))
        n = np.where(self.kind == RAW, self.n, 0)
        if array.null_count:
            n *= array.is_valid().to_numpy(zero_copy_only=False)[self.row_of]
        if call.function in ("MIN", "MAX"):
            return _Extremum(array, self.row_of, np.where(self.kind == VALUE + i, self.n, n), call)
        carried = self.kind == SUMS
        m = np.where(carried, int64_of(self.rows.column(f"m{i}"))[self.row_of], n) if carried.any() else n
        if call.function == "COUNT":
            return _Argument(m)
        p = key_codes.one_array(self.rows.column(f"p{i}"))
        return _Sum(array, self.row_of, m, n, self.kind, p, call)

    def run(self) -> tuple[pa.Table, pa.Table]:
        """The delta block by block, each of whole groups and small enough for the processor's cache; then the carry."""
        mark = NO_MARK
        if self.spec.global_:
            mark = self.h0 if self.published else self.spec.start
        schema = delta_schema(self.spec)
        parts = [schema.empty_table()]
        parts += [self._delta(slice(a, b), mark, schema) for a, b in self._blocks(mark != NO_MARK)]
        return pa.concat_tables(parts), self._carry()

    def _blocks(self, also_empty: bool) -> Iterator[tuple[int, int]]:
        size = len(self.group)
        at = 0
        while at < size or also_empty:
            end = min(at + _BLOCK, size)
            if end < size:
                end = int(np.searchsorted(self.group, self.group[end - 1], side="right"))
            yield at, end
            at, also_empty = end, False

    def _delta(self, block: slice, mark: int, schema: pa.Schema) -> pa.Table:
        spec = self.spec
        cut = segments(self.group[block], self.start[block], self.te[block], self.h1, mark)
        at = _Segments(self, block, *cut)
        elements = kernel.running_sum(*at.cut, self.elements[block])
        at.refuse_negative(elements, "elements")
        present = np.ones(len(elements), np.bool_) if spec.global_ else elements > 0
        changed = np.zeros(len(elements), np.bool_)
        changed[1:] = present[1:] != present[:-1]
        results = []
        for call, argument in zip(spec.calls, self.arguments, strict=True):
            result = _Result(elements) if argument is None else argument.results(at, call, present)
            changed[1:] |= result.changes()
            results.append(result)
        published = self.h0 if self.published else INF
        source, ts, te, n = kernel.emissions(at.group, at.tick, present, changed, published)
        columns = self._keys(at.row(source)) if spec.keys else []
        columns += [r.array(source, call.type) for r, call in zip(results, spec.calls, strict=True)]
        columns += [pa.array(ts), pa.array(te), pa.array(n)]
        return pa.Table.from_arrays(columns, schema=schema)

    def _keys(self, at: np.ndarray) -> list[pa.Array]:
        rows = pa.array(self.row_of[at])
        return [key_codes.canonical_array(key_codes.one_array(self.rows.column(k).take(rows))) for k, _ in self.spec.keys]

    def _carry(self) -> pa.Table:
        alive = self.te > self.h1
        start = np.maximum(self.start, self.h1)
        parts = [self._carried_sums(np.flatnonzero(alive & (self.kind <= SUMS)), start)]
        for i, argument in enumerate(self.arguments):
            if isinstance(argument, _Extremum):
                parts.append(self._carried_values(i, argument, np.flatnonzero(alive & (argument.n != 0)), start))
        return pa.concat_tables(parts)

    def _carried_sums(self, at: np.ndarray, start: np.ndarray) -> pa.Table:
        if self.spec.expiry_known and not any(c.function in ("COUNT", "SUM") for c in self.spec.calls):
            keep = self._undominated(at[self.n[at] != 0], start, np.zeros(len(self.n), np.int64))
            return self._carry_table(keep, start, np.ones(len(keep), np.int64), SUMS, {})
        order, first = self._runs(at, (self.group, start, self.te))
        n = _add_runs(self.n, order, first)
        nonzero = n != 0
        columns: dict[str, pa.Array] = {}
        for i, argument in enumerate(self.arguments):
            if argument is not None and not isinstance(argument, _Extremum):
                m = _add_runs(argument.n, order, first)
                nonzero |= m != 0
                columns[f"m{i}"] = pa.array(m)
                if isinstance(argument, _Sum):
                    p = argument.encoded(order, first)
                    nonzero |= pc.binary_length(p).to_numpy() != 0
                    columns[f"p{i}"] = p
        table = self._carry_table(order[first[:-1]], start, n, SUMS, columns)
        return table if nonzero.all() else table.filter(pa.array(nonzero))

    def _carried_values(self, i: int, argument: _Extremum, at: np.ndarray, start: np.ndarray) -> pa.Table:
        if self.spec.expiry_known:
            head = self._undominated(at, start, argument.rank)
            n = np.ones(len(head), np.int64)
        else:
            order, first = self._runs(at, (self.group, argument.rank, start, self.te))
            n = _add_runs(self.n, order, first)
            head, n = order[first[:-1]][n != 0], n[n != 0]
        values = argument.array.take(pa.array(self.row_of[head]))
        return self._carry_table(head, start, n, VALUE + i, {f"a{i}": key_codes.canonical_array(values)})

    def _undominated(self, at: np.ndarray, start: np.ndarray, rank: np.ndarray) -> np.ndarray:
        if np.any(self.n[at] < 0):
            raise DataError(
                "An aggregate whose input was said to know every element's expiry got a negative tuple: the plan is wrong "
                "about expiry."
            )
        order = at[sorted_order((self.group[at], start[at], _ends_first_is_last(self.te[at]), rank[at]))] if len(at) else at
        return kernel.undominated(order, self.group, start, self.te, rank)

    def _runs(self, at: np.ndarray, columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        # rows ``at`` ordered by columns (te the last), and where each combination's run begins, with the end
        if not len(at):
            return at, np.zeros(1, np.int64)
        parts = [c[at] for c in columns]
        order = sorted_order((*parts[:-1], -_ends_first_is_last(parts[-1])))
        change = np.zeros(len(at), np.bool_)
        change[0] = True
        for part in parts:
            p = part[order]
            change[1:] |= p[1:] != p[:-1]
        return at[order], np.append(np.flatnonzero(change), len(at))

    def _carry_table(self, at: np.ndarray, start: np.ndarray, n: np.ndarray, kind: int, columns: dict) -> pa.Table:
        schema = rows_schema(self.spec)
        known = dict(zip((k for k, _ in self.spec.keys), self._keys(at), strict=True))
        known |= {TS: pa.array(start[at]), TE: pa.array(self.te[at]), N: pa.array(n)}
        known[KIND] = pa.array(np.full(len(n), kind, np.int8))
        known |= columns
        arrays = [known[f.name] if f.name in known else pa.nulls(len(n), f.type) for f in schema]
        return pa.Table.from_arrays(arrays, schema=schema)


class _Segments:
    """The instants of one block of rows."""

    def __init__(self, sweep: _Sweep, block: slice, events, first, group, tick):
        self.sweep, self.block = sweep, block
        self.cut = (events, first, group)
        self.group, self.tick = group, tick

    def row(self, segment: np.ndarray) -> np.ndarray:
        """A row (in the sweep's order) of each segment's group."""
        events, first, _ = self.cut
        return (events[first[segment]] >> 1) + self.block.start

    def refuse_negative(self, values: np.ndarray, what: str) -> None:
        bad = np.flatnonzero(values < 0)
        if len(bad):
            self.negative(int(bad[0]), what, int(values[bad[0]]))

    def negative(self, segment: int, what: str, value: int | None = None) -> None:
        number = "below zero" if value is None else f"of {value}"
        raise DataError(
            f"An aggregate's input holds a net number of {what} {number} at {self.place(segment)}: more was taken away than had "
            f"been put in. The changes that the query's inputs hold up to that instant do not fit together; look for a deletion "
            f"without its insertion."
        )

    def place(self, segment: int) -> str:
        """Names a segment in an error."""
        keys, rows = self.sweep.spec.keys, self.sweep.rows
        text = f"tick {self.tick[segment]}"
        if not keys:
            return text
        row = int(self.sweep.row_of[self.row(np.array([segment]))[0]])
        return text + " in group (" + ", ".join(f"{k} = {rows.column(k)[row].as_py()!r}" for k, _ in keys) + ")"


@dataclass
class _Result:
    """Values of one call per segment; ``valid`` None: all are."""

    values: np.ndarray
    valid: np.ndarray | None = None
    high: np.ndarray | None = None
    lookup: pa.Array | None = None

    def changes(self) -> np.ndarray:
        """Where a segment's value differs from the one before (without the first segment)."""
        change = self.values[1:] != self.values[:-1]
        if self.high is not None:
            change |= self.high[1:] != self.high[:-1]
        if self.valid is not None:
            change = (self.valid[1:] != self.valid[:-1]) | (change & self.valid[1:])
        return change

    def array(self, at: np.ndarray, t: pa.DataType) -> pa.Array:
        """The values of segments ``at`` as Arrow type t."""
        values = self.values[at]
        if self.lookup is not None:
            index = pa.array(values, mask=None if self.valid is None else ~self.valid[at])
            return key_codes.canonical_array(self.lookup.take(index)).cast(t)
        validity, nulls = None, 0
        if self.valid is not None and not (valid := self.valid[at]).all():
            validity = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
            nulls = int(len(valid) - valid.sum())
        if pt.is_decimal128(t):
            high = values >> 63 if self.high is None else self.high[at]
            values = np.stack([values, high], axis=1)
        return pa.Array.from_buffers(t, len(at), [validity, pa.py_buffer(values.tobytes())], nulls)


class _Argument:
    """COUNT(x): ``n`` is the net number of non-NULL arguments of each row."""

    def __init__(self, n: np.ndarray):
        self.n = n

    def results(self, at: _Segments, call: BaseCall, present: np.ndarray) -> _Result:
        counts = kernel.running_sum(*at.cut, self.n[at.block])
        at.refuse_negative(counts, f"non-NULL arguments of {call}")
        return _Result(counts)


class _Sum(_Argument):
    """SUM(x), exact. In int64 where no combination of the rows can overflow it, else in an accumulator."""

    def __init__(self, array: pa.Array, row_of: np.ndarray, m, raw, kind: np.ndarray, p: pa.Array, call: BaseCall):
        super().__init__(m)
        t = array.type
        self.double = pt.is_floating(t)
        self.rounded = pt.is_float64(call.type)
        if self.double and not self.rounded:
            raise ValueError(f"{call} over {t} gives a double, not {call.type}")
        if pt.is_decimal(t) and not (pt.is_decimal(call.type) and call.type.scale == t.scale):
            raise ValueError(f"{call} over {t} cannot give {call.type}: the scales differ")
        begin, end, data = _binary(p)
        high, low = _words(array)
        self.arrays = (kind, high[row_of], low[row_of], raw, begin[row_of], end[row_of], data)
        self.small = None if self.double else self._small()

    def _small(self) -> np.ndarray | None:
        kind, high, low, raw, begin, end, data = self.arrays
        if not np.array_equal(high, low >> 63):
            return None
        fits, carried = kernel.decode_small(kind, begin, end, data)
        size = np.abs(low.astype(np.float64)) * np.abs(raw) + np.abs(carried)
        return low * raw + carried if fits and size.sum() < _SAFE else None

    def results(self, at: _Segments, call: BaseCall, present: np.ndarray) -> _Result:
        valid = super().results(at, call, present).values > 0
        if self.small is not None:
            low = kernel.running_sum(*at.cut, self.small[at.block])
            if self.rounded:
                return _Result(low.astype(np.float64).view(np.int64), valid)
            fits, high = np.ones(len(low), np.bool_), low >> 63
        else:
            *arrays, data = self.arrays
            parts = (a[at.block] for a in arrays)
            fits, high, low = kernel.running_exact(*at.cut, self.double, self.rounded, *parts, data)
            if self.rounded:
                return _Result(low, valid)
        reported = present & valid & (at.tick > at.sweep.h0)
        bad = np.flatnonzero(reported & (~fits | _overflows(high, low, call.type)))
        if len(bad):
            raise DataError(
                f"SUM overflow: {call} does not fit in {call.type} at {at.place(int(bad[0]))}. "
                f"CAST its argument to a wider type (DECIMAL(38, s) or DOUBLE)."
            )
        return _Result(low, valid, high if pt.is_decimal(call.type) else None)

    def encoded(self, order: np.ndarray, first: np.ndarray) -> pa.Array:
        """Exact sums of the runs, as the carry holds them."""
        if self.small is None:
            offsets, data = kernel.encode_runs(order, first, self.double, *self.arrays)
        else:
            low = _add_runs(self.small, order, first)
            none, runs = np.zeros(len(low), np.int64), np.arange(len(low) + 1)
            arrays = (none, low >> 63, low, none + 1, none, none, self.arrays[-1])
            offsets, data = kernel.encode_runs(runs[:-1], runs, False, *arrays)
        large = pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
        return large.cast(pa.binary())


def _overflows(high: np.ndarray, low: np.ndarray, t: pa.DataType) -> np.ndarray:
    """Where the 128-bit values do not fit in BIGINT or in a decimal."""
    if not pt.is_decimal(t):
        return high != low >> 63
    bound = 10**t.precision
    high_bound, low_bound = np.int64(bound >> 64), np.uint64(bound & 0xFFFFFFFFFFFFFFFF)
    unsigned = low.view(np.uint64)
    negative = high < 0
    # |value|: two's complement
    high = np.where(negative, ~high + (unsigned == 0), high)
    unsigned = np.where(negative, ~unsigned + np.uint64(1), unsigned)
    return (high > high_bound) | ((high == high_bound) & (unsigned >= low_bound))


class _Extremum(_Argument):
    """MIN(x), MAX(x): the less its ``rank``, the better a value, whichever of the two."""

    def __init__(self, array: pa.Array, row_of: np.ndarray, n: np.ndarray, call: BaseCall):
        super().__init__(n)
        self.array = array
        ranks, count = column_ranks(array)
        if call.function == "MAX":
            ranks = count - 1 - ranks
        self.position = np.zeros(count + 1, np.int64)  # of a value with this rank
        self.position[ranks] = np.arange(len(ranks))
        self.rank = ranks[row_of]
        self.space = (np.zeros(count + 1, np.int64), np.zeros(count + 1, np.bool_), np.empty(count + 1, np.int64))

    def results(self, at: _Segments, call: BaseCall, present: np.ndarray) -> _Result:
        ranks, negative = kernel.running_least(*at.cut, self.rank[at.block], self.n[at.block], *self.space)
        if negative >= 0:
            at.negative(negative, f"copies of a value of {call}")
        return _Result(self.position[ranks], ranks >= 0, lookup=self.array)


def spec_has_no_values(spec: AggregateSpec) -> bool:
    """Whether the input holds raw rows and sums only."""
    return all(call.function in ("COUNT", "SUM") for call in spec.calls)


def int64_of(column: pa.ChunkedArray) -> np.ndarray:
    """An integer column as int64, NULL as 0."""
    array = key_codes.one_array(column)
    if array.null_count:
        array = pc.fill_null(array, 0)
    return np.ascontiguousarray(array.to_numpy(zero_copy_only=False), np.int64)


def _words(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    # (high, low) words of numbers; doubles: (unused, bits)
    t = array.type
    if pt.is_floating(t):
        bits = pc.fill_null(array.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False).view(np.int64)
        return bits, bits
    if pt.is_integer(t):
        low = int64_of(array)
        return low >> 63, low
    if not pt.is_decimal(t):
        raise ValueError(f"SUM over {t} is not defined")
    wide = pc.fill_null(array.cast(pa.decimal128(t.precision, t.scale)), 0)
    words = np.frombuffer(wide.buffers()[1], np.int64)[2 * wide.offset : 2 * (wide.offset + len(wide))]
    return np.ascontiguousarray(words[1::2]), np.ascontiguousarray(words[0::2])


def _binary(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    # begin and end of each value within the bytes, NULL as empty
    if array.null_count == len(array):
        none = np.zeros(len(array), np.int64)
        return none, none, np.zeros(0, np.uint8)
    large = pc.fill_null(array, b"").cast(pa.large_binary())
    offsets = np.frombuffer(large.buffers()[1], np.int64)[large.offset : large.offset + len(large) + 1]
    data = large.buffers()[2]
    return offsets[:-1], offsets[1:], np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8).copy()


def _add_runs(values: np.ndarray, order: np.ndarray, first: np.ndarray) -> np.ndarray:
    return np.add.reduceat(values[order], first[:-1]) if len(order) else np.zeros(0, np.int64)


def _ends_first_is_last(te: np.ndarray) -> np.ndarray:
    # te descending, INF just before the greatest other end, so that the values' range stays small for the sort
    finite = te[te != INF]
    top = int(finite.max()) if len(finite) else 0
    return np.where(te == INF, -1, top - np.where(te == INF, top, te))
