"""Projection without duplicate elimination, Kraemer's map.

Definition (Kraemer & Seeger 2005, section 3.2.2, eq. 2, Algorithm 2; Patroumpas & Sellis 2006, section 4.1): a record
has the copies of all those that the expressions map to it. Linear: signs and intervals stay. Golab & Oezsu 2005,
section 5.2, rule 1: the input's update pattern.

Columns in: the record, ``__ts``, ``__te``, ``__n``. Columns out: ``node.columns``, ``__ts``, ``__te``, ``__n``.
SweepArea: none. Spark evaluates the expressions; what it is asked for, with text in the place of a DataFrame:

>>> from sweeparea.operators.plan.logical import Column, Expr, Project, RelationScan
>>> class Asked:
...     def selectExpr(self, *columns):
...         return columns
>>> twice = (Column("c1", "w"), Expr("2 * `c0`", "2 * v", frozenset({"c0"})))
>>> apply(Project(RelationScan("R", ((Column("c0", "v"), "v"),)), (twice,)), Asked())
('(2 * `c0`) AS c1', '__ts', '__te', '__n')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeparea.operators.values.bag import BAG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sweeparea.operators.plan.logical import Project


def apply(node: Project, bag: DataFrame) -> DataFrame:
    """Bag in, bag of ``node.columns`` out. No state."""
    return bag.selectExpr(*(f"({e.sql}) AS {c.id}" for c, e in node.outputs), *BAG)
