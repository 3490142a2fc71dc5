"""Sums and hops of ticks in Spark SQL, in Python and over arrays, none of which leaves the BIGINT range."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeparea.operators.base.later import later
from sweeparea.operators.time.ticks import INF, MAX_TICK

if TYPE_CHECKING:
    import numpy as np
else:
    (np,) = later("numpy")


def plus(a: str, b: str | int) -> str:
    """SQL for a + b saturated to ``INF``; ``a`` may be ``INF``, b is at least 0. Compares first, so that no BIGINT
    overflows.
    """
    if b == 0:
        return a
    if isinstance(b, int):
        return f"IF({a} > {MAX_TICK - b}L, {INF}L, {a} + {b}L)"
    return f"IF({a} > {MAX_TICK}L - {b}, {INF}L, {a} + {b})"


def hop_at_or_after(x: int, slide: int, anchor: int) -> int:
    return x + (anchor - x) % slide


def to_hop_sql(x: str, slide: int, anchor: int) -> str | int:
    # how far the next hop is; reduced first so that neither term can leave the BIGINT range
    return f"pmod({anchor % slide}L - pmod({x}, {slide}L), {slide}L)" if slide > 1 else 0


def sums(a: np.ndarray, b: int | np.ndarray) -> np.ndarray:
    """``plus`` of an array of ticks."""
    if isinstance(b, int) and b == 0:
        return a
    return np.where(a > MAX_TICK - b, INF, a + b)


def to_hops(x: np.ndarray, slide: int, anchor: int) -> np.ndarray | int:
    """``to_hop_sql`` of an array of ticks."""
    return (anchor % slide - x % slide) % slide if slide > 1 else 0
