"""Projection without duplicate elimination, Kraemer's map.

Definition (Kraemer & Seeger 2005, section 3.2.2, eq. 2, Algorithm 2; Patroumpas & Sellis 2006, section 4.1): a record
has the copies of all those that the expressions map to it. Linear: signs and intervals stay. Golab & Oezsu 2005,
section 5.2, rule 1: the input's update pattern.

Columns in: the record, ``__ts``, ``__te``, ``__n``. Columns out: ``node.columns``, ``__ts``, ``__te``, ``__n``.
SweepArea: none. Spark evaluates the expressions; what it is asked for, with text in the place of a DataFrame:

>>> from sweeparea.operators.sql.expressions import Column, Expr
>>> from sweeparea.operators.nodes import Project, RelationScan
>>> class Asked:
...     def selectExpr(self, *columns):
...         return columns
>>> twice = (Column("c1", "w"), Expr("2 * `c0`", "2 * v", frozenset({"c0"})))
>>> apply(Project(RelationScan("R", ((Column("c0", "v"), "v"),)), (twice,)), Asked())
('(2 * `c0`) AS c1', '__ts', '__te', '__n')
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.linear.map import Map
from sweeparea.operators.plan.carriers import Carriers, renamed
from sweeparea.operators.plan.influence import Influence, Made, made_by
from sweeparea.operators.plan.node import Evaluated, Ids, Node, plain
from sweeparea.operators.plan.words import cut
from sweeparea.operators.sql.expressions import Column, Expr, kept_as_they_are
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.values.bag import BAG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@stored("Project", "input", "outputs")
@dataclass(frozen=True)
class Project(Map):
    """Projection without duplicate elimination: Kraemer's map (section 3.2.2)."""

    outputs: tuple[tuple[Column, Expr], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(c for c, _ in self.outputs)

    def words(self, time: TimeDomain) -> str:
        shown = (e.text if e.text == c.label or not e.text else f"{e.text} AS {c.label}" for c, e in self.outputs)
        return f"Project {cut(', '.join(shown))}"

    @property
    def cheap(self) -> bool:
        return self.input.cheap

    def needs(self, needed: Ids) -> Iterator[Ids]:
        yield frozenset().union(*(e.columns for c, e in self.outputs if c.id in needed))

    def cut(self, inputs: tuple[Node, ...], needed: Ids) -> Node:
        return Project(inputs[0], tuple((c, e) for c, e in self.outputs if c.id in needed))

    def evaluated(self) -> Iterator[Evaluated]:
        return plain(*(e for _, e in self.outputs))

    def computed(self) -> Iterator[Evaluated]:
        yield from (Evaluated(e.sql, [e.text], columns=(c,)) for c, e in self.outputs)

    def made(self) -> Iterator[Made]:
        yield from (made_by(c.id, e) for c, e in self.outputs)

    def decided_by(self) -> Iterator[tuple[Influence, Ids]]:
        return iter(())

    def carriers(self, below: Sequence[Carriers]) -> Carriers:
        return renamed(below[0], self.outputs)


def narrowed(node: Node, columns: Sequence[Column]) -> Node:
    """A node whose columns are just these: what is matched by position must have no others."""
    return node if node.columns == tuple(columns) else Project(node, kept_as_they_are(columns))


def apply(node: Project, bag: DataFrame) -> DataFrame:
    """Bag in, bag of ``node.columns`` out. No state."""
    return bag.selectExpr(*(f"({e.sql}) AS {c.id}" for c, e in node.outputs), *BAG)
