"""The parts of a window: lengths, instants, numbers of rows, a time zone, columns; each is given once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sweeparea.cql.syntax.windows.cursor import Cursor
from sweeparea.cql.syntax.windows.units import is_unit
from sweeparea.cql.text import zone_names
from sweeparea.cql.text.constants import decimal_text
from sweeparea.cql.text.durations import parse_duration, parse_instant, parse_number, refuse_reference
from sweeparea.cql.text.errors import ParseError
from sweeparea.cql.text.source_text import SourceText
from sweeparea.cql.text.tokens import Token, TokenType
from sweeparea.infra import zones

ExpressionParser = Callable[[int], tuple[Any, int]]
"""Reads the expression that begins at a token, and says which token is behind it."""


class PartReader(Cursor):
    """Reads parts into ``parts``, by their names in ``WindowText``."""

    def __init__(self, source: SourceText, tokens: Sequence[Token], index: int, expression: ExpressionParser) -> None:
        super().__init__(source, tokens, index)
        self.expression = expression
        self.parts: dict[str, Any] = {}

    def duration(self, name: str, what: str) -> None:
        if name in self.parts:
            raise self.fail(f"{what} is given twice in this window")
        self.parts[name], self.index = parse_duration(self.source, self.tokens, self.index, what)

    def instant(self, name: str, what: str) -> None:
        if name in self.parts:
            raise self.fail(f"{what} is given twice in this window")
        self.parts[name], self.index = parse_instant(self.source, self.tokens, self.index, what)

    def count(self, name: str, what: str) -> None:
        token = self.token
        refuse_reference(self.source, self.tokens, self.index, what)
        if token is None or token.token_type not in (TokenType.NUMBER, TokenType.L_PAREN):
            raise self.fail(f"{what} needs a whole number of rows, found {self.found}", "Write [Rows 5]")
        if token.token_type == TokenType.NUMBER and not token.text.isdigit():
            raise self.fail(f"{what} needs a whole number of rows, found {self.found}", "Write [Rows 5]")
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
        if is_unit(self.word):
            raise self.fail(
                f"{what} counts rows, but {self.found} is a unit of time",
                "Write [Range 5 Minutes], or [Rows 5]",
            )

    def zone(self) -> None:
        token = self.token
        if token is None or token.token_type not in (TokenType.STRING, TokenType.RAW_STRING):
            raise self.fail(f"In needs a time zone in quotes, found {self.found}", "Write In 'Europe/Berlin'")
        try:
            zones.zone(token.text)
        except Exception:  # of many kinds: not found, a folder, a character that no path has
            raise self.fail(f"'{token.text}' is no time zone", zone_names.hint(token.text, "In ")) from None
        self.parts["zone"] = token.text
        self.index += 1

    def anchor(self) -> None:
        if self.match("ANCHOR"):
            self.instant("anchor", "Anchor")

    def bounds(self) -> None:
        for word in ("INCLUSIVE", "EXCLUSIVE"):
            if self.match(word):
                self.parts["bounds"] = word.lower()
                return

    def partition_columns(self) -> None:
        if self.word != "PARTITION BY":
            return
        self.index += 1
        columns: list[Any] = []
        while True:
            column, self.index = self.expression(self.index)
            if column is None:
                raise self.fail(f"Partition By needs a column, found {self.found}")
            columns.append(column)
            if not self.match(","):
                break
        self.parts["partition"] = columns
