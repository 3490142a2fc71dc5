"""The landing table of a source that is no Delta table: its records as they came, a version for each batch.

Where records can be malformed one by one, a column that users do not see holds the whole text of those that are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.fs as pafs

from sweeparea.tables.errors import TableError
from sweeparea.tables.log.folders import filesystem
from sweeparea.tables.log.schema import arrow_type, spark_type
from sweeparea.tables.sources.source import SourceTable

MALFORMED = "__malformed"
"""The text of a record that could not be read; NULL where it could."""


SEEN = "_seen.json"
"""What lay in the source's folder when it was last read."""
POLL_SECONDS = 60
"""A source that is no folder of files is asked so often whether it has something new."""


def source_files(path: str) -> dict[str, int]:
    """The files under a folder, by their paths from there, with the times at which they were written (ns). Those with
    ``_`` or ``.`` in front of their name or their folder's are none, as for Spark. Of a file itself, that one.
    """
    fs, base = filesystem(path)
    itself = fs.get_file_info(base)
    if itself.type == pafs.FileType.File:
        return {itself.base_name: itself.mtime_ns or 0}
    try:
        found = fs.get_file_info(pafs.FileSelector(base, recursive=True, allow_not_found=True))
    except UnicodeDecodeError as error:
        told = error.object.decode("utf-8", "backslashreplace")
        raise TableError(f"The name of {told} is no UTF-8, so not every reader would find it. Rename it.") from None
    paths = {info.path[len(base) :].lstrip("/"): info for info in found if info.type == pafs.FileType.File}
    return {
        path: info.mtime_ns or 0 for path, info in paths.items() if not any(p[0] in "_." for p in path.split("/") if p)
    }


def listing(files: Mapping[str, int]) -> dict[str, int]:
    """How many files there are and when the newest was written, by which a change is noticed."""
    return {"files": len(files), "newest": max(files.values(), default=0)}


def note(folder: str, seen: dict[str, int]) -> None:
    """Notes in a landing folder what its source held before it was read."""
    fs, base = filesystem(folder)
    with fs.open_output_stream(f"{base}/{SEEN}") as sink:
        sink.write(json.dumps(seen).encode())


def arrived(folder: str, path: str, now: float) -> dict[str, int]:
    """What has come to a source since it was last read; empty if nothing. ``path`` is its folder of files; where it has
    none, something may have come each minute.
    """
    if not path:
        return {"minute": int(now // POLL_SECONDS)}
    fs, base = filesystem(folder)
    found = listing(source_files(path))
    try:
        with fs.open_input_stream(f"{base}/{SEEN}") as source:
            seen = json.loads(source.read())
    except FileNotFoundError:
        seen = None
    return {} if found == seen else found


class LandingTable(SourceTable):
    """``columns`` are those that the declaration tells (name and Spark type): of a table that has not been made yet."""

    def __init__(self, uri: str, columns: Sequence[tuple[str, str]] = (), name: str = "") -> None:
        super().__init__(uri)
        self.columns, self.name = tuple(columns), name

    def version(self) -> int:
        """The latest version; -1 before anything has landed."""
        return super().version() if self.exists() else -1

    def schema(self) -> pa.Schema:
        if not self.exists():
            return pa.schema([(name, arrow_type(kind)) for name, kind in self.spark_schema()])
        return pa.schema([field for field in super().schema() if field.name != MALFORMED])

    def spark_schema(self) -> list[tuple[str, str]]:
        if not self.exists():
            return declared_columns(self.columns, self.name)
        return [(name, kind) for name, kind in super().spark_schema() if name != MALFORMED]

    def char_columns(self) -> dict[str, str]:
        """None: a record's texts are kept as its format has them, and a column of a SCHEMA is no CHAR."""
        return {}

    def read_schema(self) -> pa.Schema:
        return super().schema()


def declared_columns(columns: Sequence[tuple[str, str]], name: str) -> list[tuple[str, str]]:
    """The columns of the SCHEMA of ``name`` with their types as Spark names them. TableError for a type that no table
    can hold, and where there are none.
    """
    if not columns:
        raise TableError(
            f"{name}: only Spark knows the columns of its format, and nothing of it has been read yet. Run `sweeparea"
            " admit`, or declare them: SCHEMA (id BIGINT, at TIMESTAMP)."
        )
    found = []
    for column, kind in columns:
        try:
            found.append((column, spark_type(arrow_type(kind))))
        except TableError as error:
            raise TableError(f"{name}: column {column} of its SCHEMA: {error}") from None
    return found
