"""Rows of a group come where their interval begins and go where it ends: who moves at a segment, how that is counted,
and room for what is told of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sweeparea.operators.kernels.compiled import njit
from sweeparea.operators.kernels.order_statistics import add
from sweeparea.operators.kernels.sorting import sorted_order


class Intervals(NamedTuple):
    """Interval i lies in segments ``begin[i]`` to ``end[i] - 1``, at ``place[i]`` of the order, with ``copies[i]`` > 0;
    ``by_begin`` and ``by_end`` sort the intervals.
    """

    place: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    copies: np.ndarray
    by_begin: np.ndarray
    by_end: np.ndarray


def intervals_of(place: np.ndarray, first: np.ndarray, covers: np.ndarray, copies: np.ndarray) -> Intervals:
    """Of rows that cover so many segments from their first one on."""
    end = first + covers
    return Intervals(place, first, end, copies, sorted_order((first,)), sorted_order((end,)))


class MoveCursor(NamedTuple):
    """How many intervals have begun and have ended (``done``), and room for what moves at one segment."""

    done: np.ndarray
    places: np.ndarray
    copies: np.ndarray


@njit(cache=True)
def cursor_of(intervals, segments):
    """Before the first of ``segments`` segments."""
    at = np.zeros(segments + 1, np.int64)
    for i in range(len(intervals.place)):
        at[intervals.begin[i]] += 1
        at[intervals.end[i]] += 1
    most = at.max()
    return MoveCursor(np.zeros(2, np.int64), np.empty(most, np.int64), np.empty(most, np.int64))


@njit(cache=True)
def moved(intervals, opens, segment, base, cursor):
    """(place in the group that begins at ``base``, copies, negative where they go) of what moves at ``segment``; they
    stand until the next call.

    ``cursor`` goes on. ``opens``: the segment is the first of its group, where nothing ends but what lay in the group
    before.
    """
    had_begun, had_ended = cursor.done
    begun, ended = had_begun, had_ended
    end, by_end, begin, by_begin = intervals.end, intervals.by_end, intervals.begin, intervals.by_begin
    while ended < len(by_end) and end[by_end[ended]] == segment:
        ended += 1
    while begun < len(by_begin) and begin[by_begin[begun]] == segment:
        begun += 1
    gone = 0 if opens else ended - had_ended
    size = gone + begun - had_begun
    places, copies = cursor.places, cursor.copies
    for k in range(gone):
        i = by_end[had_ended + k]
        places[k], copies[k] = intervals.place[i] - base, -intervals.copies[i]
    for k in range(gone, size):
        i = by_begin[had_begun + k - gone]
        places[k], copies[k] = intervals.place[i] - base, intervals.copies[i]
    cursor.done[0], cursor.done[1] = begun, ended
    return places[:size], copies[:size]


@njit(cache=True)
def count(places, copies, group, tree, at_place):
    """Counts what moves in ``at_place``, the copies at each place, and in ``tree``, their order statistics; ``group``:
    where it begins in both, and how many places it has.
    """
    base, size = group
    for j in range(len(places)):
        at_place[base + places[j]] += copies[j]
        add(tree, base, size, places[j], copies[j])


@njit(cache=True)
def with_room(found, at):
    """``found``, or a larger array with the same columns, which has a column ``at``."""
    if at < found.shape[1]:
        return found
    grown = np.empty((found.shape[0], 2 * at), np.int64)
    for row in range(found.shape[0]):
        for i in range(at):  # assigning a slice takes numba seconds to compile
            grown[row, i] = found[row, i]
    return grown
