"""The three streams of a relation."""

from __future__ import annotations

from enum import StrEnum


class StreamKind(StrEnum):
    """What a relation-to-stream operator tells (Arasu et al. 2003, section 5.1): what comes, what goes, what is
    there.
    """

    ISTREAM = "istream"
    DSTREAM = "dstream"
    RSTREAM = "rstream"
