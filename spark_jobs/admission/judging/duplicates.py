"""``DEDUPLICATE BY columns WITHIN i``: a row close in time to a kept row with equal columns is dropped.

Rows are looked at in the order of source versions, within a version in the total order; the first of several is kept.
Only kept rows make others duplicates: a row that goes to quarantine does not. Values are equal as in GROUP BY, so NULLs
are. Where the source may take rows back (ON SOURCE CHANGE CORRECT) dropped rows are remembered in the quarantine, with
the reason ``DUPLICATE``, so that its copies are counted and one comes in where the kept row goes.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.operators.time.ticks import MAX_TICK, MIN_TICK
from sweeparea.operators.values import keys, order
from sweeparea.operators.values.key_hash import key_hash
from sweeparea.spark_jobs.admission.judging.stage import Stage
from sweeparea.tables.log import scan

COPIES = "__n"
_FEW = 50_000
"""Rows whose values go into a filter of the reader."""
DUPLICATE = "duplicate of a kept row (DEDUPLICATE BY)"
"""The reason of a dropped row that is remembered. With more behind it, the row would not be kept by itself either."""


def kept_rows(stage: Stage, columns: Sequence[str], rows: pa.Table, within: int) -> pa.Table:
    """``columns``, ``__tick`` and ``__n`` of the admitted rows that could make one of ``rows`` a duplicate, taken back
    or not, with what the very commit of ``stage`` takes back or brings in.

    Reads the files whose range of ticks comes within ``within`` of a row, of these the rows that lie so near a row of
    equal columns (or of the same hash).
    """
    ticks = np.unique(keys.int64_of(rows.column("__tick").drop_null()))
    names = [*columns, "__tick", COPIES]
    kept = scan.plan(stage.admitted, scan.near(stage.admitted.files(), "__tick", ticks, within))
    moved = scan.plan(stage.admitted, scan.near(stage.moved, "__tick", ticks, within))
    found = [near_rows(plan, names, columns, rows, ticks, within) for plan in (kept, moved)]
    return pa.concat_tables(found)


def near_rows(
    plan: scan.ScanPlan, names: Sequence[str], columns: Sequence[str], rows: pa.Table, ticks: np.ndarray, reach: int
) -> pa.Table:
    """Of a plan's rows the columns ``names`` of those that ``Near`` finds for ``rows``, whose ``ticks`` are given
    (ascending, each once). What it does not find is in memory batch by batch only.
    """
    found = [pa.schema([plan.schema.field(n) for n in names]).empty_table()]
    if plan.paths and len(ticks):
        typed = rows.select([*columns, "__tick"])
        near = Near(typed.cast(pa.schema([plan.schema.field(n) for n in typed.column_names])), columns, reach)
        equal = columns if rows.num_rows <= _FEW else ()  # to build a filter of many values takes more than it saves
        for batch in plan.batches(names, near_and_equal(plan, equal, rows, ticks, reach)):
            found.append(batch.filter(pa.array(near(batch))))
    return pa.concat_tables(found)


class Near:
    """Tells which rows lie within ``reach`` of a row of ``rows`` that has equal ``columns``, or the same hash of them.

    ``rows``: the columns and ``__tick`` (not NULL); other rows have the same types.
    """

    def __init__(self, rows: pa.Table, columns: Sequence[str], reach: int) -> None:
        self._columns, self._reach = columns, min(reach, MAX_TICK)
        self._hashes, code = np.unique(self._hash(rows), return_inverse=True)
        self._ticks, place = np.unique(keys.int64_of(rows.column("__tick")), return_inverse=True)
        self._pairs = np.unique(code * (len(self._ticks) + 1) + place)

    def __call__(self, rows: pa.Table) -> np.ndarray:
        if not len(self._pairs):
            return np.zeros(rows.num_rows, np.bool_)
        hashes, tick, ends = self._hash(rows), keys.int64_of(rows.column("__tick")), np.iinfo(np.int64)
        code = np.searchsorted(self._hashes, hashes)
        known = self._hashes[np.minimum(code, len(self._hashes) - 1)] == hashes
        low = np.searchsorted(self._ticks, np.maximum(tick, ends.min + self._reach) - self._reach)
        high = np.searchsorted(self._ticks, np.minimum(tick, ends.max - self._reach) + self._reach, side="right")
        first = code * (len(self._ticks) + 1)
        return known & (np.searchsorted(self._pairs, first + low) < np.searchsorted(self._pairs, first + high))

    def _hash(self, rows: pa.Table) -> np.ndarray:
        return key_hash([rows.column(c) for c in self._columns], rows.num_rows)


def near_and_equal(
    plan: scan.ScanPlan, columns: Sequence[str], rows: pa.Table, ticks: np.ndarray, within: int
) -> pc.Expression:
    """A filter that all rows pass whose tick lies within ``within`` of one of ``ticks`` (ascending, at least one) and
    whose ``columns`` equal those of one of ``rows``; others may.
    """
    low, high = max(int(ticks[0]) - within, MIN_TICK), min(int(ticks[-1]) + within, MAX_TICK)
    condition = (pc.field("__tick") >= low) & (pc.field("__tick") <= high)
    for column in columns:
        kind = plan.schema.field(column).type
        # floats have values that are equal and not identical
        if not (pa.types.is_nested(kind) or pa.types.is_floating(kind)):
            condition &= pc.field(column).isin(rows.column(column).cast(kind).unique())
    return condition


def duplicates(rows: pa.Table, kept: pa.Table, columns: Sequence[str], order_by: Sequence[str], within: int,
               candidates: np.ndarray) -> np.ndarray:  # fmt: skip
    """How many copies of each row are duplicates (int64, at most the row's ``__n``).

    ``rows``: ``columns``, ``order_by``, ``__tick`` (not NULL) and ``__n``; ``kept``: ``columns``, ``__tick`` and
    ``__n`` (signed) of rows that were kept before; ``candidates``: which rows are kept if they are no duplicates.
    """
    count = rows.num_rows
    copies = keys.int64_of(rows.column(COPIES))
    dropped = np.zeros(count, np.int64)
    if not count:
        return dropped
    before = kept.num_rows
    both = [pa.chunked_array([*kept.column(c).chunks, *rows.column(c).cast(kept.schema.field(c).type).chunks])
            for c in columns]  # fmt: skip
    code, _ = keys.codes(both)
    tick = np.concatenate([keys.int64_of(kept.column("__tick")), keys.int64_of(rows.column("__tick"))])
    alive = _alive(code[:before], tick[:before], keys.int64_of(kept.column(COPIES)))
    use = np.concatenate([alive, np.arange(before, before + count)])
    code, tick = code[use], tick[use]
    prior, row = np.arange(len(use)) < len(alive), use - before
    first = np.concatenate([np.full(len(alive), -1), _ranks(rows, order_by)])
    stands = np.concatenate([np.ones(len(alive), np.bool_), candidates])

    # runs of one key in which each row is within reach of the one before it: no other row matters to any of them
    by_tick = np.lexsort((tick, code))
    c, t = code[by_tick], tick[by_tick]
    begins = np.ones(len(c), np.bool_)
    begins[1:] = (c[1:] != c[:-1]) | (t[1:] - t[:-1] > within)
    run = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(c)) - 1
    narrow = (t[ends] - t[starts] <= within)[run]

    # a run no longer than ``within``: what comes first of those that stand is kept, all later ones are its duplicates
    place, ok = first[by_tick], stands[by_tick]
    best = np.full(len(starts), np.iinfo(np.int64).max)
    np.minimum.at(best, run[ok], place[ok])
    later = narrow & (place > best[run])
    mine = ~prior[by_tick]
    at = row[by_tick]
    dropped[at[later & mine]] = copies[at[later & mine]]
    same = narrow & mine & ok & (place == best[run])
    dropped[at[same]] = copies[at[same]] - 1
    for r in np.unique(run[~narrow]).tolist():
        members = np.arange(int(starts[r]), int(ends[r]) + 1)
        members = members[np.argsort(place[members], kind="stable")]
        _one_by_one(members, t, ~mine, ok, at, copies, within, dropped)
    return dropped


def _one_by_one(  # eight parameters: the columns of one table, as its caller has sorted them
    members: np.ndarray,
    tick: np.ndarray,
    prior: np.ndarray,
    stands: np.ndarray,
    row: np.ndarray,
    copies: np.ndarray,
    within: int,
    dropped: np.ndarray,
) -> None:
    """A run longer than ``within``: its rows in their order, each against the kept ones so far."""
    kept: list[int] = []
    for m in members:
        t = int(tick[m])
        if prior[m]:
            insort(kept, t)
            continue
        i = bisect_left(kept, t)
        near = (i < len(kept) and kept[i] - t <= within) or (i > 0 and t - kept[i - 1] <= within)
        if near:
            dropped[row[m]] = copies[row[m]]
        elif stands[m]:
            insort(kept, t)
            dropped[row[m]] = copies[row[m]] - 1


def _alive(code: np.ndarray, tick: np.ndarray, n: np.ndarray) -> np.ndarray:
    """One position for each (key, tick) of which kept rows are left after those that were taken back."""
    if not len(code):
        return np.zeros(0, np.int64)
    by = np.lexsort((tick, code))
    begins = np.ones(len(by), np.bool_)
    begins[1:] = (code[by][1:] != code[by][:-1]) | (tick[by][1:] != tick[by][:-1])
    starts = np.flatnonzero(begins)
    return by[starts[np.add.reduceat(n[by], starts) > 0]]


def _ranks(rows: pa.Table, order_by: Sequence[str]) -> np.ndarray:
    """The place of each row in the total order, equal rows in the order in which they come."""
    ranks = np.empty(rows.num_rows, np.int64)
    ranks[order.record_sort_indices(rows, order_by)] = np.arange(rows.num_rows)
    return ranks
