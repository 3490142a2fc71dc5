"""Window functions that follow from numbers and counts of rows: NTILE, PERCENT_RANK, CUME_DIST and COUNT(*).

What they count stands beside a row as of ``top_k.py``, and a projection computes them as Spark does. All of them but
COUNT(*) up to a row depend on how many rows the partition has, so that a change changes all rows: that is what they
show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sweeparea.operators.ordered.window_function import WindowFunction
from sweeparea.operators.plan.numbers import ALL, RANK, ROW_NUMBER, UP_TO_PEERS
from sweeparea.operators.sql.expressions import Column, Expr

WHOLE = "BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_TO_CURRENT = ("", "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
Named = Callable[[WindowFunction], str]
"""The column, as SQL, that holds a count."""


def counts_of(call: WindowFunction) -> tuple[WindowFunction, ...] | None:
    """The numbers and counts from which a call follows; None: it does not."""
    if call.filter is not None or call.distinct or call.ignore_nulls:
        return None
    plain = replace(call, arguments=(), frame="")
    every = replace(plain, function=ALL, order=())
    if call.function == "NTILE":
        return replace(plain, function=ROW_NUMBER), every
    if call.function == "PERCENT_RANK":
        return replace(plain, function=RANK), every
    if call.function == "CUME_DIST":
        return replace(plain, function=UP_TO_PEERS), every
    if call.function != "COUNT" or call.arguments:
        return None
    if not call.order or call.frame.endswith(WHOLE):
        return (every,)
    return (replace(plain, function=UP_TO_PEERS),) if call.frame in _TO_CURRENT else None


def computed(column: Column, call: WindowFunction, named: Named) -> Expr:
    """A call's value from the columns of its counts; ``ValueError`` for another call."""
    counts = counts_of(call)
    if counts is None:
        raise ValueError(f"{call.function} does not follow from counts of rows")
    names = [named(count) for count in counts]
    ids = frozenset(name.strip("`") for name in names)
    first, rows = names[0], names[-1]
    if call.function == "NTILE":
        n = f"({call.arguments[0].sql})"
        larger, size = f"({rows} % {n})", f"({rows} div {n})"
        edge = f"{larger} * ({size} + 1)"
        behind = f"{larger} + ({first} - {edge} - 1) div greatest({size}, 1) + 1"
        sql = f"CAST(IF({first} <= {edge}, ({first} - 1) div ({size} + 1) + 1, {behind}) AS INT)"
    elif call.function == "PERCENT_RANK":
        sql = f"IF({rows} > 1, CAST({first} - 1 AS DOUBLE) / CAST({rows} - 1 AS DOUBLE), 0.0D)"
    elif call.function == "CUME_DIST":
        sql = f"CAST({first} AS DOUBLE) / CAST({rows} AS DOUBLE)"
    else:
        sql = f"CAST({first} AS BIGINT)"
    return Expr(sql, column.label, ids)
