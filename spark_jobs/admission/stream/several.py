"""Several versions of a stream's source as one commit: what a commit and a call of Spark cost is paid once for all.

A source that commits every moment has many versions, each with few rows. Where a version only adds rows, nothing of it
is asked of what was admitted before but the state that the version before has left. So such versions are read and
evaluated together, and judged one after the other, each by the heartbeat after the one before: the rows, their numbers
and the heartbeat are those of commits one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sweeparea.spark_jobs.admission.judging.copies import Pile
from sweeparea.spark_jobs.admission.sources.source_rows import pieces_of
from sweeparea.tables.errors import TableError
from sweeparea.tables.sources.source import SourceTable

VERSIONS = 256
"""Versions that are one commit at most: what reads the stream sees it move after so many."""
ROWS = 100_000
"""Rows that they may have together."""


@dataclass(frozen=True)
class Brought:
    """A version of a source: when it was committed, by its writer's clock (microseconds), and the rows that it added
    (the source's columns and ``__n``; None: it has none).
    """

    version: int
    commit_time: int
    rows: pa.Table | None


def brought(source: SourceTable, first: int, newest: int) -> list[Brought]:
    """The versions from ``first`` on that can be one commit: each only adds rows, and all together few. It ends before
    one that cannot be read: read alone, that one says why.
    """
    found: list[Brought] = []
    held = Pile()
    for version in range(first, min(newest, first + VERSIONS - 1) + 1):
        try:
            if not source.only_adds(version) or held.rows + source.size(version) > ROWS:
                break
            tables = list(pieces_of(source.pieces(version)))
            time = source.commit_time(version)
        except (TableError, OSError):
            break
        for table in tables:
            held.add(table)
        found.append(Brought(version, time, pa.concat_tables(tables) if tables else None))
        if held.over(ROWS):
            break
    return found


def evaluated_each(several: Sequence[Brought], evaluate: Callable[[pa.Table], pa.Table]) -> list[pa.Table]:
    """The rows of each version with what ``evaluate`` adds to rows, row for row, asked once for all."""
    tables = [each.rows for each in several if each.rows is not None]
    if not tables:
        return [pa.table({})] * len(several)
    rows = evaluate(pa.concat_tables(tables)).combine_chunks()
    found, at = list[pa.Table](), 0
    for each in several:
        count = 0 if each.rows is None else each.rows.num_rows
        found.append(rows.slice(at, count))
        at += count
    return found
