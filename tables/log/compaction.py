"""Small files of a table packed into larger ones: a commit that only rearranges, like a user's OPTIMIZE.

Files of about one size are packed together once there are several of them, so a row is written again only when what it
lies in has grown by that factor, and a table of n rows keeps about log(n) small files (the levels of a log-structured
merge tree: O'Neil et al. 1996). Rows of a file are in the order of its instants, so that ranges still prune.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sweeparea.tables.errors import CommitConflict, TableError
from sweeparea.tables.faults import crash_point
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile, write_file
from sweeparea.tables.log.folders import remove_folder

TARGET_BYTES = 64 << 20
"""Files of half this size and more are left alone."""
MEMORY_BYTES = 256 << 20
"""So many bytes of rows, as Arrow holds them, are packed into one file at most; a single file may be more."""
SMALLEST = 16 << 10
"""Files below this size are of one level; each next level's are up to ``FAN`` times as large."""
FAN = 8
TRIES = 5
"""After so many commits that came in between, a packing is left to the next run."""
TAG = {"sweeparea": "compaction"}


@dataclass
class Compacted:
    """``removed`` files were packed into ``added``, with so many rows; ``left``: packings that others' commits beat."""

    removed: int = 0
    added: int = 0
    rows: int = 0
    left: int = 0

    def __iadd__(self, other: Compacted) -> Compacted:
        self.removed += other.removed
        self.added += other.added
        self.rows += other.rows
        self.left += other.left
        return self


def level(size: int) -> int:
    """The level of a file of ``size`` bytes.

    >>> [level(size) for size in (1, (16 << 10) - 1, 16 << 10, (128 << 10) - 1, 128 << 10)]
    [0, 0, 1, 1, 2]
    """
    found = 0
    while size >= SMALLEST * FAN**found:
        found += 1
    return found


def groups(files: Sequence[DataFile], column: str) -> list[list[DataFile]]:
    """Files to be packed together, each group in the order of ``column``, of at most ``TARGET_BYTES``."""
    levels: dict[int, list[DataFile]] = {}
    for file in files:
        if file.size < TARGET_BYTES // 2 and not file.partition:
            levels.setdefault(level(file.size), []).append(file)
    found: list[list[DataFile]] = []
    for _, members in sorted(levels.items()):
        if len(members) < FAN:
            continue
        group: list[DataFile] = []
        for file in sorted(members, key=lambda f: (_least(f, column), f.path)):
            if group and sum(f.size for f in group) + file.size > TARGET_BYTES:
                found.append(group)
                group = []
            group.append(file)
        found.append(group)
    return [group for group in found if len(group) > 1]


def _least(file: DataFile, column: str) -> tuple[bool, int]:
    least = scan.bounds(file, column)[0]
    return least is not None, least or 0


def compact(
    log: DeltaLog,
    column: str,
    order: Sequence[str] = (),
    eligible: Callable[[DataFile], bool] = lambda file: True,
    dry_run: bool = False,
) -> Compacted:
    """Packs the small files of a table that are ``eligible``.

    ``column`` gives the order of files (BIGINT or TIMESTAMP), ``order`` that of rows, ``column`` if not given. Readers
    and live slices go on meanwhile: these adopt the commit. What they beat is left to the next run.
    """
    done = Compacted()
    for group in groups([file for file in log.files() if eligible(file)], column):
        if dry_run:
            done += Compacted(len(group), 1, sum(file.rows for file in group))
        else:
            for part, rows in _parts(log, group):
                if len(part) > 1:
                    done += _exchange(log, part, rows.sort_by([(name, "ascending") for name in order or (column,)]))
    return done


def _parts(log: DeltaLog, group: Sequence[DataFile]) -> Iterator[tuple[list[DataFile], pa.Table]]:
    """The group in parts whose rows fit into memory."""
    names = log.schema().names
    part: list[DataFile] = []
    held: list[pa.Table] = []
    for file in group:
        rows = scan.plan(log, [file]).read(names)
        if held and sum(table.nbytes for table in held) + rows.nbytes > MEMORY_BYTES:
            yield part, pa.concat_tables(held)
            part, held = [], []
        part.append(file)
        held.append(rows)
    yield part, pa.concat_tables(held)


def _exchange(log: DeltaLog, part: list[DataFile], rows: pa.Table) -> Compacted:
    if rows.num_rows != sum(file.rows for file in part):
        raise TableError(
            f"Files of the table {log.uri} hold {rows.num_rows} rows together, its log says"
            f" {sum(file.rows for file in part)}. Nothing was packed; `sweeparea check` tells which files are damaged."
        )
    attempt = uuid.uuid4().hex
    packed = write_file(rows, log.uri, attempt, "packed", log.storage_options)
    crash_point("compaction.staged", log.uri)
    wanted = {file.path for file in part}
    for tries in range(TRIES + 1):
        version = log.version()
        live = log.paths(version)
        # what the log says counts, not what the commit call said
        if packed.path in live:
            crash_point("compaction.committed", log.uri)
            return Compacted(len(part), 1, rows.num_rows)
        if tries == TRIES or not wanted <= live:
            break
        try:
            log.commit([packed], part, app=None, base_version=version, data_change=False, metadata=TAG)
        except CommitConflict:
            time.sleep(random.uniform(0.002, 0.02) * (tries + 1))
    remove_folder(f"{log.uri}/data/{attempt}")
    return Compacted(left=1)
