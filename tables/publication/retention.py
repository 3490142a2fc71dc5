"""What may go from the disk: files that no version of the last days holds, and what dead runs have left.

Kept are the files of every version that somebody may still read: those of the retention time, and of the versions that
readers have pinned, however old.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

import pyarrow.fs as pafs

from sweeparea.infra.errors import SweepAreaError
from sweeparea.infra.storage import is_remote
from sweeparea.tables.layout import Layout
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.folders import filesystem, folders_in, remove_folder
from sweeparea.tables.publication.attempts import Attempts

HOURS = 7 * 24
"""Default of the retention: Delta's own."""
LEAST_HOURS = 1
"""Below, running readers and runs at work would lose what they are about to read."""
LOG_COMMITS = 1_000
"""So many versions of a table can be read at least, where there were so many within the retention."""
LOG_SECONDS = 3_600.0
EMPTY_SECONDS = 86_400.0
ORPHAN_HOURS = 7 * 24
"""Files that no version ever held are of a run at work, or of one that was killed; after so long the latter."""


def vacuum(log: DeltaLog, hours: int, kept: Collection[int] = (), dry_run: bool = False) -> list[str]:
    """Deletes files of a table that neither a version of the last ``hours`` nor one of ``kept`` holds; returns them.

    And files of runs that were killed, when they are old. Raises SweepAreaError below ``LEAST_HOURS``.
    """
    if hours < LEAST_HOURS:
        raise SweepAreaError(
            f"A retention of {hours} hours would delete files that running readers and runs at work need. Give at"
            f" least {LEAST_HOURS} hour."
        )
    gone = log.vacuum(hours, kept=kept, dry_run=dry_run)
    return gone + log.vacuum(max(hours, ORPHAN_HOURS), orphans=True, kept=kept, dry_run=dry_run)


def trim(log: DeltaLog, kept: Collection[int] = (), seconds: float = LOG_SECONDS) -> int:
    """Shortens a table's log to ``LOG_COMMITS`` versions; returns how many files went.

    Nothing younger than ``seconds`` goes: a writer that was held up for less must find the versions that beat its own.
    """
    return log.trim(LOG_COMMITS, seconds, kept)


def pinned_versions(log: DeltaLog, app: str, sequences: Iterable[int]) -> list[int]:
    """The versions of a table that readers have pinned by the sequence numbers of its commits."""
    found = {log.version_tagged(app, seq) for seq in set(sequences)}
    return sorted(version for version in found if version is not None)


def left_over(layout: Layout, hours: int, dry_run: bool = False) -> list[str]:
    """Removes builds and spilled rows of runs that have not lived for ``hours``; returns their paths in the data
    folder. On an object store, where nobody tells that a run lives, they are kept for ``ORPHAN_HOURS`` at least.
    """
    if is_remote(layout.data_folder):
        alive, hours = set[str](), max(hours, ORPHAN_HOURS)
    else:
        alive = {path.name.rpartition(".")[2] for path in Path(Attempts(layout).folder).glob("*.*")}
    gone = []
    for parent in (layout.build("x", "x").rpartition("/")[0], layout.spill("x").rpartition("/")[0]):
        for folder in sorted(folders_in(parent)):
            if folder.rpartition("-")[2].rpartition("/")[2] in alive or time.time() - _touched(folder) < 3600 * hours:
                continue
            gone.append(layout.relative(folder))
            if not dry_run:
                remove_folder(folder)
    return gone


def empty_folders(table: str) -> int:
    """Removes folders of a table's former attempts in which nothing is left; returns how many.

    Without it a table has one a commit for ever. An object store knows no folders.
    """
    base = Path(table.removeprefix("file://")) / "data"
    if "://" in table.removeprefix("file://") or not base.is_dir():
        return 0
    gone = 0
    for folder in base.iterdir():
        # one that was just made is about to be written to
        with suppress(OSError):
            if folder.is_dir() and time.time() - folder.stat().st_mtime > EMPTY_SECONDS:
                folder.rmdir()
                gone += 1
    return gone


def _touched(folder: str) -> float:
    """When anything in a folder was last written (seconds since the epoch); now, where nothing tells."""
    fs, base = filesystem(folder)
    try:
        found = fs.get_file_info(pafs.FileSelector(base, recursive=True))
        times = [info.mtime_ns for info in (*found, fs.get_file_info(base)) if info.mtime_ns]
    except FileNotFoundError:  # whoever owns it is at work
        return time.time()
    return max(times) / 1e9 if times else time.time()


__all__ = ["HOURS", "LEAST_HOURS", "empty_folders", "left_over", "pinned_versions", "trim", "vacuum"]
