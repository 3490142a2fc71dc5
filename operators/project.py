"""Projection without duplicate elimination, Kraemer's map (Kraemer & Seeger 2005, section 3.1). Linear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeparea.operators.bag import BAG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sweeparea.operators.logical import Project


def apply(node: Project, bag: DataFrame) -> DataFrame:
    """Bag in, bag of ``node.columns`` out. No state."""
    return bag.selectExpr(*(f"({e.sql}) AS {c.id}" for c, e in node.outputs), *BAG)
