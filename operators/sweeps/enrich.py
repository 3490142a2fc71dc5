"""Join of a stream with a non-retroactive relation: each element with what the relation held just before it.

Definition (Golab & Oezsu 2005, section 4.1, the join with an NRR, a non-retroactive relation; semantics, section 8): an
element at s is joined with the relation's contents from changes with timestamp < s. Later changes undo nothing, so the
result is a stream again, whose elements have the instants of the stream's; no negative tuple ever leaves, whatever
happens to the relation.

Columns in: the stream's record with ``__ts``, ``__te``, ``__n``; the relation's with ``__from``, ``__to``: the
intervals of its history, with ``__copies``. Columns out: both records, ``__ts``, ``__te``, ``__n``; of the left
join the relation's are NULL where it held no match.

SweepArea: the relation's contents and no element: all changes before s are known when s is processed. A static
relation has none, it is read anew.

>>> changes = pa.table({"r": ["x", "x"], "__ts": [1, 4], "__te": [1 << 62, 1 << 62], "__n": [1, -1]})
>>> held, carry = intervals(changes, 0, 9, ["r"])
>>> [tuple(row.values()) for row in held.to_pylist()], carry.num_rows
([('x', 1, 4, 1)], 0)
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeparea.operators.base.later import later
from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.plan.carriers import Carriers
from sweeparea.operators.plan.edge import Edge
from sweeparea.operators.plan.influence import Influence
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Ends, Evaluated, Ids, Node, condition, ids_of
from sweeparea.operators.plan.words import cut
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.values.bag import TE, TS, N

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from sweeparea.operators.sweeps import relation_to_stream as history
else:
    pa, history = later("pyarrow", "sweeparea.operators.sweeps.relation_to_stream")

FROM, TO, COPIES = "__from", "__to", "__copies"


@stored("Enrich", "stream", "relation", "condition", "kind")
@dataclass(frozen=True)
class Enrich(Node):
    """Join of a stream with a non-retroactive relation (Golab & Oezsu 2005, section 4.1), below the stream's window.

    An element at s is joined with the relation's contents from changes before s; later changes undo nothing. ``kind``
    is ``INNER`` or ``LEFT``. A stream: its elements have the instants of ``stream``'s.
    """

    stream: Node
    relation: Node
    condition: Expr | None = None
    kind: JoinKind = JoinKind.INNER

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.stream.columns + self.relation.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.stream, self.relation)

    def words(self, time: TimeDomain) -> str:
        on = f" ON {cut(self.condition.text)}" if self.condition is not None else ""
        return f"Enrich{' (left)' if self.kind == JoinKind.LEFT else ''}{on}"

    def edge(self, below: Sequence[Edge], static: Container[str]) -> Edge:
        """Rule 1: a relation that is not retroactive adds nothing."""
        return below[0]

    @property
    def is_stream(self) -> bool:
        return True

    def needs(self, needed: Ids) -> Iterator[Ids]:
        for child in self.inputs:
            yield (needed | self.reads) & ids_of(child)

    def evaluated(self) -> Iterator[Evaluated]:
        return condition(self.condition)

    def decided_by(self) -> Iterator[tuple[Influence, Ids]]:
        yield Influence.JOIN, self.reads

    def carriers(self, below: Sequence[Carriers]) -> Carriers:
        return below[0]

    @property
    def looks_back(self) -> int:
        """An element is enriched with what was before it."""
        return 1

    def reaches(self, below: Mapping[str, int]) -> dict[str, int]:
        """Its elements have the instants of the stream's; a relation's rows reach for ever as they are."""
        return dict(below)

    def kept(self, ends: Ends) -> str | None:
        if self.relation.settled(ends.static) and self.relation.readable_again:
            return "none, the relation is read again"
        return "the relation's contents, no element"


def intervals(rows: pa.Table, h0: int, h1: int, columns: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """(history, carry) of a relation for the slice ``(h0, h1]``: the intervals that reach into it, and its contents.

    ``rows``: record, ``__ts``, ``__te``, ``__n``: the carry of the previous slice and the changes of this one.
    """
    out = history.sweep(rows, history.MaterializeSpec(tuple(columns), relation=True), h0, h1)
    ended = out.closed.append_column(N, pa.array([1] * out.closed.num_rows, pa.int64()))
    ended = ended.rename_columns([*columns, TS, TE, N])
    opened = out.carry
    return pa.concat_tables([ended, opened.select(ended.schema.names)]), opened


def apply(node: Enrich, stream: DataFrame, relation: DataFrame) -> DataFrame:
    """Joins a bag of elements with the relation's history (``intervals``)."""
    from pyspark.sql.functions import expr

    ids = [c.id for c in node.relation.columns]
    held = relation.selectExpr(*ids, f"{TS} AS {FROM}", f"{TE} AS {TO}", f"{N} AS {COPIES}")
    # a change at tick t is seen by elements from t+1 on
    condition = f"{FROM} < {TS} AND {TS} <= {TO}"
    if node.condition is not None:
        condition = f"({node.condition.sql}) AND {condition}"
    joined = stream.join(held, expr(condition), "left" if node.kind == JoinKind.LEFT else "inner")
    return joined.selectExpr(*(c.id for c in node.columns), TS, TE, f"{N} * coalesce({COPIES}, 1L) AS {N}")
