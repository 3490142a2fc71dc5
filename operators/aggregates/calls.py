"""The calls of an aggregation: what each takes from the rows, and its value at every instant.

Here are COUNT and SUM, which add and subtract, so a running total suffices, and what all calls share.
``moment_sums.py`` has the sums of powers, ``extrema.py`` and ``holistic.py`` the calls that keep values; the operator
around them is ``aggregate.py``. DISTINCT is one rewriting for all: of the events, by the values that come and go.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from sweeparea.infra.errors import DataError
from sweeparea.operators.aggregates.names import ADDITIVE
from sweeparea.operators.kernels import aggregate as kernel
from sweeparea.operators.kernels import fixed
from sweeparea.operators.kernels import holistic as values_kernel
from sweeparea.operators.kernels.events import Segments, Terms
from sweeparea.operators.kernels.instants import gathered
from sweeparea.operators.kernels.sorting import sorted_order
from sweeparea.operators.values import keys as key_codes
from sweeparea.operators.values.order import OrderKey, column_ranks

KIND = "__kind"
"""SMALLINT: ``RAW``, ``SUMS`` or ``VALUE + i``."""
RAW = 0
"""A raw element of the input."""
SUMS = 1
"""Carried counts and sums of elements of one group that end together; ``__n`` is their net number, which may be 0."""
VALUE = 2
"""``VALUE + i``: a carried value of ``calls[i]``, in ``a{i}``, with ``__n`` copies."""

_SAFE = float(1 << 61)
_NONE = np.zeros(0, np.int64)
_NO_BYTES = np.zeros(0, np.uint8)


@dataclass(frozen=True)
class BaseCall:
    """One aggregate over plain columns: a function of ``ADDITIVE``, MIN, MAX, SINGLE_VALUE, FIRST, PERCENTILE,
    PERCENTILE_DISC, MODE, BIT_AND, BIT_OR or BIT_XOR.

    ``output`` is the result's column id, ``type`` its Arrow type (SUM: int64, double, or a decimal of the argument's
    scale). ``argument`` is the argument as errors name it, None for COUNT(*); ``argument_type`` its Arrow type:
    doubles, or structs (x, y) of doubles, for sums of powers; for FIRST structs of the columns ``o0``.. of ``order``
    and the value ``v``, NULL for a row that does not count. ``share``: the percentage; ``descending``: the order of a
    percentage or MODE. ``column``: the number of another call whose argument, and whose state, are this one's too.
    """

    output: str
    function: str
    type: pa.DataType
    argument: str | None = None
    argument_type: pa.DataType | None = None
    distinct: bool = False
    share: float = 0.5
    descending: bool = False
    order: tuple[OrderKey, ...] = ()
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.function}({'DISTINCT ' if self.distinct else ''}{self.argument or '*'})"

    @property
    def additive(self) -> bool:
        """Whether counts and sums suffice; else the values are kept."""
        return self.function in ADDITIVE and not self.distinct


class Elements:
    """The rows' ``kind`` and copies ``n``."""

    def __init__(self, kind: np.ndarray, n: np.ndarray):
        self.kind, self.n = kind, n
        self.all_raw = not kind.any()
        self.single = self.all_raw and bool((n == 1).all())

    def copies(self, rows: np.ndarray) -> np.ndarray:
        """How many elements each row stands for."""
        if self.single:
            return np.ones(len(rows), np.int64)
        n = self.n[rows]
        return n if self.all_raw else np.where(self.kind[rows] <= SUMS, n, 0)


class Instants:
    """The instants of a block of rows as segments (``kernels/instants.py``), and how to name one in an error.

    ``rows``: positions in the input, ``row_group`` their groups, ``copies`` how many elements they stand for.
    ``elements``: how many there are in each segment.
    """

    def __init__(
        self,
        rows: np.ndarray,
        row_group: np.ndarray,
        cut: Segments,
        copies: np.ndarray,
        h0: int,
        name: Callable[[int], str],
    ):
        self.rows, self.row_group, self.copies, self.h0, self._name = rows, row_group, copies, h0, name
        self.cut, self.group, self.tick = cut, cut.group, cut.tick
        self.elements = self.running(copies)

    def running(self, weight: np.ndarray) -> np.ndarray:
        """Sum per segment of the weights (one per row of the block) of what is valid there."""
        return kernel.running_sum(self.cut, weight)

    def each_event(self, copies: np.ndarray) -> Instants:
        """The same instants, with each event as a row that only begins, of so many copies."""
        row = self.cut.rows()
        cut = self.cut._replace(events=2 * np.arange(len(row)))
        return Instants(self.rows[row], self.row_group[row], cut, copies, self.h0, self._name)

    def row(self, segments: np.ndarray) -> np.ndarray:
        """A row of each segment's group."""
        return self.rows[self.cut.a_row(segments)]

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
        if pt.is_integer(t) and not pt.is_int64(t):
            values = values.astype(t.to_pandas_dtype())
        validity, nulls = None, 0
        if self.valid is not None and not (valid := self.valid[at]).all():
            validity = pa.py_buffer(np.packbits(valid, bitorder="little"))
            nulls = int(len(valid) - valid.sum())
        if pt.is_decimal128(t):
            high = values >> 63 if self.high is None else self.high[at]
            values = np.stack([values, high], axis=1)
        return pa.Array.from_buffers(t, len(at), [validity, pa.py_buffer(values)], nulls)


class Argument:
    """COUNT(x). Arrays are in the order of the input's rows; ``rows`` below are positions there.

    ``kind``: that of the rows which carry its values; None: its state is in the rows of ``SUMS``. ``holds``: it is the
    call that writes this state, for itself and for those that share it.
    """

    def __init__(self, elements: Elements, table: pa.Table, i: int, call: BaseCall):
        self.elements = elements
        self.holds, holder = call.column is None, i if call.column is None else call.column
        self.array = key_codes.one_array(table.column(f"a{holder}"))
        self.valid = self.array.is_valid().to_numpy(zero_copy_only=False) if self.array.null_count else None
        self.kind = None if call.additive else VALUE + holder
        self.m = None
        if call.additive and not elements.all_raw:
            self.m = key_codes.int64_of(table.column(f"m{holder}"))
        self.rank, self.ranks = np.zeros(0, np.int64), 0
        if self.kind is not None:
            self.rank, self.ranks = self._ranked(call)

    def _ranked(self, call: BaseCall) -> tuple[np.ndarray, int]:
        """(rank of each row's value, number of ranks): what a call that keeps values tells them apart by."""
        rank, count = column_ranks(self.array)
        return (count - 1 - rank, count) if call.descending else (rank, count)

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
        if self.elements.all_raw:
            return n
        if self.kind is not None:
            return np.where(self.elements.kind[rows] == self.kind, self.elements.n[rows], n)
        return n if self.m is None else n + np.where(self.elements.kind[rows] == SUMS, self.m[rows], 0)

    def values_of(self, at: Instants, call: BaseCall, present: np.ndarray) -> Result:
        """The call's value per segment."""
        # without NULLs and carried values they are those of the elements, which are counted already
        copies = at.copies if self.valid is None and self.elements.all_raw else self.copies(at.rows)
        if call.distinct:
            at = self._distinct(at, call, copies)
            copies = at.copies
        return self.results(at, call, present, copies)

    def _distinct(self, at: Instants, call: BaseCall, copies: np.ndarray) -> Instants:
        """The events as rows of their own, which add a value where it comes and take it away where it is gone."""
        space = np.zeros(self.ranks + 1, np.int64)
        change, negative = values_kernel.transitions(at.cut, self.rank[at.rows], copies, space)
        if negative >= 0:
            at.negative(negative, f"copies of a value of {call}")
        return at.each_event(change)

    def results(self, at: Instants, call: BaseCall, present: np.ndarray, copies: np.ndarray) -> Result:
        """The call's value per segment, of so many copies of each of the block's rows."""
        if copies is at.copies:
            return Result(at.elements)
        counts = at.running(copies)
        at.refuse_negative(counts, f"non-NULL arguments of {call}")
        return Result(counts)

    def places(self, at: Instants) -> tuple[np.ndarray, np.ndarray]:
        """(place of each row of the block, a row of each place): its (group, rank) pairs in their order, from 0."""
        rank = self.rank[at.rows]
        order = sorted_order((at.row_group, rank))
        change = np.zeros(len(order), np.int64)
        group, rank = at.row_group[order], rank[order]
        change[1:] = (group[1:] != group[:-1]) | (rank[1:] != rank[:-1])
        np.cumsum(change, out=change)
        place = np.empty(len(order), np.int64)
        place[order] = change
        rows = np.zeros(int(change[-1]) + 1 if len(change) else 0, np.int64)
        rows[place] = at.rows
        return place, rows

    def shown(self, rows: np.ndarray) -> pa.Array:
        """The arguments of rows, as published."""
        return key_codes.canonical_array(self.array.take(pa.array(rows)))


class Additive(Argument, ABC):
    """A call with sums beside its count: ``p{i}`` holds them."""

    def _read_state(self, table: pa.Table, i: int, call: BaseCall) -> None:
        self.begin = self.end = _NONE
        self.data = _NO_BYTES
        self.carried_sums = call.additive and not self.elements.all_raw
        if self.carried_sums:
            column = table.column(f"p{i if call.column is None else call.column}")
            self.begin, self.end, self.data = _binary(key_codes.one_array(column))

    def _terms(self, rows: np.ndarray, copies: np.ndarray) -> Terms:
        """What rows of so many copies add to the sum."""
        if not self.carried_sums:
            return Terms(np.zeros(len(rows), np.int64), copies, _NONE, _NONE, self.data)
        kind = (self.elements.kind[rows] == SUMS).astype(np.int64)
        return Terms(kind, copies * (kind == 0), self.begin[rows], self.end[rows], self.data)

    def encoded(self, rows: np.ndarray, first: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        """(sums of the runs of rows as the carry holds them, their lengths in bytes); 0 bytes are the sum 0."""
        offsets, data = self._encoded(first, rows)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers).cast(pa.binary()), np.diff(offsets)

    @abstractmethod
    def _encoded(self, first: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(offsets, bytes) of the sums of the runs."""


class Sum(Additive):
    """SUM(x), exact. In int64, or of doubles in fixed point, where no combination of the rows can overflow it, else in
    an accumulator. TRY_SUM is NULL where SUM is an error.
    """

    def __init__(self, elements: Elements, table: pa.Table, i: int, call: BaseCall):
        super().__init__(elements, table, i, call)
        t = self.array.type
        self.double = pt.is_floating(t)
        self.rounded = pt.is_float64(call.type)
        if self.double and not self.rounded:
            raise ValueError(f"{call} over {t} gives a double, not {call.type}")
        if pt.is_decimal(t) and not (pt.is_decimal(call.type) and call.type.scale == t.scale):
            raise ValueError(f"{call} over {t} cannot give {call.type}: the scales differ")
        self.high, self.low = _words(self.array)
        self._read_state(table, i, call)
        self.carried = None
        self.small = not self.double and self._is_small()
        self.unit, self.words = 0, (_NONE, _NONE)
        self.fixed = self.double and self._is_fixed(elements, call)

    def _is_small(self) -> bool:
        # whether all partial sums fit in int64
        if self.high is not None and not np.array_equal(self.high, self.low >> 63):
            return False
        size = kernel.total_size(self.low, self.elements.n)
        if self.carried_sums:
            fits, carried = kernel.decode_small(self.elements.kind, self.begin, self.end, self.data)
            if not fits:
                return False
            self.carried = carried
            size += np.abs(carried.astype(np.float64)).sum()
        return size < _SAFE

    def _is_fixed(self, elements: Elements, call: BaseCall) -> bool:
        # whether all partial sums of doubles fit in fixed point
        every = np.arange(len(self.low))
        terms = self._terms(every, self.raw(every))
        if call.distinct:  # any value may be there once, also a carried one
            terms = terms._replace(copies=np.ones(len(every), np.int64))
        wide_enough, self.unit = fixed.unit_of(self.low, terms)
        if wide_enough:
            self.words = fixed.words(self.low, terms, self.unit)
        return bool(wide_enough)

    def _fixed(self, at: Instants, copies: np.ndarray) -> np.ndarray:
        if self.kind is None:  # the copies are in the words already
            copies = np.ones(len(copies), np.int64)
        return fixed.running(at.cut, *gathered(at.rows, *self.words), copies, self.unit)

    def _summands(self, rows: np.ndarray, copies: np.ndarray) -> np.ndarray:
        if self.elements.single and self.valid is None and self.kind is None:
            return self.low[rows]
        if self.carried is None:
            return copies * self.low[rows]
        return self.raw(rows) * self.low[rows] + self.carried[rows]

    def _summed(self, rows: np.ndarray, copies: np.ndarray) -> tuple[np.ndarray, np.ndarray, Terms]:
        # (high words, low words, terms) of the rows, as ``running_exact`` and ``encode_runs`` take them
        low = self.low[rows]
        high = low >> 63 if self.high is None else self.high[rows]
        return high, low, self._terms(rows, copies)

    def results(self, at: Instants, call: BaseCall, present: np.ndarray, copies: np.ndarray) -> Result:
        valid = super().results(at, call, present, copies).values > 0
        if self.small:
            low = at.running(self._summands(at.rows, copies))
            if self.rounded:
                return Result(low.astype(np.float64).view(np.int64), valid)
            if pt.is_int64(call.type):
                return Result(low, valid)
            fits, high = np.ones(len(low), np.bool_), low >> 63
        elif self.fixed:
            return Result(self._fixed(at, copies), valid)
        else:
            fits, high, low = kernel.running_exact(at.cut, self.double, self.rounded, *self._summed(at.rows, copies))
            if self.rounded:
                return Result(low, valid)
        beyond = ~fits | _overflows(high, low, call.type)
        if call.function == "TRY_SUM":
            return Result(low, valid & ~beyond, high if pt.is_decimal(call.type) else None)
        bad = np.flatnonzero(present & valid & (at.tick > at.h0) & beyond)
        if len(bad):
            raise DataError(
                f"SUM overflow: {call} does not fit in {call.type} at {at.place(int(bad[0]))}. "
                f"CAST its argument to a wider type (DECIMAL(38, s) or DOUBLE)."
            )
        return Result(low, valid, high if pt.is_decimal(call.type) else None)

    def _encoded(self, first: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return kernel.encode_runs(first, self.double, *self._summed(rows, self.raw(rows)))


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
