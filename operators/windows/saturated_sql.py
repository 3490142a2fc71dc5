"""Sums and hops of ticks in Spark SQL and in Python, none of which leaves the BIGINT range."""

from __future__ import annotations

from sweeparea.operators.time.ticks import INF, MAX_TICK


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
