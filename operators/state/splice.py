"""What a stretch of time that was computed anew changes in the tables that hold it: rows to take out, rows to put in.

A stretch ``(since, upto]`` of a relation's history and of its streams is computed beside what is published. Streams are
bags of rows by instant, so their difference is a bag difference. A relation's rows reach over the stretch's ends: at
its beginning both histories start from the same open levels; at its end, where the contents are equal again, each new
open level goes on as the published level of its rank does. Levels of a record are nested (level k is where it has at
least k copies: the canonical form of ``relation_to_stream.py``), so rank by start on the one side is rank by end,
latest first, on the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sweeparea.operators.kernels.sorting import sorted_order
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys
from sweeparea.operators.values.netting import netted


class NotMet(Exception):
    """The contents at the stretch's end are not those that are published: the stretch has to go on."""


@dataclass(frozen=True)
class Changed:
    """Positions of rows: ``removed`` of the published ones, ``added`` of the new ones."""

    removed: np.ndarray
    added: np.ndarray

    def __bool__(self) -> bool:
        return bool(len(self.removed) or len(self.added))


def record_codes(old: pa.Table, new: pa.Table, columns: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """One number for each record, equal where records are equal (NULL is NULL, -0.0 is 0.0), of both tables."""
    count = old.num_rows + new.num_rows
    if not columns or not count:
        codes = np.zeros(count, np.int64)
    else:
        both = pa.concat_tables([old.select(list(columns)), new.select(list(columns))]).combine_chunks()
        codes = keys.codes([both.column(c) for c in columns])[0]
    return codes[: old.num_rows], codes[old.num_rows :]


def bag_difference(old: Sequence[np.ndarray], new: Sequence[np.ndarray]) -> Changed:
    """The rows by which two bags differ. A row is its numbers in the arrays of ``old`` or ``new``.

    >>> changed = bag_difference([np.array([1, 1, 2])], [np.array([1, 3])])
    >>> changed.removed.tolist(), changed.added.tolist()
    ([1, 2], [1])
    """
    count = len(old[0])
    both = [np.concatenate(pair) for pair in zip(old, new, strict=True)]
    order = sorted_order(tuple(both))
    is_new = order >= count
    if not len(order):
        return Changed(order, order)
    first = np.append(True, np.any([c[order][1:] != c[order][:-1] for c in both], axis=0))
    group = np.cumsum(first) - 1
    surplus = np.bincount(group, np.where(is_new, 1, -1)).astype(np.int64)[group]
    start = np.flatnonzero(first)[group]
    olds, news = np.cumsum(~is_new), np.cumsum(is_new)
    rank_old = olds - (olds[start] - ~is_new[start])
    rank_new = news - (news[start] - is_new[start])
    total_old = np.bincount(group, ~is_new).astype(np.int64)[group]
    total_new = np.bincount(group, is_new).astype(np.int64)[group]
    # of equal rows the last ones are taken, so that the positions do not depend on chance
    removed = order[~is_new & (rank_old > total_old + surplus)]
    added = order[is_new & (rank_new > total_new - surplus)] - count
    return Changed(np.sort(removed), np.sort(added))


def levels(
    old: tuple[np.ndarray, np.ndarray, np.ndarray], new: tuple[np.ndarray, np.ndarray, np.ndarray], upto: int | None
) -> tuple[Changed, np.ndarray]:
    """Changed rows of a relation's history, and the ends of the new rows.

    ``old`` and ``new``: record code, from, to (ticks; ``INF``: open) of the published rows that are valid somewhere in
    the stretch or end with it, and of the new ones, open where they are at its last instant. ``upto``: that instant,
    if published history goes on behind it; None: it does not. NotMet: the contents there differ.

    >>> a, b = np.array([7]), np.array([7, 7])
    >>> old, new = (a, np.array([1]), np.array([20])), (b, np.array([1, 6]), np.array([4, INF]))
    >>> changed, ends = levels(old, new, 10)
    >>> changed.removed.tolist(), changed.added.tolist(), ends.tolist()
    ([0], [0, 1], [4, 20])
    """
    ends = new[2].copy()
    if upto is not None:
        before, after = np.flatnonzero(old[2] > upto), np.flatnonzero(new[2] == INF)
        before = before[np.lexsort((-old[2][before], old[0][before]))]
        after = after[np.lexsort((new[1][after], new[0][after]))]
        if not np.array_equal(old[0][before], new[0][after]):
            raise NotMet
        ends[after] = old[2][before]
    return bag_difference(old, (new[0], new[1], ends)), ends


def events(codes: np.ndarray, start: np.ndarray, end: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """The instants at which rows of a relation's history begin and end, as rows (record code, tick, net number).

    Of the rows that a stretch took out (sign -1) and put in (+1) this is the signed difference of the two relations.
    """
    ended = np.flatnonzero(end != INF)
    return netted(np.append(codes, codes[ended]), np.append(start, end[ended]), np.append(signs, -signs[ended]))
