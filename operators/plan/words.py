"""Pieces of explain's lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sweeparea.operators.sql.expressions import Column, Expr, SortKey
from sweeparea.operators.time.domain import TimeDomain

WIDTH = 150


BY_TIME = "by time"
"""How workers share a group, for explain."""


def cut(text: str) -> str:
    """The text on one line of bearable length."""
    text = " ".join(text.split())
    return text if len(text) <= WIDTH else text[: WIDTH - 2] + ".."


def columns_text(columns: Sequence[Column], types: bool = False) -> str:
    """The columns' names, with their types where these are known."""
    return cut(", ".join(f"{c.label} {c.type}" if types and c.type else c.label for c in columns))


def listed(expressions: Iterable[Expr]) -> str:
    return ", ".join(expr.words for expr in expressions)


def order_text(keys: Sequence[SortKey]) -> str:
    """The keys of an ORDER BY, NULLS FIRST and LAST where they are not the default."""
    shown = []
    for key in keys:
        nulls = "" if key.nulls_first != key.descending else f" NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        shown.append(f"{key.expr.words}{' DESC' if key.descending else ''}{nulls}")
    return cut(", ".join(shown))


def every_text(every: int | None, anchor: int, time: TimeDomain) -> str:
    """``every 2 hours``: the instants of an Rstream."""
    if every is None:
        return ""
    return f" every {time.length(every)}" + (f", anchor {time.instant(anchor)}" if anchor else "")
