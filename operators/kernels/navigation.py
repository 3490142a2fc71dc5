"""Which other row of its group each row refers to, and how that changes: LAG, LEAD, and edges of frames of rows.

The rows of a group stand in an order-statistics tree over their places. Where rows come and go only those are looked at
that can refer to another row than before: those near by, or all of the group where a row comes or goes near the end to
which a frame without bound reaches. Each is told as it was and as it is, O(log n) a reference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sweeparea.operators.kernels.compiled import njit
from sweeparea.operators.kernels.moves import count, cursor_of, moved, with_room
from sweeparea.operators.kernels.order_statistics import before, entry

LAG, FIRST, LAST = 0, 1, 2
"""A row some rows away; row ``skip`` of a frame, from its first or its last row on."""
UNBOUNDED = 1 << 40
"""A bound of a frame that reaches the end of the group."""


@njit(cache=True)
def _referred(call, at, rows):
    # the number of the row that row ``at`` of ``rows`` refers to, -1: there is none
    kind, low, high, skip = call
    if kind == LAG:
        found = at + low
        return found if 0 <= found < rows else -1
    first = max(0, at + low)
    last = min(rows - 1, at + high)
    found = first + skip if kind == FIRST else last - skip
    return found if first <= found <= last else -1


class PlacedGroup(NamedTuple):
    """A group's places begin at ``base``; ``tree`` counts the copies at each place, of which ``at_place`` has."""

    base: int
    places: int
    tree: np.ndarray
    at_place: np.ndarray


class Lines(NamedTuple):
    """What has been found, a column each of ``rows``, of which ``size[0]`` are filled."""

    rows: np.ndarray
    size: np.ndarray


@njit(cache=True)
def _tell(low, high, group, calls, when, told):
    # the rows with numbers ``low`` up to ``high`` as they are; ``when``: the segment, and -1 for what was
    base, places, tree, at_place = group
    rows = before(tree, base, places)
    number = max(0, low)
    high = min(high, rows)
    found, size = told
    while number < high:
        place, less = entry(tree, base, places, number)
        until = min(high, less + at_place[base + place])
        while number < until:
            at = size[0]
            found = with_room(found, at)
            found[0, at] = base + place
            found[1, at], found[2, at] = when
            for i in range(len(calls)):
                other = _referred((calls[i, 0], calls[i, 1], calls[i, 2], calls[i, 3]), number, rows)
                found[3 + i, at] = -1 if other < 0 else base + entry(tree, base, places, other)[0]
            size[0] = at + 1
            number += 1
    return Lines(found, size)


@njit(cache=True)
def _tell_near(changed, whole, reach, group, calls, when, told):
    # the rows that can refer to others where the places ``changed``, which ascend, have changed
    base, places, tree, at_place = group
    back, ahead = reach[0], reach[1]
    if whole:
        return _tell(0, before(tree, base, places), group, calls, when, told)
    done = 0
    for p in changed:
        first = before(tree, base, p)
        low = max(done, first - back)
        high = first + at_place[base + p] + ahead
        told = _tell(low, high, group, calls, when, told)
        done = max(done, high)
    return told


@njit(cache=True)
def _near_an_end(changed, reach, group):
    # whether a change concerns one of the first or last rows to which all rows may refer
    base, places, tree, at_place = group
    from_start, from_end = reach[2], reach[3]
    rows = before(tree, base, places)
    for p in changed:
        first = before(tree, base, p)
        if first < from_start or first + at_place[base + p] > rows - from_end:
            return True
    return False


@njit(cache=True)
def changes(intervals, opens, first, calls, reach):
    """(place, segment, n, place referred to or -1 by call ..): every row that may refer to others from a segment on, as
    it was (n = -1) and as it is (+1); what stays is told both ways.

    Intervals, segments and groups as of ``top_k.changes``. ``calls``: a row each, (kind, low, high, skip): ``LAG`` the
    row ``low`` rows behind the row itself; else the frame from ``low`` to ``high`` rows behind it, of it the row number
    ``skip`` from its first (``FIRST``) or last row on. ``reach``: how many rows before and behind a change may refer
    to others by it; how many of the first and last rows all may refer to.
    """
    at_place = np.zeros(first[-1], np.int64)
    tree = np.zeros(first[-1] + 1, np.int64)
    told = Lines(np.empty((3 + len(calls), 1024), np.int64), np.zeros(1, np.int64))
    cursor = cursor_of(intervals, len(opens))
    g = -1
    for segment in range(len(opens)):
        g += np.int64(opens[segment])
        within = (first[g], first[g + 1] - first[g])
        group = PlacedGroup(within[0], within[1], tree, at_place)
        places, copies = moved(intervals, opens[segment], segment, group.base, cursor)
        if opens[segment]:
            count(places, copies, within, tree, at_place)
            continue
        changed = np.unique(places)
        whole = _near_an_end(changed, reach, group)
        if not whole and reach[2] + reach[3] > 0:
            count(places, copies, within, tree, at_place)
            whole = _near_an_end(changed, reach, group)
            count(places, -copies, within, tree, at_place)
        told = _tell_near(changed, whole, reach, group, calls, (segment, -1), told)
        count(places, copies, within, tree, at_place)
        told = _tell_near(changed, whole, reach, group, calls, (segment, 1), told)
    return told.rows[:, : told.size[0]]
