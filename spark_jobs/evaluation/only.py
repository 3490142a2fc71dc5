"""Some values of a key, to which what is read and computed is confined."""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.operators.plan.keyed_by import Key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Only:
    """The values of a key; None stands for NULL."""

    key: Key
    values: tuple[Any, ...]

    def of(self, frame: DataFrame, column: str) -> DataFrame:
        """The rows whose ``column`` has one of the values."""
        from pyspark.sql.functions import col

        known = [value for value in self.values if value is not None]
        condition = col(column).isin(known)
        return frame.where(condition | col(column).isNull() if None in self.values else condition)

    def where(self, column: pa.ChunkedArray) -> np.ndarray:
        """Which rows of a column have one of the values."""
        found = pc.is_in(column, pa.array(self.values, column.type), skip_nulls=None not in self.values)
        return pc.fill_null(found, False).to_numpy(zero_copy_only=False)

    def carrier(self, columns: list[str]) -> str | None:
        """Which of some column ids carries the key."""
        return next((column for column in columns if column in self.key.ids), None)
