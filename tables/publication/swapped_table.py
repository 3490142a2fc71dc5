"""A small Delta table of one file, replaced by compare-and-swap: rows by name, read and changed as a whole."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from sweeparea.tables.errors import CommitConflict, TableError
from sweeparea.tables.log.delta_log import LEDGER_TABLE, DeltaLog
from sweeparea.tables.log.files import write_file
from sweeparea.tables.log.folders import filesystem

GIVE_UP_SECONDS = 60.0


class Named(Protocol):
    """A row: ``name`` is its key."""

    @property
    def name(self) -> str: ...


Row = TypeVar("Row", bound=Named)


class SwappedTable(Generic[Row]):
    """The table at ``path``. Reading it where it was never written gives nothing and creates nothing.

    ``to_table`` and ``from_table`` turn rows into a table of ``schema`` and back.
    """

    def __init__(
        self,
        path: str,
        schema: pa.Schema,
        description: str,
        storage_options: dict[str, str] | None = None,
        *,
        to_table: Callable[[Sequence[Row]], pa.Table],
        from_table: Callable[[pa.Table], Sequence[Row]],
    ) -> None:
        self.path, self.schema, self.description, self.storage_options = path, schema, description, storage_options
        self._to_table, self._from_table = to_table, from_table
        self._log = DeltaLog(path, storage_options)
        self._read_at: int | None = None
        self._rows: dict[str, Row] = {}

    def rows(self) -> dict[str, Row]:
        """All rows by name. A version that was read before is not read again."""
        return self._read()[1] if self._log.exists() else {}

    def change(self, change: Callable[[dict[str, Row]], Mapping[str, Row]]) -> dict[str, Row]:
        """Replaces the rows by ``change`` of them, as one commit; returns what stands then.

        ``change`` is called again where another run was faster, so it must depend on its argument alone.
        """
        self._log.create(
            self.schema,
            name=PurePosixPath(self.path).name,
            description=self.description,
            configuration=LEDGER_TABLE,
        )
        give_up = time.monotonic() + GIVE_UP_SECONDS
        tries = 0
        while True:
            version, rows, live = self._read()
            wanted = dict(change(rows))
            if wanted == rows:
                return rows
            tries += 1
            if time.monotonic() > give_up:
                raise TableError(
                    f"The table {self.path} was changed by others {tries} times within {GIVE_UP_SECONDS:.0f} s."
                    " Nothing was changed. Run again, with fewer runs at the same time."
                )
            table = self._to_table([wanted[key] for key in sorted(wanted)])
            file = write_file(table, self.path, "rows", uuid.uuid4().hex, self.storage_options)
            try:
                self._log.commit([file], live, app=None, base_version=version)
            except CommitConflict:
                time.sleep(random.uniform(0.002, 0.02) * min(tries, 10))

    def _read(self) -> tuple[int, dict[str, Row], list[Any]]:
        fs, base = filesystem(self.path, self.storage_options)
        for _ in range(20):
            version = self._log.version()
            files = self._log.files(version)
            if version == self._read_at:
                return version, dict(self._rows), files
            try:
                tables = [pq.ParquetFile(f"{base}/{file.path}", filesystem=fs).read() for file in files]
            except FileNotFoundError:
                continue  # replaced and cleaned up between the two reads
            self._rows = {row.name: row for table in tables for row in self._from_table(table)}
            self._read_at = version
            return version, dict(self._rows), files
        raise TableError(
            f"The table {self.path} names a data file that is missing. Restore the data folder from a backup of one"
            " moment."
        )
