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
    """A table that a query keeps: the history of its relation, or one of the streams."""

    RELATION = "relation"
    ISTREAM = "istream"
    DSTREAM = "dstream"
    RSTREAM = "rstream"
