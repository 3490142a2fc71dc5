"""What a Delta table holds: its columns, files and rows at a version. Paths are raw: delta-rs reports them
percent-encoded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from os import PathLike, fspath
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import DeltaTable

from sweeparea.infra import storage
from sweeparea.tables.log.add_actions import live_files
from sweeparea.tables.log.commits import Commit, read_commit
from sweeparea.tables.log.files import DataFile
from sweeparea.tables.log.folders import filesystem
from sweeparea.tables.log.table_handle import TableHandle

KEPT_FILES = 1_000
"""A list of more files is made anew for whoever asks: it is not to stay in the driver."""


class LogReader:
    """Reads one table; not to be shared by threads.

    A handle is kept between calls. Methods without a ``version`` bring it up to date first (a look for the next
    commit's file, however long the log is); methods told the version it stands at do not, so a caller asks for
    :meth:`version` once and passes it on.
    """

    def __init__(self, uri: str | PathLike[str], storage_options: dict[str, str] | None = None) -> None:
        self.uri = fspath(uri)
        storage.prepare(self.uri)
        self.storage_options = storage_options
        self.handle = TableHandle(self.uri, storage_options)
        self._listed: tuple[DeltaTable, tuple[int, frozenset[str] | None], list[DataFile]] | None = None
        """The handle and the version of which files were listed last, and what was found."""

    def exists(self) -> bool:
        """Whether a Delta table is here."""
        if self.handle.stands():
            return True
        # delta-rs lists the log to find out, which takes the longer the more commits it holds
        fs, base = filesystem(self.uri, self.storage_options)
        log = f"{base.rstrip('/')}/_delta_log"
        found = fs.get_file_info([f"{log}/{0:020d}.json", f"{log}/_last_checkpoint"])
        return any(info.type == pafs.FileType.File for info in found)

    def version(self) -> int:
        """The latest version."""
        return self.handle.current().version()

    def schema(self) -> pa.Schema:
        """The columns as Arrow sees them."""
        return pa.schema(self.handle.held().schema())

    def files(self, version: int | None = None, columns: Collection[str] | None = None) -> list[DataFile]:
        """The live files, with raw paths, at ``version`` or now. ``columns``: of these alone statistics are told, which
        is what listing many files costs.
        """
        table = self.handle.at(version)
        wanted = table.version(), None if columns is None else frozenset(columns)
        if self._listed is None or self._listed[0] is not table or self._listed[1] != wanted:
            files = live_files(table, self.uri, columns)
            if len(files) > KEPT_FILES:
                return files
            self._listed = table, wanted, files
        return list(self._listed[2])

    def paths(self, version: int | None = None) -> set[str]:
        """The raw paths of the live files alone: much cheaper than :meth:`files`."""
        return {
            unquote(path) for path in pa.table(self.handle.at(version).get_add_actions()).column("path").to_pylist()
        }

    def uris(self, files: Iterable[DataFile]) -> list[str]:
        """Absolute paths of ``files``, for ``spark.read.parquet`` and other readers."""
        return [f"{self.uri.rstrip('/')}/{file.path}" for file in files]

    def read(self, columns: list[str] | None = None, filters: Any = None, version: int | None = None) -> pa.Table:
        """The rows as Arrow, for small tables. ``filters`` as pyarrow takes them: ``[("a", ">", 3)]``."""
        wanted = None if filters is None else pq.filters_to_expression(filters)
        # in nanoseconds an instant of Spark's would be none after 2262
        options = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
        dataset = self.handle.at(version).to_pyarrow_dataset(parquet_read_options=options)
        table = dataset.to_table(columns=columns, filter=wanted)
        schema = self.schema()
        return table.cast(pa.schema([schema.field(name) for name in table.column_names]))

    def app_version(self, app: str, version: int | None = None) -> int | None:
        """The last sequence number that ``app`` committed here, None if it never did."""
        return self.handle.at(version).transaction_version(app)

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The newest commits' information, newest first."""
        return self.handle.current().history(limit)

    def commit_of(self, version: int) -> Commit | None:
        """The raw actions of one version, None if its log file is gone."""
        return read_commit(self.uri, version, self.storage_options)
