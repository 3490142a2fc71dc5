"""SUM, exact, and what all calls have whose state is sums beside a count: these add and subtract, so a running total
suffices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from sweeparea.infra.errors import DataError
from sweeparea.operators.aggregates.calls import Argument, BaseCall
from sweeparea.operators.aggregates.instants import SUMS, Elements, Instants, Result
from sweeparea.operators.kernels import aggregate as kernel
from sweeparea.operators.kernels.events import Terms
from sweeparea.operators.kernels.instants import gathered
from sweeparea.operators.kernels.sums import fixed
from sweeparea.operators.values import keys as key_codes

_SAFE = float(1 << 61)
_NONE = np.zeros(0, np.int64)
_NO_BYTES = np.zeros(0, np.uint8)


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
        return fitting(call, (fits, high, low), valid, present & (at.tick > at.h0), at.place)

    def _encoded(self, first: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return kernel.encode_runs(first, self.double, *self._summed(rows, self.raw(rows)))


def fitting(
    call: BaseCall,
    total: tuple[np.ndarray, np.ndarray, np.ndarray],
    valid: np.ndarray,
    told: np.ndarray,
    place: Callable[[int], str],
) -> Result:
    """SUM's values from (whether they fit in 128 bits, high words, low words). DataError where one that is ``told``
    does not fit in the result's type; ``place`` names where.
    """
    fits, high, low = total
    beyond = ~fits | _overflows(high, low, call.type)
    if call.function == "TRY_SUM":
        return Result(low, valid & ~beyond, high if pt.is_decimal(call.type) else None)
    bad = np.flatnonzero(told & valid & beyond)
    if len(bad):
        raise DataError(
            f"SUM overflow: {call} does not fit in {call.type} at {place(int(bad[0]))}. "
            f"CAST its argument to a wider type (DECIMAL(38, s) or DOUBLE)."
        )
    return Result(low, valid, high if pt.is_decimal(call.type) else None)


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
