"""What to do about a word that other systems, or other windows, have where it stands."""

from __future__ import annotations

from sweeparea.cql.syntax.windows.cursor import Cursor
from sweeparea.cql.syntax.windows.window_text import WindowKind
from sweeparea.cql.text.errors import ParseError
from sweeparea.cql.text.tokens import TokenType

_OF_ONE_SIZE = (WindowKind.TUMBLING, WindowKind.HOPPING)
_STEPPED = (WindowKind.RANGE, WindowKind.ROWS, *_OF_ONE_SIZE)
"""Windows for which other systems have a word of their own before the step."""


def misplaced(at: Cursor, kind: WindowKind, written: str, rows: int | None) -> ParseError | None:
    """The error for a word that stands behind the parts of a window and belongs elsewhere. ``written`` is the window
    before it, ``rows`` how many it counts.
    """
    if at.word in ("PRECEDING", "FOLLOWING"):
        what = f"{at.word} belongs to OVER: a window of a stream looks back from each instant anyway"
        more = f", or [Rows {rows + 1}] to count the newest row beside {rows} before it" if rows else ""
        return at.fail(what, f"Write {written}{more}" if at.word == "PRECEDING" else f"Write {written}")
    if at.word in ("EVERY", "ADVANCE", "STEP", "HOP", "BY") and kind in _STEPPED:
        head = "Hopping" if kind in _OF_ONE_SIZE else "Rows" if kind == WindowKind.ROWS else "Range"
        return at.fail(f"{at.found} is no part of a window", f"Write [{head} 10 Slide 5]")
    if at.word == "ORDER BY":
        return at.fail(
            "a window takes its elements in the order of their time, those of one instant by SEQUENCE BY",
            f"Leave ORDER BY out: write {written}, and SEQUENCE BY in CREATE STREAM",
        )
    if at.word in ("GAP", "TIMEOUT"):
        return at.fail(f"{at.found} is no part of a window", f"Write {written}")
    if at.token is not None and at.token.token_type == TokenType.COMMA:
        return at.fail("the parts of a window stand without commas", "Write [Range 10 Slide 5]")
    if at.word == "SLIDE" and kind == WindowKind.TUMBLING:
        return at.fail("'Slide' does not belong to a tumbling window", "Write [Hopping 10 Slide 5]")
    if at.word in ("SLIDE", "LAG", "ANCHOR", "INCLUSIVE", "EXCLUSIVE", "UNTIL", "EVERY"):
        return at.fail(
            f"{at.found} does not belong to a {kind} window, or not at this place",
            "Write [Range 10 Inclusive Slide 5 Lag 2 Anchor 1], with the parts in this order",
        )
    return None


def spelled_here(at: Cursor) -> str:
    """How a window is spelled here that begins otherwise elsewhere."""
    token = at.token
    if token is not None and token.token_type == TokenType.NUMBER:
        return f"Write [Rows {token.text}] for rows, [Range {token.text}] or [Range {token.text} Minutes] for time"
    return {
        "TUMBLE": "Write [Tumbling INTERVAL 1 HOUR]",
        "HOP": "Write [Hopping INTERVAL 1 HOUR Slide INTERVAL 5 MINUTES]",
        "LANDMARK": "Write [From TIMESTAMP '2024-01-31 12:00:00']",
        "COUNT": "Write [Rows 5]",
        "LAST": "Write [Rows 5] for the last rows, [Range INTERVAL 5 MINUTES] for the last five minutes",
        "FIRST": "Write [Until TIMESTAMP '2024-01-31 12:00:00'] for what comes first",
        "UNBOUNDED": "Write [Range Unbounded], or leave the window out",
        "SLIDING": "Write [Range INTERVAL 1 HOUR], with Slide INTERVAL 5 MINUTES for steps",
        "WINDOW": "Leave the word out: [Tumbling INTERVAL 1 HOUR]",
        "SIZE": "Write [Tumbling INTERVAL 1 HOUR]",
        "TIME": "Write [Range INTERVAL 1 HOUR]",
        "LENGTH": "Write [Rows 5]",
        "INTERVAL": "Write [Range INTERVAL 1 HOUR]",
        "ON": "Write [Range INTERVAL 1 HOUR]: a window counts its stream's own time",
        "ORDER BY": "Write [Rows 5]: a window takes its elements in the order of their time",
        "CALENDAR": "Write [Tumbling By Month]",
        "EVERY": "Write [Tumbling INTERVAL 1 HOUR]",
    }.get(at.word, "")
