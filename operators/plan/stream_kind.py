"""The three streams of a relation, and the tables that a query can keep."""

from __future__ import annotations

from enum import StrEnum


class StreamKind(StrEnum):
    """What a relation-to-stream operator tells (Arasu et al. 2003, section 5.1): what comes, what goes, what is
    there.
    """

    ISTREAM = "istream"
    DSTREAM = "dstream"
    RSTREAM = "rstream"


class ResultKind(StrEnum):
    """A table that a query keeps: the history of its relation, one of the streams, or the history of the rows that
    constraints have kept out of all of these.
    """

    RELATION = "relation"
    ISTREAM = "istream"
    DSTREAM = "dstream"
    RSTREAM = "rstream"
    QUARANTINE = "quarantine"

    @property
    def is_history(self) -> bool:
        """Whether its table holds rows with their validity; else elements with their instant."""
        return self in (ResultKind.RELATION, ResultKind.QUARANTINE)
