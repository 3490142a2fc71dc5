"""Which other row of its group each row refers to, and how that changes: LAG, LEAD, and edges of frames of rows.

The rows of a group stand in an order-statistics tree over their places. Where rows come and go only those are looked at
that can refer to another row than before: those near by, or all of the group where a row comes or goes near the end to
which a frame without bound reaches. Each is told as it was and as it is, O(log n) a reference.
"""

from __future__ import annotations

import numpy as np

from sweeparea.operators.kernels.compiled import njit
from sweeparea.operators.kernels.order_statistics import add, before, entry

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


@njit(cache=True)
def _tell(low, high, group, tree, at_place, calls, segment, sign, found, size):
    # the rows with numbers ``low`` up to ``high`` as they are
    base, places = group
    rows = before(tree, base, places)
    number = max(0, low)
    high = min(high, rows)
    while number < high:
        place, less = entry(tree, base, places, number)
        until = min(high, less + at_place[base + place])
        while number < until:
            at = size[0]
            if at == found.shape[1]:
                grown = np.empty((found.shape[0], 2 * at), np.int64)
                grown[:, :at] = found
                found = grown
            found[0, at] = base + place
            found[1, at] = segment
            found[2, at] = sign
            for i in range(len(calls)):
                other = _referred((calls[i, 0], calls[i, 1], calls[i, 2], calls[i, 3]), number, rows)
                found[3 + i, at] = -1 if other < 0 else base + entry(tree, base, places, other)[0]
            size[0] = at + 1
            number += 1
    return found


@njit(cache=True)
def _tell_near(changed, back, ahead, whole, group, tree, at_place, calls, segment, sign, found, size):
    # the rows that can refer to others where the places ``changed``, which ascend, have changed
    base, places = group
    if whole:
        return _tell(0, before(tree, base, places), group, tree, at_place, calls, segment, sign, found, size)
    told = 0
    for p in changed:
        first = before(tree, base, p)
        low = max(told, first - back)
        high = first + at_place[base + p] + ahead
        found = _tell(low, high, group, tree, at_place, calls, segment, sign, found, size)
        told = max(told, high)
    return found


@njit(cache=True)
def _near_an_end(changed, from_start, from_end, group, tree, at_place):
    # whether a change concerns one of the first or last rows to which all rows may refer
    base, places = group
    rows = before(tree, base, places)
    for p in changed:
        first = before(tree, base, p)
        if first < from_start or first + at_place[base + p] > rows - from_end:
            return True
    return False


@njit(cache=True)
def changes(place, begin, end, copies, by_begin, by_end, opens, first, calls, reach):
    """(place, segment, n, place referred to or -1 by call ..): every row that may refer to others from a segment on, as
    it was (n = -1) and as it is (+1); what stays is told both ways.

    Intervals, segments and groups as of ``top_k.changes``. ``calls``: a row each, (kind, low, high, skip): ``LAG`` the
    row ``low`` rows behind the row itself; else the frame from ``low`` to ``high`` rows behind it, of it the row number
    ``skip`` from its first (``FIRST``) or last row on. ``reach``: how many rows before and behind a change may refer
    to others by it; how many of the first and last rows all may refer to.
    """
    places = first[-1]
    at_place = np.zeros(places, np.int64)
    tree = np.zeros(places + 1, np.int64)
    found = np.empty((3 + len(calls), 1024), np.int64)
    size = np.zeros(1, np.int64)
    touched = np.empty(64, np.int64)
    shift = np.empty(64, np.int64)
    back, ahead, from_start, from_end = reach
    g = -1
    a = 0
    z = 0
    for segment in range(len(opens)):
        if opens[segment]:
            g += 1
            while z < len(by_end) and end[by_end[z]] == segment:  # of the group before
                z += 1
        base = first[g]
        group = (base, first[g + 1] - base)
        count = 0
        while True:
            if not opens[segment] and z < len(by_end) and end[by_end[z]] == segment:
                i = by_end[z]
                n = -copies[i]
                z += 1
            elif a < len(by_begin) and begin[by_begin[a]] == segment:
                i = by_begin[a]
                n = copies[i]
                a += 1
            else:
                break
            if count == len(touched):
                touched = np.append(touched, touched)
                shift = np.append(shift, shift)
            touched[count] = place[i] - base
            shift[count] = n
            count += 1
        if opens[segment]:
            _apply(touched, shift, count, 1, group, tree, at_place)
            continue
        changed = np.unique(touched[:count])
        whole = _near_an_end(changed, from_start, from_end, group, tree, at_place)
        if not whole and from_start + from_end > 0:
            _apply(touched, shift, count, 1, group, tree, at_place)
            whole = _near_an_end(changed, from_start, from_end, group, tree, at_place)
            _apply(touched, shift, count, -1, group, tree, at_place)
        found = _tell_near(changed, back, ahead, whole, group, tree, at_place, calls, segment, -1, found, size)
        _apply(touched, shift, count, 1, group, tree, at_place)
        found = _tell_near(changed, back, ahead, whole, group, tree, at_place, calls, segment, 1, found, size)
    return found[:, : size[0]]


@njit(cache=True)
def _apply(touched, shift, count, sign, group, tree, at_place):
    base, places = group
    for j in range(count):
        at_place[base + touched[j]] += sign * shift[j]
        add(tree, base, places, touched[j], sign * shift[j])
