"""What is known of a task whose worker runs out of memory: which operator, how many rows, which key has most of them.

Where an allocation fails, the task says so itself (``WorkerMemoryError``). A process that the system has killed says
nothing: so a task of many rows leaves a note in a folder of its slice while it runs, which the driver reads, to explain
a worker's death and to tell what takes long. Tasks of few rows leave none, and pay nothing for it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from sweeparea.infra.errors import WorkerMemoryError, shortened
from sweeparea.operators.values.key_hash import key_hash
from sweeparea.tables.log.folders import files_in, filesystem, remove_file

NOTED = 200_000
"""Rows from which on a task leaves a note."""
_SAMPLE = 1 << 14
"""Rows of which the largest key is estimated."""


@dataclass(frozen=True)
class TaskRows:
    """The rows of one task: of ``operator``, as SweepAreas are named; ``key`` in words and about how many rows it has,
    None: not known, or none has more than others.
    """

    operator: str
    rows: int
    key: str | None = None
    of_key: int = 0

    def words(self) -> str:
        """As in "aggregate2, 1,000,000 rows in one task, about 900,000 of them of the key (north)".

        >>> TaskRows("aggregate2", 1_000_000, "(north)", 900_000).words()
        'aggregate2, 1,000,000 rows in one task, about 900,000 of them of the key (north)'
        """
        told = f"{self.operator or 'a task'}, {self.rows:,} rows in one task"
        return told if self.key is None else f"{told}, about {self.of_key:,} of them of the key {self.key}"


@dataclass(frozen=True)
class Watch:
    """How a task is watched: as ``operator``, whose rows meet by ``keys``. ``folder``: where tasks of ``least`` rows
    and more leave notes, empty: nowhere.
    """

    operator: str = ""
    keys: tuple[str, ...] = ()
    folder: str = ""
    least: int = field(default_factory=lambda: NOTED)

    @contextmanager
    def over(self) -> Generator[WatchedRows]:
        """While a task runs. WorkerMemoryError: an allocation in it has failed."""
        watched = WatchedRows(self)
        try:
            yield watched
        except MemoryError as error:  # of Python, numpy, numba or Arrow
            raise WorkerMemoryError(f"{watched.found.words()} ({_reason(error)})") from None
        finally:
            watched.forget()


UNWATCHED = Watch()
"""Of a task that nobody has named."""


class WatchedRows:
    """What a task has found out about its rows so far."""

    def __init__(self, watch: Watch) -> None:
        self.watch, self.found = watch, TaskRows(watch.operator, 0)
        self._next, self._path = watch.least, ""

    def counted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches, whose rows are counted as they come."""
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            self.found = TaskRows(self.watch.operator, rows)
            if rows >= self._next:
                self._next = 2 * rows
                self._note()
            yield batch

    def gathered(self, rows: pa.Table) -> None:
        """All rows of the task are here: new ones and those of its SweepArea."""
        self.found = TaskRows(self.watch.operator, rows.num_rows)
        if rows.num_rows >= self.watch.least:
            self.found = largest_key(self.watch.operator, rows, self.watch.keys)
            self._note()

    def _note(self) -> None:
        if not self.watch.folder:
            return
        with suppress(OSError):  # a task does not fail for its note
            fs, base = filesystem(self.watch.folder)
            if not self._path:
                fs.create_dir(base, recursive=True)
                self._path = f"{uuid.uuid4().hex}.json"
            with fs.open_output_stream(f"{base}/{self._path}") as sink:
                sink.write(json.dumps(self.found.__dict__).encode())

    def forget(self) -> None:
        """The task has ended: its note goes."""
        if self._path:
            with suppress(OSError):
                remove_file(f"{self.watch.folder}/{self._path}")


def largest_key(operator: str, rows: pa.Table, keys: Sequence[str]) -> TaskRows:
    """``rows`` with the key that most of a sample have, if these are a hundredth or more: one key bears the task.

    Without keys all rows meet each other, and there is none to tell.
    """
    size = rows.num_rows
    if not keys or not size:
        return TaskRows(operator, size)
    sample = rows.select(list(keys))
    if size > _SAMPLE:  # by chance: rows may lie in an order that the steps of a grid would follow
        sample = sample.take(pa.array(np.sort(np.random.default_rng(0).integers(0, size, _SAMPLE))))
    hashes, first, counts = np.unique(key_hash(sample.columns, sample.num_rows), return_index=True, return_counts=True)
    most = int(np.argmax(counts))
    if len(hashes) > 1 and counts[most] * 100 < sample.num_rows:
        return TaskRows(operator, size)
    values = (str(column[int(first[most])].as_py()) for column in sample.columns)
    return TaskRows(
        operator, size, shortened(f"({', '.join(values)})", 120), _about(size * int(counts[most]) / sample.num_rows)
    )


def _about(rows: float) -> int:
    """Two digits of a number that a sample tells."""
    unit = 10 ** max(0, len(str(int(rows))) - 2)
    return int(round(rows / unit) * unit)


def running(folder: str) -> list[TaskRows]:
    """The tasks that have a note in ``folder``: they run, or their worker has died. Largest first."""
    found = []
    with suppress(OSError):
        for info in files_in(folder):
            fs, _ = filesystem(folder)
            # it may be written or removed this moment
            with suppress(OSError, ValueError), fs.open_input_stream(info.path) as source:
                found.append(TaskRows(**json.loads(source.read())))
    return sorted(found, key=lambda task: -task.rows)


def _reason(error: MemoryError) -> str:
    return " ".join(str(error).split())[:200] or "an allocation failed"
