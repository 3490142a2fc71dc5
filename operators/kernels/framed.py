"""What frames of an order of rows hold, and how that changes: sums, the least of ranks, and rows picked from an end.

The rows of a group stand in trees over their places: of counts, of sums (Fenwick 1994), and of least ranks (a segment
tree), so that what a frame holds takes O(log n). Where rows come and go only those are looked at whose frames hold
them. A frame that reaches from the beginning up to the row is looked at from a change on until it holds what it held
before: from there on up to the next change all do. One that reaches to the end is looked at in the other direction.

A frame is *fixed* where the places that it holds are known beforehand: peers, keys near by, all from the beginning or
up to the end. Frames of so many rows before or behind a row are *counted*.

Letters: ``c`` is a place where rows have come or gone, ``p`` another one, both from the group's beginning; ``i`` the
number of a call; ``a``, ``b`` the places that a frame holds, up to ``b`` - 1; ``w`` a column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sweeparea.operators.kernels.compiled import njit
from sweeparea.operators.kernels.moves import Intervals, MoveCursor, moved
from sweeparea.operators.kernels.order_statistics import add, before, entry

SUMS, LEAST, FIRST, LAST, REACH = 0, 1, 2, 3, 4
"""Sums of columns of ``terms``; the least rank in a column of ``ranks``; the place of the row number ``skip``, from the
first or from the last one on, of those that a column of ``terms`` counts; the places that the frame holds, from and up
to, and sums that tell whether the same rows lie there.
"""
NOTHING = 1 << 62
"""The least rank of no row."""
UNBOUNDED = 1 << 40
"""A bound of a counted frame that reaches the end of the group."""
KIND, SOURCE, WIDTH, SHOWN, SKIP, FIXED, LOW, HIGH, FROM_START, TO_END = range(10)
"""What a row of ``calls`` says: see ``AskedFrames``."""


class AskedFrames(NamedTuple):
    """``calls``: for each call what it computes (``SUMS``, ..), its first column in ``terms`` or ``ranks``, of how many
    columns its value is, the first of these among what is shown, ``skip``; the column of its frame in ``low`` and
    ``high``, or -1 and how many rows behind the row itself its frame begins and ends (``UNBOUNDED``); whether it
    reaches from the beginning of each group, and whether to its end.

    ``terms``: what one copy of a place's row adds to each sum; ``ranks``: its ranks. ``low``, ``high``: of each place
    the places of its group that its fixed frames hold, from and up to; both ascend.
    """

    calls: np.ndarray
    terms: np.ndarray
    ranks: np.ndarray
    low: np.ndarray
    high: np.ndarray


class KeptFrames(NamedTuple):
    """Trees of all groups: ``tree`` counts the copies at each place, which ``at_place`` has, ``sums`` adds up the
    terms, ``least`` has the ranks. ``known``: of each place what was shown last. ``touched``, ``told``: the segment at
    which a place has last changed, was last told. ``places``: those told at a segment, ``size[0]`` of them.
    """

    at_place: np.ndarray
    tree: np.ndarray
    sums: np.ndarray
    least: np.ndarray
    known: np.ndarray
    touched: np.ndarray
    told: np.ndarray
    places: np.ndarray
    size: np.ndarray
    value: np.ndarray


class FramedGroup(NamedTuple):
    """Where a group's places begin, and how many it has."""

    base: int
    places: int


class FramedLines(NamedTuple):
    """Place, segment, copies (negative: no longer), and what is shown: a row each, of which ``size[0]`` are filled."""

    rows: np.ndarray
    size: np.ndarray


@njit(cache=True)
def nothing_kept(places, shown, asked):
    """Before anything has come."""
    return KeptFrames(
        np.zeros(places, np.int64),
        np.zeros(places + 1, np.int64),
        np.zeros((places + 1, asked.terms.shape[1]), np.int64),
        np.full((2 * places, asked.ranks.shape[1]), NOTHING),
        np.zeros((places, shown), np.int64),
        np.full(places, -1),
        np.full(places, -1),
        np.zeros(places, np.int64),
        np.zeros(1, np.int64),
        np.zeros(max(1, shown), np.int64),
    )


# -- the trees ---------------------------------------------------------------------------------------------------------


@njit(cache=True)
def _add_terms(kept, asked, group, c, n):
    sums, terms, base = kept.sums, asked.terms, group.base
    width = terms.shape[1]
    at = c + 1
    while at <= group.places:
        for w in range(width):
            sums[base + at, w] += n * terms[base + c, w]
        at += at & -at


@njit(cache=True)
def _set_ranks(kept, asked, group, c, there):
    least, ranks = kept.least, asked.ranks
    root = 2 * group.base
    for w in range(ranks.shape[1]):
        at = c + group.places
        least[root + at, w] = ranks[group.base + c, w] if there else NOTHING
        while at > 1:
            at >>= 1
            least[root + at, w] = min(least[root + 2 * at, w], least[root + 2 * at + 1, w])


@njit(cache=True)
def _least_rank(kept, group, w, a, b):
    least, root = kept.least, 2 * group.base
    found = np.int64(NOTHING)
    a += group.places
    b += group.places
    while a < b:
        if a & 1:
            found = min(found, least[root + a, w])
            a += 1
        if b & 1:
            b -= 1
            found = min(found, least[root + b, w])
        a >>= 1
        b >>= 1
    return found


@njit(cache=True)
def _sum_before(kept, group, w, p):
    found = np.int64(0)
    at = p
    while at > 0:
        found += kept.sums[group.base + at, w]
        at -= at & -at
    return found


@njit(cache=True)
def _place_of(kept, group, w, number):
    # the place that holds number ``number`` of what column ``w`` counts
    at = 0
    step = 1
    while step * 2 <= group.places:
        step *= 2
    while step > 0:
        if at + step <= group.places and kept.sums[group.base + at + step, w] <= number:
            at += step
            number -= kept.sums[group.base + at, w]
        step >>= 1
    return at


# -- what a frame holds ------------------------------------------------------------------------------------------------


@njit(cache=True)
def _frame(kept, asked, group, i, p):
    calls, base = asked.calls, group.base
    fixed = calls[i, FIXED]
    if fixed >= 0:
        return asked.low[base + p, fixed], asked.high[base + p, fixed]
    number = before(kept.tree, base, p)
    rows = before(kept.tree, base, group.places)
    first = max(0, number + calls[i, LOW])
    last = min(rows - 1, number + calls[i, HIGH])
    if first > last:
        return np.int64(0), np.int64(0)
    a, _ = entry(kept.tree, base, group.places, first)
    b, _ = entry(kept.tree, base, group.places, last)
    return np.int64(a), np.int64(b + 1)


@njit(cache=True)
def _value(kept, asked, group, i, p):
    # writes what the frame of a place holds into ``kept.value``
    calls, out = asked.calls, kept.value
    kind, source = calls[i, KIND], calls[i, SOURCE]
    a, b = _frame(kept, asked, group, i, p)
    if kind == LEAST:
        out[0] = _least_rank(kept, group, source, a, b) if a < b else NOTHING
    elif kind in (SUMS, REACH):
        for w in range(calls[i, WIDTH]):
            out[w] = 0
        if a >= b:
            return
        skipped = 2 if kind == REACH else 0
        if kind == REACH:
            out[0], out[1] = a, b
        sums, base = kept.sums, group.base
        at = b
        while at > 0:
            for w in range(skipped, calls[i, WIDTH]):
                out[w] += sums[base + at, source + w - skipped]
            at -= at & -at
        at = a
        while at > 0:
            for w in range(skipped, calls[i, WIDTH]):
                out[w] -= sums[base + at, source + w - skipped]
            at -= at & -at
    else:
        out[0] = -1
        if a < b:
            low, high = _sum_before(kept, group, source, a), _sum_before(kept, group, source, b)
            number = low + calls[i, SKIP] if kind == FIRST else high - 1 - calls[i, SKIP]
            if low <= number < high:
                out[0] = group.base + _place_of(kept, group, source, number)


@njit(cache=True)
def _show(kept, asked, group, p):
    # all values of a place are known
    for i in range(len(asked.calls)):
        _value(kept, asked, group, i, p)
        shown = asked.calls[i, SHOWN]
        for w in range(asked.calls[i, WIDTH]):
            kept.known[group.base + p, shown + w] = kept.value[w]


# -- telling -----------------------------------------------------------------------------------------------------------


@njit(cache=True)
def _tell(kept, place, segment, n, lines):
    rows, size = lines
    at = size[0]
    if at == len(rows):
        grown = np.empty((2 * at, rows.shape[1]), np.int64)
        for i in range(at):  # assigning a slice takes numba seconds to compile
            for column in range(rows.shape[1]):
                grown[i, column] = rows[i, column]
        rows = grown
    rows[at, 0], rows[at, 1], rows[at, 2] = place, segment, n
    for w in range(kept.known.shape[1]):
        rows[at, 3 + w] = kept.known[place, w]
    size[0] = at + 1
    return FramedLines(rows, size)


@njit(cache=True)
def _tell_old(kept, place, segment, lines):
    # once a segment, before what is known of the place changes
    if kept.told[place] != segment:
        kept.told[place] = segment
        kept.places[kept.size[0]] = place
        kept.size[0] += 1
        if kept.at_place[place] > 0:
            lines = _tell(kept, place, segment, -kept.at_place[place], lines)
    return lines


@njit(cache=True)
def _look(kept, asked, group, i, p, segment, anew, lines):
    # looks at a row by one call; whether the frame holds what it held. ``anew``: what it holds is not yet in ``value``
    place = group.base + p
    if kept.touched[place] == segment:
        return False, lines
    if anew:
        _value(kept, asked, group, i, p)
    shown, width = asked.calls[i, SHOWN], asked.calls[i, WIDTH]
    same = True
    for w in range(width):
        same = same and kept.known[place, shown + w] == kept.value[w]
    if same:
        return True, lines
    lines = _tell_old(kept, place, segment, lines)
    for w in range(width):
        kept.known[place, shown + w] = kept.value[w]
    return False, lines


@njit(cache=True)
def _settled(kept, asked, group, i, c, ahead):
    # whether all further frames hold what they held, where one does, beyond the change at ``c``
    kind, skip, found = asked.calls[i, KIND], asked.calls[i, SKIP], kept.value[0]
    if kind < FIRST or kind == REACH or skip == 0:
        return True
    if (kind == FIRST) == ahead:
        return found >= 0
    return found > group.base + c if ahead else 0 <= found < group.base + c


@njit(cache=True)
def _look_ahead(kept, asked, group, i, numbers, c, segment, lines):
    # at the rows with these numbers, from and up to; ``c`` >= 0: until they are settled beyond it
    calls = asked.calls
    number, until = numbers
    anew = True
    while number < until:
        p, less = entry(kept.tree, group.base, group.places, number)
        same, lines = _look(kept, asked, group, i, p, segment, anew, lines)
        if same and c >= 0 and _settled(kept, asked, group, i, c, True):
            break
        if kept.touched[group.base + p] != segment:
            anew = not (calls[i, FROM_START] and calls[i, TO_END])
        number = less + kept.at_place[group.base + p]
    return lines


@njit(cache=True)
def _look_back(kept, asked, group, i, numbers, c, segment, lines):
    # at the rows with these numbers, the last one first, until they are settled beyond ``c``
    start, number = numbers[0], numbers[1] - 1
    while number >= start:
        p, less = entry(kept.tree, group.base, group.places, number)
        same, lines = _look(kept, asked, group, i, p, segment, True, lines)
        if same and _settled(kept, asked, group, i, c, False):
            break
        number = less - 1
    return lines


@njit(cache=True)
def _first_above(bounds, group, fixed, c):
    # the first place whose bound lies above ``c``
    low, high = 0, group.places
    while low < high:
        middle = (low + high) >> 1
        if bounds[group.base + middle, fixed] > c:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True)
def _look_at_fixed(kept, asked, group, i, changed, segment, lines):
    # at the rows whose fixed frames hold one of the places ``changed``, which ascend
    calls, tree, base = asked.calls, kept.tree, group.base
    fixed, size = calls[i, FIXED], len(changed)
    if calls[i, FROM_START]:
        start = _first_above(asked.high, group, fixed, changed[0])
        for j in range(size):
            until = _first_above(asked.high, group, fixed, changed[j + 1]) if j + 1 < size else group.places
            if until > start:
                numbers = (before(tree, base, start), before(tree, base, until))
                lines = _look_ahead(kept, asked, group, i, numbers, changed[j], segment, lines)
            start = until
    elif calls[i, TO_END]:
        until = _first_above(asked.low, group, fixed, changed[size - 1])
        for j in range(size - 1, -1, -1):
            start = _first_above(asked.low, group, fixed, changed[j - 1]) if j > 0 else 0
            if until > start:
                numbers = (before(tree, base, start), before(tree, base, until))
                lines = _look_back(kept, asked, group, i, numbers, changed[j], segment, lines)
            until = start
    else:
        done = 0
        for c in changed:
            start = max(done, _first_above(asked.high, group, fixed, c))
            until = _first_above(asked.low, group, fixed, c)
            if until > start:
                numbers = (before(tree, base, start), before(tree, base, until))
                lines = _look_ahead(kept, asked, group, i, numbers, -1, segment, lines)
                done = until
    return lines


@njit(cache=True)
def _look_at_counted(kept, asked, group, i, changed, segment, lines):
    # at the rows whose counted frames may begin or end otherwise, and at those that hold one of the places ``changed``
    calls, tree, base = asked.calls, kept.tree, group.base
    low, high = calls[i, LOW], calls[i, HIGH]
    rows = before(tree, base, group.places)
    back, ahead = np.int64(0), np.int64(0)
    if low > -UNBOUNDED:
        back, ahead = max(back, low), max(ahead, -low)
    if high < UNBOUNDED:
        back, ahead = max(back, high), max(ahead, -high)
    size = len(changed)
    at = np.empty(size, np.int64)
    done = np.int64(0)
    for j in range(size):
        at[j] = before(tree, base, changed[j])
        until = min(rows, at[j] + ahead + 1)
        lines = _look_ahead(kept, asked, group, i, (max(done, at[j] - back), until), -1, segment, lines)
        done = until
    for j in range(size):
        if calls[i, FROM_START]:
            until = at[j + 1] - back if j + 1 < size else rows
            numbers = (min(rows, at[j] + ahead + 1), until)
            lines = _look_ahead(kept, asked, group, i, numbers, changed[j], segment, lines)
        if calls[i, TO_END]:
            start = min(rows, at[j - 1] + ahead + 1) if j > 0 else np.int64(0)
            lines = _look_back(kept, asked, group, i, (start, at[j] - back), changed[j], segment, lines)
    return lines


# -- segments ----------------------------------------------------------------------------------------------------------


@njit(cache=True)
def _changed(places, copies):
    # the places, ascending, at which the number of copies changes, and by how many
    order = np.argsort(places)
    found = np.empty(len(places), np.int64)
    n = np.empty(len(places), np.int64)
    size = 0
    for j in order:
        if size > 0 and found[size - 1] == places[j]:
            n[size - 1] += copies[j]
        else:
            if size > 0 and n[size - 1] == 0:
                size -= 1
            found[size], n[size] = places[j], copies[j]
            size += 1
    if size > 0 and n[size - 1] == 0:
        size -= 1
    return found[:size], n[:size]


@njit(cache=True)
def _enter(kept, asked, group, changed, n):
    for j in range(len(changed)):
        place = group.base + changed[j]
        was = kept.at_place[place] > 0
        kept.at_place[place] += n[j]
        add(kept.tree, group.base, group.places, changed[j], n[j])
        _add_terms(kept, asked, group, changed[j], n[j])
        if was != (kept.at_place[place] > 0):
            _set_ranks(kept, asked, group, changed[j], not was)


@njit(cache=True)
def changes(intervals: Intervals, opens, first, asked: AskedFrames, kept: KeptFrames, cursor: MoveCursor, begin, most):
    """(rows of ``FramedLines``: every row whose values change from segment ``begin`` on, as it was and as it is; the
    segment to go on from, where more than ``most`` rows have been found).

    Intervals, segments and groups as of ``top_k.changes``; in counted frames no place has more than one copy.
    ``begin``: a segment and its group. ``kept`` and ``cursor`` go on.
    """
    lines = FramedLines(np.empty((1024, 3 + kept.known.shape[1]), np.int64), np.zeros(1, np.int64))
    segment, g = begin
    while segment < len(opens) and lines.size[0] <= most:
        g += np.int64(opens[segment])
        group = FramedGroup(first[g], first[g + 1] - first[g])
        changed, n = _changed(*moved(intervals, opens[segment], segment, group.base, cursor))
        if opens[segment]:
            _enter(kept, asked, group, changed, n)
            for c in changed:
                _show(kept, asked, group, c)
        elif len(changed):
            kept.size[0] = 0
            for c in changed:
                kept.touched[group.base + c] = segment
                lines = _tell_old(kept, group.base + c, segment, lines)
            _enter(kept, asked, group, changed, n)
            for i in range(len(asked.calls)):
                if asked.calls[i, FIXED] >= 0:
                    lines = _look_at_fixed(kept, asked, group, i, changed, segment, lines)
                else:
                    lines = _look_at_counted(kept, asked, group, i, changed, segment, lines)
            for c in changed:
                if kept.at_place[group.base + c] > 0:
                    _show(kept, asked, group, c)
            for k in range(kept.size[0]):
                place = kept.places[k]
                if kept.at_place[place] > 0:
                    lines = _tell(kept, place, segment, kept.at_place[place], lines)
        segment += 1
    return lines.rows[: lines.size[0]], (np.int64(segment), np.int64(g))
