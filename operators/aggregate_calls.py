"""The calls of an aggregation: what each takes from the rows, and its value at every instant.

COUNT and SUM add and subtract, so a running total suffices. MIN and MAX keep the group's values in a heap, and so does
SINGLE_VALUE, what a scalar subquery gives: the value of the one row, NULL of none. The operator around them is
``aggregate.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from sweeparea.infra.errors import DataError
from sweeparea.operators import keys as key_codes
from sweeparea.operators.kernels import aggregate as kernel
from sweeparea.operators.order import column_ranks

KIND = "__kind"
"""TINYINT: ``RAW``, ``SUMS`` or ``VALUE + i``."""
RAW = 0
"""A raw element of the input."""
SUMS = 1
"""Carried counts and sums of elements of one group that end together; ``__n`` is their net number, which may be 0."""
VALUE = 2
"""``VALUE + i``: a carried value of the extremum ``calls[i]``, in ``a{i}``, with ``__n`` copies."""

_SAFE = float(1 << 61)
_NONE = np.zeros(0, np.int64)
_NO_BYTES = np.zeros(0, np.uint8)


@dataclass(frozen=True)
class BaseCall:
    """One aggregate over plain columns: ``function`` is COUNT, SUM, MIN, MAX or SINGLE_VALUE.

    ``output`` is the result's column id, ``type`` its Arrow type (SUM: int64, double, or a decimal of the argument's
    scale). ``argument`` is the argument's column id, None for COUNT(*); ``argument_type`` its Arrow type.
    """

    output: str
    function: str
    type: pa.DataType
    argument: str | None = None
    argument_type: pa.DataType | None = None

    def __str__(self) -> str:
        return f"{self.function}({self.argument or '*'})"


class Elements:
    """The rows' ``kind`` and copies ``n``."""

    def __init__(self, kind: np.ndarray, n: np.ndarray):
        self.kind, self.n = kind, n
        self.all_raw = not kind.any()

    def copies(self, rows: np.ndarray) -> np.ndarray:
        """How many elements each row stands for."""
        n = self.n[rows]
        return n if self.all_raw else np.where(self.kind[rows] <= SUMS, n, 0)


class Instants:
    """The instants of a block of rows as segments (``kernels/instants.py``), and how to name one in an error."""

    def __init__(self, rows: np.ndarray, cut: tuple, h0: int, name: Callable[[int], str]):
        self.rows, self.h0, self._name = rows, h0, name
        self.events, self.first, self.group, self.tick = cut
        self.cut = (self.events, self.first, self.group)

    def running(self, weight: np.ndarray) -> np.ndarray:
        """Sum per segment of the weights (one per row of the block) of what is valid there."""
        return kernel.running_sum(*self.cut, weight)

    def row(self, segments: np.ndarray) -> np.ndarray:
        """A row of each segment's group."""
        return self.rows[self.events[self.first[segments]] >> 1]

    def place(self, segment: int) -> str:
        """Tick and group of a segment."""
        text = f"tick {self.tick[segment]}"
        return text + self._name(int(self.row(np.array([segment]))[0])) if len(self.rows) else text

    def refuse_negative(self, values: np.ndarray, what: str) -> None:
        """DataError if a net number of something is below zero."""
        bad = np.flatnonzero(values < 0)
        if len(bad):
            self.negative(int(bad[0]), what, f"of {values[bad[0]]}")

    def negative(self, segment: int, what: str, number: str = "below zero") -> None:
        """The DataError of a net number below zero."""
        raise DataError(
            f"An aggregate's input holds a net number of {what} {number} at {self.place(segment)}: more was taken away "
            f"than had been put in. The changes that the query's inputs hold up to that instant do not fit together; "
            f"look for a deletion without its insertion."
        )


@dataclass
class Result:
    """Values of one call per segment; ``valid`` None: all are. ``high``: the high words of decimals; ``lookup``:
    indexed.
    """

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
            validity = pa.py_buffer(np.packbits(valid, bitorder="little"))
            nulls = int(len(valid) - valid.sum())
        if pt.is_decimal128(t):
            high = values >> 63 if self.high is None else self.high[at]
            values = np.stack([values, high], axis=1)
        return pa.Array.from_buffers(t, len(at), [validity, pa.py_buffer(values)], nulls)


class Argument:
    """COUNT(x). Arrays are in the order of the input's rows; ``rows`` below are positions there."""

    def __init__(self, elements: Elements, table: pa.Table, i: int):
        self.elements = elements
        self.array = key_codes.one_array(table.column(f"a{i}"))
        self.valid = self.array.is_valid().to_numpy(zero_copy_only=False) if self.array.null_count else None
        self.m = (
            None if elements.all_raw or f"m{i}" not in table.schema.names else key_codes.int64_of(table.column(f"m{i}"))
        )

    def raw(self, rows: np.ndarray) -> np.ndarray:
        """Copies of the non-NULL arguments of raw rows."""
        n = self.elements.n[rows]
        if self.valid is not None:
            n *= self.valid[rows]
        if not self.elements.all_raw:
            n *= self.elements.kind[rows] == RAW
        return n

    def copies(self, rows: np.ndarray) -> np.ndarray:
        """Net number of non-NULL arguments of each row."""
        n = self.raw(rows)
        return n if self.m is None else n + np.where(self.elements.kind[rows] == SUMS, self.m[rows], 0)

    def results(self, at: Instants, call: BaseCall, present: np.ndarray) -> Result:
        """The call's value per segment."""
        counts = at.running(self.copies(at.rows))
        at.refuse_negative(counts, f"non-NULL arguments of {call}")
        return Result(counts)


class Sum(Argument):
    """SUM(x), exact. In int64 where no combination of the rows can overflow it, else in an accumulator."""

    def __init__(self, elements: Elements, table: pa.Table, i: int, call: BaseCall):
        super().__init__(elements, table, i)
        t = self.array.type
        self.double = pt.is_floating(t)
        self.rounded = pt.is_float64(call.type)
        if self.double and not self.rounded:
            raise ValueError(f"{call} over {t} gives a double, not {call.type}")
        if pt.is_decimal(t) and not (pt.is_decimal(call.type) and call.type.scale == t.scale):
            raise ValueError(f"{call} over {t} cannot give {call.type}: the scales differ")
        self.high, self.low = _words(self.array)
        self.begin = self.end = self.carried = None
        self.data = _NO_BYTES
        if not elements.all_raw:
            self.begin, self.end, self.data = _binary(key_codes.one_array(table.column(f"p{i}")))
        self.small = not self.double and self._is_small()

    def _is_small(self) -> bool:
        # whether all partial sums fit in int64
        if self.high is not None and not np.array_equal(self.high, self.low >> 63):
            return False
        size = kernel.total_size(self.low, self.elements.n)
        if self.begin is not None:
            fits, carried = kernel.decode_small(self.elements.kind, self.begin, self.end, self.data)
            if not fits:
                return False
            self.carried = carried
            size += np.abs(carried.astype(np.float64)).sum()
        return size < _SAFE

    def _summands(self, rows: np.ndarray) -> np.ndarray:
        summands = self.raw(rows)
        summands *= self.low[rows]
        return summands if self.carried is None else summands + self.carried[rows]

    def _arrays(self, rows: np.ndarray) -> tuple:
        # the rows as ``running_exact`` and ``encode_runs`` take them
        low = self.low[rows]
        high = low >> 63 if self.high is None else self.high[rows]
        begin, end = (_NONE, _NONE) if self.begin is None or self.end is None else (self.begin[rows], self.end[rows])
        return self.elements.kind[rows], high, low, self.raw(rows), begin, end, self.data

    def results(self, at: Instants, call: BaseCall, present: np.ndarray) -> Result:
        valid = super().results(at, call, present).values > 0
        if self.small:
            low = at.running(self._summands(at.rows))
            if self.rounded:
                return Result(low.astype(np.float64).view(np.int64), valid)
            if pt.is_int64(call.type):
                return Result(low, valid)
            fits, high = np.ones(len(low), np.bool_), low >> 63
        else:
            fits, high, low = kernel.running_exact(*at.cut, self.double, self.rounded, *self._arrays(at.rows))
            if self.rounded:
                return Result(low, valid)
        reported = present & valid & (at.tick > at.h0)
        bad = np.flatnonzero(reported & (~fits | _overflows(high, low, call.type)))
        if len(bad):
            raise DataError(
                f"SUM overflow: {call} does not fit in {call.type} at {at.place(int(bad[0]))}. "
                f"CAST its argument to a wider type (DECIMAL(38, s) or DOUBLE)."
            )
        return Result(low, valid, high if pt.is_decimal(call.type) else None)

    def encoded(self, rows: np.ndarray, first: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        """(exact sums of the runs of rows as the carry holds them, their lengths in bytes); 0 bytes are the sum 0."""
        offsets, data = kernel.encode_runs(first, self.double, *self._arrays(rows))
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers).cast(pa.binary()), np.diff(offsets)


class Extremum(Argument):
    """MIN(x), MAX(x): the less its ``rank``, the better a value, whichever of the two."""

    def __init__(self, elements: Elements, table: pa.Table, i: int, call: BaseCall):
        super().__init__(elements, table, i)
        self.kind = VALUE + i
        self.rank, count = column_ranks(self.array)
        if call.function == "MAX":
            self.rank = count - 1 - self.rank
        self.position = np.zeros(count + 1, np.int64)  # of a row whose value has this rank
        self.position[self.rank] = np.arange(len(self.rank))
        self.space = (np.zeros(count + 1, np.int64), np.zeros(count + 1, np.bool_), np.empty(count + 1, np.int64))

    def copies(self, rows: np.ndarray) -> np.ndarray:
        n = self.raw(rows)
        return n if self.elements.all_raw else np.where(self.elements.kind[rows] == self.kind, self.elements.n[rows], n)

    def results(self, at: Instants, call: BaseCall, present: np.ndarray) -> Result:
        ranks, negative = kernel.running_least(*at.cut, self.rank[at.rows], self.copies(at.rows), *self.space)
        if negative >= 0:
            at.negative(negative, f"copies of a value of {call}")
        return Result(self.position[ranks], ranks >= 0, lookup=self.array)

    def values(self, rows: np.ndarray) -> pa.Array:
        """The arguments of rows, as published."""
        return key_codes.canonical_array(self.array.take(pa.array(rows)))


class Single(Extremum):
    """SINGLE_VALUE(x): the value of the only element, NULL where there is none; more than one are an error."""

    def results(self, at: Instants, call: BaseCall, present: np.ndarray) -> Result:
        elements = at.running(self.elements.copies(at.rows))
        bad = np.flatnonzero((elements > 1) & (at.tick > at.h0))
        if len(bad):
            raise DataError(
                f"A scalar subquery has more than one row ({elements[bad[0]]}) at {at.place(int(bad[0]))}. Make it an"
                " aggregate (MIN, MAX, COUNT, ..), give it ORDER BY .. LIMIT 1, or compare with IN or EXISTS instead."
            )
        return super().results(at, call, present)


def argument_of(elements: Elements, table: pa.Table, i: int, call: BaseCall) -> Argument | None:
    """The argument of call number i; None for COUNT(*)."""
    if call.argument is None:
        return None
    if call.function == "SINGLE_VALUE":
        return Single(elements, table, i, call)
    if call.function in ("MIN", "MAX"):
        return Extremum(elements, table, i, call)
    return Sum(elements, table, i, call) if call.function == "SUM" else Argument(elements, table, i)


def _overflows(high: np.ndarray, low: np.ndarray, t: pa.DataType) -> np.ndarray:
    # where the 128-bit values do not fit in BIGINT or in a decimal
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


def _words(array: pa.Array) -> tuple[np.ndarray | None, np.ndarray]:
    # (high words or None where they only extend the sign, low words) of numbers; doubles: (None, bits)
    t = array.type
    if pt.is_floating(t):
        return None, key_codes.numpy_of(array.cast(pa.float64()), 0.0).view(np.int64)
    if pt.is_integer(t):
        return None, key_codes.int64_of(array)
    if not pt.is_decimal(t):
        raise ValueError(f"SUM over {t} is not defined")
    wide = pc.fill_null(array.cast(pa.decimal128(t.precision, t.scale)), 0)
    words = np.frombuffer(wide.buffers()[1], np.int64)[2 * wide.offset : 2 * (wide.offset + len(wide))]
    return np.ascontiguousarray(words[1::2]), np.ascontiguousarray(words[0::2])


def _binary(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    # begin and end of each value within the bytes, NULL as empty
    large = pc.fill_null(array, b"").cast(pa.large_binary())
    offsets = np.frombuffer(large.buffers()[1], np.int64)[large.offset : large.offset + len(large) + 1]
    data = large.buffers()[2]
    # a copy: Arrow's bytes are read-only, which would be another type to the compiled loops
    return offsets[:-1].copy(), offsets[1:].copy(), _NO_BYTES if data is None else np.frombuffer(data, np.uint8).copy()
