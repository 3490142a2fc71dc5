"""Windows as they are written, before a time domain is known: ``[Range INTERVAL 6 HOURS Slide INTERVAL 1 HOUR]``.

Every window of the language is read here; ``windows.py`` makes a plan's ``Window`` of it. A new window is one more
head here and one more method there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sweeparea.cql.text import zone_names
from sweeparea.cql.text.constants import decimal_text
from sweeparea.cql.text.durations import parse_duration, parse_instant, parse_number, refuse_reference
from sweeparea.cql.text.errors import ParseError, nearest
from sweeparea.cql.text.keywords import misspelt
from sweeparea.cql.text.source_text import SourceText, Span
from sweeparea.cql.text.tokens import Token, TokenType
from sweeparea.infra import zones
from sweeparea.operators.time.domain import MICROS

CALENDAR_UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
"""What Tumbling By takes."""
_UNITS = tuple(unit.lower() + "s" for unit in MICROS)
ExpressionParser = Callable[[int], tuple[Any, int]]


@dataclass(frozen=True)
class WindowText:
    """A window as written. ``kind``: now, range, unbounded, tumbling, hopping, fixed, landmark, rows, session,
    calendar, when, user.

    ``parts`` holds what was given, by name: range, slide, lag, anchor, size, start, end (lengths or instants), rows,
    row_slide (numbers), unit, zone, name (texts), bounds ('inclusive' or 'exclusive'), condition (a syntax tree),
    partition, arguments (lists of them).
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
    reader = _WindowReader(source, tokens, index, expression)
    return reader.window(), reader.index


def calendar_unit(text: str) -> str | None:
    """``month`` of ``Month`` or ``MONTHS``; None for what is no unit of the calendar."""
    unit = text.lower().removesuffix("s")
    return unit if unit in CALENDAR_UNITS else None


def _is_unit(word: str) -> bool:
    return word.lower() in (*_UNITS, *(u.removesuffix("s") for u in _UNITS)) or calendar_unit(word) is not None


class _WindowReader:
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
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            return ""
        return " ".join(token.text.upper().split())  # PARTITION BY is one token, with what white space it has

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
            if self.tokens[at].token_type in (TokenType.STRING, TokenType.IDENTIFIER):
                return False
        self.index += len(words)
        return True

    def _found(self) -> str:
        return repr(self.tokens[self.index].text) if self.index < len(self.tokens) else "the end of the text"

    def _near(self, names: Sequence[str]) -> str:
        """The word that was meant, unless what stands there is a keyword of SQL: then the window was not closed."""
        is_name = self.index < len(self.tokens) and self.tokens[self.index].token_type == TokenType.VAR
        return misspelt(self.word, names) if is_name else ""

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
        refuse_reference(self.source, self.tokens, self.index, what)
        if token is None or token.token_type not in (TokenType.NUMBER, TokenType.L_PAREN):
            raise self._fail(f"{what} needs a whole number of rows, found {self._found()}", "Write [Rows 5]")
        if token.token_type == TokenType.NUMBER and not token.text.isdigit():
            raise self._fail(f"{what} needs a whole number of rows, found {self._found()}", "Write [Rows 5]")
        first = self.index
        value, text, self.index = parse_number(self.source, self.tokens, self.index, what)
        place = self.source.place(self.tokens[first].start)
        if value.denominator != 1:
            raise ParseError(f"{what} {text} is no whole number of rows: {decimal_text(value)}", place)
        if value >= 10**18:
            raise ParseError(f"{what} {text[:20]}.. is more rows than a window can count", place)
        if value < 1:
            raise ParseError(
                f"{what} must be at least 1, found {text}", place, f"Write {what} 1, the newest row, or more of them"
            )
        self.parts[name] = value.numerator
        if _is_unit(self.word):
            raise self._fail(
                f"{what} counts rows, but {self._found()} is a unit of time",
                "Write [Range 5 Minutes], or [Rows 5]",
            )

    # -- the grammar -------------------------------------------------------------------------------------------------

    def window(self) -> WindowText:
        self.index += 1
        kind = self._head()
        self._on()
        if not self._match("]"):
            self._refuse_elsewhere(kind)
            raise self._fail(
                f"']' is expected at the end of the window, found {self._found()}",
                self._near(("Slide", "Lag", "Anchor", "Inclusive", "Exclusive", "Until", "Partition By", *_UNITS)),
            )
        return WindowText(kind, (self.first.start, self.tokens[self.index - 1].end + 1), self.source, self.parts)

    def _on(self) -> None:
        """``ON ts``: the time that a window counts in any case."""
        first = self.index
        if not self._match("ON"):
            return
        last = self.index
        while last + 2 < len(self.tokens) and self.tokens[last + 1].token_type == TokenType.DOT:
            last += 2
        name = self.tokens[last].text if last < len(self.tokens) else ""
        self.index = last + 1
        if name.lower() != "ts":
            self.index = first
            raise self._fail(
                f"a window counts its stream's own time ts, the column of TIMESTAMP BY, and not {name or 'another'}",
                f"Leave ON out; to count by {name or 'another column'}, declare a stream over the source"
                f" with TIMESTAMP BY {name or 'that column'}",
            )

    def _written(self) -> str:
        """What stands before the reader's place, as a window of its own."""
        text = self.source.splice((self.first.start, self.tokens[self.index - 1].end + 1))
        return text.rstrip(" ,") + "]"

    def _refuse_elsewhere(self, kind: str) -> None:
        """ParseError for a word that other systems, or other windows, have at this place."""
        written = self._written()
        if self.word in ("PRECEDING", "FOLLOWING"):
            what = f"{self.word} belongs to OVER: a window of a stream looks back from each instant anyway"
            rows = self.parts.get("rows")
            more = f", or [Rows {rows + 1}] to count the newest row beside {rows} before it" if rows else ""
            raise self._fail(what, f"Write {written}{more}" if self.word == "PRECEDING" else f"Write {written}")
        if self.word in ("EVERY", "ADVANCE", "STEP", "HOP", "BY") and kind in ("range", "rows", "tumbling", "hopping"):
            head = "Hopping" if kind in ("tumbling", "hopping") else "Rows" if kind == "rows" else "Range"
            raise self._fail(f"{self._found()} is no part of a window", f"Write [{head} 10 Slide 5]")
        if self.word == "ORDER BY":
            raise self._fail(
                "a window takes its elements in the order of their time, those of one instant by SEQUENCE BY",
                f"Leave ORDER BY out: write {written}, and SEQUENCE BY in CREATE STREAM",
            )
        if self.word in ("GAP", "TIMEOUT"):
            raise self._fail(f"{self._found()} is no part of a window", f"Write {written}")
        if self.index < len(self.tokens) and self.tokens[self.index].token_type == TokenType.COMMA:
            raise self._fail("the parts of a window stand without commas", "Write [Range 10 Slide 5]")
        if self.word == "SLIDE" and kind == "tumbling":
            raise self._fail("'Slide' does not belong to a tumbling window", "Write [Hopping 10 Slide 5]")
        if self.word in ("SLIDE", "LAG", "ANCHOR", "INCLUSIVE", "EXCLUSIVE", "UNTIL", "EVERY"):
            raise self._fail(
                f"{self._found()} does not belong to a {kind} window, or not at this place",
                "Write [Range 10 Inclusive Slide 5 Lag 2 Anchor 1], with the parts in this order",
            )

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
        if head is None and self._at_call():
            return self._user()
        if head is None:
            names = ("Now", "Range", "Rows", "Tumbling", "Hopping", "Fixed", "From", "Until", "Partition By", "Session")
            raise self._fail(
                f"a window is expected, found {self._found()}",
                self._meant()
                or misspelt(self.word, names)
                or "Windows: [Now], [Range ..], [Rows ..], [Tumbling ..], [Hopping ..], [Fixed ..], "
                "[From ..], [Until ..], [Partition By .. Rows ..], [Session ..], [Tumbling By ..], [Tumbling When ..]",
            )
        return head()

    def _meant(self) -> str:
        """How a window is spelled here that begins otherwise elsewhere."""
        token = self.tokens[self.index] if self.index < len(self.tokens) else None
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
        }.get(self.word, "")

    def _at_call(self) -> bool:
        following = self.tokens[self.index + 1] if self.index + 1 < len(self.tokens) else None
        named = self.index < len(self.tokens) and (
            self.tokens[self.index].token_type == TokenType.IDENTIFIER or self.word.replace("_", "a").isalnum()
        )
        return named and following is not None and following.token_type == TokenType.L_PAREN

    def _user(self) -> str:
        self.parts["name"] = self.tokens[self.index].text
        self.index += 2
        arguments: list[Any] = []
        while not self._match(")"):
            if arguments and not self._match(","):
                raise self._fail(f"',' or ')' is expected, found {self._found()}")
            argument, self.index = self.expression(self.index)
            if argument is None:
                raise self._fail(f"an argument of {self.parts['name']} is expected, found {self._found()}")
            arguments.append(argument)
        self.parts["arguments"] = arguments
        return "user"

    def _now(self) -> str:
        self.index += 1
        return "now"

    def _range(self) -> str:
        self.index += 1
        if self._match("UNBOUNDED"):
            return "unbounded"
        self._refuse_between("[Range 5 Minutes]")
        self._duration("range", "Range")
        self._bounds()
        if self.word == "ROWS":
            raise self._fail(
                "Rows stands before Range, and with Partition By", "Write [Partition By A Rows 5 Range 10]"
            )
        if self._match("SLIDE"):
            self._duration("slide", "Slide")
        if self._match("LAG"):
            self._duration("lag", "Lag")
        if self._match("ANCHOR"):
            self._instant("anchor", "Anchor")
        return "range"

    def _refuse_between(self, example: str) -> None:
        if self.word == "BETWEEN":
            raise self._fail(
                "BETWEEN belongs to OVER: a window of a stream looks back from each instant", f"Write {example}"
            )

    def _bounds(self) -> None:
        for word in ("INCLUSIVE", "EXCLUSIVE"):
            if self._match(word):
                self.parts["bounds"] = word.lower()
                return

    def _rows(self) -> str:
        self.index += 1
        if self._match("UNBOUNDED"):
            return "unbounded"
        self._refuse_between("[Rows 5]")
        self._count("rows", "Rows")
        if self._match("SLIDE"):
            self._count("row_slide", "Slide")
        if self.word == "RANGE":
            raise self._fail(
                "Rows with Range needs Partition By: what would be the partition?",
                "Write [Partition By A Rows 5 Range 10], or one of [Rows 5] and [Range 10]",
            )
        if self.word == "PARTITION BY":
            raise self._fail("Partition By stands before Rows", "Write [Partition By A Rows 5]")
        return "rows"

    def _tumbling(self) -> str:
        self.index += 1
        if self._match("BY"):
            token = self.tokens[self.index] if self.index < len(self.tokens) else None
            if token is not None and token.token_type == TokenType.NUMBER:
                raise self._fail("Tumbling By takes one unit, without a number", "Write [Tumbling By Month]")
            unit = calendar_unit(token.text) if token is not None else None
            if unit is None:
                names = [u.title() for u in CALENDAR_UNITS]
                if _is_unit(self.word):
                    raise self._fail(
                        f"Tumbling By needs a unit of the calendar, found {self._found()}",
                        f"Write [Tumbling INTERVAL 1 {self.word.removesuffix('S')}]",
                    )
                raise self._fail(
                    f"Tumbling By needs a unit of the calendar, found {self._found()}",
                    nearest(self.word, names) or f"Units are {', '.join(names)}",
                )
            self.parts["unit"] = unit
            self.index += 1
            if self._match("IN"):
                self._zone()
            return "calendar"
        if self._match("WHEN"):
            self.parts["condition"], self.index = self.expression(self.index)
            if self.parts["condition"] is None:
                raise self._fail(
                    f"Tumbling When needs a condition, found {self._found()}", "Write [Tumbling When (price > 5)]"
                )
            self._partition_columns()
            return "when"
        self._duration("size", "Tumbling")
        self._anchor()
        return "tumbling"

    def _zone(self) -> None:
        token = self.tokens[self.index] if self.index < len(self.tokens) else None
        if token is None or token.token_type not in (TokenType.STRING, TokenType.RAW_STRING):
            raise self._fail(f"In needs a time zone in quotes, found {self._found()}", "Write In 'Europe/Berlin'")
        try:
            zones.zone(token.text)
        except Exception:  # of many kinds: not found, a folder, a character that no path has
            raise self._fail(f"'{token.text}' is no time zone", zone_names.hint(token.text, "In ")) from None
        self.parts["zone"] = token.text
        self.index += 1

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
            hint = "Write [Partition By A Rows 2]"
            if self.word == "RANGE":
                hint += ", or [Range ..] alone: a span of time holds the same elements in each partition"
            elif self.word == "ORDER BY":
                hint += ": the elements are in the order of their time, those of one instant by SEQUENCE BY"
            raise self._fail(f"Partition By needs Rows behind it, found {self._found()}", hint)
        self._count("rows", "Rows")
        if self._match("RANGE"):
            self._duration("range", "Range")
            self._bounds()
        if self._match("SLIDE"):
            self._count("row_slide", "Slide")
        return "rows"

    def _session(self) -> str:
        self.index += 1
        if self.word in ("GAP", "TIMEOUT"):
            raise self._fail(f"{self._found()} is no part of a window", "Write [Session INTERVAL 5 MINUTES]")
        self._duration("size", "Session")
        self._partition_columns()
        return "session"
