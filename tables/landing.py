"""The landing table of a source that is no Delta table: its records as they came, a version for each batch.

Where records can be malformed one by one, a column that users do not see holds the whole text of those that are.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sweeparea.tables.schema import arrow_type, spark_type
from sweeparea.tables.source import SourceTable

MALFORMED = "__malformed"
"""The text of a record that could not be read; NULL where it could."""


class LandingTable(SourceTable):
    """``columns`` are those that the declaration tells (name and Spark type): of a table that has not been made yet."""

    def __init__(
        self, uri: str, columns: Sequence[tuple[str, str]] = (), storage_options: dict[str, str] | None = None
    ) -> None:
        super().__init__(uri, storage_options)
        self.columns = tuple(columns)

    def version(self) -> int:
        """The latest version; -1 before anything has landed."""
        return super().version() if self.exists() else -1

    def schema(self) -> pa.Schema:
        if not self.exists():
            return pa.schema([(name, arrow_type(kind)) for name, kind in self.columns])
        return pa.schema([field for field in super().schema() if field.name != MALFORMED])

    def spark_schema(self) -> list[tuple[str, str]]:
        if not self.exists() and self.columns:
            return [(name, spark_type(arrow_type(kind))) for name, kind in self.columns]
        return [(name, kind) for name, kind in super().spark_schema() if name != MALFORMED]

    def read_schema(self) -> pa.Schema:
        return super().schema()
