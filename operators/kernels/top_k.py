"""The first rows of a group and how they change: order-statistics trees (Fenwick 1994) over their places.

A tree of each group counts the copies alive at each place, another one its classes of peers that have any. A row enters
where its interval begins and leaves where it ends, at O(log n). Then only those places are looked at whose rows can be
shown otherwise than before: where a row came or went, between the old and the new bounds of what is shown, and, where
numbers are shown too, those whose number has shifted. Each costs O(log n), and all but the changed ones are told.
"""

from __future__ import annotations

import numpy as np

from sweeparea.operators.kernels.compiled import njit
from sweeparea.operators.kernels.order_statistics import add, before, entry

ROW_NUMBER, RANK, DENSE_RANK = 0, 1, 2
"""By which number rows are cut."""
NUMBERS, RANKS, DENSE_RANKS, UP_TO_PEERS, ALL = 1, 2, 4, 8, 16
"""Which numbers are shown: a sum of these. The last two count the rows of the group up to the last peer, and all."""


@njit(cache=True)
def _told(found, size, place, segment, n, number, others):
    # one more change; the array may be replaced by a larger one
    at = size[0]
    if at == found.shape[1]:
        grown = np.empty((found.shape[0], 2 * at), np.int64)
        grown[:, :at] = found
        found = grown
    found[0, at] = place
    found[1, at] = segment
    found[2, at] = n
    found[3, at] = number
    found[4, at], found[5, at], found[6, at], found[7, at] = others
    size[0] = at + 1
    return found


@njit(cache=True)
def _look(place, less, group, kept, asked, segment, found, size):
    # what is shown of a place now, and what of that is new; ``segment`` < 0: nothing of it is told
    base, _, first_class, _, rows = group
    tree, class_tree, at_place, peer, known, first_place = kept
    by, offset, limit, shown = asked
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
def _look_at_all(first, last, group, kept, asked, segment, found, size):
    # the places from ``first`` up to ``last`` that have rows
    base, places = group[0], group[1]
    tree, _, at_place, _, _, _ = kept
    copy = before(tree, base, first)
    while True:
        place, less = entry(tree, base, places, copy)
        if place >= last or place >= places:
            return found
        found = _look(place, less, group, kept, asked, segment, found, size)
        copy = less + at_place[base + place]


@njit(cache=True)
def _bound(count, group, kept, by):
    # the first place of which not all rows are among those with numbers below ``count``
    base, places, first_class, classes, _ = group
    tree, class_tree, _, peer, _, first_place = kept
    if count <= 0:
        return 0
    if by == ROW_NUMBER:
        return entry(tree, base, places, count)[0]
    if by == RANK:
        place = entry(tree, base, places, count - 1)[0]
        if place >= places:
            return places
        i = peer[base + place] - first_class
    else:
        i = entry(class_tree, first_class, classes, count - 1)[0]
        if i >= classes:
            return places
    return first_place[first_class + i + 1] - base


@njit(cache=True)
def changes(place, begin, end, copies, by_begin, by_end, opens, first, peer, asked):
    """(place, segment, n, number, rank, dense rank, number of the last peer, of the last row): how the rows that are
    shown change from segment to segment, all numbers from 0; what nobody asks for is anything.

    Interval i lies in segments ``begin[i]`` to ``end[i] - 1``, at ``place[i]`` of the order, with ``copies[i]`` > 0;
    ``by_begin`` and ``by_end`` sort the intervals. Group g has the places ``first[g]`` to ``first[g + 1] - 1``, unlike
    ones for intervals of one segment; ``peer`` tells the class of each place, dense and ascending over all groups.
    ``opens[s]`` tells that segment s is the first of its group, which changes nothing.

    ``asked``: by which number rows are cut (``ROW_NUMBER``, ..); the least number shown, and how many from there on,
    negative: all; the numbers among the columns (``NUMBERS``, ..), of which each shift is a change.
    """
    places = first[-1]
    at_place = np.zeros(places, np.int64)
    tree = np.zeros(places + 1, np.int64)
    # of each place what was shown last: numbers from and up to, and the others as ``_look`` has them
    known = np.zeros((6, places), np.int64)
    first_place = np.zeros(places + 1, np.int64)  # of each class
    for p in range(places - 1, -1, -1):
        first_place[peer[p]] = p
    all_classes = peer[places - 1] + 1 if places else 0
    first_place[all_classes] = places
    filled = np.zeros(places + 1, np.int64)
    class_tree = np.zeros(places + 1, np.int64)
    kept = (tree, class_tree, at_place, peer, known, first_place)
    by, offset, limit, shown = asked
    found = np.empty((8, 1024), np.int64)
    size = np.zeros(1, np.int64)
    touched = np.empty(64, np.int64)
    shift = np.empty(64, np.int64)
    g = -1
    total = 0
    first_class = 0
    classes = 0
    low = 0
    high = 0
    a = 0
    z = 0
    for segment in range(len(opens)):
        if opens[segment]:
            g += 1
            base = first[g]
            first_class = peer[base] if base < places else all_classes
            last_class = peer[first[g + 1]] if first[g + 1] < places else all_classes
            classes = last_class - first_class
            total = 0
            while z < len(by_end) and end[by_end[z]] == segment:  # of the group before
                z += 1
        base = first[g]
        size_of_group = first[g + 1] - base
        had = total
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
            at_place[place[i]] += n
            total += n
            add(tree, base, size_of_group, place[i] - base, n)
            if count == len(touched):
                touched = np.append(touched, touched)
                shift = np.append(shift, shift)
            touched[count] = place[i] - base
            shift[count] = n
            count += 1
        group = (base, size_of_group, first_class, classes, total)
        order = np.argsort(touched[:count])
        if by == DENSE_RANK or shown & DENSE_RANKS:
            before_classes = np.zeros(count, np.int64)  # by how many classes the one of each change has grown
            for j in range(count):
                i = peer[base + touched[j]]
                was = filled[i] > 0
                filled[i] += shift[j]
                before_classes[j] = np.int64(filled[i] > 0) - np.int64(was)
                if before_classes[j] != 0:
                    add(class_tree, first_class, classes, i - first_class, before_classes[j])
        else:
            before_classes = np.zeros(0, np.int64)
        new_low = _bound(offset, group, kept, by)
        new_high = size_of_group if limit < 0 else _bound(offset + limit, group, kept, by)
        if opens[segment]:
            last = min(new_high + 1, size_of_group)
            found = _look_at_all(new_low, last, group, kept, asked, -1, found, size)
            low = new_low
            high = new_high
            continue
        for j in range(count):
            p = touched[order[j]]
            if j > 0 and p == touched[order[j - 1]]:
                continue
            found = _look(p, before(tree, base, p), group, kept, asked, segment, found, size)
        if new_low != low:
            found = _look_at_all(min(low, new_low), max(low, new_low) + 1, group, kept, asked, segment, found, size)
        elif by == ROW_NUMBER:
            found = _look_at_all(low, low + 1, group, kept, asked, segment, found, size)
        if new_high != high:
            found = _look_at_all(min(high, new_high), max(high, new_high) + 1, group, kept, asked, segment, found, size)
        elif by == ROW_NUMBER:
            found = _look_at_all(high, high + 1, group, kept, asked, segment, found, size)
        if shown:
            # between two changes all numbers shift by the sum of those before
            least = min(low, new_low)
            most = min(max(high, new_high) + 1, size_of_group)
            if shown & ALL and total != had:
                found = _look_at_all(least, most, group, kept, asked, segment, found, size)
                low = new_low
                high = new_high
                continue
            rows = 0
            groups = 0
            j = 0
            while j < count:
                c = peer[base + touched[order[j]]]
                begins, ends = first_place[c] - base, first_place[c + 1] - base
                whole = (rows != 0 and shown & (NUMBERS | RANKS)) or (groups != 0 and shown & DENSE_RANKS)
                if shown & UP_TO_PEERS and not whole:
                    grown = rows
                    for m in range(j, count):
                        if peer[base + touched[order[m]]] != c:
                            break
                        grown += shift[order[m]]
                    whole = grown != 0
                if whole:
                    found = _look_at_all(max(begins, least), min(ends, most), group, kept, asked, segment, found, size)
                while j < count and peer[base + touched[order[j]]] == c:
                    rows += shift[order[j]]
                    if len(before_classes):
                        groups += before_classes[order[j]]
                    p = touched[order[j]] + 1
                    j += 1
                    if not whole and rows != 0 and shown & NUMBERS:
                        until = ends
                        if j < count:
                            until = min(until, touched[order[j]])
                        found = _look_at_all(max(p, least), min(until, most), group, kept, asked, segment, found, size)
                until = most if j == count else min(most, first_place[peer[base + touched[order[j]]]] - base)
                all_behind = rows != 0 and shown & (NUMBERS | RANKS | UP_TO_PEERS)
                if all_behind or (groups != 0 and shown & DENSE_RANKS):
                    found = _look_at_all(max(ends, least), until, group, kept, asked, segment, found, size)
        low = new_low
        high = new_high
    return found[:, : size[0]]


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


@njit(cache=True)
def undominated(order, group, peer, end, copies, now, most, by):
    """Of each interval whether its rows can still be among those with numbers below ``most``: not, where so many better
    ones are there ``now`` and stay as long.

    ``order`` sorts the intervals by group, place and, the last first, end; ``peer`` tells the class of each.
    """
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
