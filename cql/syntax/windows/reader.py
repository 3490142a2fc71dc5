"""Reads a window, by the word that it begins with. A new window is one more head and one more method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sweeparea.cql.syntax.windows.advice import misplaced, spelled_here
from sweeparea.cql.syntax.windows.parts import ExpressionParser, PartReader
from sweeparea.cql.syntax.windows.units import CALENDAR_UNITS, UNITS, calendar_unit, is_unit
from sweeparea.cql.syntax.windows.window_text import WindowKind, WindowText
from sweeparea.cql.text.errors import nearest
from sweeparea.cql.text.keywords import misspelt
from sweeparea.cql.text.source_text import SourceText
from sweeparea.cql.text.tokens import Token, TokenType


def parse_window(
    source: SourceText, tokens: Sequence[Token], index: int, expression: ExpressionParser
) -> tuple[WindowText, int]:
    """The window whose ``[`` is ``tokens[index]``, and the index behind its ``]``."""
    reader = _WindowReader(source, tokens, index, expression)
    return reader.window(), reader.index


class _WindowReader(PartReader):
    def __init__(self, source: SourceText, tokens: Sequence[Token], index: int, expression: ExpressionParser) -> None:
        super().__init__(source, tokens, index, expression)
        self.first = tokens[index]

    def window(self) -> WindowText:
        self.index += 1
        kind = self._head()
        self._on()
        if not self.match("]"):
            error = misplaced(self, kind, self._written(), self.parts.get("rows"))
            if error is not None:
                raise error
            raise self.fail(
                f"']' is expected at the end of the window, found {self.found}",
                self.near(("Slide", "Lag", "Anchor", "Inclusive", "Exclusive", "Until", "Partition By", *UNITS)),
            )
        return WindowText(kind, (self.first.start, self.tokens[self.index - 1].end + 1), self.source, self.parts)

    def _on(self) -> None:
        """``ON ts``: the time that a window counts in any case."""
        first = self.index
        if not self.match("ON"):
            return
        last = self.index
        while last + 2 < len(self.tokens) and self.tokens[last + 1].token_type == TokenType.DOT:
            last += 2
        name = self.tokens[last].text if last < len(self.tokens) else ""
        self.index = last + 1
        if name.lower() != "ts":
            self.index = first
            raise self.fail(
                f"a window counts its stream's own time ts, the column of TIMESTAMP BY, and not {name or 'another'}",
                f"Leave ON out; to count by {name or 'another column'}, declare a stream over the source"
                f" with TIMESTAMP BY {name or 'that column'}",
            )

    def _written(self) -> str:
        """What stands before the reader's place, as a window of its own."""
        text = self.source.splice((self.first.start, self.tokens[self.index - 1].end + 1))
        return text.rstrip(" ,") + "]"

    def _head(self) -> WindowKind:
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
            raise self.fail(
                f"a window is expected, found {self.found}",
                spelled_here(self)
                or misspelt(self.word, names)
                or "Windows: [Now], [Range ..], [Rows ..], [Tumbling ..], [Hopping ..], [Fixed ..], "
                "[From ..], [Until ..], [Partition By .. Rows ..], [Session ..], [Tumbling By ..], [Tumbling When ..]",
            )
        return head()

    def _at_call(self) -> bool:
        following = self.tokens[self.index + 1] if self.index + 1 < len(self.tokens) else None
        named = self.index < len(self.tokens) and (
            self.tokens[self.index].token_type == TokenType.IDENTIFIER or self.word.replace("_", "a").isalnum()
        )
        return named and following is not None and following.token_type == TokenType.L_PAREN

    def _user(self) -> WindowKind:
        self.parts["name"] = self.tokens[self.index].text
        self.index += 2
        arguments: list[Any] = []
        while not self.match(")"):
            if arguments and not self.match(","):
                raise self.fail(f"',' or ')' is expected, found {self.found}")
            argument, self.index = self.expression(self.index)
            if argument is None:
                raise self.fail(f"an argument of {self.parts['name']} is expected, found {self.found}")
            arguments.append(argument)
        self.parts["arguments"] = arguments
        return WindowKind.USER

    def _now(self) -> WindowKind:
        self.index += 1
        return WindowKind.NOW

    def _range(self) -> WindowKind:
        self.index += 1
        if self.match("UNBOUNDED"):
            return WindowKind.UNBOUNDED
        self._refuse_between("[Range 5 Minutes]")
        self.duration("range", "Range")
        self.bounds()
        if self.word == "ROWS":
            raise self.fail("Rows stands before Range, and with Partition By", "Write [Partition By A Rows 5 Range 10]")
        if self.match("SLIDE"):
            self.duration("slide", "Slide")
        if self.match("LAG"):
            self.duration("lag", "Lag")
        if self.match("ANCHOR"):
            self.instant("anchor", "Anchor")
        return WindowKind.RANGE

    def _refuse_between(self, example: str) -> None:
        if self.word == "BETWEEN":
            raise self.fail(
                "BETWEEN belongs to OVER: a window of a stream looks back from each instant", f"Write {example}"
            )

    def _rows(self) -> WindowKind:
        self.index += 1
        if self.match("UNBOUNDED"):
            return WindowKind.UNBOUNDED
        self._refuse_between("[Rows 5]")
        self.count("rows", "Rows")
        if self.match("SLIDE"):
            self.count("row_slide", "Slide")
        if self.word == "RANGE":
            raise self.fail(
                "Rows with Range needs Partition By: what would be the partition?",
                "Write [Partition By A Rows 5 Range 10], or one of [Rows 5] and [Range 10]",
            )
        if self.word == "PARTITION BY":
            raise self.fail("Partition By stands before Rows", "Write [Partition By A Rows 5]")
        return WindowKind.ROWS

    def _tumbling(self) -> WindowKind:
        self.index += 1
        if self.match("BY"):
            token = self.token
            if token is not None and token.token_type == TokenType.NUMBER:
                raise self.fail("Tumbling By takes one unit, without a number", "Write [Tumbling By Month]")
            unit = calendar_unit(token.text) if token is not None else None
            if unit is None:
                names = [u.title() for u in CALENDAR_UNITS]
                if is_unit(self.word):
                    raise self.fail(
                        f"Tumbling By needs a unit of the calendar, found {self.found}",
                        f"Write [Tumbling INTERVAL 1 {self.word.removesuffix('S')}]",
                    )
                raise self.fail(
                    f"Tumbling By needs a unit of the calendar, found {self.found}",
                    nearest(self.word, names) or f"Units are {', '.join(names)}",
                )
            self.parts["unit"] = unit
            self.index += 1
            if self.match("IN"):
                self.zone()
            return WindowKind.CALENDAR
        if self.match("WHEN"):
            self.parts["condition"], self.index = self.expression(self.index)
            if self.parts["condition"] is None:
                raise self.fail(
                    f"Tumbling When needs a condition, found {self.found}", "Write [Tumbling When (price > 5)]"
                )
            self.partition_columns()
            return WindowKind.WHEN
        self.duration("size", "Tumbling")
        self.anchor()
        return WindowKind.TUMBLING

    def _hopping(self) -> WindowKind:
        self.index += 1
        self.duration("size", "Hopping")
        if not self.match("SLIDE"):
            raise self.fail(f"Hopping needs Slide, found {self.found}", "Write [Hopping 10 Slide 5], or [Tumbling 10]")
        self.duration("slide", "Slide")
        self.anchor()
        return WindowKind.HOPPING

    def _fixed(self) -> WindowKind:
        self.index += 1
        self.duration("size", "Fixed")
        self.anchor()
        return WindowKind.FIXED

    def _landmark(self) -> WindowKind:
        if self.match("FROM"):
            self.instant("start", "From")
        if self.match("UNTIL"):
            self.instant("end", "Until")
        return WindowKind.LANDMARK

    def _partition(self) -> WindowKind:
        self.partition_columns()
        if not self.match("ROWS"):
            hint = "Write [Partition By A Rows 2]"
            if self.word == "RANGE":
                hint += ", or [Range ..] alone: a span of time holds the same elements in each partition"
            elif self.word == "ORDER BY":
                hint += ": the elements are in the order of their time, those of one instant by SEQUENCE BY"
            raise self.fail(f"Partition By needs Rows behind it, found {self.found}", hint)
        self.count("rows", "Rows")
        if self.match("RANGE"):
            self.duration("range", "Range")
            self.bounds()
        if self.match("SLIDE"):
            self.count("row_slide", "Slide")
        return WindowKind.ROWS

    def _session(self) -> WindowKind:
        self.index += 1
        if self.word in ("GAP", "TIMEOUT"):
            raise self.fail(f"{self.found} is no part of a window", "Write [Session INTERVAL 5 MINUTES]")
        self.duration("size", "Session")
        self.partition_columns()
        return WindowKind.SESSION
