"""Time windows as a map on a stream's bag: each element ``[s, s+1)`` becomes its interval of validity. Linear, no
state.

Definitions: ``definitions.py``. Columns in: the record, ``__ts``, ``__n``. Columns out: the record, with WINDOW_START
and WINDOW_END where the query asks for them (then one row for each bucket that holds the element), ``__ts``, ``__te``,
``__n``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.plan.carriers import Carriers, only
from sweeparea.operators.plan.edge import Edge
from sweeparea.operators.plan.influence import Influence, Made
from sweeparea.operators.plan.node import Ends, Evaluated, Ids, Node, condition, ids_of, plain
from sweeparea.operators.plan.words import cut, listed
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.sql.sql_text import bare
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import TE, TS, N
from sweeparea.operators.windows import BucketWindow, Rows, TimeWindow, UserWindow, WindowDefinition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@stored("Window", "input", "spec", "partition", "condition", "arguments", "ties", "bounds")
@dataclass(frozen=True)
class Window(Node):
    """Stream to relation (Arasu section 6.1, semantics of each kind in ``definitions.py``).

    ``partition`` are the expressions of PARTITION BY, ``condition`` that of Tumbling When, ``arguments`` those of a
    user-defined window. ``ties`` are the ids of input columns that order elements of one instant (the declared
    sequence first, then the record, left to right); only windows that count rows have them. ``bounds`` are the
    columns of WINDOW_START and WINDOW_END where the query refers to them, else None.
    """

    input: Node
    spec: WindowDefinition
    partition: tuple[Expr, ...] = ()
    condition: Expr | None = None
    arguments: tuple[Expr, ...] = ()
    ties: tuple[str, ...] = ()
    bounds: tuple[Column, Column] | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns + (self.bounds or ())

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def words(self, time: TimeDomain) -> str:
        return f"Window {cut(self.text(time))}"

    def text(self, time: TimeDomain) -> str:
        """The window in the language's own words."""
        partition = f"Partition By {listed(self.partition)}" if self.partition else ""
        return self.spec.words(time, partition, bare(self.condition.words) if self.condition is not None else "")

    def edge(self, below: Sequence[Edge], static: Container[str]) -> Edge:
        return Edge(self.spec.pattern(bool(self.partition)), self.spec.expiry_known)

    @property
    def ends(self) -> frozenset[object]:
        return frozenset({self.spec})

    @property
    def monotonic(self) -> bool:
        return self.spec.monotonic and self.input.is_stream

    @property
    def lengthens(self) -> bool:
        return False

    @property
    def forgets(self) -> bool:
        return not (isinstance(self.spec, TimeWindow) and self.spec.monotonic)

    @property
    def readable_again(self) -> bool:
        return isinstance(self.spec, TimeWindow) and self.input.readable_again

    @property
    def cheap(self) -> bool:
        return isinstance(self.spec, TimeWindow) and self.input.cheap

    def needs(self, needed: Ids) -> Iterator[Ids]:
        yield (needed | self.reads | frozenset(self.ties)) & ids_of(self.input)

    def cut(self, inputs: tuple[Node, ...], needed: Ids) -> Node:
        bounds = self.bounds if any(c.id in needed for c in self.bounds or ()) else None
        return replace(self, input=inputs[0], bounds=bounds)

    def evaluated(self) -> Iterator[Evaluated]:
        yield from plain(*self.partition, *self.arguments, remembered=True)
        yield from condition(self.condition)

    def made(self) -> Iterator[Made]:
        yield from (Made(c.id, frozenset(), time=True) for c in self.bounds or ())

    def decided_by(self) -> Iterator[tuple[Influence, Ids]]:
        yield Influence.WINDOW, self.reads | frozenset(self.ties)

    def carriers(self, below: Sequence[Carriers]) -> Carriers:
        """Selection commutes with windows of time, and with those that count only on what they partition by
        (Patroumpas & Sellis 2006, section 4.2).
        """
        whole = isinstance(self.spec, TimeWindow | UserWindow)
        return below[0] if whole else only(below[0], self.partition)

    def pane_sql(self, s: str) -> str | None:
        """Where elements become a row for each of several buckets: SQL of one instant for all that lie in the same."""
        return self.spec.pane_sql(s) if self.bounds is not None and isinstance(self.spec, BucketWindow) else None

    @property
    def looks_back(self) -> int:
        # arrivals are counted from START on
        bounded = isinstance(self.spec, TimeWindow | Rows) and not self.spec.counts
        return self.spec.reach if bounded else INF

    def reaches(self, below: Mapping[str, int]) -> dict[str, int]:
        # below an inner stream the lengths add up: an element may make another when it enters and when it leaves
        inner = {name: ticks for name, ticks in below.items() if ticks > 1}
        return {name: min(INF, inner.get(name, 0) + self.spec.reach) for name in below}

    def kept(self, ends: Ends) -> str | None:
        return self.spec.kept(bool(self.partition))


def apply(
    node: Window, stream: DataFrame, instant_sql: Callable[[str], str], guarded: Callable[[str], str] = str
) -> DataFrame:
    """Bag of elements in, bag of windowed rows out; elements that are never valid are dropped.

    ``instant_sql`` gives the SQL of an instant from that of its tick, ``guarded`` an expression that fails where
    Spark's rules of a time zone are others.
    """
    ids = [c.id for c in node.input.columns]
    spec = node.spec
    assert isinstance(spec, TimeWindow)  # the others sweep
    if node.bounds is None:
        start, end = spec.sql(TS)
        steps = _steps(spec.steps(TS), guarded)
        if not steps:
            return stream.selectExpr(*ids, f"{start} AS {TS}", f"{end} AS {TE}", N).where(f"{TS} < {TE}")
        # a generator, so that Spark does not put all steps into each other when it pushes the filter down
        rows = stream.selectExpr(*ids, TS, N, *steps)
        rows = rows.selectExpr(*ids, N, f"inline(array(struct({start}, {end}))) AS (__from, __to)")
        return rows.where("__from < __to").selectExpr(*ids, f"__from AS {TS}", f"__to AS {TE}", N)
    assert isinstance(spec, BucketWindow)
    rows = stream.selectExpr(*ids, TS, N, *_steps(spec.bounds_steps(TS), guarded))
    buckets, of_bucket = spec.buckets_sql(TS)
    members = [f"{sql} AS {name}" for sql, name in zip(of_bucket, ("__first", "__past", "__from", "__to"), strict=True)]
    rows = rows.selectExpr("*", f"explode({buckets}) AS __b").selectExpr(*ids, N, *members)
    bounds = [f"{instant_sql(tick)} AS {c.id}" for tick, c in zip(("__first", "__past"), node.bounds, strict=True)]
    return rows.where("__from < __to").selectExpr(*ids, *bounds, f"__from AS {TS}", f"__to AS {TE}", N)


def _steps(steps: Sequence[tuple[str, str]], guarded: Callable[[str], str]) -> list[str]:
    # a select may use the names that it has given before
    return [f"{guarded(expression)} AS {name}" for name, expression in steps]
