"""What the loops read: events, the segments that they form, and what rows add to a sum.

An event is coded ``2*row`` where the row starts to count and ``2*row + 1`` where it ceases to. All events of one group
at one tick form a *segment*; operators look at their state only at the end of a segment, so both sides of an instant
are seen.

A loop takes what belongs together apart before it begins: within, numba would count references to the arrays.

Letters in the loops: ``cut`` are the segments, ``s`` is one of them, ``k`` the number of an event and ``e`` its code,
``row`` a position in the input, ``n`` its copies and ``w`` those that come with an event (negative: that go), ``group``
the code of a key, ``r`` a rank and ``p`` a place, ``t`` a tick, ``ts`` / ``te`` from when until when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sweeparea.operators.kernels.compiled import njit

if TYPE_CHECKING:
    import numpy as np


class Segments(NamedTuple):
    """``events[first[s]:first[s+1]]`` are those of segment s, of ``group[s]`` at ``tick[s]``; groups are in order."""

    events: np.ndarray
    first: np.ndarray
    group: np.ndarray
    tick: np.ndarray

    def rows(self) -> np.ndarray:
        """The row of each event."""
        return self.events >> 1

    def a_row(self, segments: np.ndarray | int) -> np.ndarray:
        """A row of each of these segments: that of its first event."""
        return self.events[self.first[segments]] >> 1


class Terms(NamedTuple):
    """What rows add to a sum: ``copies`` of a value or, those of ``kind`` 1, the sum encoded in ``data[begin:end]``."""

    kind: np.ndarray
    copies: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    data: np.ndarray


@njit(cache=True)
def start_of(row):
    """The event of a row that starts to count."""
    return 2 * row


@njit(cache=True)
def end_of(row):
    """The event of a row that ceases to count."""
    return 2 * row + 1


@njit(cache=True)
def row_of(event):
    """The row of an event."""
    return event >> 1


@njit(cache=True)
def signed(event, n):
    """The copies that come with an event of a row of ``n``: fewer where it ends."""
    return -n if event & 1 else n


@njit(cache=True)
def opens(group, s):
    """Whether segment ``s`` is the first of its group."""
    return s == 0 or group[s] != group[s - 1]


@njit(cache=True)
def closes(group, s):
    """Whether segment ``s`` is the last of its group."""
    return s == len(group) - 1 or group[s + 1] != group[s]


@njit(cache=True)
def count(copies, at, n):
    """Count ``n`` copies more at a place; gives by how many more places hold fewer than none."""
    before = copies[at]
    copies[at] = before + n
    return (before + n < 0) - (before < 0)
