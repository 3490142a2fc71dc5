"""A key with too many of a slice's rows is swept by several workers, each a stretch of its time (``stretches.py``).

Rows have been sent to the workers of their keys (``exchange.py``) when it is seen that some have many more than others.
Then the files of these are looked at (``SurveyTask``), and divided (``DivideTask``): rows of other keys go on to the
worker that had them, those of a hot key to the workers of the stretches in which they count. Of those that began before
a stretch only what ``Sweep.carried`` makes of them goes there. Then each worker sweeps its whole keys and its stretches
(``StretchesTask``). What is carried to the next slice is that of the last stretch, and of whole keys: SweepAreas do not
know of it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from sweeparea.operators.bridge import Target, filled_batches, gathered_rows, place, write_carry
from sweeparea.operators.exchange import read
from sweeparea.operators.reading import mine
from sweeparea.operators.state.sweep import ByValue, Sweep
from sweeparea.operators.state.sweep_area import SweepArea
from sweeparea.operators.stretches import HotKey, KeyStretch
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys as key_codes
from sweeparea.operators.values.bag import TE, TS, N
from sweeparea.operators.values.columns import conform, with_columns
from sweeparea.operators.values.key_hash import key_hash
from sweeparea.operators.worker_memory import UNWATCHED, Watch
from sweeparea.tables.log.folders import filesystem

SURVEY_SCHEMA = pa.schema(
    [
        ("receiver", pa.int32()),
        ("hash", pa.int64()),
        ("rows", pa.float64()),
        ("starts", pa.binary()),
        ("ends", pa.binary()),
    ]
)
"""A line a hash of which a part of a file has many rows: how many, and where some of them start and end (int64)."""
DIVIDED_SCHEMA = pa.schema([("receiver", pa.int32()), ("stretch", pa.int32()), ("path", pa.string())])
WHOLE, VALUES = -1, -2
"""A line a file: for whom, and for which stretch it is; ``WHOLE``: whole keys; ``VALUES``: to be counted before."""
_SAMPLE = 1 << 11
"""Rows of a part of a file that are looked at."""
_MANY = 1 / 32
"""A key may be hot if it has this part of them."""


@dataclass(frozen=True)
class SentRows:
    """Rows ``begin`` to before ``end`` of a file that was sent to ``receiver``."""

    receiver: int
    path: str
    begin: int
    end: int

    def read(self) -> pa.Table:
        """They, in one piece."""
        return pa.Table.from_batches(read(self.path)).slice(self.begin, self.end - self.begin).combine_chunks()


def shares(files: Sequence[tuple[int, str, int]], number: int) -> tuple[tuple[SentRows, ...], ...]:
    """Equal shares of the rows of files (receiver, path, rows).

    >>> [[(part.path, part.begin, part.end) for part in share] for share in shares([(0, "a", 5), (0, "b", 3)], 2)]
    [[('a', 0, 4)], [('a', 4, 5), ('b', 0, 3)]]
    """
    most = max(1, -(-sum(rows for *_, rows in files) // number))
    found: list[list[SentRows]] = [[]]
    room = most
    for receiver, path, rows in sorted(files):
        begin = 0
        while begin < rows:
            if not room:
                found.append([])
                room = most
            end = min(rows, begin + room)
            found[-1].append(SentRows(receiver, path, begin, end))
            room, begin = room - (end - begin), end
    return tuple(map(tuple, found))


@dataclass(frozen=True)
class SurveyTask:
    """Of the rows in each share that comes: hashes of keys that many of a sample have."""

    files: tuple[tuple[SentRows, ...], ...]
    keys: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = []
        for part in mine(self.files, batches):
            rows = part.read()
            rows = rows.filter(rows.column(N).is_valid()).select([*self.keys, TS, TE])
            size = rows.num_rows
            if size > _SAMPLE:  # by chance: rows may lie in an order that the steps of a grid would follow
                rows = rows.take(pa.array(np.sort(np.random.default_rng(0).integers(0, size, _SAMPLE))))
            start, end = (key_codes.int64_of(rows.column(c)) for c in (TS, TE))
            hashes = _hashes(rows, self.keys)
            values, code, counts = np.unique(hashes, return_inverse=True, return_counts=True)
            for i in np.flatnonzero(counts >= _MANY * len(hashes)):
                mine_ = code == i
                about = size * int(counts[i]) / len(hashes)
                found.append((part.receiver, int(values[i]), about, start[mine_].tobytes(), end[mine_].tobytes()))
        yield from _told(found, SURVEY_SCHEMA)


def hot_keys(lines: Sequence[tuple[int, int, float, bytes, bytes]], least: float) -> list[HotKey]:
    """The keys that have ``least`` rows or more, from the lines of all ``SurveyTask``."""
    parts: dict[tuple[int, int], list[tuple[float, np.ndarray, np.ndarray]]] = {}
    for receiver, hash_, rows, starts, ends in sorted(lines):
        sample = np.frombuffer(starts, np.int64), np.frombuffer(ends, np.int64)
        parts.setdefault((hash_, receiver), []).append((rows, *sample))
    found = []
    for (hash_, receiver), samples in parts.items():
        rows, starts, ends = zip(*samples, strict=True)
        if sum(rows) >= least:
            found.append(HotKey(hash_, receiver, sum(rows), *_weighed(rows, starts, ends)))
    return found


def _weighed(
    rows: Sequence[float], starts: Sequence[np.ndarray], ends: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Samples together, of which each row stands for equally many: of a file of few rows fewer are taken."""
    weights = [count / len(start) for count, start in zip(rows, starts, strict=True)]
    most = max(weights)
    taken = [
        np.linspace(0, len(start) - 1, max(1, round(len(start) * weight / most))).astype(np.int64)
        for weight, start in zip(weights, starts, strict=True)
    ]
    return (
        np.concatenate([start[at] for start, at in zip(starts, taken, strict=True)]),
        np.concatenate([end[at] for end, at in zip(ends, taken, strict=True)]),
    )


@dataclass(frozen=True)
class DivideTask:
    """Writes the rows in each share that comes anew, into ``folder``: rows of the stretches' keys in the columns of
    the sweep, for the workers of these, others for those that had them. Yields a line a file.
    """

    files: tuple[tuple[SentRows, ...], ...]
    sweep: Sweep
    stretches: tuple[KeyStretch, ...]
    folder: str
    h0: int
    workers: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in mine(self.files, batches):
            lines, rows = [], part.read()
            hashes = _hashes(rows, self.sweep.keys)
            rest = np.ones(rows.num_rows, np.bool_)
            for hash_ in dict.fromkeys(stretch.hash for stretch in self.stretches):
                hot = hashes == hash_
                if hot.any():
                    rest &= ~hot
                    own = gathered_rows(iter(rows.filter(pa.array(hot)).to_batches()), self.sweep.rows)
                    assert own is not None
                    by_value = self.sweep.values
                    named = _named(own, self.sweep.keys)
                    own = own.filter(own.column(N).is_valid())
                    if by_value is None:
                        lines += cut(own, named, hash_, self.stretches, self.sweep, self.folder)
                    else:
                        lines += self._shared(own, named, by_value)
            if rest.any():
                lines.append((part.receiver, WHOLE, _written(rows.filter(pa.array(rest)), self.folder)))
            yield from _told(lines, DIVIDED_SCHEMA)

    def _shared(self, rows: pa.Table, named: pa.Table, by_value: ByValue) -> Iterator[tuple[int, int, str]]:
        rows = by_value.combined(rows, self.h0)
        places = by_value.places(rows, self.workers)
        for worker in range(self.workers):
            part = pa.concat_tables([named, conform(rows.filter(pa.array(places == worker)), named.schema)])
            yield worker, VALUES, _written(part, self.folder)


def cut(
    rows: pa.Table, named: pa.Table, hash_: int | None, stretches: Sequence[KeyStretch], sweep: Sweep, folder: str
) -> Iterator[tuple[int, int, str]]:
    """Writes what ``sweep`` needs of ``rows`` in each stretch of their hash; ``named``: of their keys."""
    for number, stretch in enumerate(stretches):
        if stretch.hash == hash_:
            yield stretch.worker, number, _written(pa.concat_tables([named, *within(rows, stretch, sweep)]), folder)


def within(rows: pa.Table, stretch: KeyStretch, sweep: Sweep) -> list[pa.Table]:
    """What ``sweep`` needs of ``rows`` in a stretch: those that begin there (behind the last one, too), as they are,
    and what is carried of those that began before.
    """
    start, end = (key_codes.int64_of(rows.column(c)) for c in (TS, TE))
    own = start <= (INF if stretch.last else stretch.end)
    if stretch.first:
        return [rows.filter(pa.array(own))]
    before = (start <= stretch.begin) & (end > stretch.begin)
    own &= start > stretch.begin
    held = rows.filter(pa.array(before))
    if not stretch.last:  # that they end later says nothing here
        held = with_columns(held, {TE: np.where(end[before] > stretch.end, INF, end[before])})
    assert sweep.carried is not None
    return [rows.filter(pa.array(own)), conform(sweep.carried(held, stretch.begin), rows.schema)]


def _named(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """A row with NULL copies for each key of ``rows``: every stretch is to know of it."""
    if keys:
        code, count = key_codes.codes([rows.column(k) for k in keys])
        rows = rows.take(pa.array(key_codes.first_rows(code, count)))
    else:
        rows = rows.slice(0, 1)
    nothing = [rows.column(f.name) if f.name in keys else pa.nulls(rows.num_rows, f.type) for f in rows.schema]
    return pa.Table.from_arrays(nothing, schema=rows.schema)


@dataclass(frozen=True)
class StretchesTask:
    """Runs a sweep on the whole keys of each worker that comes, and on its stretches of others: yields the delta,
    stages the carry.

    ``files``: by worker, of whole keys; ``stretches``: by worker, each with its files.
    """

    sweep: Sweep
    h0: int
    h1: int
    carry: Target | SweepArea
    attempt: str
    files: tuple[tuple[str, ...], ...]
    stretches: tuple[tuple[tuple[KeyStretch, tuple[str, ...]], ...], ...]
    watch: Watch = UNWATCHED

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self.watch.over() as watched:
            carried, replaced, deltas = [self.sweep.rows.empty_table()], [], []
            last = isinstance(self.carry, SweepArea)
            for stretch, files in self._parts(batches):
                by_value = self.sweep.values if stretch.hash is not None else None
                sweep = self.sweep if by_value is None else by_value.then
                given = gathered_rows(watched.counted(_all_of(files)), sweep.rows)
                if given is None:
                    continue
                rows, held = self._with_held(given, by_value is None)
                watched.gathered(rows)
                delta, carry = sweep.run(rows, h0=stretch.begin, h1=stretch.end)
                deltas.append(conform(delta, self.sweep.result))
                if stretch.last:
                    carry = carry if by_value is None else by_value.remembered(carry)
                    carried.append(conform(carry, self.sweep.rows))
                    replaced, last = [*replaced, *held], True
            self._stage(pa.concat_tables(carried), replaced, last)
            yield from chain.from_iterable(map(filled_batches, deltas))

    def _parts(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[KeyStretch, tuple[str, ...]]]:
        whole = KeyStretch(None, self.h0, self.h1, 0, True, True)
        yield from mine(
            [[(whole, files), *more] for files, more in zip(self.files, self.stretches, strict=True)], batches
        )

    def _with_held(self, given: pa.Table, reads: bool) -> tuple[pa.Table, list[pa.Table]]:
        """The rows that the sweep is given, and those of the SweepArea among them, as it has them."""
        new = given.filter(given.column(N).is_valid())
        if isinstance(self.carry, Target) or not reads:
            return new, []
        held = self.carry.held(given)
        return pa.concat_tables([new, held.select(new.schema.names)]).combine_chunks(), [held]

    def _stage(self, carried: pa.Table, replaced: list[pa.Table], last: bool) -> None:
        if isinstance(self.carry, SweepArea):
            held = pa.concat_tables([self.carry.stored.empty_table(), *replaced])
            self.carry.stage(carried, held, self.attempt, place())
        elif last:
            write_carry(carried, self.carry, self.attempt)


@dataclass(frozen=True)
class CountTask:
    """Of each worker that comes what it makes of its part of the hot keys' values (``ByValue``): written for the
    workers of the stretches, a line a file; stages what is carried of them.

    ``files``: by worker.
    """

    sweep: Sweep
    h0: int
    h1: int
    carry: Target | SweepArea
    attempt: str
    files: tuple[tuple[str, ...], ...]
    stretches: tuple[KeyStretch, ...]
    folder: str
    watch: Watch = UNWATCHED

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        by_value = self.sweep.values
        assert by_value is not None
        with self.watch.over() as watched:
            for worker, files in mine([[(i, files)] for i, files in enumerate(self.files)], batches):
                given = gathered_rows(watched.counted(_all_of(files)), self.sweep.rows)
                given = self.sweep.rows.empty_table() if given is None else given
                rows, held = given.filter(given.column(N).is_valid()), None
                if isinstance(self.carry, SweepArea):
                    held = self._held(given, by_value, worker)
                    rows = pa.concat_tables([rows, held.select(rows.schema.names)]).combine_chunks()
                watched.gathered(rows)
                made, carry = by_value.run(rows, self.h0, self.h1)
                self._stage(conform(carry, self.sweep.rows), held, worker)
                lines = [line for hash_ in self._hashes() for line in self._cut(given, made, hash_, by_value.then)]
                yield from _told(lines, DIVIDED_SCHEMA)

    def _hashes(self) -> list[int | None]:
        return list(dict.fromkeys(stretch.hash for stretch in self.stretches))

    def _held(self, given: pa.Table, by_value: ByValue, worker: int) -> pa.Table:
        """This worker's part of what the SweepArea holds of the keys: by value; of the rest the first one has all."""
        assert isinstance(self.carry, SweepArea)
        held = self.carry.held(given)
        rows = held.select(self.sweep.rows.names)
        places = np.where(by_value.counted(rows), by_value.places(rows, len(self.files)), 0)
        return held.filter(pa.array(places == worker))

    def _stage(self, carry: pa.Table, held: pa.Table | None, worker: int) -> None:
        number = len(self.files) + worker  # the sweep of the stretches stages the others
        if isinstance(self.carry, SweepArea):
            assert held is not None
            replace(self.carry, merge=()).stage(carry, held, self.attempt, number)
        else:
            write_carry(carry, self.carry, self.attempt, number)

    def _cut(self, given: pa.Table, made: pa.Table, hash_: int | None, then: Sweep) -> Iterator[tuple[int, int, str]]:
        own, rows = (table.filter(pa.array(_hashes(table, self.sweep.keys) == hash_)) for table in (given, made))
        if own.num_rows:
            named = gathered_rows(
                iter(_named(own, self.sweep.keys).select([*self.sweep.keys, N]).to_batches()), then.rows
            )
            assert named is not None
            yield from cut(conform(rows, then.rows), named, hash_, self.stretches, then, self.folder)


def _told(lines: Sequence[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    named = [dict(zip(schema.names, line, strict=True)) for line in lines]
    return filled_batches(pa.Table.from_pylist(named, schema))


def _all_of(files: Sequence[str]) -> Iterator[pa.RecordBatch]:
    return (batch for path in files for batch in read(path))


def _hashes(rows: pa.Table, keys: Sequence[str]) -> np.ndarray:
    return key_hash([rows.column(k) for k in keys], rows.num_rows)


def _written(rows: pa.Table, folder: str) -> str:
    fs, base = filesystem(folder)
    fs.create_dir(base, recursive=True)
    name = f"{uuid.uuid4().hex}.arrow"
    with fs.open_output_stream(f"{base}/{name}") as sink, pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return f"{folder}/{name}"
