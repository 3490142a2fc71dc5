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
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from sweeparea.infra import storage
from sweeparea.infra.errors import SetupError
from sweeparea.tables.errors import TableError
from sweeparea.tables.faults import crash_point
from sweeparea.tables.stats import float_leaves_with_nan, stats_json

SYNC = "SWEEPAREA_SYNC"
"""Environment variable; ``off``: files are not forced to the disk, so that a power cut may take what was committed."""
QUICK = "snappy"
"""How files are compressed that are written often. Not with LZ4: where Spark filters by a column whose dictionary has
more than 8 KB it cannot read that (apache/parquet-java issue 3478).
"""
_AT_ONCE = 4 << 20
"""Rows of so many bytes at most are made a file in memory and written at once: many small writes cost more than they
hold.
"""
_FULL = ("No space left", "quota exceeded", "File too large")
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=-]*\Z", re.ASCII)


@dataclass(frozen=True)
class DataFile:
    """One Parquet file of a table: ``path`` is raw (not percent-encoded) and relative to the table's folder."""

    path: str
    size: int
    rows: int
    stats: str
    partition: dict[str, str | None] = field(default_factory=dict)


def filesystem(uri: str, storage_options: dict[str, str] | None = None) -> tuple[pafs.FileSystem, str]:
    """The file system of ``uri``, a path or an address, and the path in it. Options: ``infra/storage.py``."""
    if storage.is_remote(uri):
        return storage.filesystem(uri)
    return pafs.LocalFileSystem(), uri.removeprefix("file://")


def files_in(folder: str) -> list[pafs.FileInfo]:
    """The files of a folder, not of those in it; none where there is no such folder."""
    fs, base = filesystem(folder)
    found = fs.get_file_info(pafs.FileSelector(base, allow_not_found=True))
    return [info for info in found if info.type == pafs.FileType.File]


def folders_in(folder: str) -> list[str]:
    """The folders of a folder, not of those in it, by their addresses; none where there is no such folder."""
    fs, base = filesystem(folder)
    try:
        found = fs.get_file_info(pafs.FileSelector(base, allow_not_found=True))
    except NotADirectoryError:
        return []
    return [f"{folder.rstrip('/')}/{info.base_name}" for info in found if info.type == pafs.FileType.Directory]


def tables_in(folder: str) -> list[str]:
    """The Delta tables in a folder, however deep, by their addresses."""
    fs, base = filesystem(folder)
    found = fs.get_file_info(pafs.FileSelector(base, recursive=True, allow_not_found=True))
    ends = {info.path.rsplit("/_delta_log/", 1)[0] for info in found if "/_delta_log/" in info.path}
    return sorted(folder.rstrip("/") + path[len(base) :] for path in ends)


def has_folder(folder: str) -> bool:
    """Whether there is a folder, which on an object store has something in it."""
    fs, base = filesystem(folder)
    return fs.get_file_info(base).type == pafs.FileType.Directory


def move_folder(old: str, new: str) -> None:
    """Move a folder with all that is in it. On an object store file by file: one that dies is to be called again."""
    fs, source = filesystem(old)
    target = filesystem(new)[1]
    if not storage.is_remote(old):
        fs.create_dir(target.rsplit("/", 1)[0], recursive=True)
        fs.move(source, target)
        return
    for info in fs.get_file_info(pafs.FileSelector(source, recursive=True)):
        if info.type == pafs.FileType.File:
            fs.copy_file(info.path, target + info.path[len(source) :])
    fs.delete_dir(source)


def remove_folder(uri: str, quietly: bool = False) -> None:
    """Remove a folder with all that is in it, if it is there; ``quietly``: as far as that can be done."""
    with suppress(OSError if quietly else FileNotFoundError):  # somebody else may be removing it
        fs, base = filesystem(uri)
        if fs.get_file_info(base).type == pafs.FileType.Directory:
            fs.delete_dir(base)


def remove_file(uri: str) -> None:
    """Remove a file that no log knows, if it is there."""
    fs, path = filesystem(uri)
    with suppress(FileNotFoundError):
        fs.delete_file(path)


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
    return _table(table, root, attempt, stem, storage_options, _RESULT, partition)


def write_files(
    tables: Sequence[tuple[str, pa.Table]], root: str, attempt: str, options: Mapping[str, Any] | None = None
) -> list[DataFile]:
    """As ``write_file``, of many small tables by their stems, side by side; ``options`` as of ``write_pieces``."""
    wanted = {**_RESULT, **(options or {})}
    files = side_by_side(lambda one: _table(one[1], root, attempt, one[0], None, wanted, folder=False), tables)
    if files:
        fs, base = filesystem(root)
        sync(fs, f"{base}/data/{attempt}")
    return files


def side_by_side(work: Callable[[_Item], _Made], items: Sequence[_Item]) -> list[_Made]:
    """``work`` of each item, in their order; who waits for a disk or a store does not keep the others waiting."""
    workers = min(len(items), 4 * (os.cpu_count() or 1))
    if workers < 2:
        return [work(item) for item in items]
    # a task for each item would cost more than small files do
    each = -(-len(items) // (4 * workers))
    with ThreadPoolExecutor(workers) as pool:
        parts = pool.map(lambda at: [work(item) for item in items[at : at + each]], range(0, len(items), each))
        return [made for part in parts for made in part]


def _table(
    table: pa.Table,
    root: str,
    attempt: str,
    stem: str,
    storage_options: dict[str, str] | None,
    options: Mapping[str, Any],
    partition: dict[str, str | None] | None = None,
    folder: bool = True,
) -> DataFile:
    footer, size = _written([table], table.schema, root, attempt, stem, storage_options, options, folder)
    stats = stats_json(footer, float_leaves_with_nan(table))
    return DataFile(f"data/{attempt}/{stem}.parquet", size, table.num_rows, stats, partition or {})


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
    footer, size = _written(pieces, schema, root, attempt, stem, storage_options, {**_RESULT, **(options or {})})
    return DataFile(f"data/{attempt}/{stem}.parquet", size, footer.num_rows, stats_json(footer, None))


_RESULT = {"compression": "zstd", "coerce_timestamps": "us", "store_schema": False}


def _written(
    pieces: Iterable[pa.Table],
    schema: pa.Schema,
    root: str,
    attempt: str,
    stem: str,
    storage_options: dict[str, str] | None,
    options: Mapping[str, Any],
    sync_folder: bool = True,
) -> tuple[pq.FileMetaData, int]:
    for part in (attempt, stem):
        if not _FILE_NAME.match(part):
            raise TableError(f"{part!r} cannot be part of a data file's name: use ASCII letters, digits and _ . = -")
    rows_a_group = {k: v for k, v in options.items() if k == "row_group_size"}
    writing = {k: v for k, v in options.items() if k != "row_group_size"}
    fs, base = filesystem(root, storage_options)
    folder = f"{base}/data/{attempt}"
    target = f"{folder}/{stem}.parquet"
    # Two tries of one task may write the same stem at the same time: each has its own temporary name.
    # An object store shows an object when it is whole, and has no way to rename one.
    temporary = target if storage.is_remote(root) else f"{folder}/{stem}.{uuid.uuid4().hex[:8]}.tmp"
    crash_point("file.before", base)
    with explain_write_errors(target):
        if temporary != target:
            fs.create_dir(folder, recursive=True)
        try:
            made = _in_memory(pieces, schema, writing, rows_a_group)
            with fs.open_output_stream(temporary) as sink:
                if made is not None:
                    half = made.size // 2
                    sink.write(made.slice(0, half))
                    crash_point("file.half", base)
                    sink.write(made.slice(half))
                else:
                    with pq.ParquetWriter(sink, schema, **writing) as writer:
                        for piece in pieces:
                            writer.write_table(piece, **rows_a_group)
                        crash_point("file.half", base)
                size = sink.tell()
            # Read back: collecting it while writing would hide a full disk behind another error.
            with fs.open_input_file(temporary) if made is None else pa.BufferReader(made) as source:
                footer = pq.read_metadata(source)
            crash_point("file.written", base)
            if temporary != target:
                sync(fs, temporary)
                fs.move(temporary, target)
                if sync_folder:
                    sync(fs, folder)
        except BaseException:
            with suppress(OSError):
                fs.delete_file(temporary)
            raise
    crash_point("file.staged", base)
    return footer, size


def _in_memory(
    pieces: Iterable[pa.Table], schema: pa.Schema, options: Mapping[str, Any], rows_a_group: Mapping[str, int]
) -> pa.Buffer | None:
    """The whole file of a table that is small; None of one that is not, or that comes in pieces."""
    if not isinstance(pieces, list) or sum(piece.nbytes for piece in pieces) > _AT_ONCE:
        return None
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, **options) as writer:
        for piece in pieces:
            writer.write_table(piece, **rows_a_group)
    return sink.getvalue()


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


@contextmanager
def explain_write_errors(path: str) -> Iterator[None]:
    """Turn "disk full" and "permission denied" into a SetupError that names ``path`` and the way out."""
    try:
        yield
    except OSError as error:
        explained = write_error(path, error)
        if explained is None:
            raise
        raise explained from error


def has_space(folder: str) -> bool:
    """Whether something can still be written to a folder's disk: 64 KB. An object store has space."""
    if storage.is_remote(folder):
        return True
    disk = os.statvfs(folder.removeprefix("file://"))
    return disk.f_bavail * disk.f_frsize >= 65_536


def said_full(text: str) -> str | None:
    """The line of an error's text, of whatever program, that tells that a disk is full or takes no writes; None: none
    does. For programs whose errors are text: Spark's JVM.
    """
    signs = (*_FULL, "Read-only file")
    return next((line.strip() for line in text.splitlines() if any(sign in line for sign in signs)), None)


def write_error(path: str, error: BaseException) -> SetupError | None:
    """The SetupError for a failed write to ``path``, or None if the failure is of another kind.

    Looks at the text too: delta-rs reports the operating system's errors as text only.
    """
    code = getattr(error, "errno", None)
    text = str(error)
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or any(sign in text for sign in _FULL):
        return SetupError(
            f"There is no disk space left to write {path} ({text}). Free some space (old versions: VACUUM) and run the"
            " same command again: nothing is lost, and what was half written is ignored."
        )
    if code == errno.ENOTDIR or "Not a directory" in text:
        return SetupError(f"{path} cannot be written: a part of that path is a file ({text}). Choose another folder.")
    if code in (errno.EACCES, errno.EPERM, errno.EROFS) or "Permission denied" in text or "Read-only file" in text:
        return SetupError(
            f"{path} may not be written: {text}. Give this user the right to write to the data folder, or choose"
            " another one, and run the same command again."
        )
    if "AWS Error" in text:
        return SetupError(
            f"{path} cannot be written: {text}. Check the address, AWS_ENDPOINT_URL, AWS_REGION and the keys that the"
            " environment gives, then run the same command again."
        )
    return None
