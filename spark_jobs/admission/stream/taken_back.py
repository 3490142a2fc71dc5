"""``ON SOURCE CHANGE``: what becomes of the rows that a version of the source removes or changes.

What changed is the bag difference of the rows that the version removed and added. Under CORRECT a removed row cancels
an equal quarantined row first (of several the one that came last), else an admitted one; what matches neither is
quarantined. Removals go before the rows that the version adds. Duplicates that were dropped lie in the quarantine, too,
so of equal rows the kept one goes last.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.values import keys
from sweeparea.spark_jobs.admission.judging import duplicates
from sweeparea.spark_jobs.admission.judging.stage import Stage, held_copies, quarantine_rows, row_texts
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.sources.landing import MALFORMED

UNMATCHED = "taken back by its source, but equal to no element and no quarantined row"


@dataclass
class TakenBack:
    """Copies of rows: ``elements`` are rows of the admitted table with negative ``__n``, ``cancelled`` counts those
    that left the quarantine, ``unmatched`` are rows with negative ``__n`` that matched nothing.
    """

    elements: pa.Table
    cancelled: int
    unmatched: pa.Table


def refuse(name: str, version: int, removed: int) -> SweepAreaError:
    """The error of ON SOURCE CHANGE FAIL."""
    return SweepAreaError(
        f"Stream {name}: version {version} of its source removes or changes {removed} rows, and the stream is declared"
        " ON SOURCE CHANGE FAIL (the default): an element that was admitted is not taken back. Nothing of this version"
        " was admitted, and none after it will be. Ways out: declare ON SOURCE CHANGE IGNORE (removed rows stay"
        " elements, added ones are admitted; what was admitted so far stays as it is) or CORRECT (results are corrected"
        " as if removed rows had never been), or declare a new stream over a table that is only appended to."
    )


def take_back(stage: Stage, removed: pa.Table, columns: Sequence[str]) -> TakenBack:
    """Finds what removed rows take back, and lets the rows of the quarantine leave that they cancel.

    ``removed``: the source's ``columns``, ``__tick`` (NULL where the timestamp is) and ``__n`` (negative).
    """
    wanted = -keys.int64_of(removed.column("__n"))
    cancelled = cancel(stage, removed.select(list(columns)), removed.column("__tick"), wanted)
    left = wanted - cancelled
    found = in_admitted(stage.admitted, removed, columns, left)
    return TakenBack(_with_copies(removed, -found), int(cancelled.sum()), _with_copies(removed, -(left - found)))


def unmatched_rows(rows: pa.Table, name: str, version: int) -> pa.Table:
    """What matched nothing, for the quarantine."""
    return quarantine_rows(rows, pa.repeat(pa.scalar(UNMATCHED), rows.num_rows), name, version)


def cancel(stage: Stage, rows: pa.Table, ticks: pa.ChunkedArray, wanted: np.ndarray) -> np.ndarray:
    """Lets up to ``wanted`` copies of each row leave the quarantine, those that came last first; returns how many
    have left.
    """
    left = np.zeros(len(wanted), np.int64)
    log = stage.quarantine
    files = log.files(stage.quarantine_version)
    if not ticks.null_count:
        files = scan.near(files, "__tick", np.unique(keys.int64_of(ticks)))
    if not files or not len(wanted):
        return left
    texts = row_texts(rows)
    open_: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        open_.setdefault(text, []).append(i)
    names = log.schema().names
    hits: list[tuple[int, int, int, str]] = []  # commit, number of the file, place in it, text
    copies: list[np.ndarray] = []
    for number, file in enumerate(files):
        held = scan.plan(log, [file]).read(names)
        copies.append(held_copies(held) - stage.leaving(file, held.num_rows))
        shown = _whole(held.column("__row"), rows.column_names) if stage.gained else held.column("__row")
        hit = pc.is_in(shown, pa.array(list(open_), pa.string())).to_numpy(zero_copy_only=False)
        at = np.flatnonzero(hit & (copies[-1] > 0))
        seq = keys.int64_of(held.column("__seq"))[at].tolist()
        hits += zip(seq, [number] * len(at), at.tolist(), shown.take(pa.array(at)).to_pylist(), strict=True)
    gone = [np.zeros(len(each), np.int64) for each in copies]
    for _, number, at, text in sorted(hits, reverse=True):
        for i in open_[text]:
            taken = min(wanted[i] - left[i], copies[number][at] - gone[number][at])
            left[i] += taken
            gone[number][at] += taken
    for file, leaving in zip(files, gone, strict=True):
        if leaving.any():
            stage.leave(file, leaving)
    return left


def _whole(texts: pa.ChunkedArray, columns: Sequence[str]) -> pa.ChunkedArray:
    """Rows of a quarantine as texts with all ``columns``: one that came later is NULL in the rows of before."""
    found = []
    for text in texts.to_pylist():
        row = json.loads(text)
        if MALFORMED in row:
            found.append(text)
        else:
            found.append(json.dumps({c: row.get(c) for c in columns}, ensure_ascii=False, allow_nan=False))
    return pa.chunked_array([pa.array(found, pa.string())])


def in_admitted(log: DeltaLog, removed: pa.Table, columns: Sequence[str], wanted: np.ndarray) -> np.ndarray:
    """Up to ``wanted`` copies of each removed row that the admitted table holds: equal rows of the same tick."""
    found = np.zeros(len(wanted), np.int64)
    ask = np.flatnonzero((wanted > 0) & removed.column("__tick").is_valid().to_numpy())
    if not len(ask):
        return found
    asked = removed.take(pa.array(ask))
    ticks = np.unique(keys.int64_of(asked.column("__tick")))
    plan = scan.plan(log, scan.near(log.files(), "__tick", ticks))
    names = [*columns, "__tick", "__n"]
    held = duplicates.near_rows(plan, names, columns, asked, ticks, 0)
    held_rows = held.num_rows
    both = pa.concat_tables([held, asked.select(names).cast(held.schema)])
    code, count = keys.codes([both.column(c) for c in (*columns, "__tick")])
    stock = np.bincount(code[:held_rows], keys.int64_of(held.column("__n")), count).astype(np.int64)
    for place, c in zip(ask, code[held_rows:], strict=True):  # removed rows are distinct, or nearly so
        found[place] = max(0, min(wanted[place], stock[c]))
        stock[c] -= found[place]
    return found


def _with_copies(rows: pa.Table, n: np.ndarray) -> pa.Table:
    at = np.flatnonzero(n)
    table = rows.take(pa.array(at))
    return table.set_column(table.column_names.index("__n"), "__n", pa.array(n[at], pa.int64()))
