"""When a slice has to look at a key of a SweepArea though nothing new has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sweeparea.operators.time.ticks import INF, MAX_TICK
from sweeparea.operators.values import keys
from sweeparea.operators.values.bag import TE, TS

Due = Callable[[pa.Table, int], np.ndarray]
"""(carried rows, h1) -> for each row the first tick after h1 at which its key needs a look; ``INF``: never."""


def bag_due(rows: pa.Table, h1: int) -> np.ndarray:
    """Rows of a signed temporal bag: where they begin, if that is still to come, else where they end."""
    start, end = keys.int64_of(rows.column(TS)), keys.int64_of(rows.column(TE))
    return np.where(start > h1, start, end)


def never(rows: pa.Table, h1: int) -> np.ndarray:
    """Rows of which only later rows of the same key can make anything."""
    return np.full(rows.num_rows, INF)


@dataclass(frozen=True)
class Later:
    """Rows that are looked at ``ticks`` after their instant, unless that lies behind."""

    ticks: int

    def __call__(self, rows: pa.Table, h1: int) -> np.ndarray:
        at = keys.int64_of(rows.column(TS))
        then = np.where(at > INF - self.ticks, INF, at + min(self.ticks, INF))
        return np.where(then > h1, then, INF)


@dataclass(frozen=True)
class Lazily:
    """``due``, for rows that nothing but their going is left to do for: looked at every ``interval`` ticks only.

    Golab & Oezsu 2005, section 2.1: expiration may be lazy where expired rows are skipped in processing.
    """

    due: Due
    interval: int

    def __call__(self, rows: pa.Table, h1: int) -> np.ndarray:
        at = self.due(rows, h1)
        late = -(-at // self.interval) * self.interval
        return np.where((at > MAX_TICK) | (late < at), at, late)
