"""Rows of a group come where their interval begins and go where it ends: who moves at a segment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sweeparea.operators.kernels.compiled import njit


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


@njit(cache=True)
def moved(intervals, opens, segment, base, cursors):
    """(place in the group that begins at ``base``, copies, negative where they go) of what moves at ``segment``.

    ``cursors``: how many intervals have begun and have ended before; they go on. ``opens``: the segment is the first of
    its group, where nothing ends but what lay in the group before.
    """
    begun, ended = cursors
    end, by_end, begin, by_begin = intervals.end, intervals.by_end, intervals.begin, intervals.by_begin
    while ended < len(by_end) and end[by_end[ended]] == segment:
        ended += 1
    while begun < len(by_begin) and begin[by_begin[begun]] == segment:
        begun += 1
    gone = 0 if opens else ended - cursors[1]
    places = np.empty(gone + begun - cursors[0], np.int64)
    copies = np.empty(len(places), np.int64)
    for k in range(gone):
        i = by_end[cursors[1] + k]
        places[k], copies[k] = intervals.place[i] - base, -intervals.copies[i]
    for k in range(gone, len(places)):
        i = by_begin[cursors[0] + k - gone]
        places[k], copies[k] = intervals.place[i] - base, intervals.copies[i]
    cursors[0], cursors[1] = begun, ended
    return places, copies
