"""A call of an SQL window function, and what all operators say of themselves that compute such calls."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from sweeparea.operators.aggregates.call import AggregateCall, evaluated_call
from sweeparea.operators.aggregates.names import WINDOW_ONLY
from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.plan.carriers import Carriers, only
from sweeparea.operators.plan.edge import STRICT, Edge
from sweeparea.operators.plan.influence import Influence, Made, read_by
from sweeparea.operators.plan.node import Ends, Evaluated, Ids, Node, ids_of, plain
from sweeparea.operators.plan.numbers import ROW_NUMBER
from sweeparea.operators.plan.words import cut, listed, order_text
from sweeparea.operators.sql.expressions import Column, Expr, Part, SortKey
from sweeparea.operators.time.domain import TimeDomain

_NUMBER = re.compile(r"\(*([+-]?\d{1,9})\)*")

_WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
"""A frame in which the order of rows makes no difference to what each of them gets."""


@stored(
    "WindowFunction",
    "function",
    "arguments",
    "partition",
    "order",
    "frame",
    "filter",
    "distinct",
    "ignore_nulls",
    later=("running",),
)
@dataclass(frozen=True)
class WindowFunction(Part):
    """One call of an SQL window function. ``frame`` is Spark SQL's text (``ROWS BETWEEN ..``), empty for the default.

    ``order`` is complete with its ties where the function or frame depends on them (ROW_NUMBER, LAG, ROWS frames), and
    as written where ties have a meaning of their own (RANK, RANGE frames). ``running``: a user's aggregate whose state
    adds and removes rows.
    """

    function: str
    arguments: tuple[Expr, ...] = ()
    partition: tuple[Expr, ...] = ()
    order: tuple[SortKey, ...] = ()
    frame: str = ""
    filter: Expr | None = None
    distinct: bool = False
    ignore_nulls: bool = False
    running: bool = False

    @property
    def words(self) -> str:
        """The call, for explain."""
        partition = f"PARTITION BY {listed(self.partition)}" if self.partition else ""
        order = f"ORDER BY {order_text(self.order)}" if self.order else ""
        inside = " ".join(part for part in (partition, order, self.frame) if part)
        return f"{self.function}({listed(self.arguments)}) OVER ({inside})"

    @property
    def tells_copies(self) -> bool:
        """Whether copies of one record may get different values: it depends on rows, which the complete order tells
        apart, not on peers.
        """
        by_rows = self.frame.startswith("ROWS") and self.frame != _WHOLE
        return bool(self.order) and (by_rows or self.function in (ROW_NUMBER, "LAG", "LEAD", "NTILE"))

    @property
    def sql(self) -> str:
        """What gives Spark the call's type."""
        return f"{self.function}({', '.join(e.sql for e in self.arguments) or ''}) OVER (ORDER BY 1)"

    def made(self, column: str) -> Made:
        """What goes into its value, which is called ``column``."""
        how = Influence.TRANSFORMATION if self.function in WINDOW_ONLY else Influence.AGGREGATION
        over = read_by((*self.partition, *(key.expr for key in self.order)))
        beside = [(Influence.WINDOW, over)]
        beside += [] if self.filter is None else [(Influence.FILTER, self.filter.columns)]
        return Made(column, read_by(self.arguments), how, tuple(beside))

    def evaluated(self) -> Iterator[Evaluated]:
        """What Spark is given of the call."""
        yield from plain(*self.partition, *(key.expr for key in self.order), remembered=True)
        if self.function in WINDOW_ONLY:
            yield from plain(*self.arguments)
            # the values of other rows are remembered as the call gives them
            yield Evaluated(self.sql, [e.text for e in self.arguments], remembered=True)
        else:
            argument, extra = (*self.arguments, None)[0], self.arguments[1:]
            yield from evaluated_call(
                AggregateCall(self.function, argument, extra, filter=self.filter, order=self.order)
            )


@dataclass(frozen=True)
class Windowed(Node):
    """Base of the nodes whose output is the input's columns, then one for each call."""

    input: Node
    calls: tuple[tuple[Column, WindowFunction], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns + tuple(c for c, _ in self.calls)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def words(self, time: TimeDomain) -> str:
        return f"Window functions {cut(', '.join(call.words for _, call in self.calls))}"

    def edge(self, below: Sequence[Edge], static: Container[str]) -> Edge:
        """Rule 5."""
        return STRICT

    @property
    def replaces(self) -> bool:
        return True

    def needs(self, needed: Ids) -> Iterator[Ids]:
        yield (needed & ids_of(self.input)).union(*(call.reads for c, call in self.calls if c.id in needed))

    def cut(self, inputs: tuple[Node, ...], needed: Ids) -> Node:
        calls = tuple((c, call) for c, call in self.calls if c.id in needed)
        return dataclasses.replace(self, input=inputs[0], calls=calls) if calls else inputs[0]

    def evaluated(self) -> Iterator[Evaluated]:
        for _, call in self.calls:
            yield from call.evaluated()

    def computed(self) -> Iterator[Evaluated]:
        for column, call in self.calls:
            yield Evaluated(call.sql, [e.text for e in call.arguments], columns=(column,))

    def made(self) -> Iterator[Made]:
        yield from (call.made(c.id) for c, call in self.calls)

    def decided_by(self) -> Iterator[tuple[Influence, Ids]]:
        return iter(())

    def carriers(self, below: Sequence[Carriers]) -> Carriers:
        found = below[0]
        for _, call in self.calls:
            found = only(found, call.partition)
        return found

    @property
    def looks_back(self) -> int:
        return 0

    def kept(self, ends: Ends) -> str | None:
        return "the input's rows that are valid after h1"


def whole_number(expr: Expr) -> int | None:
    """The number that an argument is; None if it is none written out."""
    found = _NUMBER.fullmatch(expr.sql.replace(" ", ""))
    return None if found is None else int(found[1])
