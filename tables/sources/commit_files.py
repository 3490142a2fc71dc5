"""Which files tell what a commit of a source did, and the rows of each with their signs."""

# pyarrow.compute makes its functions when it is imported, where a type checker cannot see them.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.tables.log.commits import Commit, FileAction
from sweeparea.tables.sources.netting import N
from sweeparea.tables.sources.source_files import CHANGE_TYPE

_EXACT_FEEDS = ("Apache-Spark", "Databricks-Runtime")


def signed_files(commit: Commit) -> list[tuple[FileAction, int]]:
    """The files that tell what a commit did, each with the sign of its rows; 0 where each row tells its own.

    Where a commit has files of the change data feed, these alone tell (Delta protocol, "Add CDC File"), if they are to
    be believed.
    """
    if feed := feed_of(commit):
        return [(action, 0) for action in feed]
    parts = [(action, -1) for action in commit.removes if action.data_change]
    return parts + [(action, 1) for action in commit.adds if action.data_change]


def feed_of(commit: Commit) -> tuple[FileAction, ...]:
    """The files of a commit's change data feed, of engines that write it exactly. delta-rs leaves a row out that an
    UPDATE or MERGE makes equal to another one (1.6 takes the difference of sets), and versions of Trino do not write
    what was there before: then the files that were removed and added tell.
    """
    return commit.feed if commit.engine.startswith(_EXACT_FEEDS) else ()


def counted(rows: pa.Table, sign: int) -> pa.Table:
    if sign:
        return rows.append_column(N, pa.repeat(pa.scalar(sign, pa.int64()), rows.num_rows))
    added = pc.is_in(rows.column(CHANGE_TYPE), pa.array(["insert", "update_postimage"]))
    signs = pc.if_else(added, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
    return rows.drop_columns([CHANGE_TYPE]).append_column(N, signs)
