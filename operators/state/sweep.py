"""What all sweeps are to whoever runs them: a pure function of one slice, and what is needed to hand it its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from sweeparea.operators.state.due import Due


class Run(Protocol):
    """``run(rows, h0=, h1=)``: (what the slice ``(h0, h1]`` adds to the result, what is carried to the next one).

    ``rows`` are the carry of the slice before and the new rows, in any order.
    """

    def __call__(self, rows: pa.Table, *, h0: int, h1: int) -> tuple[pa.Table, pa.Table]: ...


@dataclass(frozen=True)
class Sweep:
    """A sweep (Kraemer & Seeger 2005, section 4.1: the operator that a SweepArea belongs to).

    ``keys``: the columns by which rows meet; without any, all do. ``rows`` is the schema of what it takes and of what
    it carries, ``result`` that of what it adds. ``due``: when a key needs a look though nothing new has come.
    """

    keys: tuple[str, ...]
    rows: pa.Schema
    result: pa.Schema
    due: Due
    run: Run
