"""A user's aggregate with a state that adds and removes rows (``user_code/user_state.py``).

What is kept is the bag of the rows' arguments, as for a median: objects of a user's class are of one slice, so that
neither their form nor another version of the class can spoil what is stored. Where a group changes its rows are added
once, and then what comes and goes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from sweeparea.operators.aggregates.calls import Argument, BaseCall
from sweeparea.operators.aggregates.instants import Elements, Instants, Result
from sweeparea.operators.kernels import holistic as kernel
from sweeparea.operators.user_code.user_aggregate import UserAggregate
from sweeparea.operators.user_code.user_state import UserState
from sweeparea.operators.values import keys as key_codes


class UserValue(Argument):
    """The aggregate ``call.user`` of structs of its arguments, NULL for rows that do not count."""

    def __init__(self, elements: Elements, table: pa.Table, i: int, call: BaseCall):
        super().__init__(elements, table, i, call)
        self.rows = key_codes.canonical_array(self.array)

    def results(self, at: Instants, call: BaseCall, present: np.ndarray, copies: np.ndarray) -> Result:
        user = call.user
        assert user is not None
        space = np.zeros(self.ranks + 1, np.int64)
        _, negative = kernel.transitions(at.cut, self.rank[at.rows], copies, space)
        if negative >= 0:
            at.negative(negative, f"copies of a value of {call}")
        used = np.unique(at.rows)
        given = {row: tuple(v.values()) for row, v in _listed(used, self.rows) if v is not None}
        events, first, group = (part.tolist() for part in at.cut[:3])
        rank, weight, row_of = self.rank[at.rows].tolist(), copies.tolist(), at.rows.tolist()
        values: list[Any] = []
        place = np.zeros(len(group), np.int64)
        state = user.state()
        for s in range(len(group)):
            opens = s == 0 or group[s] != group[s - 1]
            if opens:
                state = user.state()
            net: dict[int, list[int]] = {}
            for event in events[first[s] : first[s + 1]]:
                row = event >> 1
                if weight[row]:
                    entry = net.setdefault(rank[row], [row_of[row], 0])
                    entry[1] += -weight[row] if event & 1 else weight[row]
            moves = [entry for entry in net.values() if entry[1]]
            for row, n in moves:
                user.change(state, given[row], n)
            if present[s] and (opens or moves or not present[s - 1]):
                values.append(user.value(state))
            place[s] = len(values) - 1
        return given_values(user.array([*values, None]), place)


def given_values(lookup: pa.Array, place: np.ndarray) -> Result:
    """Values that stand at places of ``lookup``: equal ones at one of them, so that they are no change."""
    code, count = key_codes.column_codes(lookup)
    position = key_codes.first_rows(code, count)[code][place]
    return Result(position, lookup.is_valid().to_numpy(zero_copy_only=False)[position], lookup=lookup)


def _listed(rows: np.ndarray, values: pa.Array) -> list[tuple[int, Any]]:
    return list(zip(rows.tolist(), values.take(pa.array(rows)).to_pylist(), strict=True))


class StateTree:
    """States of the rows of one group, in its order: of the rows of any frame the state, of O(log n) merged ones."""

    def __init__(self, user: UserAggregate, row: Callable[[int], tuple[Any, ...] | None], places: int) -> None:
        self.user, self.row, self.places = user, row, places
        self.nodes: list[UserState | None] = [None] * (2 * places)
        self.copies = [0] * places
        self.known: dict[tuple[int, int], Any] = {}

    def change(self, moves: list[tuple[int, int]]) -> None:
        """So many copies more at places, several at once."""
        self.known.clear()
        changed = set()
        for p, n in moves:
            self.copies[p] += n
            changed.add(p)
        above: list[int] = []  # those with the greatest numbers lie lowest
        for p in changed:
            row, node = self.row(p), None
            if self.copies[p] and row is not None:
                node = self.user.state()
                self.user.change(node, row, self.copies[p])
            self.nodes[self.places + p] = node
            above.append(-((self.places + p) >> 1))
        heapq.heapify(above)
        last = 0
        while above:
            at = -heapq.heappop(above)
            if at > 0 and at != last:
                below = [node for node in self.nodes[2 * at : 2 * at + 2] if node is not None]
                self.nodes[at] = below[0] if len(below) == 1 else self._of(below) if below else None
                heapq.heappush(above, -(at >> 1))
                last = at

    def _of(self, states: list[UserState]) -> UserState:
        made = self.user.state()
        for state in states:
            made = self.user.merged(made, state)
        return made

    def value(self, a: int, b: int) -> Any:
        """The value of the rows at the places from ``a`` up to ``b`` - 1."""
        if (a, b) not in self.known:
            found, low, high = [], a + self.places, b + self.places
            while low < high:
                if low & 1:
                    found.append(self.nodes[low])
                    low += 1
                if high & 1:
                    high -= 1
                    found.append(self.nodes[high])
                low, high = low >> 1, high >> 1
            self.known[a, b] = self.user.value(self._of([node for node in found if node is not None]))
        return self.known[a, b]
