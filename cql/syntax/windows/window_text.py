"""Windows as they are written, before a time domain is known: ``[Range INTERVAL 6 HOURS Slide INTERVAL 1 HOUR]``.

``reader.py`` makes them of tokens, the binder's ``from_clause/windows.py`` makes a plan's ``Window`` of them. A new
window is one more kind here, one more head there and one more method there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sweeparea.cql.text.source_text import SourceText, Span


class WindowKind(StrEnum):
    """The windows of the language; messages name them by these words."""

    NOW = "now"
    RANGE = "range"
    UNBOUNDED = "unbounded"
    TUMBLING = "tumbling"
    HOPPING = "hopping"
    FIXED = "fixed"
    LANDMARK = "landmark"
    ROWS = "rows"
    SESSION = "session"
    CALENDAR = "calendar"
    WHEN = "when"
    USER = "user"


@dataclass(frozen=True)
class WindowText:
    """A window as written.

    ``parts`` holds what was given, by name: range, slide, lag, anchor, size, start, end (lengths or instants), rows,
    row_slide (numbers), unit, zone, name (texts), bounds ('inclusive' or 'exclusive'), condition (a syntax tree),
    partition, arguments (lists of them).
    """

    kind: WindowKind
    span: Span
    source: SourceText
    parts: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def text(self) -> str:
        return self.source.splice(self.span)
