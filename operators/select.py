"""Selection (Kraemer & Seeger 2005, section 3.1): keeps the rows whose condition is TRUE. Linear: signs and intervals
stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sweeparea.operators.logical import Select


def apply(node: Select, bag: DataFrame) -> DataFrame:
    """Bag in, bag out, same columns. No state."""
    return bag.where(node.condition.sql)
