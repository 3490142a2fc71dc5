"""Windows of a plan as they are written, a function for each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

from sweeparea.cql.printing.not_printable import NotPrintable
from sweeparea.cql.printing.statement_printer import name
from sweeparea.operators import windows as spec


@dataclass(frozen=True)
class WindowParts:
    """What a window's text is made of beside its definition: how ticks are written, and its ``partition`` (with a space
    before it, empty where there is none), ``condition`` and ``arguments``.
    """

    length: Callable[[int], str]
    partition: str
    condition: str
    arguments: str


@singledispatch
def window_text(window: spec.WindowDefinition, parts: WindowParts) -> str:
    """The window in brackets. NotPrintable where the language has no words for it."""
    del parts
    raise NotPrintable(f"The window {window} has no text of its own.")


@window_text.register
def _(window: spec.Unbounded, parts: WindowParts) -> str:
    del window, parts
    return "[Range Unbounded]"


@window_text.register
def _(window: spec.Range, parts: WindowParts) -> str:
    return f"[Range {parts.length(window.length)} Exclusive]"


@window_text.register
def _(window: spec.Slide, parts: WindowParts) -> str:
    length = parts.length
    hops = f" Slide {length(window.slide)} Lag {length(window.lag)} Anchor {length(window.anchor)}"
    return f"[Range {length(window.length)} Exclusive{hops}]"


@window_text.register
def _(window: spec.Hopping, parts: WindowParts) -> str:
    length = parts.length
    return f"[Hopping {length(window.length)} Slide {length(window.slide)} Anchor {length(window.anchor)}]"


@window_text.register
def _(window: spec.Fixed, parts: WindowParts) -> str:
    return f"[Fixed {parts.length(window.length)} Anchor {parts.length(window.anchor)}]"


@window_text.register
def _(window: spec.Landmark, parts: WindowParts) -> str:
    start = f"From {parts.length(window.start)}" if window.start is not None else ""
    end = f"Until {parts.length(window.end)}" if window.end is not None else ""
    return f"[{' '.join(x for x in (start, end) if x)}]"


@window_text.register
def _(window: spec.Calendar, parts: WindowParts) -> str:
    del parts
    return f"[Tumbling By {window.unit} In '{window.zone}']"


@window_text.register
def _(window: spec.Rows, parts: WindowParts) -> str:
    span = f" Range {parts.length(window.length)} Exclusive" if window.length is not None else ""
    slide = f" Slide {window.slide}" if window.slide != 1 else ""
    partition = f"{parts.partition.strip()} " if parts.partition else ""
    return f"[{partition}Rows {window.count}{span}{slide}]"


@window_text.register
def _(window: spec.Session, parts: WindowParts) -> str:
    return f"[Session {parts.length(window.gap)}{parts.partition}]"


@window_text.register
def _(window: spec.When, parts: WindowParts) -> str:
    del window
    return f"[Tumbling When ({parts.condition}){parts.partition}]"


@window_text.register
def _(window: spec.UserWindow, parts: WindowParts) -> str:
    return f"[{name(window.name)}({parts.arguments})]"
