"""The first rows of a group and how they change: order-statistics trees (Fenwick 1994) over their places.

A tree of each group counts the copies alive at each place, another one its classes of peers that have any. A row enters
where its interval begins and leaves where it ends, at O(log n). Then only those places are looked at whose rows can be
shown otherwise than before: where a row came or went, between the old and the new bounds of what is shown, and, where
numbers are shown too, those whose number has shifted. Each costs O(log n), and all but the changed ones are told.

Of a group from which nothing is taken away in the slice, rows behind the first ones that are shown never matter: where
these are few (``FEW``) they are a list, and a row that comes behind them costs one comparison.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sweeparea.operators.kernels.compiled import njit
from sweeparea.operators.kernels.moves import count, cursor_of, moved
from sweeparea.operators.kernels.order_statistics import add, before, entry

ROW_NUMBER, RANK, DENSE_RANK = 0, 1, 2
"""By which number rows are cut."""
NUMBERS, RANKS, DENSE_RANKS, UP_TO_PEERS, ALL = 1, 2, 4, 8, 16
"""Which numbers are shown: a sum of these. The last two count the rows of the group up to the last peer, and all."""


class CutBy(NamedTuple):
    """By which number rows are cut (``ROW_NUMBER``, ..); the least number shown, and how many from there on, negative:
    all; the numbers among the columns (``NUMBERS``, ..), of which each shift is a change.
    """

    by: int
    offset: int
    limit: int
    shown: int


class Kept(NamedTuple):
    """Of all groups: ``tree`` counts the copies at each place, ``class_tree`` the classes that have any, ``at_place``
    and ``filled`` are the copies of a place and of a class. ``peer`` tells the class of each place, ``first_place`` the
    first one of each class. ``known``: of each place what was shown last, numbers from and up to, then the others.
    """

    tree: np.ndarray
    class_tree: np.ndarray
    at_place: np.ndarray
    filled: np.ndarray
    peer: np.ndarray
    first_place: np.ndarray
    known: np.ndarray
    asked: CutBy


class RankedGroup(NamedTuple):
    """Where a group's places begin, and how many it has; the same of its classes; its rows that are alive."""

    base: int
    places: int
    first_class: int
    classes: int
    rows: int


@njit(cache=True)
def _told(found, size, place, segment, n, number, others):
    # one more change; the array may be replaced by a larger one
    at = size[0]
    if at == len(found):
        found = _twice(found)
    told = found[at]
    told[0], told[1], told[2], told[3] = place, segment, n, number
    told[4], told[5], told[6], told[7] = others
    size[0] = at + 1
    return found


@njit(cache=True)
def _twice(found):
    grown = np.empty((2 * len(found), 8), np.int64)
    for i in range(len(found)):
        for k in range(8):  # assigning a slice takes numba seconds to compile
            grown[i, k] = found[i, k]
    return grown


@njit(cache=True)
def _look(place, less, group, kept, segment, found, size):
    # what is shown of a place now, and what of that is new; ``segment`` < 0: nothing of it is told
    base, _, first_class, _, rows = group
    tree, class_tree, at_place, _, peer, first_place, known, (by, offset, limit, shown) = kept
    c = peer[base + place]
    rank = before(tree, base, first_place[c] - base) if by == RANK or shown & RANKS else -1
    dense = before(class_tree, first_class, c - first_class) if by == DENSE_RANK or shown & DENSE_RANKS else -1
    up_to_peers = before(tree, base, first_place[c + 1] - base) if shown & UP_TO_PEERS else 0
    low = less
    high = less + at_place[base + place]
    if by == ROW_NUMBER:
        low = max(low, offset)
        if limit >= 0:
            high = min(high, offset + limit)
    else:
        mine = rank if by == RANK else dense
        if mine < offset or (limit >= 0 and mine >= offset + limit):
            high = low
    high = max(low, high)
    p = base + place
    old_low, old_high = known[0, p], known[1, p]
    old = (known[2, p], known[3, p], known[4, p], known[5, p])
    # numbers count from 0, and how many rows there are, less one, as well
    new = (rank, dense, up_to_peers - 1, rows - 1)
    known[0, p], known[1, p] = low, high
    known[2, p], known[3, p], known[4, p], known[5, p] = new
    if segment < 0:
        return found
    same = (not shown & RANKS or new[0] == old[0]) and (not shown & DENSE_RANKS or new[1] == old[1])
    same = same and (not shown & UP_TO_PEERS or new[2] == old[2]) and (not shown & ALL or new[3] == old[3])
    if shown & NUMBERS:
        for number in range(old_low, old_high):
            if not same or number < low or number >= high:
                found = _told(found, size, p, segment, -1, number, old)
        for number in range(low, high):
            if not same or number < old_low or number >= old_high:
                found = _told(found, size, p, segment, 1, number, new)
    elif same:
        n = (high - low) - (old_high - old_low)
        if n != 0:
            found = _told(found, size, p, segment, n, low, new)
    else:
        if old_high > old_low:
            found = _told(found, size, p, segment, old_low - old_high, old_low, old)
        if high > low:
            found = _told(found, size, p, segment, high - low, low, new)
    return found


@njit(cache=True)
def _look_at_all(first, last, group, kept, segment, found, size):
    # the places from ``first`` up to ``last`` that have rows
    copy = before(kept.tree, group.base, first)
    while True:
        place, less = entry(kept.tree, group.base, group.places, copy)
        if place >= last or place >= group.places:
            return found
        found = _look(place, less, group, kept, segment, found, size)
        copy = less + kept.at_place[group.base + place]


@njit(cache=True)
def _bound(numbers, group, kept):
    # the first place of which not all rows are among those with numbers below ``numbers``
    base, places, first_class, classes, _ = group
    by = kept.asked.by
    if numbers <= 0:
        return 0
    if by == ROW_NUMBER:
        return entry(kept.tree, base, places, numbers)[0]
    if by == RANK:
        place = entry(kept.tree, base, places, numbers - 1)[0]
        if place >= places:
            return places
        i = kept.peer[base + place] - first_class
    else:
        i = entry(kept.class_tree, first_class, classes, numbers - 1)[0]
        if i >= classes:
            return places
    return kept.first_place[first_class + i + 1] - base


@njit(cache=True)
def _nothing_kept(places, peer, asked):
    first_place = np.zeros(places + 1, np.int64)
    for p in range(places - 1, -1, -1):
        first_place[peer[p]] = p
    first_place[peer[places - 1] + 1 if places else 0] = places
    trees = np.zeros((2, places + 1), np.int64)
    at_place, filled = np.zeros(places, np.int64), np.zeros(places + 1, np.int64)
    return Kept(trees[0], trees[1], at_place, filled, peer, first_place, np.zeros((6, places), np.int64), asked)


@njit(cache=True)
def _group(g, first, peer):
    # group ``g`` without rows
    base, behind = first[g], first[g + 1]
    classes = peer[-1] + 1 if len(peer) else 0
    first_class = peer[base] if base < len(peer) else classes
    last_class = peer[behind] if behind < len(peer) else classes
    return RankedGroup(base, behind - base, first_class, last_class - first_class, 0)


@njit(cache=True)
def _enter(touched, shift, group, kept):
    # rows come and go; by how many classes with rows each of these has changed their number
    count(touched, shift, (group.base, group.places), kept.tree, kept.at_place)
    ranked = kept.asked.by == DENSE_RANK or kept.asked.shown & DENSE_RANKS
    grown = np.zeros(len(touched), np.int64) if ranked else shift[:0]
    if ranked:
        for j in range(len(touched)):
            i = kept.peer[group.base + touched[j]]
            was = kept.filled[i] > 0
            kept.filled[i] += shift[j]
            grown[j] = np.int64(kept.filled[i] > 0) - np.int64(was)
            if grown[j] != 0:
                add(kept.class_tree, group.first_class, group.classes, i - group.first_class, grown[j])
    return grown


@njit(cache=True)
def _look_at_moved(places, bounds, group, kept, segment, found, size):
    # where rows came or went (``places`` ascend), and what the bounds of what is shown have passed
    by = kept.asked.by
    last = -1
    for p in places:
        if p != last:
            found = _look(p, before(kept.tree, group.base, p), group, kept, segment, found, size)
        last = p
    low, high, new_low, new_high = bounds
    if new_low != low:
        found = _look_at_all(min(low, new_low), max(low, new_low) + 1, group, kept, segment, found, size)
    elif by == ROW_NUMBER:
        found = _look_at_all(low, low + 1, group, kept, segment, found, size)
    if new_high != high:
        found = _look_at_all(min(high, new_high), max(high, new_high) + 1, group, kept, segment, found, size)
    elif by == ROW_NUMBER:
        found = _look_at_all(high, high + 1, group, kept, segment, found, size)
    return found


@njit(cache=True)
def _look_at_shifted(moves, bounds, group, kept, segment, found, size):
    # whose numbers have shifted: between two changes all do so by the sum of those before
    places, shift, grown = moves
    base, shown = group.base, kept.asked.shown
    least = min(bounds[0], bounds[2])
    most = min(max(bounds[1], bounds[3]) + 1, group.places)
    if shown & ALL and shift.sum() != 0:
        return _look_at_all(least, most, group, kept, segment, found, size)
    rows = 0
    groups = 0
    j = 0
    moved_places = len(places)
    while j < moved_places:
        c = kept.peer[base + places[j]]
        begins, ends = kept.first_place[c] - base, kept.first_place[c + 1] - base
        whole = (rows != 0 and shown & (NUMBERS | RANKS)) or (groups != 0 and shown & DENSE_RANKS)
        if shown & UP_TO_PEERS and not whole:
            all_of_class = rows
            for m in range(j, moved_places):
                if kept.peer[base + places[m]] != c:
                    break
                all_of_class += shift[m]
            whole = all_of_class != 0
        if whole:
            found = _look_at_all(max(begins, least), min(ends, most), group, kept, segment, found, size)
        while j < moved_places and kept.peer[base + places[j]] == c:
            rows += shift[j]
            if len(grown):
                groups += grown[j]
            p = places[j] + 1
            j += 1
            if not whole and rows != 0 and shown & NUMBERS:
                until = min(ends, places[j]) if j < moved_places else ends
                found = _look_at_all(max(p, least), min(until, most), group, kept, segment, found, size)
        until = most if j == moved_places else min(most, kept.first_place[kept.peer[base + places[j]]] - base)
        all_behind = rows != 0 and shown & (NUMBERS | RANKS | UP_TO_PEERS)
        if all_behind or (groups != 0 and shown & DENSE_RANKS):
            found = _look_at_all(max(ends, least), until, group, kept, segment, found, size)
    return found


FEW = 256
"""Of groups that only grow so many first rows are kept as a list."""


class FirstRows(NamedTuple):
    """The first rows of a group that only grows, in their order: ``place`` and ``copies``, before the segment that is
    looked at ``old_place`` and ``old_copies``; ``size``: how many places there are, and copies; the same before.
    """

    place: np.ndarray
    copies: np.ndarray
    old_place: np.ndarray
    old_copies: np.ndarray
    size: np.ndarray


@njit(cache=True)
def _no_rows(most):
    room = most + 2
    return FirstRows(
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.zeros(3, np.int64),
    )


@njit(cache=True)
def _growing(intervals, opens):
    # of each group whether none of its rows goes before its last segment
    groups = np.int64(0)
    group_of = np.empty(len(opens) + 1, np.int64)
    for segment in range(len(opens)):
        groups += opens[segment]
        group_of[segment] = groups - 1
    group_of[len(opens)] = groups
    grows = np.ones(groups + 1, np.bool_)
    for i in range(len(intervals.end)):
        g = group_of[intervals.begin[i]]
        if group_of[intervals.end[i]] == g:
            grows[g] = False
    return grows


@njit(cache=True)
def _arrive(touched, shift, base, most, rows):
    # whether any of the first ``most`` rows is another one now; what lies behind them never is one of them. No place
    # comes twice: where a record gets further copies, an interval ends
    place, copies, old_place, old_copies, size = rows
    places, held = size[0], size[1]
    changed = False
    for j in range(len(touched)):
        p = base + touched[j]
        if held >= most and place[places - 1] < p:
            continue
        if not changed:
            for i in range(places):
                old_place[i], old_copies[i] = place[i], copies[i]
            size[2] = places
            changed = True
        at = places
        while at > 0 and place[at - 1] > p:
            at -= 1
        for i in range(places, at, -1):
            place[i], copies[i] = place[i - 1], copies[i - 1]
        place[at], copies[at] = p, shift[j]
        places += 1
        held += shift[j]
        while held - copies[places - 1] >= most:
            places -= 1
            held -= copies[places]
    size[0], size[1] = places, held
    return changed


@njit(cache=True)
def _tell_first(rows, asked, segment, found, size):
    # how the first rows differ from those before, place by place
    place, copies, old_place, old_copies, sizes = rows
    _, offset, limit, shown = asked
    others = (np.int64(-1), np.int64(-1), np.int64(-1), np.int64(-1))
    i = np.int64(0)
    j = np.int64(0)
    old_less = np.int64(0)
    less = np.int64(0)
    while i < sizes[2] or j < sizes[0]:
        if j == sizes[0] or (i < sizes[2] and old_place[i] < place[j]):
            p = old_place[i]
        else:
            p = place[j]
        old_low = old_high = low = high = offset
        if i < sizes[2] and old_place[i] == p:
            old_low = max(old_less, offset)
            old_less += old_copies[i]
            old_high = max(old_low, min(old_less, offset + limit))
            i += 1
        if j < sizes[0] and place[j] == p:
            low = max(less, offset)
            less += copies[j]
            high = max(low, min(less, offset + limit))
            j += 1
        if shown & NUMBERS:
            for number in range(old_low, old_high):
                if number < low or number >= high:
                    found = _told(found, size, p, segment, -1, number, others)
            for number in range(low, high):
                if number < old_low or number >= old_high:
                    found = _told(found, size, p, segment, 1, number, others)
        elif high - low != old_high - old_low:
            found = _told(found, size, p, segment, (high - low) - (old_high - old_low), low, others)
    return found


@njit(cache=True)
def changes(intervals, opens, first, peer, asked):
    """(place, segment, n, number, rank, dense rank, number of the last peer, of the last row): how the rows that are
    shown change from segment to segment, all numbers from 0; what nobody asks for is anything.

    ``intervals``: ``moves.Intervals``. Group g has the places ``first[g]`` to ``first[g + 1] - 1``, unlike ones for
    intervals of one segment; ``peer`` tells the class of each place, dense and ascending over all groups. ``opens[s]``
    tells that segment s is the first of its group, which changes nothing. ``asked``: ``CutBy``.
    """
    kept = _nothing_kept(first[-1], peer, asked)
    found = np.empty((1024, 8), np.int64)  # what is told of one change lies together
    size = np.zeros(1, np.int64)
    cursor = cursor_of(intervals, len(opens))
    group = RankedGroup(0, 0, 0, 0, 0)
    g = -1
    low = 0
    high = 0
    few = asked.by == ROW_NUMBER and asked.limit >= 0 and asked.offset + asked.limit <= FEW
    few = few and asked.shown & ~NUMBERS == 0 and asked.limit > 0
    most = asked.offset + asked.limit if few else 0
    grows = _growing(intervals, opens) if few else np.zeros(len(first), np.bool_)
    rows = _no_rows(most)
    for segment in range(len(opens)):
        if opens[segment]:
            g += 1
            group = _group(g, first, peer)
            rows.size[:] = 0
        touched, shift = moved(intervals, opens[segment], segment, group.base, cursor)
        if grows[g]:
            if _arrive(touched, shift, group.base, most, rows) and not opens[segment]:
                found = _tell_first(rows, asked, segment, found, size)
            continue
        if len(touched) > 1:
            order = np.argsort(touched)
            touched, shift = touched[order], shift[order]
        grown = _enter(touched, shift, group, kept)
        group = RankedGroup(group.base, group.places, group.first_class, group.classes, group.rows + shift.sum())
        new_low = _bound(asked.offset, group, kept)
        new_high = group.places if asked.limit < 0 else _bound(asked.offset + asked.limit, group, kept)
        if opens[segment]:
            found = _look_at_all(new_low, min(new_high + 1, group.places), group, kept, -1, found, size)
        else:
            bounds = (low, high, new_low, new_high)
            found = _look_at_moved(touched, bounds, group, kept, segment, found, size)
            if asked.shown:
                found = _look_at_shifted((touched, shift, grown), bounds, group, kept, segment, found, size)
        low, high = new_low, new_high
    return found[: size[0]].T


@njit(cache=True)
def _swim(heap, at):
    while at > 0:
        up = (at - 1) // 2
        if heap[up] <= heap[at]:
            return
        heap[up], heap[at] = heap[at], heap[up]
        at = up


@njit(cache=True)
def _sink(heap, size):
    at = 0
    while True:
        least = at
        for child in (2 * at + 1, 2 * at + 2):
            if child < size and heap[child] < heap[least]:
                least = child
        if least == at:
            return
        heap[least], heap[at] = heap[at], heap[least]
        at = least


class LiveRows(NamedTuple):
    """Of intervals their group, the class and the end of their rows, copies, and whether they are there now."""

    group: np.ndarray
    peer: np.ndarray
    end: np.ndarray
    copies: np.ndarray
    now: np.ndarray


@njit(cache=True)
def undominated(order, alive, most, by):
    """Of each interval whether its rows can still be among those with numbers below ``most``: not, where so many better
    ones are there now and stay as long.

    ``order`` sorts the intervals by group, place and, the last first, end.
    """
    group, peer, end, copies, now = alive
    kept = np.zeros(len(order), np.bool_)
    if most <= 0:
        return kept
    heap = np.empty(min(most, len(order)) + 1, np.int64)  # the latest ends of better rows, the first of them on top
    size = 0
    waits = 0  # where in ``order`` the rows begin that are better than none of those looked at
    for j in range(len(order)):
        i = order[j]
        if j > 0 and group[i] != group[order[j - 1]]:
            size = 0
            waits = j
        if by == ROW_NUMBER or (j > 0 and peer[i] != peer[order[j - 1]]):
            latest = np.int64(0)
            seen = False
            for w in range(waits, j):
                b = order[w]
                if not now[b]:
                    continue
                if by == DENSE_RANK:
                    latest = max(latest, end[b]) if seen else end[b]
                    seen = True
                    continue
                size = _remember(heap, size, end[b], copies[b], most)
            if seen:
                size = _remember(heap, size, latest, 1, most)
            waits = j
        kept[i] = size < most or heap[0] < end[i]
    return kept


@njit(cache=True)
def _remember(heap, size, end, times, most):
    for _ in range(min(times, most)):
        if size < most and size < len(heap) - 1:
            heap[size] = end
            _swim(heap, size)
            size += 1
        elif size > 0 and heap[0] < end:
            heap[0] = end
            _sink(heap, size)
        else:
            break
    return size
