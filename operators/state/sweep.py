"""What all sweeps are to whoever runs them: a pure function of one slice, and what is needed to hand it its rows.

The procedures of a SweepArea (Kraemer & Seeger 2005, section 4.3.1), a slice at a time: INSERT is staging the carry
(``sweep_area.py``, ``expiry_log.py``); QUERY is what a slice reads again, the keys that it has to do with or the rows
of a join's side (``held``); REMOVE and REORGANIZE are what a sweep leaves out of its carry, the keys that are looked at
because something of theirs expires (``due.py``), and the merging of files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
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

    ``carried`` makes of rows, none of which begins after h, what a slice after h needs of them, in few rows; None: a
    key is not divided by time. ``values``: how it is divided by values before. ``shared``: as ``run``, of which
    both may share their records (``shared_rows.py``); None: they do not.
    """

    keys: tuple[str, ...]
    rows: pa.Schema
    result: pa.Schema
    due: Due
    run: Run
    carried: Callable[[pa.Table, int], pa.Table] | None = None
    values: ByValue | None = None
    shared: Run | None = None


@dataclass(frozen=True)
class ByValue:
    """How several workers share the rows of a key by what they hold, before a sweep ``then`` puts together what they
    have made of it; h0 and h1 as of ``Run``.

    ``combined(rows, h0)``: rows that can be shared; ``places(rows, workers)``: the worker of each of them; ``counted``:
    which of them it has to do with, others pass; ``run(rows, h0, h1)``: (rows for ``then``, what is carried of those
    that are counted); ``remembered``: what ``then`` carries as rows of the sweep.
    """

    combined: Callable[[pa.Table, int], pa.Table]
    places: Callable[[pa.Table, int], np.ndarray]
    counted: Callable[[pa.Table], np.ndarray]
    run: Callable[[pa.Table, int, int], tuple[pa.Table, pa.Table]]
    then: Sweep
    remembered: Callable[[pa.Table], pa.Table]
