"""What a name of an application stands for."""

from __future__ import annotations

from enum import StrEnum


class NameKind(StrEnum):
    """The text is what the ledger and the deployed table hold."""

    STREAM = "stream"
    RELATION = "relation"
    QUERY = "query"
    FUNCTION = "function"
    SHARED = "shared"
    """A hidden query, as it is deployed; in the ledger it is a query like others."""

    @property
    def words(self) -> str:
        """As people and CQL say it, in small letters."""
        return "continuous query" if self is NameKind.QUERY else self.value
