"""Rows from the workers that read them to those that sweep them, as Arrow: files by worker instead of Spark's shuffle.

A shuffle of Spark writes and reads rows; those of a sweep come from Arrow and go to Arrow. So each task sorts what it
has made into one file a receiver (``SendTask``), in a folder that the slice removes in the end, and each receiver reads
what is for it (``ReceiveTask``). Of which rows meet says the hash of their keys (``key_hash``): equal keys, equal
hashes. A task that Spark repeats writes other files; the lines that arrive say which count.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sweeparea.operators.reading import FilePart, mine
from sweeparea.operators.state.area_files import DUE
from sweeparea.operators.values.key_hash import key_hash
from sweeparea.tables.log import scan
from sweeparea.tables.log.folders import filesystem

SENT_DDL = "receiver INT, path STRING, rows BIGINT"
SENT_SCHEMA = pa.schema([("receiver", pa.int32()), ("path", pa.string()), ("rows", pa.int64())])
"""A line a file: for whom it is, and how many rows it has."""


@dataclass(frozen=True)
class SendTask:
    """Writes rows of ``schema`` by their ``keys`` into files of ``folder`` for ``receivers`` workers; yields a line a
    file. No more than a batch a receiver is in memory.
    """

    schema: pa.Schema
    keys: tuple[str, ...]
    receivers: int
    folder: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        fs, base = filesystem(self.folder)
        fs.create_dir(base, recursive=True)
        name, opened, rows = uuid.uuid4().hex, {}, [0] * self.receivers
        for given in batches:
            if not given.num_rows:
                continue
            # other writers' rows may have come from other files, and with other types of the same values
            [batch] = pa.Table.from_batches([given]).cast(self.schema).combine_chunks().to_batches()
            hashes = key_hash([batch.column(self.schema.get_field_index(k)) for k in self.keys], batch.num_rows)
            place = (hashes.view(np.uint64) % np.uint64(self.receivers)).astype(np.int64)
            order = np.argsort(place, kind="stable")
            ends = np.searchsorted(place[order], np.arange(self.receivers + 1))
            for receiver in range(self.receivers):
                chosen = order[ends[receiver] : ends[receiver + 1]]
                if len(chosen):
                    if receiver not in opened:
                        path = f"{base}/{name}-{receiver}.arrow"
                        sink = fs.open_output_stream(path)
                        opened[receiver] = (path, sink, pa.ipc.new_stream(sink, self.schema))
                    opened[receiver][2].write_batch(batch.take(pa.array(chosen)))
                    rows[receiver] += len(chosen)
        for _, sink, writer in opened.values():
            writer.close()
            sink.close()
        if opened:
            paths = [f"{self.folder}/{path.rsplit('/', 1)[-1]}" for path, _, _ in opened.values()]
            counts = pa.array([rows[receiver] for receiver in opened], pa.int64())
            yield pa.RecordBatch.from_arrays(
                [pa.array(list(opened), pa.int32()), pa.array(paths), counts], schema=SENT_SCHEMA
            )


@dataclass(frozen=True)
class ReceiveTask:
    """Reads the files that are for each number that comes."""

    files: tuple[tuple[str, ...], ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for path in mine(self.files, batches):
            yield from read(path)


def read(path: str) -> Iterator[pa.RecordBatch]:
    """The rows of a file that was sent."""
    fs, base = filesystem(path)
    with fs.open_input_file(base) as source, pa.ipc.open_stream(source) as reader:
        yield from reader


@dataclass(frozen=True)
class DueTask:
    """Reads in shares, of a SweepArea's files, the keys that are due in ``(h0, h1]``: rows that only name a key."""

    shares: tuple[tuple[FilePart, ...], ...]
    stored: pa.Schema
    sent: pa.Schema
    keys: tuple[str, ...]
    h0: int
    h1: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for piece in mine(self.shares, batches):
            yield from self._due(piece)

    def _due(self, piece: FilePart) -> Iterator[pa.RecordBatch]:
        condition = scan.within(self.stored, [(DUE, self.h0 + 1, self.h1)])
        for rows in scan.pieces(piece.path, self.stored, list(self.keys), condition)(piece.part, piece.parts):
            size = rows.num_rows
            named = [rows.column(f.name) if f.name in self.keys else pa.nulls(size, f.type) for f in self.sent]
            yield from pa.Table.from_arrays(named, schema=self.sent).to_batches()


def by_receiver(lines: Sequence[Mapping[str, Any]], receivers: int) -> tuple[tuple[str, ...], ...]:
    """The files of each receiver, in an order that is always the same.

    >>> by_receiver([{"receiver": 1, "path": "b"}, {"receiver": 1, "path": "a"}], 2)
    ((), ('a', 'b'))
    """
    found: list[list[str]] = [[] for _ in range(receivers)]
    for line in lines:
        found[line["receiver"]].append(line["path"])
    return tuple(tuple(sorted(paths)) for paths in found)
