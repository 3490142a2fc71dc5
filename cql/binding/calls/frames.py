"""Frames of window functions: ``ROWS BETWEEN 1 PRECEDING AND CURRENT ROW``, checked, as Spark SQL's text."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sweeparea.cql.binding.scope.binder import Binder
from sweeparea.cql.functions import types
from sweeparea.cql.text.errors import ParseError, Place, RefusedError, TypeError_

_EDGES = ("UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW", "FOLLOWING", "UNBOUNDED FOLLOWING")


@dataclass(frozen=True)
class Frame:
    """Which rows of its partition a window function sees. ``text`` is empty where the default stands.

    ``rows``: it counts rows, so equal ones differ. ``whole``: it is the partition. ``from_start``: it begins with the
    partition and reaches the current row.
    """

    text: str = ""
    rows: bool = False
    whole: bool = False
    from_start: bool = False

    @property
    def written(self) -> bool:
        return bool(self.text)


def frame_of(spec: exp.Expr | None, order: list[str | None], binder: Binder, node: exp.Expr) -> Frame:
    """The frame of a window; ``order`` are the types of its ORDER BY. TypeError_ where Spark would refuse it."""
    if spec is None:
        # SQL's default: the whole partition, or with ORDER BY up to the current row's peers
        return Frame(whole=not order, from_start=True)
    place = binder.place(node)
    kind = str(spec.args.get("kind") or "").upper()
    if kind not in ("ROWS", "RANGE"):
        raise RefusedError(
            f"a {kind} frame is not offered: Spark SQL has ROWS and RANGE alone", place, "Write ROWS BETWEEN .."
        )
    start = _edge(spec, "start", kind, binder, node)
    end = _edge(spec, "end", kind, binder, node) if spec.args.get("end") is not None else ("CURRENT ROW", "", None)
    if _position(start) > _position(end):
        raise TypeError_(
            f"the frame ends before it starts: {_shown(start)} comes after {_shown(end)}",
            place,
            "Write the earlier edge first",
        )
    if start[0] == "UNBOUNDED FOLLOWING" or end[0] == "UNBOUNDED PRECEDING":
        raise TypeError_("the frame holds no rows", place, "It goes from UNBOUNDED PRECEDING to UNBOUNDED FOLLOWING")
    whole = start[0] == "UNBOUNDED PRECEDING" and end[0] == "UNBOUNDED FOLLOWING"
    if kind == "RANGE" and not whole:
        _check_range(start, end, order, place)
    text = f"{kind} BETWEEN {_shown(start)} AND {_shown(end)}"
    reaches = end[0] in ("CURRENT ROW", "FOLLOWING", "UNBOUNDED FOLLOWING")
    return Frame(text, kind == "ROWS" and not whole, whole, start[0] == "UNBOUNDED PRECEDING" and reaches)


_Edge = tuple[str, str, int | None]
"""Kind, text of the offset, its value where it is a plain number."""


def _shown(edge: _Edge) -> str:
    return f"{edge[1]} {edge[0]}" if edge[1] else edge[0]


def _position(edge: _Edge) -> tuple[int, int]:
    value = edge[2] or 0
    return _EDGES.index(edge[0]), -value if edge[0] == "PRECEDING" else value


def _edge(spec: exp.Expr, which: str, kind: str, binder: Binder, node: exp.Expr) -> _Edge:
    value = spec.args.get(which)
    side = str(spec.args.get(f"{which}_side") or "").upper()
    if isinstance(value, str):
        word = value.upper()
        if word != "CURRENT ROW" and side not in ("PRECEDING", "FOLLOWING"):
            raise ParseError(
                "an edge of a frame says PRECEDING or FOLLOWING",
                binder.place(node),
                f"Write {kind} UNBOUNDED PRECEDING",
            )
        return ("CURRENT ROW", "", None) if word == "CURRENT ROW" else (f"UNBOUNDED {side}", "", None)
    if not isinstance(value, exp.Expr):
        return "CURRENT ROW", "", None
    if side not in ("PRECEDING", "FOLLOWING"):
        text = binder.source.splice(binder.span(value))
        between = isinstance(value, exp.Column) or spec.args.get("end") is not None
        raise ParseError(
            "an edge of a frame says PRECEDING or FOLLOWING",
            binder.place(value),
            "Write 1 PRECEDING, or CURRENT ROW"
            if between
            else f"Write {kind} {text} PRECEDING for the row itself and what is up to {text} before it",
        )
    bound = binder.derived("a frame", windows=None).bind(value)
    place = binder.place(value)
    if bound.expr.columns:
        raise TypeError_(
            f"an edge of a frame must be a constant, found {bound.expr.text}", place, "Write a number or an INTERVAL"
        )
    if isinstance(value, exp.Neg):
        raise TypeError_("an edge of a frame cannot be negative", place, "Swap PRECEDING and FOLLOWING")
    literal = str(value.this) if isinstance(value, exp.Literal) and not value.is_string else ""
    if kind == "ROWS" and bound.type not in (None, *types.INTEGRAL):
        raise TypeError_(f"ROWS counts rows, and {bound.expr.text} is no whole number", place, "Write ROWS 1 PRECEDING")
    return side, bound.expr.sql, int(literal) if literal.isdigit() else None


def _check_range(start: _Edge, end: _Edge, order: list[str | None], place: Place) -> None:
    offsets = [edge for edge in (start, end) if edge[1]]
    if not order:
        raise TypeError_("a RANGE frame needs ORDER BY in OVER", place, "Add ORDER BY, or write ROWS")
    if not offsets:
        return
    if len(order) > 1:
        raise TypeError_(
            "a RANGE frame with an offset needs exactly one expression in ORDER BY",
            place,
            "Order by one expression, or count ROWS",
        )
    [type_] = order
    if type_ is not None and not types.is_numeric(type_) and type_ not in ("date", "timestamp", "timestamp_ntz"):
        raise TypeError_(
            f"a RANGE frame cannot add an offset to {type_.upper()}",
            place,
            "Order by a number or a time, or count ROWS",
        )
