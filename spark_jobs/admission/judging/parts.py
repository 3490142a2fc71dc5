"""Rows of any number in parts that fit into memory, each with all rows of its keys; and rows that wait for their turn.

What is judged key by key gives the same verdicts over parts as over the whole. Few rows are one part and stay in
memory. More are sorted into files by the hash of their keys (Grace: Kitsuregawa et al. 1983), a part that is still too
large once more by another divisor of the hash. Only rows of one key may be more than a part should have.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import pyarrow as pa

from sweeparea.operators.exchange import SendTask, by_receiver, read
from sweeparea.spark_jobs.admission.judging.copies import Pile, together
from sweeparea.tables.log.folders import filesystem, remove_folder

PIECE = 500_000
"""Rows of a part: to judge them takes up to 1 KB each, beside their own bytes."""
_PACKED = 100_000
"""Rows that go to files at a time."""
FAN_OUT = (61, 53, 47)
"""Files at a time, level by level: numbers without a common divisor, so that each level parts what the last has left
together. After them only equal hashes are."""


def by_keys(
    tables: Iterable[pa.Table], columns: Sequence[str], scratch: str, size: int | None = None, level: int = 0
) -> Iterator[pa.Table]:
    """``tables``, of one schema, in parts of at most ``size`` rows (``PIECE``), fewer where they are wide: rows with
    equal ``columns`` are in one, in the order in which they came. A part is larger only where one key is. Files lie in
    the folder ``scratch`` meanwhile.
    """
    most = PIECE if size is None else size
    rest = (table for table in tables if table.num_rows)
    held = Pile()
    for table in rest:
        held.add(table)
        if level < len(FAN_OUT) and held.over(most):
            break
    else:
        if held.tables:
            yield held.joined()
        return
    folder = f"{scratch}/{uuid.uuid4().hex}"
    try:
        send = SendTask(held.tables[0].schema, tuple(columns), FAN_OUT[level], folder)
        batches = (batch for table in _packed(chain(held.emptied(), rest)) for batch in table.to_batches())
        lines = [line for sent in send(batches) for line in sent.to_pylist()]
        received = (_received(files) for files in by_receiver(lines, FAN_OUT[level]))
        parts = (part for rows in received for part in by_keys(rows, columns, scratch, most, level + 1))
        yield from together(parts, most)
    finally:
        remove_folder(folder, quietly=True)


def _received(files: tuple[str, ...]) -> Iterator[pa.Table]:
    return _packed(pa.Table.from_batches([batch]) for path in files for batch in read(path))


def _packed(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Small tables together, each column in one chunk: level by level batches would become ever smaller."""
    return (table.combine_chunks() for table in together(tables, _PACKED))


class Shelf:
    """Tables of one schema that are read again later, in their order: few rows wait in memory, more in files of
    ``scratch``.
    """

    def __init__(self, scratch: str) -> None:
        self._folder = f"{scratch}/{uuid.uuid4().hex}"
        self._held = Pile()
        self._files: list[str] = []

    def put(self, table: pa.Table) -> None:
        """One more table, of a size that fits into memory."""
        if not table.num_rows:
            return
        self._held.add(table)
        if not self._held.over(PIECE):
            return
        fs, base = filesystem(self._folder)
        fs.create_dir(base, recursive=True)
        for each in self._held.emptied():
            self._files.append(f"{base}/{len(self._files):06d}.arrow")
            with fs.open_output_stream(self._files[-1]) as sink, pa.ipc.new_stream(sink, each.schema) as writer:
                writer.write_table(each)

    def __iter__(self) -> Iterator[pa.Table]:
        fs, _ = filesystem(self._folder)
        for path in self._files:
            with fs.open_input_file(path) as source, pa.ipc.open_stream(source) as reader:
                yield reader.read_all()
        yield from self._held.tables

    def close(self) -> None:
        """Removes the files."""
        if self._files:
            remove_folder(self._folder, quietly=True)


@contextmanager
def shelves(scratch: str, number: int) -> Iterator[list[Shelf]]:
    """So many shelves, whose files go in the end."""
    found = [Shelf(scratch) for _ in range(number)]
    try:
        yield found
    finally:
        for shelf in found:
            shelf.close()
