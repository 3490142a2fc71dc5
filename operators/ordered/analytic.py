"""SQL window functions (OVER), of the rows that are valid at each instant.

Beyond the papers: at every instant the function's value as SQL has it over the rows of the instant, each beside the
row. By update pattern strict non-monotonic, since an arrival changes the values of rows that are there. Numbers become
a top-k of all rows (``top_k.py``), with what follows from them (``counted.py``), values of other rows references
(``navigation.py``), aggregates frames (``framed.py``). The others run by snapshot expansion (``snapshot.py``), one node
for each PARTITION BY.

Columns in: the record, ``__ts``, ``__te``, ``__n``. Columns out: the record, the functions' values, ``__ts``, ``__te``,
``__n``. SweepArea: the input's rows that are valid after h1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.linear.project import Project
from sweeparea.operators.ordered.counted import computed, counts_of
from sweeparea.operators.ordered.framed import Framed, is_framed, together
from sweeparea.operators.ordered.navigation import Navigation, reference_of
from sweeparea.operators.ordered.top_k import TopK
from sweeparea.operators.ordered.window_function import Windowed, WindowFunction
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.numbers import ALL, NUMBERINGS, ROW_NUMBER
from sweeparea.operators.sql.expressions import Column, Expr, SortKey, kept_as_they_are, reference

__all__ = ["Analytic", "WindowFunction"]


@stored("Analytic", "input", "calls")
@dataclass(frozen=True)
class Analytic(Windowed):
    """SQL window functions (OVER). Output: the input's columns, then one for each call."""

    def lowered(self) -> Node:
        """Numbers of each order as a top-k of all rows; references to other rows by each order; aggregates of frames;
        then one node for each PARTITION BY.

        Copies of a record can differ in what they get. Where two nodes give them something, the first copy of one must
        be that of the other: so the first ROW_NUMBER breaks the ties of what comes after it, and where there is none
        the copies are numbered.
        """
        numbered = [entry for entry in self.calls if entry[1].function in NUMBERINGS]
        counted = {column: counts for column, call in self.calls if (counts := counts_of(call)) is not None}
        names = {call: column for column, call in numbered}
        for count in dict.fromkeys(count for counts in counted.values() for count in counts):
            if count not in names:
                names[count] = Column(f"{self.calls[0][0].id}_count{len(names)}", count.function.lower(), "int")
                numbered.append((names[count], count))
        referring = [entry for entry in self.calls if reference_of(entry[1]) is not None]
        done = {column for column, _ in (*numbered, *referring)} | counted.keys()
        framed = together(tuple(e for e in self.calls if e[0] not in done and is_framed(e[1])))
        done |= {column for node in framed for column, _ in node}
        others = [entry for entry in self.calls if entry[0] not in done]
        partitions = list(dict.fromkeys(call.partition for _, call in others))
        if not numbered and not referring and not framed:
            return self if len(partitions) < 2 else self._apart(self.input, partitions)
        below: Node = self.input
        tie = next((c for c, call in numbered if call.function == ROW_NUMBER), None)
        places = dict.fromkeys((call.partition, call.order) for _, call in referring)
        telling = len({(call.partition, call.order) for _, call in referring if call.tells_copies})
        telling += sum(any(call.tells_copies for _, call in node) for node in framed)
        telling += len({call.partition for _, call in others if call.tells_copies})
        if tie is None and telling > 1:
            tie = Column(f"{self.calls[0][0].id}_copy", "copy", "int")
            record = tuple(reference(column) for column in self.input.columns)
            below = TopK(below, (), None, 0, record, numbers=((tie, ROW_NUMBER),))
        # what counts all rows goes along with any other number of its partition
        calls = tuple(sorted(numbered, key=lambda entry: (entry[0] != tie, entry[1].function == ALL)))
        while calls:
            below, calls = TopK.of_calls(below, calls, calls[0][0])
            calls = tuple((column, _with_tie(call, tie)) for column, call in calls)
        for place in places:
            own = [(c, _with_tie(call, tie)) for c, call in referring if (call.partition, call.order) == place]
            below = Navigation(below, tuple(own))
        for node in framed:
            below = Framed(below, tuple((column, _with_tie(call, tie)) for column, call in node))
        if tie is not None:
            others = [(column, _with_tie(call, tie)) for column, call in others]
        for partition in partitions:
            below = Analytic(below, tuple(entry for entry in others if entry[1].partition == partition))
        if below.columns == self.columns:
            return below
        made = {c: computed(c, call, lambda count: f"`{names[count].id}`") for c, call in self.calls if c in counted}
        return Project(below, tuple((column, made.get(column) or reference(column)) for column in self.columns))

    def _apart(self, below: Node, partitions: list[tuple[Expr, ...]]) -> Node:
        """One node for each PARTITION BY."""
        for partition in partitions:
            below = Analytic(below, tuple(entry for entry in self.calls if entry[1].partition == partition))
        return Project(below, kept_as_they_are(self.columns))

    @property
    def expansion(self) -> str | None:
        return "window functions (OVER)"


def _with_tie(call: WindowFunction, tie: Column | None) -> WindowFunction:
    """The call with its ties broken by another column last, if it matters."""
    if tie is None or not call.tells_copies:
        return call
    return replace(call, order=(*call.order, SortKey(reference(tie))))
