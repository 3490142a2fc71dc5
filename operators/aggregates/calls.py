"""The calls of an aggregation: what each takes from the rows, and its value at every instant.

Here are COUNT and what all calls share. ``sums.py`` has SUM, ``moment_sums.py`` the sums of powers, ``extrema.py`` and
``holistic.py`` the calls that keep values; the operator around them is ``sweeps/aggregate.py``. DISTINCT is one
rewriting for all: of the events, by the values that come and go.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sweeparea.operators.aggregates.instants import RAW, SUMS, VALUE, Elements, Instants, Result
from sweeparea.operators.aggregates.names import ADDITIVE
from sweeparea.operators.kernels import holistic as values_kernel
from sweeparea.operators.kernels.sorting import sorted_order
from sweeparea.operators.user_code.user_aggregate import UserAggregate
from sweeparea.operators.values import keys as key_codes
from sweeparea.operators.values.order import OrderKey, column_ranks


@dataclass(frozen=True)
class BaseCall:
    """One aggregate over plain columns: a function of ``ADDITIVE``, MIN, MAX, SINGLE_VALUE, FIRST, PERCENTILE,
    PERCENTILE_DISC, MODE, BIT_AND, BIT_OR, BIT_XOR, or USER.

    ``output`` is the result's column id, ``type`` its Arrow type (SUM: int64, double, or a decimal of the argument's
    scale). ``argument`` is the argument as errors name it, None for COUNT(*); ``argument_type`` its Arrow type:
    doubles, or structs (x, y) of doubles, for sums of powers; for FIRST structs of the columns ``o0``.. of ``order``
    and the value ``v``, NULL for a row that does not count. ``share``: the percentage; ``descending``: the order of a
    percentage or MODE. ``user``: the user's aggregate, whose argument are structs of its own, NULL for a row that does
    not count. ``column``: the number of another call whose argument, and whose state, are this one's too.
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
    user: UserAggregate | None = None

    def __str__(self) -> str:
        name = self.function if self.user is None else self.user.name
        return f"{name}({'DISTINCT ' if self.distinct else ''}{self.argument or '*'})"

    @property
    def additive(self) -> bool:
        """Whether counts and sums suffice; else the values are kept."""
        return self.function in ADDITIVE and not self.distinct


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
