"""The laws that a query's own tables must obey among themselves, looked at in the tables: no input is read.

R1: at each instant what Istream brings and Dstream takes is the change of the relation, and no value is in both. R2:
their sum up to an instant is the relation (semantics, "The laws"; Arasu, Babu & Widom 2003, section 5.1). A relation is
canonical: of each record, level k is where it has at least k copies, in the longest intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sweeparea.operators.kernels.sorting import sorted_order
from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.operators.state import splice
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys
from sweeparea.operators.values.key_hash import in_part
from sweeparea.operators.values.netting import netted
from sweeparea.spark_jobs.rewriting.difference import PART_ROWS
from sweeparea.spark_jobs.slices.history import History
from sweeparea.spark_jobs.spark.instants import instant_text

STREAMS = {ResultKind.ISTREAM: 1, ResultKind.DSTREAM: -1}


_Validities = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class _Share:
    """Per kind of table its records' codes, and the instants from and to (ticks); ``records`` by code."""

    records: pa.Table
    kinds: dict[str, _Validities]


def broken(tables: Mapping[str, History], committed: int) -> list[str]:
    """What is wrong with the tables of one query, by kind (relation, istream, dstream; others are not looked at), up to
    a committed instant: a sentence for each kind of fault, with its first row.
    """
    looked_at = {kind: history for kind, history in tables.items() if kind in (ResultKind.RELATION, *STREAMS)}
    found: dict[str, str] = {}
    for part in _parts(looked_at):
        for fault, rows in _faults(part.kinds, committed):
            if rows.shape[1] and fault not in found:
                at = instant_text(next(iter(looked_at.values())).time, int(rows[1][0]))
                record = part.records.slice(int(rows[0][0]), 1).to_pylist()
                found[fault] = f"{fault}, first at {at}: {record[0] if record else {}}"
    return list(found.values())


def _faults(kinds: Mapping[str, _Validities], committed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Kinds of faults, each with its rows: record code and tick first."""
    if ResultKind.RELATION in kinds:
        codes, start, end = kinds[ResultKind.RELATION]
        late = (start > committed) | ((end > committed) & (end != INF))
        yield "rows of the relation begin or end after the committed instant", np.stack([codes, start])[:, late]
        yield "rows of the relation are empty", np.stack([codes, start])[:, end <= start]
        yield "levels of the relation are not canonical", _crooked(codes, start, end)
        changes = splice.events(codes, start, end, np.ones(len(codes), np.int64))
        for kind, sign in STREAMS.items():
            if kind in kinds:
                wanted = changes[:, changes[2] * sign > 0] * np.array([[1], [1], [sign]])
                yield f"{kind} is not what the relation's changes are (R1, R2)", _net(wanted, _counted(kinds[kind]))
    elif kinds.keys() >= STREAMS.keys():
        come, go = _counted(kinds[ResultKind.ISTREAM]), _counted(kinds[ResultKind.DSTREAM])
        yield "values are in istream and dstream at one instant (R1)", _both(come, go)
        yield "dstream takes values that istream never brought (R2)", _below_zero(come, go)


def _parts(tables: Mapping[str, History]) -> Iterator[_Share]:
    rows = sum(f.rows for history in tables.values() for f in history.log.files(history.version))
    parts = max(1, -(-rows // PART_ROWS))
    for part in range(parts if tables else 0):
        read = {kind: _read(history, part, parts) for kind, history in tables.items()}
        schema = next(iter(read.values()))[0].schema
        records = pa.concat_tables([table.cast(schema) for table, _, _ in read.values()]).combine_chunks()
        if records.num_columns and records.num_rows:
            codes = keys.codes([records.column(c) for c in records.column_names])[0]
        else:
            codes = np.zeros(sum(len(start) for _, start, _ in read.values()), np.int64)
        first = keys.first_rows(codes, int(codes.max(initial=-1)) + 1)
        kinds, at = {}, 0
        for kind, (_, start, end) in read.items():
            kinds[kind] = codes[at : at + len(start)], start, end
            at += len(start)
        yield _Share(records.take(pa.array(first)) if records.num_columns else records, kinds)


def _read(history: History, part: int, parts: int) -> tuple[pa.Table, np.ndarray, np.ndarray]:
    """Records of one part, and their instants from and to."""
    schema = pa.schema([history.log.schema().field(name) for name in history.record])
    tables, starts, ends = [schema.empty_table()], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for file in history.log.files(history.version):
        rows = history.read(file)
        start, end = history.ticks(rows)
        records = rows.select(history.record)
        if parts > 1:
            chosen = in_part([records.column(c) for c in history.record], rows.num_rows, part, parts)
            records, start, end = records.filter(pa.array(chosen)), start[chosen], end[chosen]
        tables.append(records)
        starts.append(start)
        ends.append(end)
    return pa.concat_tables(tables), np.concatenate(starts), np.concatenate(ends)


def _counted(rows: _Validities) -> np.ndarray:
    """A stream's elements as (code, tick, number)."""
    return netted(rows[0], rows[1], np.ones(len(rows[0]), np.int64))


def _net(wanted: np.ndarray, is_: np.ndarray) -> np.ndarray:
    return netted(*(np.append(a, b) for a, b in zip(wanted, is_ * np.array([[1], [1], [-1]]), strict=True)))


def _both(come: np.ndarray, go: np.ndarray) -> np.ndarray:
    code, tick = (np.append(a, b) for a, b in zip(come[:2], go[:2], strict=True))
    twice = netted(code, tick, np.ones(len(code), np.int64))
    return twice[:, twice[2] > 1]


def _below_zero(come: np.ndarray, go: np.ndarray) -> np.ndarray:
    """The instants at which a record's sum of what came and went is negative."""
    net = _net(come, go)
    if not net.shape[1]:
        return net
    total = np.cumsum(net[2])
    first = np.flatnonzero(np.append(True, net[0][1:] != net[0][:-1]))
    before = np.append(0, total[:-1])[first]
    running = total - np.repeat(before, np.diff(np.append(first, len(total))))
    return net[:, running < 0]


def _crooked(codes: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Rows (code, start) that the canonical form has otherwise: it is made anew from the events and compared."""
    whole = end > start
    codes, start, end = codes[whole], start[whole], end[whole]
    level_code, level_start, level_end = canonical(*splice.events(codes, start, end, np.ones(len(codes), np.int64)))
    changed = splice.bag_difference((codes, start, end), (level_code, level_start, level_end))
    return np.stack([codes, start])[:, changed.removed]


def canonical(code: np.ndarray, tick: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The levels (code, from, to) of records whose numbers change by ``n`` at ``tick``, rows in that order.

    >>> a = np.array([0, 0, 0, 0])
    >>> [x.tolist() for x in canonical(a, np.array([1, 3, 5, 9]), np.array([1, 1, -1, -1]))]
    [[0, 0], [1, 3], [9, 5]]
    """
    times = np.abs(n)
    code, tick, sign = (np.repeat(each, times) for each in (code, tick, np.sign(n)))
    if not len(code):
        return code, tick, tick
    total = np.cumsum(sign)
    first = np.flatnonzero(np.append(True, code[1:] != code[:-1]))
    before = np.append(0, total[:-1])[first]
    count = total - np.repeat(before, np.diff(np.append(first, len(total))))
    # a copy that comes is the level that it makes the number of, one that goes the level that the number was
    level = np.where(sign > 0, count, count + 1)
    order = sorted_order((code, level, tick))
    code, level, tick, sign = code[order], level[order], tick[order], sign[order]
    opens = np.flatnonzero(sign > 0)
    following = np.minimum(opens + 1, len(code) - 1)
    ends = (sign[following] < 0) & (code[following] == code[opens]) & (level[following] == level[opens])
    return code[opens], tick[opens], np.where(ends, tick[following], INF)
