"""All tables at one state of the ledger, for readers that look at several of them.

One table is always at a version that a commit has left. Several are at one state when each is read at the version that
its name's ledger row has made, and all rows come from one reading of the head.
"""

from __future__ import annotations

from sweeparea.tables.errors import TableError
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.ledger import Ledger, LedgerRow
from sweeparea.tables.publication.publish import recover


def version_at(log: DeltaLog, app: str, seq: int) -> int | None:
    """The newest version that holds what ``app`` had committed up to ``seq`` and nothing later of it.

    A user's OPTIMIZE after the commit is taken with it: VACUUM may have deleted what it replaced. None if the log no
    longer tells.
    """
    found = version = log.version()
    if (log.app_version(app, version) or 0) <= seq:
        return found
    while version > 0:
        commit = log.commit_of(version)
        if commit is None:
            return None
        own = commit.apps.get(app)
        if own is not None and own <= seq:
            break
        version -= 1
        if own is not None:
            found = version
    return found


class Snapshot:
    """``head``: the ledger rows of one moment, all of them applied."""

    def __init__(self, ledger: Ledger) -> None:
        self.head = ledger.head()
        # a row that follows one of these is committed only when that one has been applied
        recover(ledger.layout.data_folder, ledger, self.head)

    def version(self, log: DeltaLog, row: LedgerRow) -> int:
        """The version of a table of ``row``'s name that holds what was committed up to the row, and nothing later."""
        version = version_at(log, row.app, row.seq)
        if version is None:
            raise TableError(
                f"The table {log.uri} no longer tells what {row.name} had committed up to number {row.seq}: its log was"
                " cleaned meanwhile. Read again; keep delta.logRetentionDuration above the longest reading."
            )
        return version
