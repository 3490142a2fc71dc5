"""``WINDOW_START(S)`` and ``WINDOW_END(S)``: the bounds of the bucket or session that an element is seen in.

Windows without buckets have none: what would be the start of ``[Range 5]`` for an element that stays while the window
moves?
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sweeparea.cql.binding.scope.scopes import Scope
from sweeparea.cql.text.errors import Place, TypeError_
from sweeparea.operators import windows as spec
from sweeparea.operators.sql.expressions import Column
from sweeparea.operators.time.domain import TimeDomain

BOUNDED = (spec.Hopping, spec.Fixed, spec.Session, spec.Calendar)
"""Windows with bounds; Tumbling is a Hopping."""


def bounds_of(
    window: spec.WindowDefinition, time: TimeDomain, new_column: Callable[[str, str | None], Column]
) -> tuple[Column, Column] | None:
    """Columns for the bounds, of the type of the time domain; None where the window has none."""
    if not isinstance(window, BOUNDED):
        return None
    return new_column("window_start", time.type), new_column("window_end", time.type)


def bound_column(call: exp.Anonymous, scope: Scope, place: Place) -> Column:
    """The column that a call of WINDOW_START or WINDOW_END means."""
    name = call.name.upper()
    argument = call.expressions[0] if len(call.expressions) == 1 else None
    if not isinstance(argument, exp.Column) or argument.table or not isinstance(argument.this, exp.Identifier):
        raise TypeError_(f"{name} takes the name of one windowed stream of FROM", place, f"Write {name}(S)")
    item = scope.item(argument.name, place)
    if item.window is None:
        raise TypeError_(
            f"{name} needs a stream under a window, and {item.name} is none",
            place,
            "Give it a window with bounds: [Tumbling ..], [Hopping ..], [Fixed ..] or [Session ..]",
        )
    if item.window.bounds is None:
        raise TypeError_(
            f"the window of {item.name} has no bounds: they move with every instant",
            place,
            "Windows with bounds are [Tumbling ..], [Hopping ..], [Fixed ..] and [Session ..]",
        )
    return item.window.bounds[name == "WINDOW_END"]
