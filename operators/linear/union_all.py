"""Bag union: UNION ALL.

Definition (Kraemer & Seeger 2005, section 3.2.8, eq. 8; Patroumpas & Sellis 2006, section 4.1): the copies of a record
add up. The sum of signed bags is their concatenation, so it is linear; where Kraemer & Seeger's Algorithm 9 waits to
keep elements in order, a slice's bag has none. Golab & Oezsu 2005, section 5.2, rule 2: the more complex of the inputs'
update patterns.

Columns in: each input's record, ``__ts``, ``__te``, ``__n``. Columns out: ``node.columns``, which the inputs' fill by
position, ``__ts``, ``__te``, ``__n``. SweepArea: none. Spark concatenates; what it is asked for, with text in the place
of DataFrames:

>>> from sweeparea.operators.sql.expressions import Column
>>> from sweeparea.operators.nodes import RelationScan, UnionAll
>>> class Asked(str):
...     def selectExpr(self, *columns):
...         return Asked(f"{self}({', '.join(columns)})")
...     def union(self, other):
...         return Asked(f"{self} + {other}")
>>> parts = [RelationScan(name, ((Column(c, "v"), "v"),)) for name, c in (("R", "c0"), ("S", "c1"))]
>>> print(apply(UnionAll(tuple(parts), (Column("c2", "v"),)), [(0, Asked("R")), (1, Asked("S"))]))
R(c0 AS c2, __ts, __te, __n) + S(c1 AS c2, __ts, __te, __n)
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.linear.project import narrowed
from sweeparea.operators.plan.carriers import Carriers, by_position
from sweeparea.operators.plan.edge import Edge, weak, worst
from sweeparea.operators.plan.influence import Influence
from sweeparea.operators.plan.node import Ids, Node
from sweeparea.operators.plan.words import columns_text
from sweeparea.operators.sql.expressions import Column
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.values.bag import BAG
from sweeparea.operators.windows import TimeWindow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ByPosition(Protocol):
    """A node whose inputs' columns fill its own by position."""

    @property
    def inputs(self) -> tuple[Node, ...]: ...

    @property
    def outputs(self) -> tuple[Column, ...]: ...


@stored("UnionAll", "parts", "outputs")
@dataclass(frozen=True)
class UnionAll(Node):
    """Bag union (Kraemer section 3.2.8). ``outputs`` are fresh columns; each input's columns fill them by position."""

    parts: tuple[Node, ...]
    outputs: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.outputs

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts

    def words(self, time: TimeDomain) -> str:
        return f"Union all ({columns_text(self.columns)})"

    def edge(self, below: Sequence[Edge], static: Container[str]) -> Edge:
        """Rule 2: the more complex of the inputs. Elements that one and the same time window ends leave in the order of
        their instants, whatever their streams are; windows of one length do not: ``[Fixed 10]`` ends an element sooner
        than ``[Range 10]``; and two windows of rows move each with its own stream.
        """
        ends = self.ends
        in_order = len(ends) == 1 and isinstance(next(iter(ends)), TimeWindow)
        return Edge(worst(below), weak(below).expiry_known) if in_order else weak(below)

    @property
    def ends(self) -> frozenset[object]:
        return frozenset().union(*(part.ends for part in self.parts))

    @property
    def monotonic(self) -> bool:
        return all(part.monotonic for part in self.parts)

    @property
    def is_stream(self) -> bool:
        return all(part.is_stream for part in self.parts)

    @property
    def readable_again(self) -> bool:
        return all(part.readable_again for part in self.parts)

    @property
    def looks_back(self) -> int:
        return 0

    @property
    def cheap(self) -> bool:
        return all(part.cheap for part in self.parts)

    def needs(self, needed: Ids) -> Iterator[Ids]:
        kept = [i for i, c in enumerate(self.outputs) if c.id in needed]
        for part in self.parts:
            yield frozenset(part.columns[i].id for i in kept)

    def cut(self, inputs: tuple[Node, ...], needed: Ids) -> Node:
        kept = [i for i, c in enumerate(self.outputs) if c.id in needed]
        parts = zip(self.parts, inputs, strict=True)
        narrow = tuple(narrowed(new, [old.columns[i] for i in kept]) for old, new in parts)
        return UnionAll(narrow, tuple(self.outputs[i] for i in kept))

    @property
    def by_position(self) -> bool:
        return True

    def decided_by(self) -> Iterator[tuple[Influence, Ids]]:
        return iter(())

    def carriers(self, below: Sequence[Carriers]) -> Carriers:
        return by_position(self.outputs, [part.columns for part in self.parts], below, all)


def apply(node: ByPosition, bags: Sequence[tuple[int, DataFrame]]) -> DataFrame:
    """``bags`` are (position of the part, its bag); parts known to be empty are left out. No state.

    Of a difference or an intersection it gives the columns and their types.
    """
    renamed = [
        bag.selectExpr(*(f"{a.id} AS {b.id}" for a, b in zip(node.inputs[i].columns, node.outputs, strict=True)), *BAG)
        for i, bag in bags
    ]
    total = renamed[0]
    for other in renamed[1:]:
        total = total.union(other)
    return total
