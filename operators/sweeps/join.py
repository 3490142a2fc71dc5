"""Inner join and product: matching records for as long as both are valid.

Definition, at every instant (Kraemer & Seeger 2005, section 3.2.3, eq. 3, and 3.4, eq. 11; Patroumpas & Sellis 2006,
section 4.1): a pair of records for which the condition is TRUE has n1 * n2 copies. On signed bags the join is
bilinear: counts multiply and intervals intersect. What a slice adds is therefore

    new(L) x (held(R) + new(R))  +  held(L) x new(R)

where held(X) are the rows of X that earlier slices made and that can still match something after h0: the ripple join of
Kraemer & Seeger's Algorithm 5, a slice at a time. Spark's own hash join does the matching; the interval overlap is part
of its condition. A negative tuple meets what its element has met, and takes that back (Hammad et al., sections 4.5 and
4.6).

Columns in: each side's record, ``__ts``, ``__te``, ``__n``. Columns out: both records, ``__ts``, ``__te``, ``__n``.

SweepArea: of each side the rows that are valid after h1, and only while the other side can still bring new ones (a
static relation cannot); none where they can be read again from the inputs (``Node.readable_again``), else a log by
expiry (``expiry_log.py``). No row waits for order: a slice's bag has none.

What Spark is asked for, with text in the place of DataFrames:

>>> from sweeparea.operators.sql.expressions import Column, Expr
>>> from sweeparea.operators.nodes import Join, RelationScan
>>> class Asked(str):
...     def selectExpr(self, *columns):
...         return Asked(f"SELECT {', '.join(columns)} FROM ({self})") if "JOIN" in self else self
...     def crossJoin(self, other):
...         return Asked(f"{self} JOIN {other}")
...     def where(self, condition):
...         return Asked(f"{self} ON {condition}")
>>> left, right = (RelationScan(name, ((Column(c, "v"), "v"),)) for name, c in (("L", "a"), ("R", "b")))
>>> print(apply(Join(left, right, Expr("a = b", columns=frozenset("ab"))), Asked("L"), Asked("R")))
SELECT a, b, greatest(__lts, __rts) AS __ts, least(__lte, __rte) AS __te, __ln * __rn AS __n FROM (L JOIN R ON (a = b) \
AND __lts < __rte AND __rts < __lte)
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.plan.carriers import Carriers
from sweeparea.operators.plan.edge import STRICT, Edge, weak
from sweeparea.operators.plan.influence import Influence
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Ends, Evaluated, Ids, Node, condition, ids_of
from sweeparea.operators.plan.words import cut
from sweeparea.operators.sql.conditions import take_apart
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.values.bag import TE, TS, N

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_WORDS = {
    JoinKind.INNER: "Join",
    JoinKind.LEFT: "Left join",
    JoinKind.FULL: "Full join",
    JoinKind.SEMI: "Semi join",
    JoinKind.ANTI: "Anti join",
}


@stored("Join", "left", "right", "condition", "kind", later=("by_key",))
@dataclass(frozen=True)
class Join(Node):
    """Join on any condition (None: every pair matches). Semi and anti join are ``semi_join.py``, left and full join
    ``outer_join.py``. ``by_key``: a semi or anti join that ``existence.py`` sweeps key by key, if the types that its
    equalities turn out to compare allow it.

    Output: left columns, then right columns; of semi and anti the left columns alone.
    """

    left: Node
    right: Node
    condition: Expr | None = None
    kind: JoinKind = JoinKind.INNER
    by_key: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return (
            self.left.columns if self.kind in (JoinKind.SEMI, JoinKind.ANTI) else self.left.columns + self.right.columns
        )

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def words(self, time: TimeDomain) -> str:
        if self.condition is not None:
            return f"{_WORDS[self.kind]} ON {cut(self.condition.words)}"
        return "Cross join" if self.kind == JoinKind.INNER else _WORDS[self.kind]

    def edge(self, below: Sequence[Edge], static: Container[str]) -> Edge:
        """Rule 3: what matches ends with the first of its parts. Rule 5: an arrival takes back what had no match."""
        return weak(below) if self.kind in (JoinKind.INNER, JoinKind.SEMI) else STRICT

    @property
    def monotonic(self) -> bool:
        return self.kind in (JoinKind.INNER, JoinKind.SEMI) and self.left.monotonic and self.right.monotonic

    @property
    def lengthens(self) -> bool:
        return self.kind == JoinKind.SEMI or super().lengthens

    @property
    def compares(self) -> bool:
        return self.kind in (JoinKind.ANTI, JoinKind.LEFT, JoinKind.FULL)

    @property
    def replaces(self) -> bool:
        return self.kind != JoinKind.INNER

    @property
    def readable_again(self) -> bool:
        return self.kind == JoinKind.INNER and all(side.readable_again for side in self.inputs)

    @property
    def read_again(self) -> tuple[Node, ...]:
        return tuple(side for side in self.inputs if side.readable_again) if self.kind == JoinKind.INNER else ()

    def needs(self, needed: Ids) -> Iterator[Ids]:
        for child in self.inputs:
            yield (needed | self.reads) & ids_of(child)

    def evaluated(self) -> Iterator[Evaluated]:
        yield from condition(self.condition)
        if self.condition is None or self.kind == JoinKind.INNER:
            return
        # the other kinds keep distinct values of what is compared (``semi_join.py``)
        for alternative in take_apart(self.condition, ids_of(self.left), ids_of(self.right)):
            for equality in alternative.equalities:
                kept = (equality.left, equality.right) if self.kind == JoinKind.FULL else (equality.right,)
                yield from (Evaluated(f"({e.sql})", [self.condition.text], remembered=True) for e in kept)

    def decided_by(self) -> Iterator[tuple[Influence, Ids]]:
        yield Influence.JOIN, self.reads

    def carriers(self, below: Sequence[Carriers]) -> Carriers:
        """Of a join the other side need not be selected from; where an equality says that it can be, it is."""
        left, right = below
        alternatives = take_apart(self.condition, ids_of(self.left), ids_of(self.right))
        equal = [(e.left.bare, e.right.bare) for e in alternatives[0].equalities] if len(alternatives) == 1 else []
        found: Carriers = {}
        if self.kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI):
            for column, own in left.items():
                found[column] = own.union(*(right[r] for mine, r in equal if mine == column and r in right))
        if self.kind == JoinKind.INNER:
            for column, own in right.items():
                found[column] = own.union(*(left[other] for other, mine in equal if mine == column and other in left))
        return found

    @property
    def looks_back(self) -> int:
        return 0

    def lowered(self) -> Node:
        """Semi and anti joins that equalities decide are swept key by key, unless columns are known to be of types that
        do not allow it.
        """
        if self.kind not in (JoinKind.SEMI, JoinKind.ANTI) or self.by_key:
            return self
        alternatives = take_apart(self.condition, ids_of(self.left), ids_of(self.right))
        if len(alternatives) != 1 or not alternatives[0].equalities or alternatives[0].rest:
            return self
        types = {c.id: c.type for side in self.inputs for c in side.columns}
        pairs = ((types.get(e.left.bare), types.get(e.right.bare)) for e in alternatives[0].equalities)
        forbidden = any(left and right and not compared_as_they_are(left, right) for left, right in pairs)
        return self if forbidden else replace(self, by_key=True)

    @property
    def keeps_readable(self) -> bool:
        return self.by_key and self.left.readable_again

    def kept(self, ends: Ends) -> str | None:
        if self.by_key and not any(side.settled(ends.static) for side in self.inputs):
            rows = "intervals in which there is any row" if ends.expiry_known(self.right) else "number of rows"
            return f"by key the rows of its left input that are valid after h1, and of its right one the {rows}"
        if self.kind != JoinKind.INNER:
            return f"the values of the right input and the rows of both that are valid after h1 ({self.kind} join)"
        pairs = (("left", self.left, self.right), ("right", self.right, self.left))
        needed = [(name, side) for name, side, other in pairs if not other.settled(ends.static)]
        held = [name for name, side in needed if not side.readable_again]
        if held:
            inputs = " and ".join(held)
            return f"the rows of its {inputs} input that are valid after h1; the rest is read again by range"
        if len(needed) == 2:
            return "none of its own, both inputs are read again by range"
        return "none of its own, inputs are read again by range as far as the other can still change"


_EXACT = re.compile(
    r"tinyint|smallint|int|bigint|float|double|boolean|date|timestamp|timestamp_ntz|binary|string|decimal\(\d+,\s*\d+\)"
)
"""Types of which two values are equal to Spark exactly where they are one value (``keys``)."""


def compared_as_they_are(left: str, right: str) -> bool:
    """Whether of two Spark types a value of one equals at most one of the other: where Spark would convert one side
    first, several could.
    """
    return left == right and _EXACT.fullmatch(left) is not None


_LEFT, _RIGHT = ("__lts", "__lte", "__ln"), ("__rts", "__rte", "__rn")


def apply(node: Join, left: DataFrame, right: DataFrame) -> DataFrame:
    """Two bags in, the bag of ``node.columns`` out. Where held rows come from is the caller's business."""

    def side(bag: DataFrame, ids: list[str], names: tuple[str, str, str]) -> DataFrame:
        return bag.selectExpr(*ids, *(f"{a} AS {b}" for a, b in zip((TS, TE, N), names, strict=True)))

    ids_left, ids_right = ([c.id for c in x.columns] for x in (node.left, node.right))
    overlap = "__lts < __rte AND __rts < __lte"
    condition = f"({node.condition.sql}) AND {overlap}" if node.condition else overlap
    # as text: a product under a filter is one join to Spark, and needs no Column of the session's own kind
    joined = side(left, ids_left, _LEFT).crossJoin(side(right, ids_right, _RIGHT)).where(condition)
    return joined.selectExpr(
        *ids_left,
        *ids_right,
        f"greatest(__lts, __rts) AS {TS}",
        f"least(__lte, __rte) AS {TE}",
        f"__ln * __rn AS {N}",
    )
