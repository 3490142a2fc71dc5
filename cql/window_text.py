"""Windows as they are written, before a time domain is known: ``[Range INTERVAL 6 HOURS Slide INTERVAL 1 HOUR]``.

Every window of the language is read here; ``windows.py`` makes a ``WindowSpec`` of those that an operator covers. A
new window is one more entry of ``_HEADS`` here and one more method there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sweeparea.cql.durations import MICROS, parse_duration, parse_instant
from sweeparea.cql.errors import ParseError, nearest
from sweeparea.cql.source_text import SourceText, Span
from sweeparea.cql.tokens import Token, TokenType

_UNITS = tuple(unit.lower() + "s" for unit in MICROS)
ExpressionParser = Callable[[int], tuple[Any, int]]


@dataclass(frozen=True)
class WindowText:
    """A window as written. ``kind``: now, range, unbounded, tumbling, hopping, fixed, landmark, rows, session,
    calendar, when.

    ``parts`` holds what was given, by name: range, slide, lag, anchor, size, start, end (lengths or instants), rows,
    row_slide (numbers), unit, zone (texts), bounds ('inclusive' or 'exclusive'), partition, condition (syntax trees).
    """

    kind: str
    span: Span
    source: SourceText
    parts: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def text(self) -> str:
        return self.source.splice(self.span)


def parse_window(
    source: SourceText, tokens: Sequence[Token], index: int, expression: ExpressionParser
) -> tuple[WindowText, int]:
    """The window whose ``[`` is ``tokens[index]``, and the index behind its ``]``."""
    reader = _Reader(source, tokens, index, expression)
    return reader.window(), reader.index


class _Reader:
    def __init__(self, source: SourceText, tokens: Sequence[Token], index: int, expression: ExpressionParser) -> None:
        self.source, self.tokens, self.index, self.expression = source, tokens, index, expression
        self.first = tokens[index]
        self.parts: dict[str, Any] = {}

    # -- tokens ------------------------------------------------------------------------------------------------------

    @property
    def word(self) -> str:
        if self.index >= len(self.tokens):
            return ""
        token = self.tokens[self.index]
        return "" if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) else token.text.upper()

    def _fail(self, message: str, hint: str = "") -> ParseError:
        if self.index < len(self.tokens):
            offset = self.tokens[self.index].start
        else:
            offset = self.tokens[-1].end
        return ParseError(message, self.source.place(offset), hint)

    def _match(self, *words: str) -> bool:
        for i, word in enumerate(words):
            at = self.index + i
            if at >= len(self.tokens) or self.tokens[at].text.upper() != word:
                return False
        self.index += len(words)
        return True

    def _found(self) -> str:
        return repr(self.tokens[self.index].text) if self.index < len(self.tokens) else "the end of the text"

    def _duration(self, name: str, what: str) -> None:
        if name in self.parts:
            raise self._fail(f"{what} is given twice in this window")
        self.parts[name], self.index = parse_duration(self.source, self.tokens, self.index, what)

    def _instant(self, name: str, what: str) -> None:
        if name in self.parts:
            raise self._fail(f"{what} is given twice in this window")
        self.parts[name], self.index = parse_instant(self.source, self.tokens, self.index, what)

    def _count(self, name: str, what: str) -> None:
        token = self.tokens[self.index] if self.index < len(self.tokens) else None
        if token is None or token.token_type != TokenType.NUMBER or not token.text.isdigit():
            raise self._fail(f"{what} needs a whole number of rows, found {self._found()}", "Write [Rows 5]")
        if int(token.text) < 1:
            raise self._fail(f"{what} must be at least 1, found {token.text}")
        self.parts[name] = int(token.text)
        self.index += 1

    # -- the grammar -------------------------------------------------------------------------------------------------

    def window(self) -> WindowText:
        self.index += 1
        kind = self._head()
        if not self._match("]"):
            if self.word in ("SLIDE", "LAG", "ANCHOR", "INCLUSIVE", "EXCLUSIVE", "UNTIL", "EVERY"):
                raise self._fail(f"{self._found()} does not belong to a {kind} window, or not at this place")
            raise self._fail(
                f"']' is expected at the end of the window, found {self._found()}",
                nearest(
                    self.word, ("Slide", "Lag", "Anchor", "Inclusive", "Exclusive", "Until", "Partition By", *_UNITS)
                ),
            )
        return WindowText(kind, (self.first.start, self.tokens[self.index - 1].end + 1), self.source, self.parts)

    def _head(self) -> str:
        heads = {
            "NOW": self._now,
            "RANGE": self._range,
            "ROWS": self._rows,
            "TUMBLING": self._tumbling,
            "HOPPING": self._hopping,
            "FIXED": self._fixed,
            "FROM": self._landmark,
            "UNTIL": self._landmark,
            "PARTITION BY": self._partition,
            "SESSION": self._session,
        }
        head = heads.get(self.word)
        if head is None:
            names = ("Now", "Range", "Rows", "Tumbling", "Hopping", "Fixed", "From", "Until", "Partition By", "Session")
            raise self._fail(
                f"a window is expected, found {self._found()}",
                nearest(self.word, names)
                or "Windows: [Now], [Range ..], [Rows ..], [Tumbling ..], [Hopping ..], [Fixed ..], "
                "[From ..], [Until ..], [Partition By .. Rows ..], [Session ..]",
            )
        return head()

    def _now(self) -> str:
        self.index += 1
        return "now"

    def _range(self) -> str:
        self.index += 1
        if self._match("UNBOUNDED"):
            return "unbounded"
        self._duration("range", "Range")
        self._bounds()
        if self._match("SLIDE"):
            self._duration("slide", "Slide")
        if self._match("LAG"):
            self._duration("lag", "Lag")
        if self._match("ANCHOR"):
            self._instant("anchor", "Anchor")
        return "range"

    def _bounds(self) -> None:
        for word in ("INCLUSIVE", "EXCLUSIVE"):
            if self._match(word):
                self.parts["bounds"] = word.lower()
                return

    def _rows(self) -> str:
        self.index += 1
        if self._match("UNBOUNDED"):
            return "unbounded"
        self._count("rows", "Rows")
        if self._match("SLIDE"):
            self._count("row_slide", "Slide")
        return "rows"

    def _tumbling(self) -> str:
        self.index += 1
        if self._match("BY"):
            token = self.tokens[self.index] if self.index < len(self.tokens) else None
            if token is None or token.token_type == TokenType.R_BRACKET:
                raise self._fail("Tumbling By needs a calendar unit, such as Day or Month")
            self.parts["unit"] = token.text.lower()
            self.index += 1
            if self._match("IN"):
                if self.index >= len(self.tokens):
                    raise self._fail("In needs a time zone, such as 'Europe/Berlin'")
                self.parts["zone"] = self.tokens[self.index].text
                self.index += 1
            return "calendar"
        if self._match("WHEN"):
            self.parts["condition"], self.index = self.expression(self.index)
            self._partition_columns()
            return "when"
        self._duration("size", "Tumbling")
        self._anchor()
        return "tumbling"

    def _anchor(self) -> None:
        if self._match("ANCHOR"):
            self._instant("anchor", "Anchor")

    def _hopping(self) -> str:
        self.index += 1
        self._duration("size", "Hopping")
        if not self._match("SLIDE"):
            raise self._fail(
                f"Hopping needs Slide, found {self._found()}", "Write [Hopping 10 Slide 5], or [Tumbling 10]"
            )
        self._duration("slide", "Slide")
        self._anchor()
        return "hopping"

    def _fixed(self) -> str:
        self.index += 1
        self._duration("size", "Fixed")
        self._anchor()
        return "fixed"

    def _landmark(self) -> str:
        if self._match("FROM"):
            self._instant("start", "From")
        if self._match("UNTIL"):
            self._instant("end", "Until")
        return "landmark"

    def _partition_columns(self) -> None:
        if self.word != "PARTITION BY":
            return
        self.index += 1
        columns: list[Any] = []
        while True:
            column, self.index = self.expression(self.index)
            if column is None:
                raise self._fail(f"Partition By needs a column, found {self._found()}")
            columns.append(column)
            if not self._match(","):
                break
        self.parts["partition"] = columns

    def _partition(self) -> str:
        self._partition_columns()
        if not self._match("ROWS"):
            raise self._fail(
                f"Partition By needs Rows behind it, found {self._found()}", "Write [Partition By A Rows 2]"
            )
        self._count("rows", "Rows")
        if self._match("RANGE"):
            self._duration("range", "Range")
            self._bounds()
        if self._match("SLIDE"):
            self._count("row_slide", "Slide")
        return "partition"

    def _session(self) -> str:
        self.index += 1
        self._duration("size", "Session")
        self._partition_columns()
        return "session"
