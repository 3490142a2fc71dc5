"""What apply does when a user's OPTIMIZE has replaced a file that a ledger row removes.

The ledger row was committed against the table as it was; OPTIMIZE has since packed the file's rows into a larger one,
together with others. The same Delta commit then takes the OPTIMIZE's outputs out and puts its other inputs back, which
leaves exactly the rows that the ledger row asked for.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sweeparea.tables.errors import TableError
from sweeparea.tables.log.commits import Commit, FileAction
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile, describe_file


def adjust(
    log: DeltaLog, adds: list[DataFile], removes: list[DataFile], optimizes: Collection[Commit], version: int
) -> tuple[list[DataFile], list[DataFile]]:
    """The actions to commit on ``version`` instead of ``adds`` and ``removes``, given the adopted OPTIMIZE commits."""
    if not optimizes:
        return adds, removes
    live = {file.path: file for file in log.files(version)}
    wanted = {file.path for file in removes}
    if wanted <= live.keys():
        return adds, removes
    undone = _to_undo(wanted, optimizes)
    inputs = {action.path: action for commit in undone for action in commit.removes}
    outputs = {action.path for commit in undone for action in commit.adds}
    back = [action for path, action in sorted(inputs.items()) if path not in outputs and path not in wanted]
    out = [live[path] for path in sorted(outputs | wanted) if path in live]
    if wanted - live.keys() - inputs.keys():
        missing = sorted(wanted - live.keys() - inputs.keys())[0]
        raise TableError(
            f"The table {log.uri} no longer holds the file {missing}, and no OPTIMIZE took it. The log does not tell"
            " what happened to it; restore the table from a backup or rebuild the query's tables."
        )
    return [*adds, *(_put_back(log, action) for action in back)], out


def _to_undo(wanted: set[str], optimizes: Collection[Commit]) -> list[Commit]:
    """The OPTIMIZE commits that took a wanted file, and the later ones that took outputs of those."""
    lost = set(wanted)
    undone: list[Commit] = []
    for commit in sorted(optimizes, key=lambda each: each.version):
        if any(action.path in lost for action in commit.removes):
            undone.append(commit)
            lost |= {action.path for action in commit.adds}
    return undone


def _put_back(log: DeltaLog, action: FileAction) -> DataFile:
    if action.deletion_vector:
        raise TableError(
            f"The file {action.path} of the table {log.uri} had rows deleted by a deletion vector before OPTIMIZE"
            " packed it, so it cannot be put back. Rebuild the query's tables."
        )
    try:
        file = describe_file(log.uri, action.path, log.storage_options)
    except TableError as error:
        raise TableError(
            f"An OPTIMIZE of the table {log.uri} packed files that a commit not yet applied replaces, and VACUUM has"
            f" deleted {action.path}, which is needed to undo that. Rebuild the query's tables, and keep VACUUM's"
            " retention at 7 days or more."
        ) from error
    return replace(file, partition=dict(action.partition))
