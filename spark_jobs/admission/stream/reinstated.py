"""Duplicates that become elements, because the kept row that made them duplicates was taken back by its source.

A stream with ``DEDUPLICATE BY`` and ``ON SOURCE CHANGE CORRECT`` remembers the rows that it drops: they lie in the
quarantine with the reason ``DUPLICATE``. When a kept row goes, the rows that are kept are chosen anew around it, as if
it had never been: in the order in which they came (commit, then total order), a row is kept unless a kept row that came
before it lies within reach. So a duplicate may come in, an element that came after that duplicate and lies near it
becomes a duplicate itself, and so on. Only rows around those that change are looked at.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.operators.time.ticks import MAX_TICK
from sweeparea.operators.values import keys, order
from sweeparea.spark_jobs.admission.judging import duplicates, quarantine
from sweeparea.spark_jobs.admission.judging.duplicates import DUPLICATE
from sweeparea.spark_jobs.admission.judging.rules import Rules
from sweeparea.spark_jobs.admission.judging.stage import CAME, Stage, held_copies
from sweeparea.tables.log import scan
from sweeparea.tables.log.files import DataFile

COPIES = duplicates.COPIES
_TYPED = 50_000
"""Rows of the quarantine that are read from their texts at a time."""


@dataclass(frozen=True)
class Reinstated:
    """``came_in``: duplicates that are elements now; ``went_out``: elements that are duplicates now. Both have the
    source's columns, ``__tick``, ``__n`` (positive) and ``__came``.
    """

    came_in: pa.Table
    went_out: pa.Table


@dataclass(frozen=True)
class _Around:
    """The kept rows, then the remembered duplicates, near rows that were taken back; of duplicates where they lie."""

    rows: pa.Table
    kept: int
    lies: list[tuple[DataFile, int, int]]


def reinstate(stage: Stage, rules: Rules, taken: pa.Table, least: int | None) -> Reinstated:
    """Chooses the kept rows anew around elements that the commit has ``taken`` back, and stages what changes.

    ``taken``: as ``Stage.admit`` has them, all that are taken back of their keys (DEDUPLICATE BY). ``least``: the tick
    below which results cannot be corrected any more (None: all can); such rows stay as they are. What went out is not
    put into the quarantine here.
    """
    assert rules.apart is not None
    taken = taken.select([*rules.columns, "__tick", COPIES])
    ticks = np.unique(keys.int64_of(taken.column("__tick")))
    reach = min(2 * rules.apart, MAX_TICK)
    while True:
        around = _around(stage, rules, taken, ticks, reach)
        changed = _chosen_anew(around, rules, taken, least)
        named = taken.select([*rules.duplicate_by, "__tick"])
        named = named.cast(around.rows.select(named.column_names).schema)
        close = duplicates.Near(named, rules.duplicate_by, reach - 2 * rules.apart)
        if reach >= MAX_TICK or close(around.rows.take(pa.array(changed))).all():
            break
        reach = min(4 * reach, MAX_TICK)  # a change far from what was taken back: what lies around that counts, too
    came_in = changed[changed >= around.kept]
    went_out = changed[changed < around.kept]
    for i in came_in.tolist():
        file, at, rows = around.lies[i - around.kept]
        gone = np.zeros(rows, np.int64)
        gone[at] = 1
        stage.leave(file, gone)
    rows = around.rows.drop_columns([COPIES])
    found = Reinstated(
        _with_copies(rows.take(pa.array(came_in)), np.ones(len(came_in), np.int64)),
        around.rows.take(pa.array(went_out)),
    )
    if len(came_in):
        stage.move(found.came_in)
    if len(went_out):
        n = keys.int64_of(found.went_out.column(COPIES))
        stage.move(_with_copies(found.went_out.drop_columns([COPIES]), -n))
    return found


def _chosen_anew(around: _Around, rules: Rules, taken: pa.Table, least: int | None) -> np.ndarray:
    """Positions of the rows that change sides, given that ``taken`` are kept no more."""
    rows, count = around.rows, around.rows.num_rows
    if not count:
        return np.zeros(0, np.int64)
    code, _ = keys.codes(
        [
            pa.chunked_array([*rows.column(c).chunks, *taken.column(c).cast(rows.schema.field(c).type).chunks])
            for c in rules.duplicate_by
        ]
    )
    tick = keys.int64_of(rows.column("__tick"))
    rank = np.empty(count, np.int64)
    rank[order.record_sort_indices(rows, (CAME, *rules.order))] = np.arange(count)
    kept = np.arange(count) < around.kept
    free = np.ones(count, np.bool_) if least is None else tick >= least
    changed: list[np.ndarray] = []
    seeds, seed_tick = code[count:], keys.int64_of(taken.column("__tick"))
    for key in np.unique(seeds).tolist():
        mine = np.flatnonzero(code[:count] == key)
        mine = mine[np.argsort(tick[mine], kind="stable")]
        before = kept[mine]
        after = _one_key(tick[mine], rank[mine], before, free[mine], seed_tick[seeds == key], rules.apart or 0)
        changed.append(mine[before != after])
    return np.sort(np.concatenate(changed))


def _one_key(
    tick: np.ndarray, rank: np.ndarray, kept: np.ndarray, free: np.ndarray, gone: np.ndarray, within: int
) -> np.ndarray:
    """Which rows of one key are kept, once the kept rows at the ticks ``gone`` have gone. Rows are in order of tick.

    A row's lot depends only on rows of lower rank, so they are decided in the order of rank, each once.
    """
    kept = kept.copy()
    waiting: list[tuple[int, int]] = []
    asked = ~free

    def near(t: int) -> slice:
        return slice(int(np.searchsorted(tick, t - within)), int(np.searchsorted(tick, t + within, side="right")))

    def ask(t: int, above: int) -> None:
        place = near(t)
        for i in (np.flatnonzero((rank[place] > above) & ~asked[place]) + place.start).tolist():
            asked[i] = True
            heapq.heappush(waiting, (int(rank[i]), i))

    for t in np.unique(gone).tolist():
        ask(t, -1)
    while waiting:
        own, i = heapq.heappop(waiting)
        place = near(int(tick[i]))
        stands = not np.any(kept[place] & (rank[place] < own))
        if stands != kept[i]:
            kept[i] = stands
            ask(int(tick[i]), own)
    return kept


def _around(stage: Stage, rules: Rules, taken: pa.Table, ticks: np.ndarray, reach: int) -> _Around:
    kept = _kept(stage, rules, taken, ticks, reach)
    parts, lies = [kept], []
    fields = [stage.schema.field(column) for column in rules.columns]
    names = [*rules.duplicate_by, "__tick"]
    near = duplicates.Near(taken.select(names).cast(kept.select(names).schema), rules.duplicate_by, reach)
    for file in scan.near(stage.quarantine.files(stage.quarantine_version), "__tick", ticks, reach):
        held = scan.plan(stage.quarantine, [file]).read(stage.quarantine.schema().names)
        left = held_copies(held) - stage.leaving(file, held.num_rows)
        tick = keys.int64_of(held.column("__tick"))
        dropped = pc.equal(held.column("__reason"), DUPLICATE).to_numpy(zero_copy_only=False)
        at = np.flatnonzero(dropped & (left > 0) & (_distance(tick, ticks) <= reach))
        if not len(at):
            continue
        for start in range(0, len(at), _TYPED):
            some = at[start : start + _TYPED]
            chosen = held.take(pa.array(some))
            rows = keys.canonical(quarantine.typed(chosen, fields, rules.declared.name))
            for name in ("__tick", COPIES, CAME):
                values = chosen.column("__seq" if name == CAME else name) if name != COPIES else pa.array(left[some])
                rows = rows.append_column(pa.field(name, pa.int64()), values)
            rows = rows.cast(kept.schema)
            mine = near(rows)
            parts.append(rows.filter(pa.array(mine)))
            lies += [(file, i, held.num_rows) for i in some[mine].tolist()]
    return _Around(pa.concat_tables(parts), kept.num_rows, lies)


def _kept(stage: Stage, rules: Rules, taken: pa.Table, ticks: np.ndarray, reach: int) -> pa.Table:
    """The kept rows of the keys of ``taken`` near ``ticks``, after what the commit takes back: the source's columns,
    ``__tick``, ``__n`` and ``__came``.
    """
    came = CAME if CAME in stage.schema.names else "__seq"  # an older table: nothing of it came otherwise
    names = [*rules.columns, "__tick", COPIES, came]
    plan = scan.plan(stage.admitted, scan.near(stage.admitted.files(), "__tick", ticks, reach))
    held = duplicates.near_rows(plan, names, rules.duplicate_by, taken, ticks, reach)
    held = held.rename_columns([*names[:-1], CAME])
    fields = [pa.field(f.name, f.type) for f in held.schema]
    own = pa.schema(fields)
    moved = taken.append_column(CAME, pa.repeat(pa.scalar(-1, pa.int64()), taken.num_rows)).cast(own)
    rows = pa.concat_tables([held.cast(own), moved])
    if not rows.num_rows:
        return rows
    code, count = keys.codes([rows.column(c) for c in (*rules.columns, "__tick")])
    n = keys.int64_of(rows.column(COPIES))
    net = np.bincount(code, n, count).astype(np.int64)
    newest = np.full(count, -1, np.int64)
    brought = keys.int64_of(rows.column(CAME))
    np.maximum.at(newest, code[n > 0], brought[n > 0])
    alive = np.flatnonzero(net > 0)
    first = keys.first_rows(code, count)[alive]
    record = rows.select([*rules.columns, "__tick"]).take(pa.array(first))
    return record.append_column(pa.field(COPIES, pa.int64()), pa.array(net[alive])).append_column(
        pa.field(CAME, pa.int64()), pa.array(newest[alive])
    )


def _distance(tick: np.ndarray, ticks: np.ndarray) -> np.ndarray:
    """How far each tick is from the nearest of ``ticks`` (ascending, at least one)."""
    right = np.clip(np.searchsorted(ticks, tick), 0, len(ticks) - 1)
    left = np.clip(right - 1, 0, len(ticks) - 1)
    return np.minimum(np.abs(ticks[right] - tick), np.abs(ticks[left] - tick))


def _with_copies(rows: pa.Table, n: np.ndarray) -> pa.Table:
    return rows.append_column(pa.field(COPIES, pa.int64()), pa.array(n, pa.int64()))
