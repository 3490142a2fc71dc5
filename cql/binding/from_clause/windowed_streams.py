"""Streams under their windows: those of FROM, and the subqueries that mean or become one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sweeparea.cql.binding.from_clause.windows import bind_window
from sweeparea.cql.binding.scope.context import Context
from sweeparea.cql.binding.scope.rstream_every import every_of
from sweeparea.cql.binding.scope.scopes import INSTANT, Item
from sweeparea.cql.binding.scope.window_bounds import bounds_of
from sweeparea.cql.binding.subqueries.queries import BoundQuery
from sweeparea.cql.syntax.windows.window_text import WindowText
from sweeparea.cql.text.errors import BindError, Place, TypeError_
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.nodes import RelationToStream, StreamScan, Window
from sweeparea.operators.plan.stream_kind import StreamKind
from sweeparea.operators.sql.expressions import Column
from sweeparea.operators.windows import Unbounded, UserWindow

Windowed = tuple[Window, tuple[Column, ...], Column | None]
"""A stream under its window, its columns and its instant."""


def window_over(
    context: Context,
    stream: StreamScan | RelationToStream,
    window: WindowText | None,
    name: str | None,
    named: tuple[Column, ...] | None = None,
) -> Windowed:
    """A stream under its window. ``named`` are the columns as the window names them, where an alias before it does."""
    columns = tuple(c for c in stream.columns if stream.instant is None or c.id != stream.instant.id)
    if window is None:
        context.note(f"{name or 'a subquery'} has no window: [Range Unbounded] is taken")
        return Window(stream, Unbounded()), columns, stream.instant
    try:
        # derived streams have no sequence
        sequence = context.sequence_of(stream) if isinstance(stream, StreamScan) else None

        def bound(visible: tuple[Column, ...]) -> Window:
            item = Item(name, visible, stream.instant)
            return bind_window(context, stream, item, window, sequence)

        node = _first(lambda: bound(named or columns), lambda: bound(columns))
    except SweepAreaError as error:
        context.faults.append(error)  # the rest of the query may have faults to tell as well
        return Window(stream, Unbounded()), columns, stream.instant
    if isinstance(node.spec, UserWindow):
        context.functions_used.setdefault(node.spec.name.lower(), context.functions[node.spec.name.lower()])
    node = replace(node, bounds=bounds_of(node.spec, context.time, context.new_column))
    return node, columns, stream.instant


def _first(bind: Callable[[], Window], otherwise: Callable[[], Window]) -> Window:
    """A window over the columns as its alias names them; else by their own names, as deployed queries may."""
    try:
        return bind()
    except SweepAreaError as error:
        try:
            return otherwise()
        except SweepAreaError:
            raise error from None


def window_over_query(
    context: Context,
    bound: BoundQuery,
    window: WindowText | None,
    place: Place,
    alias: str | None = None,
    names: Callable[[tuple[Column, ...]], tuple[Column, ...]] = lambda columns: columns,
) -> Windowed:
    """A subquery under a window. A monotonic relation becomes a stream by Istream, any other relation is a type
    error. ``names`` gives the columns as the window names them."""
    name = alias or "the subquery"
    every, anchor = None, 0
    if bound.to_stream is not None:
        kind = StreamKind(bound.to_stream.kind.lower())
        every, anchor = every_of(bound.to_stream, context.source, context.time)
    elif bound.node.monotonic:
        kind = StreamKind.ISTREAM
        context.note(f"{name} is a monotonic relation under a window: Istream is added")
    else:
        raise TypeError_(
            f"a window needs a stream, but {name} is a relation whose rows also leave",
            context.source.place(window.span[0]) if window is not None else place,
            "Say which stream of it is meant: ISTREAM(..), DSTREAM(..) or RSTREAM(..) around the subquery",
        )
    clash = [c for c in bound.columns if c.label.lower() == INSTANT]
    if clash:
        raise BindError(
            f"column ts of {name} clashes with the instant that every stream has",
            place,
            "Give it an alias inside the subquery",
        )
    stream = RelationToStream(bound.node, kind, every, anchor, context.instant(context.time))
    return window_over(context, stream, window, alias, names(bound.columns))
