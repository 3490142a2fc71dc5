"""What the rows of an aggregation are, its instants as segments, and a call's value at each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from sweeparea.infra.errors import DataError
from sweeparea.operators.kernels import aggregate as kernel
from sweeparea.operators.kernels.events import Segments
from sweeparea.operators.values import keys as key_codes

KIND = "__kind"
"""SMALLINT: ``RAW``, ``SUMS`` or ``VALUE + i``."""
RAW = 0
"""A raw element of the input."""
SUMS = 1
"""Carried counts and sums of elements of one group that end together; ``__n`` is their net number, which may be 0."""
VALUE = 2
"""``VALUE + i``: a carried value of ``calls[i]``, in ``a{i}``, with ``__n`` copies."""


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
    """The instants of a block of rows as segments (``kernels/events.py``), and how to name one in an error.

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

    @property
    def parts(self) -> list[np.ndarray]:
        """Integers that are equal where the values are."""
        found = [self.values] if self.high is None else [self.values, self.high]
        if self.valid is None:
            return found
        return [self.valid.astype(np.int64), *(np.where(self.valid, part, 0) for part in found)]

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
