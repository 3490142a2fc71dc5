"""What can go wrong with a Delta table, each as a class that callers can tell apart."""

from __future__ import annotations

from sweeparea.infra.errors import SweepAreaError


class TableError(SweepAreaError):
    """A table is missing, damaged, of another schema, or uses a feature that cannot be read or written."""


class VersionGone(TableError):
    """A source no longer holds what is needed to tell what one of its versions did."""


class CommitConflict(SweepAreaError):
    """Somebody committed the version that this writer wanted. Nothing was written; read the table again and decide."""


class LostRace(SweepAreaError):
    """Another run has committed for the same stream or query since this run began. Its result stands, not ours."""

    exit_code = 4


class ForeignWrite(SweepAreaError):
    """Somebody else changed rows or settings of a table that SweepArea owns."""
