"""delta-rs's handle of a table: opened once, and brought up to date as the log grows."""

from __future__ import annotations

import time

import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from sweeparea.tables.errors import TableError
from sweeparea.tables.log.folders import filesystem

STALE_SECONDS = 300
"""A handle not refreshed for so long is opened anew: the versions after it may have been cleaned away meanwhile."""


class TableHandle:
    """The handle of one table, kept between calls; not to be shared by threads."""

    def __init__(self, uri: str, storage_options: dict[str, str] | None) -> None:
        self.uri, self.storage_options = uri, storage_options
        self._handle: DeltaTable | None = None
        self._fresh_at = 0.0

    def stands(self) -> bool:
        """Whether there is a handle, and its version's commit is still there."""
        return self._handle is not None and self._seen(self._handle.version())[0]

    def forget(self) -> None:
        """The next call opens the table anew."""
        self._handle = None

    def held(self) -> DeltaTable:
        """The handle at the version it stands at."""
        return self.current() if self._handle is None else self._handle

    def current(self) -> DeltaTable:
        """The handle at the latest version."""
        now = time.time()
        if self._handle is not None and 0 <= now - self._fresh_at < STALE_SECONDS:
            try:
                stands, followed = self._seen(self._handle.version())
                if stands:
                    if followed:
                        self._handle.update_incremental()
                    self._fresh_at = now
                    return self._handle
            except (DeltaError, OSError):
                self._handle = None
        self._handle = self.opened(None)
        self._fresh_at = now
        return self._handle

    def _seen(self, version: int) -> tuple[bool, bool]:
        """Whether a version's commit is still there (else the log was shortened, or the table is another one), and
        whether there is one after it. Listing the log, as delta-rs does to find out, takes the longer the longer it is.
        """
        fs, base = filesystem(self.uri, self.storage_options)
        log = f"{base.rstrip('/')}/_delta_log"
        this, following = fs.get_file_info([f"{log}/{v:020d}.json" for v in (version, version + 1)])
        return this.type == pafs.FileType.File, following.type == pafs.FileType.File

    def at(self, version: int | None) -> DeltaTable:
        """A handle at ``version``, or at the latest one."""
        if version is None:
            return self.current()
        held = self.held()
        return held if held.version() == version else self.opened(version)

    def opened(self, version: int | None) -> DeltaTable:
        """A handle of its own, at ``version`` or at the latest one. TableError where there is none."""
        try:
            return DeltaTable(self.uri, version=version, storage_options=self.storage_options)
        except TableNotFoundError:
            raise TableError(
                f"There is no Delta table at {self.uri}. It is created by the first run of the stream or query that"
                " it belongs to."
            ) from None
        except (DeltaError, OSError) as error:
            at = "" if version is None else f" at version {version}"
            raise TableError(f"The Delta table {self.uri} cannot be opened{at}: {error}") from error
