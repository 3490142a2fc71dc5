"""Which attempts to publish are alive, and the removal of what dead ones have left behind.

An attempt that is killed leaves staged files that no log names, and what it spilled. Each holds a lock on a file of its
own in ``_sweeparea/attempts`` as long as its process lives; the next attempt of the same name that finds a lock free
removes what the dead one staged, unless it was committed. A lock says nothing about another machine's processes, and an
object store has none: what killed ones leave there is removed by VACUUM and ``maintain`` after its retention, and here
after 7 days. An attempt that fails or loses removes its own anywhere.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from sweeparea.tables.layout import Layout
from sweeparea.tables.log.folders import folders_in, remove_folder
from sweeparea.tables.log.write_errors import explain_write_errors

FOREIGN_SECONDS = 7 * 86_400.0
"""After so long an attempt of another machine counts as dead: VACUUM's default retention."""
_LOCK = re.compile(r"(?P<name>\w+)\.(?P<attempt>[0-9a-f]{32})\Z", re.ASCII)


class Attempts:
    """The attempts of one data folder."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.folder = Path(layout.attempts)

    def begin(self, name: str, attempt: str) -> IO[str] | None:
        """A lock that is held until it is given to :meth:`end` or the process dies; None on an object store."""
        if "://" in self.layout.data_folder:
            return None
        path = self.folder / f"{name}.{attempt}"
        with explain_write_errors(str(path)):
            self.folder.mkdir(parents=True, exist_ok=True)
            file = path.open("x")
            file.write(platform.node())
            file.flush()
        with suppress(OSError):  # a file system without locks: then age decides
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return file

    def end(self, lock: IO[str]) -> None:
        """The attempt is over and has left nothing behind, or what it left has been committed."""
        Path(lock.name).unlink(missing_ok=True)
        lock.close()

    def bury(self, name: str, committed: Callable[[str], bool]) -> list[str]:
        """Removes what dead attempts of ``name`` have left, except those that were ``committed``; returns them.

        And what has lain among the spilled for longer than any run that is not an attempt needs it.
        """
        dead = []
        for folder in Path(self.layout.spill("")).glob("*"):
            with suppress(OSError):
                old = time.time() - folder.stat().st_mtime > FOREIGN_SECONDS
                if old and not list(self.folder.glob(f"*.{folder.name}")):
                    shutil.rmtree(folder, ignore_errors=True)
        for path in self.folder.glob(f"{name}.*") if self.folder.is_dir() else ():
            found = _LOCK.match(path.name)
            if found is None or found["name"] != name or not (file := _dead(path)):
                continue
            with file:
                if not committed(found["attempt"]):
                    self.remove(name, found["attempt"])
                path.unlink(missing_ok=True)
            dead.append(found["attempt"])
        return dead

    def remove(self, name: str, attempt: str) -> None:
        """Removes what an attempt has staged and spilled, or computed beside."""
        layout = self.layout
        for table in self._tables(name):
            remove_folder(f"{table}/data/{attempt}", quietly=True)
        for folder in (layout.spill(attempt), layout.build(name, attempt)):
            remove_folder(folder, quietly=True)

    def _tables(self, name: str) -> Iterator[str]:
        """The folders that a name's tables may have: ``*/<name>``, ``*/<name>__*`` and ``state/<name>/*``."""
        for kind in folders_in(self.layout.data_folder):
            for folder in folders_in(kind):
                last = folder.rpartition("/")[2]
                if last == name or last.startswith(f"{name}__"):
                    yield folder
        yield from folders_in(self.layout.state(name, "x").rpartition("/")[0])


def _dead(path: Path) -> IO[str] | None:
    """The opened and locked file of an attempt whose process has gone; None if it may be alive."""
    try:
        file = path.open("r+")
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        old = time.time() - os.fstat(file.fileno()).st_mtime > FOREIGN_SECONDS
        if old or file.read() == platform.node():
            return file
    except OSError:
        pass
    file.close()
    return None
