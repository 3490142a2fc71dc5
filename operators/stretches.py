"""Which stretches of a slice's time the workers take of a key that has too many of the rows for one of them.

The answer of a sweep does not depend on how time is cut into slices. So a worker can sweep ``(b, e]`` of a key while
another one sweeps what comes before, if it is given what the slice that ends at b would carry: rows that began by then,
as they are or in fewer that say the same. Rows of a key that lie in no order otherwise are divided so; what is cut is
the time of those keys alone, and where is found by samples of their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_WORTH = 0.05
"""A worker gets a stretch if it has room for this part of what each should have."""


@dataclass(frozen=True)
class HotKey:
    """A key: its ``hash``, the worker that has its ``rows`` (about), and where some of these, chosen by chance,
    ``start`` and ``end``.
    """

    hash: int
    worker: int
    rows: float
    start: np.ndarray
    end: np.ndarray

    def ticks(self, h0: int, h1: int) -> np.ndarray:
        """The instants of ``(h0, h1]`` at which something happens, in their order, as often as it does."""
        start = np.maximum(self.start, h0 + 1)
        return np.sort(np.append(start[start <= h1], self.end[(self.end > h0) & (self.end <= h1)]))


@dataclass(frozen=True)
class KeyStretch:
    """``(begin, end]`` of the slice for the keys of a hash, which ``worker`` sweeps; ``first`` and ``last`` of them.
    Without a hash it is the whole slice.
    """

    hash: int | None
    begin: int
    end: int
    worker: int
    first: bool
    last: bool


def uneven(rows: Sequence[int], factor: float, least: int) -> list[int]:
    """Workers that have more rows than the others: some if one has ``factor`` times the mean, and ``least`` more.

    >>> uneven([10, 90, 20, 40], 1.5, 30), uneven([10, 90, 20, 40], 1.5, 60)
    ([1], [])
    """
    mean = sum(rows) / max(1, len(rows))
    if max(rows, default=0) <= max(factor * mean, mean + least):
        return []
    return [worker for worker, count in enumerate(rows) if count > mean + (factor - 1) / 2 * mean]


def stretches(rows: Sequence[int], keys: Sequence[HotKey], h0: int, h1: int) -> list[KeyStretch]:
    """The time of each key, cut so that workers get equally much in the end who have ``rows`` now, these keys included.

    A key of a single instant cannot be cut; it may change its worker.

    >>> key = HotKey(7, 0, 60.0, np.arange(60), np.arange(60) + 100)
    >>> [(s.begin, s.end, s.worker) for s in stretches([80, 20, 20], [key], -1, 59)]
    [(-1, 19, 0), (19, 39, 1), (39, 59, 2)]
    """
    left = [float(count) for count in rows]
    for key in keys:
        left[key.worker] -= key.rows
    level = _level(left, sum(key.rows for key in keys))
    room = [max(0.0, level - count) for count in left]
    # those that have room for little are left out, the last one with room takes what remains
    takers = [worker for worker, free in enumerate(room) if free > _WORTH * level] or [int(np.argmax(room))]
    found: list[KeyStretch] = []
    at = 0
    for key in sorted(keys, key=lambda key: -key.rows):
        ticks, begin, before = key.ticks(h0, h1), h0, 0.0
        while True:
            worker, rest = takers[at], key.rows - before
            size = len(ticks)
            cut = int(ticks[min(size, max(1, round((before + room[worker]) / key.rows * size))) - 1]) if size else h1
            if at == len(takers) - 1 or room[worker] >= rest * 0.999 or cut >= h1:
                room[worker] -= rest
                found.append(KeyStretch(key.hash, begin, h1, worker, begin == h0, True))
                at = min(at + (room[worker] <= _WORTH * level), len(takers) - 1)
                break
            if cut > begin:
                found.append(KeyStretch(key.hash, begin, cut, worker, begin == h0, False))
            begin, before, at = max(cut, begin), before + room[worker], at + 1
    return found


def _level(rows: Sequence[float], more: float) -> float:
    """How many each has who gets some of ``more``, given to those who have least."""
    level, given = 0.0, sorted(rows)
    for count in range(1, len(given) + 1):
        level = (sum(given[:count]) + more) / count
        if count == len(given) or level <= given[count]:
            break
    return level
