"""Selection: keeps the rows whose condition is TRUE.

Definition (Kraemer & Seeger 2005, section 3.2.1, eq. 1, Algorithm 1; Patroumpas & Sellis 2006, section 4.1): a record
for which the condition is TRUE keeps its copies, any other, also where it is unknown (NULL), has none. Linear: signs
and intervals stay. Golab & Oezsu 2005, section 5.2, rule 1: the input's update pattern.

Columns in and out: the record, ``__ts``, ``__te``, ``__n``. SweepArea: none. Spark evaluates the condition; what it is
asked for, with text in the place of a DataFrame:

>>> from sweeparea.operators.sql.expressions import Column, Expr
>>> from sweeparea.operators.nodes import RelationScan, Select
>>> class Asked:
...     def where(self, condition):
...         return condition
>>> apply(Select(RelationScan("R", ((Column("c0", "v"), "v"),)), Expr("`c0` > 1", "v > 1", frozenset({"c0"}))), Asked())
'`c0` > 1'
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.linear.map import Map
from sweeparea.operators.plan.node import Evaluated, Ids, condition
from sweeparea.operators.plan.words import cut
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.time.domain import TimeDomain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@stored("Select", "input", "condition")
@dataclass(frozen=True)
class Select(Map):
    """Selection: keeps the rows for which ``condition`` is TRUE (Kraemer section 3.2.1)."""

    condition: Expr

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns

    def words(self, time: TimeDomain) -> str:
        return f"Select {cut(self.condition.text)}"

    @property
    def cheap(self) -> bool:
        return self.input.cheap

    def needs(self, needed: Ids) -> Iterator[Ids]:
        yield needed | self.condition.columns

    def evaluated(self) -> Iterator[Evaluated]:
        return condition(self.condition)


def apply(node: Select, bag: DataFrame) -> DataFrame:
    """Bag in, bag out, same columns. No state."""
    return bag.where(node.condition.sql)
