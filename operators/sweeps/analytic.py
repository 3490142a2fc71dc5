"""SQL window functions (OVER), of the rows that are valid at each instant.

Beyond the papers: at every instant the function's value as SQL has it over the rows of the instant, each beside the
row. By update pattern strict non-monotonic, since an arrival changes the values of rows that are there. Numbers become
a top-k of all rows (``top_k.py``). The others run by snapshot expansion (``snapshot.py``), one node for each PARTITION
BY.

Columns in: the record, ``__ts``, ``__te``, ``__n``. Columns out: the record, the functions' values, ``__ts``, ``__te``,
``__n``. SweepArea: the input's rows that are valid after h1.
"""

from __future__ import annotations

from dataclasses import dataclass

from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.linear.project import Project
from sweeparea.operators.plan.expressions import kept_as_they_are
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sweeps.top_k import NUMBERINGS, family
from sweeparea.operators.sweeps.window_function import Windowed, WindowFunction

__all__ = ["Analytic", "WindowFunction"]


@stored("Analytic", "input", "calls")
@dataclass(frozen=True)
class Analytic(Windowed):
    """SQL window functions (OVER). Output: the input's columns, then one for each call."""

    def lowered(self) -> Node:
        """Numbers of each order as a top-k of all rows; then one node for each PARTITION BY."""
        below, calls = self.input, self.calls
        while (of := next((c for c, call in calls if call.function in NUMBERINGS), None)) is not None:
            below, calls = family(below, calls, of)
        partitions = list(dict.fromkeys(call.partition for _, call in calls))
        if calls == self.calls and len(partitions) < 2:
            return self
        for partition in partitions:
            below = Analytic(below, tuple(entry for entry in calls if entry[1].partition == partition))
        # two nodes of one deployed query have always been below a projection
        plain = calls != self.calls and below.columns == self.columns
        return below if plain else Project(below, kept_as_they_are(self.columns))

    @property
    def expansion(self) -> str | None:
        return "window functions (OVER)"
