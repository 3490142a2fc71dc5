"""Windows that count elements, and user-defined ones, on Spark: the rows that their sweeps take, and their tasks.

The values of PARTITION BY, of the condition and of a user's arguments are computed by Spark, as columns beside the
record; ``operators`` has the sweeps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sweeparea.operators.nodes import Window
from sweeparea.operators.state.due import Due, Later, never
from sweeparea.operators.state.sweep import Run
from sweeparea.operators.values.bag import TS, N
from sweeparea.operators.windows import (
    Rows,
    Session,
    UserWindow,
    When,
    condition_window,
    rows_window,
    session_window,
    user_window,
)
from sweeparea.operators.windows.arrivals import ArrivalSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BOUNDS = (session_window.FIRST, session_window.PAST)


class WindowRows:
    """The rows of a window's sweep: the record, its ``partition`` and other values, ``__ts``, ``__n``."""

    def __init__(self, node: Window) -> None:
        self.node = node
        self.ids = [c.id for c in node.input.columns]
        self.partition = [f"__p{i}" for i in range(len(node.partition))]
        self.arguments = [f"__a{i}" for i in range(len(node.arguments))]

    def raw(self, bag: DataFrame) -> DataFrame:
        """The elements of a bag as rows of the sweep."""
        node = self.node
        values = [f"({e.sql}) AS {name}" for e, name in zip(node.partition, self.partition, strict=True)]
        values += [f"({e.sql}) AS {name}" for e, name in zip(node.arguments, self.arguments, strict=True)]
        if isinstance(node.spec, When):
            assert node.condition is not None
            values.append(f"coalesce(({node.condition.sql}), FALSE) AS {condition_window.MEETS}")
        if isinstance(node.spec, Rows):
            values.append(f"0L AS {rows_window.AT}")
        return bag.selectExpr(*self.ids, *values, TS, N)

    def run(self) -> Run:
        """The sweep of the node's window."""
        spec = self.node.spec
        arrivals = ArrivalSpec(tuple(self.ids), tuple(self.partition), self.node.ties)
        match spec:
            case Rows():
                rows = rows_window.RowsSpec(arrivals, spec.count, spec.slide, spec.length)
                return partial(rows_window.sweep, spec=rows)
            case Session():
                return partial(session_window.sweep, spec=session_window.SessionSpec(arrivals, spec.gap))
            case When():
                return partial(condition_window.sweep, spec=arrivals)
        raise TypeError(f"no sweep for {type(spec).__name__}")

    def due(self, lazily: Callable[[Due, int], Due]) -> Due:
        """When a partition needs a look though nothing new has come; ``lazily``: where only rows wait to go."""
        match self.node.spec:
            case Rows(length=int(length)):
                return lazily(Later(length), length)
            case Session(gap=gap):
                return Later(gap - 1)
        return never

    @property
    def bounds(self) -> tuple[str, ...]:
        """The columns of the sweep's bounds, as ticks, where it gives any."""
        return BOUNDS if isinstance(self.node.spec, Session) else ()

    def function(self, load: Callable[[str], Any]) -> Callable[[pa.Table], pa.Table]:
        """What a user-defined window does with rows; ``load`` gives the registered function by its name."""
        spec = self.node.spec
        assert isinstance(spec, UserWindow)
        user = user_window.UserWindowSpec(
            spec.name, load(spec.name), tuple(self.ids), tuple(self.arguments), spec.monotonic
        )
        return partial(user_window.apply, spec=user)
