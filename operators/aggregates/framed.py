"""The calls of frames: what a record adds to them, and their values from what the frames hold (``kernels/framed.py``).

SUM, COUNT and the statistics of powers are sums of digits (``kernels/sums/digits.py``), exact and rounded as those of a
group, so both give the same bits. MIN, MAX and the first of an order are the least of ranks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from sweeparea.operators.aggregates import moments
from sweeparea.operators.aggregates.calls import Argument, BaseCall
from sweeparea.operators.aggregates.extrema import Extremum
from sweeparea.operators.aggregates.functions import argument_of
from sweeparea.operators.aggregates.instants import Elements, Result
from sweeparea.operators.aggregates.moment_sums import MomentSum, scaled, statistic
from sweeparea.operators.aggregates.sums import Sum, fitting
from sweeparea.operators.aggregates.user_values import given_values
from sweeparea.operators.kernels import framed as kernel
from sweeparea.operators.kernels.sums import digits
from sweeparea.operators.kernels.sums import powers as powers_kernel
from sweeparea.operators.user_code.user_aggregate import UserAggregate
from sweeparea.operators.values import keys as key_codes


@dataclass
class FrameColumns:
    """What the calls of one sweep have of each record: sums of equal arguments are there once."""

    terms: list[np.ndarray] = field(default_factory=list)
    ranks: list[np.ndarray] = field(default_factory=list)
    _known: dict[Hashable, int] = field(default_factory=dict)

    def added(self, of: Hashable, columns: Callable[[], np.ndarray]) -> int:
        """The first of the columns that are summed; ``of`` says what they are."""
        if of not in self._known:
            self._known[of] = sum(block.shape[1] for block in self.terms)
            self.terms.append(columns())
        return self._known[of]

    def ranked(self, rank: np.ndarray) -> int:
        """The column of a rank."""
        self.ranks.append(rank)
        return len(self.ranks) - 1


@dataclass(frozen=True)
class ToldFrames:
    """Which of the values are told as they are, and how to name where."""

    now: np.ndarray
    place: Callable[[int], str]


class FramedValue(ABC):
    """A call: ``kind``, ``source``, ``width`` and ``skip`` as of ``kernel.AskedFrames``; ``type`` is its Arrow type."""

    kind = kernel.SUMS
    width = 1
    skip = 0
    source: int
    type: pa.DataType

    @abstractmethod
    def result(self, found: np.ndarray, told: ToldFrames) -> Result:
        """The values from what frames hold, a row of ``width`` numbers each."""


def value_of(
    call: BaseCall, name: str | None, table: pa.Table, copies: np.ndarray, columns: FrameColumns
) -> FramedValue:
    """A base aggregate over the column ``name`` of a table with so many copies of each record."""
    if name is None:
        return Count(call, "*", np.ones((table.num_rows, 1), np.int64), columns)
    given = pa.table({"a0": table.column(name)})
    elements = Elements(np.zeros(table.num_rows, np.int16), copies)
    argument = argument_of(elements, given, 0, replace(call, column=None))
    if isinstance(argument, Extremum):
        return Least(call, argument, columns)
    if isinstance(argument, Sum):
        return Total(call, name, argument, columns)
    if isinstance(argument, MomentSum):
        return Moment(call, name, argument, columns)
    assert argument is not None
    return Count(call, name, _counted(argument), columns)


def _counted(argument: Argument) -> np.ndarray:
    size = len(argument.array)
    valid = np.ones(size, np.int64) if argument.valid is None else argument.valid.astype(np.int64)
    return valid.reshape(size, 1)


class Count(FramedValue):
    """COUNT(x), COUNT(*)."""

    def __init__(self, call: BaseCall, name: str, counted: np.ndarray, columns: FrameColumns) -> None:
        self.type = call.type
        self.source = columns.added(("count", name), lambda: counted)

    def result(self, found: np.ndarray, told: ToldFrames) -> Result:
        return Result(found[:, 0])


class Total(FramedValue):
    """SUM(x), TRY_SUM(x); before its digits the count of its argument."""

    def __init__(self, call: BaseCall, name: str, argument: Sum, columns: FrameColumns) -> None:
        self.call, self.type, self.argument = call, call.type, argument
        self.first, self.digits = np.int64(0), np.int64(0)
        if argument.small:
            summed = argument.low.reshape(-1, 1)
        elif argument.double:
            self.first, self.digits, summed = digits.of_doubles(argument.low)
        else:
            high = argument.low >> 63 if argument.high is None else argument.high
            summed = digits.of_integers(high, argument.low)
        terms = np.hstack([_counted(argument), summed])
        self.width = terms.shape[1]
        self.source = columns.added(("sum", name), lambda: terms)

    def result(self, found: np.ndarray, told: ToldFrames) -> Result:
        valid, sums = found[:, 0] > 0, np.ascontiguousarray(found[:, 1:])
        rounded, small = self.argument.rounded, self.argument.small
        if self.argument.double:
            return Result(digits.rounded_doubles(self.first, self.digits, sums), valid)
        if small:
            low = sums[:, 0]
            if rounded:
                return Result(low.astype(np.float64).view(np.int64), valid)
            if pt.is_int64(self.type):
                return Result(low, valid)
            total = np.ones(len(low), np.bool_), low >> 63, low
        else:
            total = digits.integers(sums, rounded)
            if rounded:
                return Result(total[2], valid)
        return fitting(self.call, total, valid, told.now, told.place)


class Moment(FramedValue):
    """A statistic of sums of powers; before their digits the count of its argument."""

    def __init__(self, call: BaseCall, name: str, argument: MomentSum, columns: FrameColumns) -> None:
        self.function, self.type, self.powers = call.function, call.type, argument.powers
        self.first, self.widths, summed = digits.of_powers(argument.sums, argument.powers, argument.x, argument.y)
        terms = np.hstack([_counted(argument), summed])
        self.width = terms.shape[1]
        self.source = columns.added(("powers", self.powers, name), lambda: terms)

    def result(self, found: np.ndarray, told: ToldFrames) -> Result:
        values, valid = np.zeros(len(found), np.float64), np.zeros(len(found), np.bool_)
        known: dict[bytes, float | None] = {}
        for i, row in enumerate(np.ascontiguousarray(found)):
            state = row.tobytes()
            if state not in known:
                known[state] = self._statistic(row.tolist())
            value = known[state]
            if value is not None:
                values[i], valid[i] = value + 0.0, True
        return Result(values.view(np.int64), valid)

    def _statistic(self, row: list[int]) -> float | None:
        count, at, sums = row[0], 1, []
        for first, width in zip(self.first.tolist(), self.widths.tolist(), strict=True):
            whole = sum(digit << powers_kernel.BASE * k for k, digit in enumerate(row[at : at + width]))
            sums.append((whole, first))
            at += width
        # of fewer values than these every formula is NULL
        if count < (2 if self.function in moments.OF_SAMPLES else 1):
            return None
        return statistic(self.function, self.powers, count, scaled(sums, self.powers), (row[at], row[at + 1]))


class Least(FramedValue):
    """MIN, MAX, and the value beside the first of an order."""

    kind = kernel.LEAST

    def __init__(self, call: BaseCall, argument: Extremum, columns: FrameColumns) -> None:
        self.argument, self.type = argument, call.type
        rank = argument.rank
        if argument.valid is not None:
            rank = np.where(argument.valid, rank, kernel.NOTHING)
        self.source = columns.ranked(rank)

    def result(self, found: np.ndarray, told: ToldFrames) -> Result:
        argument, rank = self.argument, found[:, 0]
        there = rank < kernel.NOTHING
        at = np.where(there, rank, argument.ranks)
        return Result(argument.position[at], there & argument.shows[at], lookup=argument.lookup)


class Picked(FramedValue):
    """The value of the row number ``skip`` from the first (``kernel.FIRST``) or last one on, of those that count."""

    def __init__(
        self, table: pa.Table, name: str, counted: str, kind: int, skip: int, default: str | None, columns: FrameColumns
    ) -> None:
        self.kind, self.skip = kind, skip
        given = key_codes.one_array(table.column(name))
        missing = pa.nulls(1, given.type) if default is None else key_codes.one_array(table.column(default))
        self.type, self.default = given.type, default is not None
        self.lookup = pa.concat_arrays([given, missing])
        code, count = key_codes.column_codes(self.lookup)
        self.position = key_codes.first_rows(code, count)[code]
        self.valid = self.lookup.is_valid().to_numpy(zero_copy_only=False)
        self.rows = len(given)
        counts = table.column(counted).to_numpy().astype(np.int64).reshape(-1, 1)
        self.source = columns.added(("rows", counted), lambda: counts)

    def result(self, found: np.ndarray, told: ToldFrames) -> Result:
        """``found``: the record that is picked, or -1; and the record itself."""
        other, own = found[:, 0], found[:, 1]
        at = self.position[np.where(other >= 0, other, self.rows + (own if self.default else 0))]
        return Result(at, self.valid[at], lookup=self.lookup)


class UserFrames(FramedValue):
    """A user's aggregate with a state, of structs of its arguments. Which frames hold other rows than before is told
    by sums of two random numbers for each value; ``values`` then gives the values of the frames.
    """

    kind = kernel.REACH
    width = 5

    def __init__(self, user: UserAggregate, name: str, table: pa.Table, columns: FrameColumns) -> None:
        self.user, self.type = user, user.type
        array = key_codes.one_array(table.column(name))
        code, count = key_codes.column_codes(array)
        valid = array.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        numbers = np.random.default_rng(0).integers(-(1 << 62), 1 << 62, (count, 2))
        terms = np.column_stack([valid, numbers[code] * valid.reshape(-1, 1)])
        self.source = columns.added(("user", name), lambda: terms)
        self.rows = [None if row is None else tuple(row.values()) for row in array.to_pylist()]
        self.values: Callable[[np.ndarray], list[Any]] = lambda found: []

    def result(self, found: np.ndarray, told: ToldFrames) -> Result:
        values = self.values(found)
        return given_values(self.user.array([*values, None]), np.arange(len(values)))
