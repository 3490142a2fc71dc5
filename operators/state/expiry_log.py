"""How a join's side is kept between slices: a log of its live rows, divided by the time at which they expire.

Golab & Oezsu 2005, section 5.3.2 (Figure 7): state whose rows do not expire in the order in which they came is divided
into partitions by expiry, each of which goes as a whole when its time has come. Here a partition is a set of files:
a slice appends those of its rows that outlive it, and drops the files whose rows have all expired, without reading
them. Rows that have expired in a file that stays are skipped where it is read (lazy expiration): a join's answer does
not depend on when they go. What is appended may take back what an older file holds; the sum of all rows is what
counts, and a merge of files leaves the net of them. Bound: the live rows and, of those that came and went by negative
tuples, no more than twice the live ones before they are merged. What a duplicate elimination lengthens slice by
slice is joined up when files are (Kraemer & Seeger 2005, sections 4.2.4 and 4.3.2.10, coalesce).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sweeparea.operators.intervals.coalesce import coalesce
from sweeparea.operators.plan.node import Node
from sweeparea.operators.state.area_files import to_merge
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys
from sweeparea.operators.values.bag import BAG, TE
from sweeparea.operators.values.netting import compacted
from sweeparea.operators.windows.window import Window

FEWEST, MOST = 2, 64
FILE_COST = 3_000.0
"""What a partition costs a slice: about three files to open, in microseconds (``benchmarks.small_slice``)."""
ROW_COST = 0.2
"""What a row that has expired and not gone costs a slice that reads it, in microseconds."""


def partitions_for(rows: int) -> int:
    """Into how many parts to divide the window of a log that holds so many rows, by what a slice then costs.

    With p partitions it opens the files of each, ``p * FILE_COST``, and reads of the oldest one half of the rows in
    vain, ``rows / (2 p) * ROW_COST`` (Golab & Oezsu 2005, sections 5.3.2 and 5.4.2: more partitions find expired rows
    sooner, and cost more to go through). The least is where the two are equal; a power of two, so that a log which
    grows is divided anew seldom.

    >>> [partitions_for(rows) for rows in (0, 1_000_000, 10_000_000, 100_000_000)]
    [2, 8, 16, 64]
    """
    best = math.sqrt(rows * ROW_COST / (2 * FILE_COST))
    return min(MOST, max(FEWEST, 1 << round(math.log2(max(best, 1.0)))))


@dataclass(frozen=True)
class Division:
    """How expiry times are divided: every ``width`` ticks; what never ends is one partition more."""

    width: int

    @classmethod
    def of(cls, reach: int, partitions: int) -> Division:
        """The division for windows that hold elements for ``reach`` ticks."""
        return cls(INF if reach >= INF else max(1, -(-reach // partitions)))

    def of_ends(self, te: np.ndarray) -> np.ndarray:
        """The partition of each row's end.

        >>> Division.of(50, 10).of_ends(np.array([1, 4, 5, 60, INF])).tolist() == [0, 0, 1, 12, INF]
        True
        """
        return np.where(te == INF, INF, te // self.width)


@dataclass(frozen=True)
class LoggedFile:
    """A file of the log: ``last`` is the greatest ``__te`` of its rows."""

    path: str
    rows: int
    last: int


def expired(files: Sequence[LoggedFile], h: int) -> list[LoggedFile]:
    """The files without a row that is valid after ``h``."""
    return [file for file in files if file.last <= h + 1]


def merges(files: Sequence[LoggedFile], division: Division) -> list[LoggedFile]:
    """The files to put together, partition by partition, so that their number stays small.

    >>> files = [LoggedFile(str(i), 5, 40 + i % 2) for i in range(8)]
    >>> [f.path for f in merges(files, Division(100))] == [str(i) for i in range(8)], merges(files[:3], Division(100))
    (True, [])
    """
    groups: dict[int, list[LoggedFile]] = {}
    for file in files:
        groups.setdefault(int(division.of_ends(np.array([file.last]))[0]), []).append(file)
    chosen = []
    for group in groups.values():
        group.sort(key=lambda file: file.rows)
        chosen += group[: to_merge([file.rows for file in group])]
    return chosen


def divided(rows: pa.Table, h1: int, division: Division, net: bool, touching: bool = False) -> list[pa.Table]:
    """The rows (a record, ``__ts``, ``__te``, ``__n``) that are valid after ``h1``, a table a partition.

    ``net``: rows may be negative tuples, which leave with what they take away. ``touching``: a record may come in
    pieces that follow each other, which become one row (``coalesce.py``), so that as many slices as a window spans
    leave few rows of it.
    """
    if net:
        rows = compacted(rows, h1)
    elif touching:
        rows = coalesce(rows, [c for c in rows.column_names if c not in BAG])
    end = keys.int64_of(rows.column(TE))
    live = np.flatnonzero(end > h1 + 1)
    part = division.of_ends(end[live])
    order = np.argsort(part, kind="stable")
    cuts = np.flatnonzero(np.diff(part[order])) + 1
    return [rows.take(pa.array(live[at])) for at in np.split(order, cuts) if len(at)]


def reach(node: Node) -> int:
    """How long the windows below a node hold an element at most; unbounded ones do not count, unless all are."""
    bounded = [w.spec.reach for w in node.walk() if isinstance(w, Window) and w.spec.reach < INF]
    return max(bounded, default=INF)
