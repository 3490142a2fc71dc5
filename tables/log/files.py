"""Parquet files that no log knows yet: written here, listed in a commit later, orphans until then.

Runs in Spark's Python workers as well as in the driver, so it imports pyarrow and nothing heavier. File statistics are
those of the Delta protocol ("Per-file Statistics"), exact or left out: a reader that skips by them never misses a row.
"""

from __future__ import annotations

import errno
import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pyarrow.types as pt

from sweeparea.infra import settings, storage
from sweeparea.tables.errors import TableError
from sweeparea.tables.faults import crash_point
from sweeparea.tables.log.folders import filesystem
from sweeparea.tables.log.stats import float_leaves_with_nan, stats_json
from sweeparea.tables.log.write_errors import explain_write_errors

SYNC = settings.SYNC_VARIABLE
"""Environment variable; ``off``: files are not forced to the disk, so that a power cut may take what was committed."""
QUICK = "snappy"
"""How files are compressed that are written often. Not with LZ4: where Spark filters by a column whose dictionary has
more than 8 KB it cannot read that (apache/parquet-java issue 3478).
"""
_DIFFERENCES = "DELTA_BINARY_PACKED"
_AT_ONCE = 4 << 20
"""Rows of so many bytes at most are made a file in memory and written at once: many small writes cost more than they
hold.
"""
_WAITING = 8
"""So many threads wait for a disk or a store."""
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")
_ROWS_A_GROUP = 1 << 17
"""A group of rows is the least that a worker, or a task of Spark, reads alone: a file of a million takes all cores."""
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=-]*\Z", re.ASCII)


@dataclass(frozen=True)
class DataFile:
    """One Parquet file of a table: ``path`` is raw (not percent-encoded) and relative to the table's folder."""

    path: str
    size: int
    rows: int
    stats: str
    partition: dict[str, str | None] = field(default_factory=dict)

    def stored(self) -> dict[str, Any]:
        """As a ledger row's action names it."""
        told = {"path": self.path, "size": self.size, "rows": self.rows, "stats": self.stats}
        return {**told, "partition": self.partition}

    @classmethod
    def of_stored(cls, told: dict[str, Any]) -> DataFile:
        return cls(told["path"], told["size"], told["rows"], told["stats"], told.get("partition", {}))


def quick(schema: pa.Schema, repeating: Sequence[str]) -> dict[str, Any]:
    """Options of Arrow's Parquet writer for files that are written often: whole numbers and instants by their
    differences, which are half as large as compressed values and are made and read faster; ``repeating`` columns with
    a dictionary.
    """
    kinds = {f.name: f.type for f in schema}
    whole = {name for name, kind in kinds.items() if pt.is_integer(kind) or pt.is_timestamp(kind) or pt.is_date(kind)}
    nested = any(kind.num_fields for kind in kinds.values())  # whose parts would have to be named one by one
    return {
        "use_dictionary": list(repeating),
        "column_encoding": dict.fromkeys(whole.difference(repeating), _DIFFERENCES),
        "compression": QUICK if nested else {name: "none" if name in whole else QUICK for name in kinds},
    }


def sync(fs: pafs.FileSystem, *paths: str) -> None:
    """Force files and folders to the disk, so that what is written afterwards never survives a power cut without them.

    Does nothing on an object store, which answers a write when it is safe.
    """
    if not isinstance(fs, pafs.LocalFileSystem) or os.environ.get(SYNC) == "off":
        return
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that knows no such thing
                raise
        finally:
            os.close(handle)


def write_file(
    table: pa.Table,
    root: str,
    attempt: str,
    stem: str,
    storage_options: dict[str, str] | None = None,
    partition: dict[str, str | None] | None = None,
) -> DataFile:
    """Write ``table`` to ``<root>/data/<attempt>/<stem>.parquet`` and describe it.

    The file appears under its name when it is complete, never half written. ``stem`` must be unique within the
    attempt: a Spark task that may run twice puts its own attempt number in. Timestamps are stored in microseconds; a
    finer one that would lose digits is an error of Arrow. Raises SetupError when the disk is full or must not be
    written to.
    """
    place = _Destination.of(root, attempt, stem, storage_options)
    if table.nbytes > _AT_ONCE:
        return _described(place, *_in_pieces(place, [table], table.schema, _RESULT), table, partition)
    whole, footer = _in_memory([table], table.schema, _RESULT)
    place.store(whole)
    return _described(place, footer, whole.size, table, partition)


def write_files(
    tables: Sequence[tuple[str, pa.Table]], root: str, attempt: str, options: Mapping[str, Any] | None = None
) -> list[DataFile]:
    """As ``write_file``, of many small tables of one schema by their stems, which nobody else writes; ``options`` as of
    ``write_pieces``. Until this returns, files may be there in part.

    Rows become bytes here, and other threads see to it that these are stored: that is waiting, for the most part.
    """
    wanted, each = {**_RESULT, **(options or {})}, _together(root)
    files: list[DataFile] = []
    stored: list[Future[None]] = []
    with ThreadPoolExecutor(_WAITING) as pool:
        for begin in range(0, len(tables), each):
            made: list[tuple[_Destination, pa.Buffer]] = []
            for stem, table in tables[begin : begin + each]:
                place = _Destination.of(root, attempt, stem)
                whole, footer = _in_memory([table], table.schema, wanted)
                made.append((place, whole))
                files.append(_described(place, footer, whole.size, table))
            stored.append(pool.submit(_store_all, made))
        for one in stored:
            one.result()
    if files:
        fs, base = filesystem(root)
        sync(fs, f"{base}/data/{attempt}")
    return files


def _store_all(made: Sequence[tuple[_Destination, pa.Buffer]]) -> None:
    for place, whole in made:
        place.store(whole, alone=True)


def read_whole(root: str, paths: Sequence[str]) -> Iterator[pa.Buffer]:
    """The bytes of files of a table, by their paths in it, in that order: small ones, each with one read."""

    def read(some: Sequence[str]) -> list[pa.Buffer]:
        return [_bytes_of(fs, f"{base}/{path}") for path in some]

    fs, base = filesystem(root)
    each = _together(root)
    with ThreadPoolExecutor(_WAITING) as pool:
        for buffers in pool.map(read, [paths[i : i + each] for i in range(0, len(paths), each)]):
            yield from buffers


def _together(root: str) -> int:
    """How many small files are one thread's task: on a disk one alone would cost less than the task."""
    return 1 if storage.is_remote(root) else 16


def _bytes_of(fs: pafs.FileSystem, path: str) -> pa.Buffer:
    with fs.open_input_file(path) as source:
        return source.read_buffer()


def side_by_side(work: Callable[[_Item], _Made], items: Sequence[_Item]) -> list[_Made]:
    """``work`` of each item, in their order; who waits for a disk or a store does not keep the others waiting."""
    workers = min(len(items), _WAITING)
    if workers < 2:
        return [work(item) for item in items]
    # a task for each item would cost more than small files do
    each = -(-len(items) // (4 * workers))
    with ThreadPoolExecutor(workers) as pool:
        parts = pool.map(lambda at: [work(item) for item in items[at : at + each]], range(0, len(items), each))
        return [made for part in parts for made in part]


def write_pieces(
    pieces: Iterable[pa.Table],
    schema: pa.Schema,
    root: str,
    attempt: str,
    stem: str,
    storage_options: dict[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> DataFile:
    """As ``write_file``, of a table that comes in pieces; ``options`` are those of Arrow's Parquet writer."""
    place = _Destination.of(root, attempt, stem, storage_options)
    footer, size = _in_pieces(place, pieces, schema, {**_RESULT, **(options or {})})
    return _described(place, footer, size, None)


_RESULT = {"compression": "zstd", "coerce_timestamps": "us", "store_schema": False}


def _described(
    place: _Destination,
    footer: pq.FileMetaData,
    size: int,
    table: pa.Table | None,
    partition: dict[str, str | None] | None = None,
) -> DataFile:
    """``table``: the rows, if they are at hand: else it is not known whether there is a NaN among them."""
    told = stats_json(footer, None if table is None else float_leaves_with_nan(table))
    return DataFile(place.relative, size, footer.num_rows, told, partition or {})


@dataclass(frozen=True)
class _Destination:
    """Where a data file goes: ``base`` is the table's folder in ``fs``."""

    fs: pafs.FileSystem
    base: str
    attempt: str
    stem: str
    remote: bool

    @classmethod
    def of(cls, root: str, attempt: str, stem: str, storage_options: dict[str, str] | None = None) -> _Destination:
        for part in (attempt, stem):
            if not _FILE_NAME.match(part):
                raise TableError(
                    f"{part!r} cannot be part of a data file's name: use ASCII letters, digits and _ . = -"
                )
        return cls(*filesystem(root, storage_options), attempt, stem, storage.is_remote(root))

    @property
    def relative(self) -> str:
        return f"data/{self.attempt}/{self.stem}.parquet"

    def store(self, whole: pa.Buffer, alone: bool = False) -> None:
        """A file of which all bytes are there; ``alone`` as in ``fill``."""

        def write(sink: pa.NativeFile) -> None:
            half = whole.size // 2
            sink.write(whole.slice(0, half))
            crash_point("file.half", self.base)
            sink.write(whole.slice(half))

        self.fill(write, alone)

    def fill(
        self,
        write: Callable[[pa.NativeFile], None],
        alone: bool = False,
        then: Callable[[str], None] = lambda temporary: None,
    ) -> None:
        """A file that ``write`` writes into what it is given; it appears under its name when it is complete. ``then``
        is called with the path that it has before. ``alone``: nobody else writes this file or looks for it yet, so it
        has its name at once, and the caller syncs the folder.
        """
        folder, target = f"{self.base}/data/{self.attempt}", f"{self.base}/{self.relative}"
        # Two tries of one task may write the same stem at the same time: each has its own temporary name.
        # An object store shows an object when it is whole, and has no way to rename one.
        temporary = target if self.remote or alone else f"{folder}/{self.stem}.{uuid.uuid4().hex[:8]}.tmp"
        crash_point("file.before", self.base)
        with explain_write_errors(target):
            if not self.remote:
                self.fs.create_dir(folder, recursive=True)
            try:
                with self.fs.open_output_stream(temporary) as sink:
                    write(sink)
                then(temporary)
                crash_point("file.written", self.base)
                sync(self.fs, temporary)
                if temporary != target:
                    self.fs.move(temporary, target)
                    sync(self.fs, folder)
            except BaseException:
                with suppress(OSError):
                    self.fs.delete_file(temporary)
                raise
        crash_point("file.staged", self.base)


def _in_pieces(
    place: _Destination, pieces: Iterable[pa.Table], schema: pa.Schema, options: Mapping[str, Any]
) -> tuple[pq.FileMetaData, int]:
    found: list[tuple[pq.FileMetaData, int]] = []

    def write(sink: pa.NativeFile) -> None:
        _encode(sink, pieces, schema, options)
        crash_point("file.half", place.base)

    def read_back(temporary: str) -> None:
        # collecting it while writing would hide a full disk behind another error
        with place.fs.open_input_file(temporary) as source:
            found.append((pq.read_metadata(source), source.size()))

    place.fill(write, then=read_back)
    return found[0]


def _in_memory(
    pieces: Iterable[pa.Table], schema: pa.Schema, options: Mapping[str, Any]
) -> tuple[pa.Buffer, pq.FileMetaData]:
    sink, footers = pa.BufferOutputStream(), []
    _encode(sink, pieces, schema, {**options, "metadata_collector": footers})
    return sink.getvalue(), footers[0]


def _encode(sink: pa.NativeFile, pieces: Iterable[pa.Table], schema: pa.Schema, options: Mapping[str, Any]) -> None:
    options = {"row_group_size": _ROWS_A_GROUP, **options}
    rows_a_group = options.pop("row_group_size")
    with pq.ParquetWriter(sink, schema, **options) as writer:
        for piece in pieces:
            writer.write_table(piece, rows_a_group)


def describe_file(
    root: str,
    relative_path: str,
    storage_options: dict[str, str] | None = None,
    partition: dict[str, str | None] | None = None,
) -> DataFile:
    """Describe a Parquet file that somebody else wrote (Spark), from its footer.

    FLOAT and DOUBLE columns get no minimum and maximum: a footer cannot tell whether a NaN, which is greater than
    every number in Spark, was left out of them.
    """
    fs, base = filesystem(root, storage_options)
    full = f"{base}/{relative_path}"
    try:
        size = fs.get_file_info(full).size
        with fs.open_input_file(full) as source:
            footer = pq.read_metadata(source)
    except FileNotFoundError:
        raise TableError(
            f"The data file {full} is missing. If it was staged more than 7 days ago, VACUUM has taken it: run the"
            " slice again."
        ) from None
    except pa.ArrowInvalid as error:
        raise TableError(f"The data file {full} is no complete Parquet file ({error}). Run the slice again.") from error
    return DataFile(relative_path, size or 0, footer.num_rows, stats_json(footer, None), partition or {})


def is_file(uri: str, storage_options: dict[str, str] | None = None) -> bool:
    """Whether a file is there."""
    fs, path = filesystem(uri, storage_options)
    return fs.get_file_info(path).type == pafs.FileType.File


def list_files(root: str, attempt: str, storage_options: dict[str, str] | None = None) -> list[str]:
    """The Parquet files that an attempt has staged in a table's folder, as paths relative to it."""
    fs, base = filesystem(root, storage_options)
    found = fs.get_file_info(pafs.FileSelector(f"{base}/data/{attempt}", allow_not_found=True))
    return sorted(f"data/{attempt}/{info.base_name}" for info in found if info.base_name.endswith(".parquet"))


def copy_file(source: str, target: str, storage_options: dict[str, str] | None = None) -> None:
    """Copy a data file to another table's folder, under a name that no log knows yet."""
    fs, path = filesystem(source, storage_options)
    other, to = filesystem(target, storage_options)
    with explain_write_errors(target):
        other.create_dir(to.rsplit("/", 1)[0], recursive=True)
        pafs.copy_files(path, to, source_filesystem=fs, destination_filesystem=other)


def copy_staged(source: str, file: DataFile, target: str, attempt: str) -> DataFile:
    """A copy of a table's file, staged for another table: ``source`` and ``target`` are their folders."""
    path = f"data/{attempt}/{file.path.rsplit('/', 1)[-1]}"
    copy_file(f"{source}/{file.path}", f"{target}/{path}")
    return replace(file, path=path)
