"""From Spark partitions to pure sweeps and back: the tasks that ``mapInArrow`` runs, each around one sweep.

A sweep wants all rows of its keys at once, so the bag is hash-partitioned by key and each partition handed over as
one Arrow table. What a sweep carries to the next slice, and what a slice publishes, leaves the worker as Parquet
files in *staging* (no Delta log knows them yet); only the rows that the next operator needs, or one line per file,
travel on through Spark. So all outputs of a slice come of one Spark job. A task that Spark repeats writes
its files again under another name; ``staged_carry`` takes one file per partition, and the sweeps are functions of
their input, so either will do.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sweeparea.operators.plan.stream_kind import StreamKind
from sweeparea.operators.state.expiry_log import Division, divided
from sweeparea.operators.state.sweep import Sweep
from sweeparea.operators.state.sweep_area import SweepArea
from sweeparea.operators.values import shared_rows
from sweeparea.operators.values.bag import N
from sweeparea.operators.values.columns import conform
from sweeparea.operators.values.netting import net_changes
from sweeparea.operators.worker_memory import UNWATCHED, Watch, WatchedRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sweeparea.operators.sweeps.quarantine import Quarantine

FILES_SCHEMA = pa.schema(
    [
        ("target", pa.string()),
        ("path", pa.string()),
        ("size", pa.int64()),
        ("rows", pa.int64()),
        ("stats", pa.string()),
        ("broken", pa.string()),
    ]
)
"""A line a staged file: which table it is of, the file, and how many of its rows break which check (JSON)."""
COMBINED_AT_ONCE = 1 << 18
"""Rows that a ``CombineTask`` gathers before it combines them."""
TRIED = 1 << 14
"""Rows by which it finds out whether that is worth its time, where most often it is not."""
WORTH = 0.7
"""The part of its rows that may be left for combining to be worth its time."""
INSTANTS = {1: ("ts",), 2: ("valid_from", "valid_to")}


@dataclass(frozen=True)
class Target:
    """Where a sweep's side output goes: a table's root, its schema and the file stem's prefix."""

    root: str
    schema: pa.Schema
    stem: str
    storage_options: Mapping[str, str] | None = None


def write_target(table: pa.Table, target: Target, attempt: str, suffix: str) -> dict[str, Any] | None:
    """Stages ``table`` under the target; returns its line for ``FILES_SCHEMA``, None when there are no rows."""
    return _write(table, target, attempt, suffix) if table.num_rows else None


def _opened(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, area: Target | SweepArea, attempt: str, watched: WatchedRows
) -> tuple[pa.Table | None, Callable[[pa.Table], None]]:
    """The rows that a sweep has to do with, None if there are none, and how to stage what it carries.

    Of a whole SweepArea they came through Spark with the new ones; of a keyed one they are read here, by the keys of
    what came, of which rows with NULL copies only name a key.
    """
    given = gathered_rows(watched.counted(batches), schema)
    if isinstance(area, Target):
        if given is not None:
            watched.gathered(given)
        return given, lambda carry: write_carry(carry, area, attempt)
    given = schema.empty_table() if given is None else given
    held = area.held(given)
    new = given.filter(given.column(N).is_valid()) if given.column(N).null_count else given
    rows = new
    if held.num_rows:
        rows = pa.concat_tables([shared_rows.plain(new), held.select(schema.names)]).combine_chunks()
    watched.gathered(rows)

    def stage(carry: pa.Table) -> None:
        area.stage(carry, held, attempt, place())

    if not rows.num_rows:
        stage(rows)
        return None, stage
    return rows, stage


def write_carry(carry: pa.Table, target: Target, attempt: str, number: int | None = None) -> None:
    """Stages what a sweep carries to the next slice, also when it is nothing: the file tells that the sweep has run.

    ``number``: that of the part, this partition's if not given.
    """
    suffix = _partition() if number is None else f"{number:05d}"
    _write(shared_rows.plain(carry).select(target.schema.names), target, attempt, suffix)


def _write(table: pa.Table, target: Target, attempt: str, suffix: str) -> dict[str, Any]:
    from sweeparea.tables.log.files import write_file

    table = pa.Table.from_arrays(
        [table.column(i).cast(f.type) for i, f in enumerate(target.schema)], schema=target.schema
    )
    stem = f"{target.stem}-{suffix}-{uuid.uuid4().hex[:8]}"
    options = dict(target.storage_options) if target.storage_options else None
    file = write_file(table, target.root, attempt, stem, options)
    return {"target": target.stem, "path": file.path, "size": file.size, "rows": file.rows, "stats": file.stats}


@dataclass(frozen=True)
class SweepTask:
    """Runs a sweep on one partition: yields the delta, stages the carry."""

    sweep: Sweep
    h0: int
    h1: int
    carry: Target | SweepArea
    attempt: str
    watch: Watch = UNWATCHED

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for delta in self._deltas(batches):
            yield from filled_batches(conform(shared_rows.plain(delta), self.sweep.result))

    def shared(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same, of rows that may share their records, for a task in the same worker that ``takes_shared``."""
        for delta in self._deltas(batches):
            yield from filled_batches(shared_rows.conform(delta, self.sweep.result))

    def _deltas(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        run = self.sweep.shared or self.sweep.run
        with self.watch.over() as watched:
            rows, stage = _opened(batches, self.sweep.rows, self.carry, self.attempt, watched)
            if rows is None:
                return
            delta, carry = run(rows, h0=self.h0, h1=self.h1)
            stage(carry)
            yield delta


@dataclass(frozen=True)
class ExpandTask:
    """Snapshot expansion of one partition (``snapshot.expand``): stages the carry, yields the rows piece by piece."""

    spec: Any
    h0: int
    h1: int
    schema: pa.Schema
    output: pa.Schema
    carry: Target | SweepArea
    attempt: str
    watch: Watch = UNWATCHED

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from sweeparea.operators.ordered.snapshot import expand

        with self.watch.over() as watched:
            rows, stage = _opened(batches, self.schema, self.carry, self.attempt, watched)
            if rows is None:
                return
            pieces, carry = expand(rows, self.spec, self.h0, self.h1)
            stage(carry)
            for piece in pieces:
                yield from filled_batches(conform(piece, self.output))


@dataclass(frozen=True)
class MapTask:
    """Runs a function of Arrow tables on one batch after the other: for operators without state or order."""

    apply: Callable[[pa.Table], pa.Table]
    schema: pa.Schema
    output: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                table = self.apply(pa.Table.from_batches([batch]).cast(self.schema))
                yield from filled_batches(conform(table, self.output))


@dataclass(frozen=True)
class ExtendTask:
    """Adds columns to rows behind a sweep, batch by batch."""

    apply: Callable[[pa.Table], pa.Table]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from filled_batches(self.apply(pa.Table.from_batches([batch])))


@dataclass(frozen=True)
class CombineTask:
    """Makes fewer rows of many, where they are made: ``combine`` is given them in chunks, and again what it has made of
    them, as long as that is worth its time.

    ``combine`` takes and gives rows of ``schema``; whatever rows it is given together, to what stands behind its result
    says the same. ``first``: rows by which it sees whether that is worth its time; 0: those of a chunk.
    """

    combine: Callable[[pa.Table], pa.Table]
    schema: pa.Schema
    first: int = 0

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kept: list[pa.Table] = []
        size, worth, enough = 0, True, self.first or COMBINED_AT_ONCE
        for batch in self._pieces(batches):
            rows = gathered_rows(iter((batch,)), self.schema)
            if rows is None:
                continue
            if not worth:
                yield from filled_batches(rows)
                continue
            kept.append(rows)
            size += rows.num_rows
            if size >= enough:
                enough = COMBINED_AT_ONCE
                made = self.combine(pa.concat_tables(kept).combine_chunks())
                worth = made.num_rows <= WORTH * size
                kept, size = [made], made.num_rows
                if size > COMBINED_AT_ONCE // 2 or not worth:
                    yield from filled_batches(made)
                    kept, size = [], 0
        if kept:
            yield from filled_batches(self.combine(pa.concat_tables(kept).combine_chunks()))

    def _pieces(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches, each divided behind its first rows: what a sweep has made is one batch, however large."""
        for batch in batches:
            yield from (batch.slice(0, self.first), batch.slice(self.first)) if self.first else (batch,)


@dataclass(frozen=True)
class RowCount:
    """Where the partitions of a sweep note how many rows it makes, so that a slice can know the total in the end.

    A task that Spark repeats writes the same number under the same name.
    """

    folder: str
    op: str

    def note(self, rows: int) -> None:
        from sweeparea.tables.log.folders import filesystem

        fs, base = filesystem(self.folder)
        fs.create_dir(base, recursive=True)
        with fs.open_output_stream(f"{base}/{self.op}-{_partition()}.rows") as sink:
            sink.write(str(rows).encode())

    def total(self) -> int:
        from sweeparea.tables.log.folders import files_in, filesystem

        fs, _ = filesystem(self.folder)
        total = 0
        for info in files_in(self.folder):
            if info.base_name.startswith(f"{self.op}-"):
                with fs.open_input_stream(info.path) as source:
                    total += int(source.read())
        return total


@dataclass(frozen=True)
class MaterializeTask:
    """Runs the relation-to-stream sweep on one partition: stages every output, yields one line per file.

    ``judges``: by target what counts the rows that break a check, given them with the truths of constraints behind
    their columns. ``carry``: None where nothing is kept for the next slice. ``anew``: the relation's table has no open
    rows yet, so that all are written; else only those that the slice has opened. ``quarantine``: which rows stand in
    the table of that kind instead of the others. ``laws``: counts what breaks a law between these tables, given all of
    them by target and what is carried; told in a line of the target ``slice``, which is no file.
    """

    spec: Any
    h0: int
    h1: int
    chronon: int
    schema: pa.Schema
    targets: Mapping[str, Target]
    judges: Mapping[str, Callable[[pa.Table], dict[str, int]]]
    labels: Mapping[str, str]
    attempt: str
    carry: Target | SweepArea | None
    rstream_rows: RowCount | None = None
    anew: bool = True
    watch: Watch = UNWATCHED
    quarantine: Quarantine | None = None
    laws: Callable[[Mapping[str, pa.Table], pa.Table | None], dict[str, int]] | None = None
    takes_shared = True

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self.watch.over() as watched:
            yield from self._run(batches, watched)

    def _run(self, batches: Iterator[pa.RecordBatch], watched: WatchedRows) -> Iterator[pa.RecordBatch]:
        from sweeparea.operators.sweeps.istream import changes, emit
        from sweeparea.operators.sweeps.quarantine import parted
        from sweeparea.operators.sweeps.relation_to_stream import sweep

        if self.carry is None:
            rows, stage = gathered_rows(watched.counted(batches), self.schema), None
        else:
            rows, stage = _opened(batches, self.schema, self.carry, self.attempt, watched)
        if rows is None:
            return
        how = emit if self.spec.each else changes if self.spec.net else sweep
        if self.quarantine is None:
            out, kept_out = how(rows, self.spec, self.h0, self.h1), None
        else:
            out, kept_out = parted(how, rows, self.spec, self.quarantine, self.h0, self.h1)
        if stage is not None:
            stage(out.carry)
        if self.rstream_rows is not None:
            self.rstream_rows.note(out.rstream_rows)
        names = [*self.spec.columns, *self.spec.checks]
        tables = {
            "istream": self._stamped(out.istream, names, ["__tick"]),
            "dstream": self._stamped(out.dstream, names, ["__tick"]),
            "rstream": self._stamped(out.rstream, names, ["__tick"]),
            "closed": self._stamped(out.closed, names, ["__from", "__to"]),
            "open": self._stamped(self._opened(out.opened), names, ["__from", None]),
        }
        if self.quarantine is not None and kept_out is not None:
            closed = self._stamped(kept_out.closed, names, ["__from", "__to"])
            opened = self._stamped(self._opened(kept_out.opened), names, ["__from", None])
            tables |= {
                "quarantine_closed": self.quarantine.named(closed),
                "quarantine_open": self.quarantine.named(opened),
            }
        lines = []
        if self.laws is not None:
            own = {key: tables[key] for key in self.targets}
            told = json.dumps(self.laws(own, None if stage is None else out.carry))
            lines.append({"target": "slice", "path": "", "size": 0, "rows": 0, "stats": "", "broken": told})
        for key, target in self.targets.items():
            table = tables[key]
            line = write_target(table.select(target.schema.names), target, self.attempt, _partition())
            if line is not None:
                # the truths of constraints are judged beside the rows and never become part of a table
                truths = [name for name in self.spec.checks if name in table.column_names]
                judged = table.select([*target.schema.names, *truths])
                lines.append({**line, "broken": json.dumps(self.judges[key](judged))})
        yield from filled_batches(pa.Table.from_pylist(lines, FILES_SCHEMA))

    def _opened(self, levels: pa.Table) -> pa.Table:
        import pyarrow.compute as pc

        return levels if self.anew else levels.filter(pc.greater(levels.column("__from"), self.h0))

    def _stamped(self, table: pa.Table, names: Sequence[str], ticks: Sequence[str | None]) -> pa.Table:
        """Columns in the order of a result table: the record, then its instants as that table writes them."""
        import pyarrow.compute as pc

        kind = pa.timestamp("us", tz="UTC") if self.chronon else pa.int64()

        def instant(name: str | None) -> pa.Array | pa.ChunkedArray:
            if name is None:
                return pa.nulls(table.num_rows, kind)
            column = table.column(name)
            return pc.multiply(column, self.chronon).cast(kind) if self.chronon else column

        columns = [table.column(n) for n in names] + [instant(t) for t in ticks]
        return pa.table(columns, names=[*(self.labels.get(n, n) for n in names), *INSTANTS[len(ticks)]])


@dataclass(frozen=True)
class StreamTask:
    """Istream, Dstream or Rstream in the middle of a plan: yields elements ``[t, t+1)``, stages the carry."""

    spec: Any
    kind: StreamKind
    h0: int
    h1: int
    schema: pa.Schema
    carry: Target | SweepArea
    attempt: str
    rstream_rows: RowCount | None = None
    watch: Watch = UNWATCHED

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self.watch.over() as watched:
            yield from self._run(batches, watched)

    def _run(self, batches: Iterator[pa.RecordBatch], watched: WatchedRows) -> Iterator[pa.RecordBatch]:
        import pyarrow.compute as pc

        from sweeparea.operators.sweeps.relation_to_stream import sweep

        rows, stage = _opened(batches, self.schema, self.carry, self.attempt, watched)
        if rows is None:
            return
        out = sweep(rows, self.spec, self.h0, self.h1)
        stage(out.carry)
        if self.rstream_rows is not None:
            self.rstream_rows.note(out.rstream_rows)
        stream = {
            StreamKind.ISTREAM: out.istream,
            StreamKind.DSTREAM: out.dstream,
            StreamKind.RSTREAM: out.rstream,
        }[self.kind]
        tick = stream.column("__tick")
        ones = pa.array([1] * stream.num_rows, pa.int64())
        columns = [*(stream.column(c) for c in self.spec.columns), tick, pc.add(tick, 1), ones]
        elements = pa.Table.from_arrays([_single(c) for c in columns], names=self.schema.names)
        yield from filled_batches(elements.cast(self.schema))


@dataclass(frozen=True)
class HoldTask:
    """Logs the rows of a join's side that outlive the slice (``expiry_log.py``), and passes the new ones on.

    Rows carry ``__new``: made by this slice, or of files that are to be merged. ``net``: rows may be negative tuples;
    ``delta``: all ends are, so that only what changes in the end is passed on (each row is met with all that it
    matches); ``touching``: pieces of one record that follow each other (``expiry_log.divided``).
    """

    h1: int
    schema: pa.Schema
    log: Target
    division: Division
    attempt: str
    net: bool = False
    touching: bool = False
    delta: bool = False
    watch: Watch = UNWATCHED

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self.watch.over() as watched:
            rows = gathered_rows(watched.counted(batches), self.schema)
            if rows is None:
                return
            watched.gathered(rows)
            bag = rows.drop_columns(["__new"])
            for number, part in enumerate(divided(bag, self.h1, self.division, self.net, self.touching)):
                _write(part.select(self.log.schema.names), self.log, self.attempt, f"{number:03d}.{_partition()}")
            new = rows.filter(rows.column("__new"))
            yield from filled_batches(net_changes(new) if self.delta else new)


@dataclass(frozen=True)
class ChainedTask:
    """One task behind another in the same worker: the rows between them never pass through Spark.

    ``columns``: those of the first one's rows that the second is given, by the names of ``renamed``.
    """

    first: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    columns: tuple[str, ...]
    renamed: tuple[str, ...]
    second: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from self.second(self._between(batches))

    def shared(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """As ``SweepTask.shared``, where the second task has that."""
        yield from getattr(self.second, "shared", self.second)(self._between(batches))

    def _between(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = getattr(self.first, "shared", self.first) if getattr(self.second, "takes_shared", False) else self.first
        for batch in first(batches):
            yield pa.RecordBatch.from_arrays([batch.column(c) for c in self.columns], names=list(self.renamed))


def passed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task that makes of rows what they are."""
    return batches


@dataclass(frozen=True)
class Pipe:
    """What a task makes of the ``workers`` partitions of a DataFrame, before Spark has it again.

    ``columns``: of those that Spark has, by name, the ones of the task that they are.
    """

    given: DataFrame
    task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    workers: int
    columns: Mapping[str, str]

    @classmethod
    def of(cls, given: DataFrame, workers: int) -> Pipe:
        """The rows of a DataFrame as they are, which Spark computes."""
        return cls(given, passed, workers, {name: name for name in given.columns})

    def then(self, task: Callable[..., Any], names: Sequence[str]) -> ChainedTask:
        """The task with another one behind it, which is given the columns ``names``."""
        return ChainedTask(self.task, tuple(self.columns[name] for name in names), tuple(names), task)

    def behind(self, task: Callable[..., Any], names: Sequence[str], made: Sequence[str]) -> Pipe:
        """After a task that is given the columns ``names`` and makes rows of ``made``, where they lie."""
        return Pipe(self.given, self.then(task, names), self.workers, {name: name for name in made})

    def mapped(self, apply: Callable[[pa.Table], pa.Table], names: Sequence[str], made: Sequence[str]) -> Pipe | None:
        """After a function of each batch that is given the columns ``names`` and makes rows of ``made``, where they
        lie; None: some of the columns are not there.
        """
        return self.behind(ExtendTask(apply), names, made) if self.columns.keys() >= set(names) else None

    def renamed(self, columns: Mapping[str, str]) -> Pipe | None:
        """After a projection: of its columns by name those they were; None if there is another one."""
        if not set(columns.values()) <= self.columns.keys():
            return None
        return replace(self, columns={name: self.columns[c] for name, c in columns.items()})


def run(frame: DataFrame, task: Callable[..., Any], keys: Sequence[str], partitions: int, ddl: str) -> DataFrame:
    """``frame`` partitioned by ``keys`` (one partition if there are none), each partition through ``task``."""
    return spread(frame, keys, partitions).mapInArrow(task, ddl)


def spread(frame: DataFrame, keys: Sequence[str], partitions: int) -> DataFrame:
    """``frame`` in partitions, of which each has all rows of its ``keys``; one partition if there are none."""
    by = comparable(frame, keys) if partitions > 1 else []
    if by:
        return frame.repartition(partitions, *by)
    return frame.repartition(1) if partitions > 1 or not keys else frame.coalesce(1)


def comparable(frame: DataFrame, keys: Sequence[str]) -> list[str]:
    """The keys that Spark can hash and compare: not those that hold a map. Equal keys are equal in these."""
    maps = {f.name for f in frame.schema if "map<" in f.dataType.simpleString()}
    return [key for key in keys if key.strip("`") not in maps]


def hashable(schema: pa.Schema, keys: Sequence[str]) -> list[str]:
    """``comparable`` of rows of an Arrow schema."""

    def has_map(kind: pa.DataType) -> bool:
        return pa.types.is_map(kind) or any(has_map(kind.field(i).type) for i in range(kind.num_fields))

    return [key for key in keys if not has_map(schema.field(key).type)]


def staged_carry(folder_listing: Sequence[str]) -> list[str]:
    """One file per partition out of the names ``<stem>-<partition>-<random>.parquet`` (see the module's text)."""
    chosen: dict[str, str] = {}
    for path in sorted(folder_listing):
        chosen.setdefault(path.rsplit("-", 1)[0], path)
    return list(chosen.values())


def _partition() -> str:
    return f"{place():05d}"


def place() -> int:
    """The number of this partition."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context else 0


def gathered_rows(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.Table | None:
    """All rows in the columns of ``schema``; one that was not sent is NULL in all of them."""
    kept = [b for b in batches if b.num_rows]
    if not kept:
        return None
    rows = pa.Table.from_batches(kept)
    if len(rows.schema) < len(schema):
        sent = set(rows.column_names)
        columns = [rows.column(f.name) if f.name in sent else pa.nulls(rows.num_rows, f.type) for f in schema]
        rows = pa.Table.from_arrays(columns, names=schema.names)
    if rows.column(0).num_chunks > 1:
        rows = shared_rows.plain(rows)
    return shared_rows.conform(rows, schema).combine_chunks()


def filled_batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows as batches for Spark, none of them empty: no reader may take an empty one for the end."""
    return (batch for batch in table.to_batches() if batch.num_rows)


def _single(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


__all__ = [
    "FILES_SCHEMA",
    "ChainedTask",
    "CombineTask",
    "ExpandTask",
    "ExtendTask",
    "HoldTask",
    "MapTask",
    "MaterializeTask",
    "Pipe",
    "RowCount",
    "SweepTask",
    "Target",
    "comparable",
    "filled_batches",
    "gathered_rows",
    "passed",
    "place",
    "run",
    "spread",
    "staged_carry",
    "write_carry",
    "write_target",
]
