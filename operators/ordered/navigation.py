"""Values of other rows of the group, kept up to date: LAG, LEAD, and FIRST_VALUE, LAST_VALUE and NTH_VALUE of a frame
of rows.

Beyond the papers; by update pattern strict non-monotonic. The rows of a group stand in an order-statistics tree; where
one comes or goes only those are looked at that may refer to another row than before: O(log n) each. These are as many
as an offset or a bound of a frame is long; all of the group where a frame reaches its beginning (end) and one of the
first (last) rows changes, which all the others show.

Columns in: keys, columns, for call i its argument ``__v{i}`` and, if it has one, the value ``__d{i}`` where there is no
such row, ``__ts``, ``__te``, ``__n``. Out: the columns, the calls' values, ``__ts``, ``__te`` (INF), ``__n``.

SweepArea: the rows alive after h1, netted. Bound: the live elements.

>>> from sweeparea.operators.ordered.snapshot import SnapshotSpec
>>> from sweeparea.operators.time.ticks import INF
>>> from sweeparea.operators.values.order import OrderKey
>>> rows = SnapshotSpec((), ("v", "__v0"), ((OrderKey("v"),),))
>>> table = pa.table({"v": [7, 9], "__v0": [7, 9], "__ts": [1, 3], "__te": [INF, 5], "__n": [1, 1]})
>>> lag = NavigationSpec(rows, ("v",), (("before", Reference("LAG", -1)),))
>>> found = [tuple(row.values()) for row in sweep(table, lag, 0, 9)[0].to_pylist()]
>>> sorted(found, key=lambda row: row[2]) == [(7, None, 1, INF, 1), (9, 7, 3, INF, 1), (9, 7, 5, INF, -1)]
True
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeparea.operators.base.later import later
from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.ordered.window_function import Windowed, WindowFunction, whole_number
from sweeparea.operators.plan.words import cut
from sweeparea.operators.time.domain import TimeDomain

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from sweeparea.operators.kernels import moves
    from sweeparea.operators.kernels import navigation as kernel
    from sweeparea.operators.ordered import snapshot
    from sweeparea.operators.ordered.snapshot import Snapshots, SnapshotSpec
    from sweeparea.operators.values import keys as key_codes
    from sweeparea.operators.values import netting
    from sweeparea.operators.values import order as order_of
else:
    np, pa, moves, kernel, snapshot, key_codes, netting, order_of = later(
        "numpy",
        "pyarrow",
        "sweeparea.operators.kernels.moves",
        "sweeparea.operators.kernels.navigation",
        "sweeparea.operators.ordered.snapshot",
        "sweeparea.operators.values.keys",
        "sweeparea.operators.values.netting",
        "sweeparea.operators.values.order",
    )

_EDGE = r"(CURRENT ROW|(?:\d{1,9}|UNBOUNDED) (?:PRECEDING|FOLLOWING))"
_FRAME = re.compile(f"ROWS BETWEEN {_EDGE} AND {_EDGE}")


@dataclass(frozen=True)
class Reference:
    """Which row of its group, in its order, a row refers to. ``kind``: LAG, the row ``low`` rows behind it (before it,
    where that is negative); FIRST and LAST, of the frame from ``low`` to ``high`` rows behind it (None: to the end of
    the group) the row number ``skip`` from its first or last one on. ``default``: there is a value where there is no
    such row.
    """

    kind: str
    low: int | None
    high: int | None = None
    skip: int = 0
    default: bool = False

    @property
    def reach(self) -> tuple[int, int, int, int]:
        """How many rows before and behind a change may refer to others by it; how many of the first and of the last
        rows all rows of a group may refer to.
        """
        low, high = self.low, self.high
        if self.kind == "LAG":
            assert low is not None
            return max(0, low), max(0, -low), 0, 0
        finite = [bound for bound in (low, high) if bound is not None]
        back = max(0, *finite, *(bound + self.skip for bound in finite), self.skip)
        ahead = max(0, *(-bound for bound in finite), *(self.skip - bound for bound in finite), self.skip)
        start = self.skip + 1 if self.kind == "FIRST" and low is None else 0
        end = self.skip + 1 if self.kind == "LAST" and high is None else 0
        return back, ahead, start, end


def reference_of(call: WindowFunction) -> Reference | None:
    """What a call refers to; None: its value is none of one other row that its place in the order tells."""
    if call.ignore_nulls or call.filter is not None or call.distinct or not call.order:
        return None
    if call.function in ("LAG", "LEAD"):
        offset = 1 if len(call.arguments) < 2 else whole_number(call.arguments[1])
        if offset is None:
            return None
        return Reference("LAG", -offset if call.function == "LAG" else offset, default=len(call.arguments) > 2)
    frame = _FRAME.fullmatch(call.frame)
    if call.function not in ("FIRST", "LAST", "NTH_VALUE") or frame is None:
        return None
    low, high = (_edge(text) for text in frame.groups())
    number = 1 if call.function != "NTH_VALUE" else whole_number(call.arguments[1])
    if number is None or number < 1:
        return None
    return Reference("LAST" if call.function == "LAST" else "FIRST", low, high, number - 1)


def _edge(text: str) -> int | None:
    """How many rows behind the row itself a bound lies; None: at the end of the group."""
    if text == "CURRENT ROW":
        return 0
    count, side = text.split()
    if count == "UNBOUNDED":
        return None
    return int(count) if side == "FOLLOWING" else -int(count)


@stored("Navigation", "input", "calls")
@dataclass(frozen=True)
class Navigation(Windowed):
    """Window functions of one PARTITION BY and one complete ORDER BY that give values of other rows."""

    def words(self, time: TimeDomain) -> str:
        return f"Values of other rows {cut(', '.join(call.words for _, call in self.calls))}"


@dataclass(frozen=True)
class NavigationSpec:
    """What to refer to: ``rows.orders[0]`` is the complete order; ``columns`` those that are put out, before the calls,
    by the names of their values.
    """

    rows: SnapshotSpec
    columns: tuple[str, ...]
    calls: tuple[tuple[str, Reference], ...]


def value_column(i: int) -> str:
    """The column with the argument of call number ``i``."""
    return f"__v{i}"


def default_column(i: int) -> str:
    """The column with the value of call number ``i`` where there is no row to refer to."""
    return f"__d{i}"


def sweep(rows: pa.Table, spec: NavigationSpec, h0: int, h1: int) -> tuple[pa.Table, pa.Table]:
    """(what the slice ``(h0, h1]`` adds to the result, carry). ``rows`` in any order: carry and new rows.

    Errors (DataError): a net number of copies below zero.
    """
    at = snapshot.Snapshots(rows, spec.rows, h0, h1)
    return _changes(at, spec), at.carry()


def _changes(at: Snapshots, spec: NavigationSpec) -> pa.Table:
    order, _ = order_of.sorted_groups(at.records, at.group, spec.rows.orders[0], 0)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    first = np.append(0, np.cumsum(np.bincount(at.group, minlength=at.groups)))
    references = [reference for _, reference in spec.calls]
    reaches = [max(sizes) for sizes in zip(*(reference.reach for reference in references), strict=True)]
    calls = np.array([_encoded(reference) for reference in references], np.int64)
    intervals = moves.intervals_of(place[at.interval], at.first, at.covers, at.copies)
    places, segment, n, *others = kernel.changes(intervals, at.opens, first, calls, tuple(reaches))
    record = order[places]
    values = [
        _values(at.records, i, r, record, order, o) for i, (r, o) in enumerate(zip(references, others, strict=True))
    ]
    # what is told as it was and as it is, with equal values, has not changed
    kept, n = netting.netted_rows((segment, places, *(code for _, code in values)), n)
    table = at.records.select(list(spec.columns)).take(pa.array(record[kept]))
    for (name, _), (column, _) in zip(spec.calls, values, strict=True):
        table = table.append_column(name, column.take(pa.array(kept)))
    return at.told(table, segment[kept], n)


def _encoded(reference: Reference) -> tuple[int, int, int, int]:
    kind = {"LAG": kernel.LAG, "FIRST": kernel.FIRST, "LAST": kernel.LAST}[reference.kind]
    low = -kernel.UNBOUNDED if reference.low is None else reference.low
    return kind, low, kernel.UNBOUNDED if reference.high is None else reference.high, reference.skip


def _values(
    records: pa.Table, i: int, reference: Reference, record: np.ndarray, order: np.ndarray, other: np.ndarray
) -> tuple[pa.Array, np.ndarray]:
    """(values of a call in the rows that are told, codes of these: equal values, equal codes)."""
    given = key_codes.one_array(records.column(value_column(i)))
    missing = key_codes.one_array(records.column(default_column(i))) if reference.default else pa.nulls(1, given.type)
    every = pa.concat_arrays([given, missing])
    absent = len(given) + (record if reference.default else 0)
    at = np.where(other >= 0, order[np.maximum(other, 0)], absent) if len(order) else other
    codes = key_codes.codes([every])[0]
    return every.take(pa.array(at)), codes[at] if len(at) else at
