"""What can still be read of a text with faults: the statements behind an unclosed quote, and the names that statements
which cannot be read were to declare."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sweeparea.cql.syntax.dialect.tokenizing import tokenize
from sweeparea.cql.text.errors import ParseError
from sweeparea.cql.text.tokens import Token, TokenType

_FIRST = r"(?:CREATE|DROP|SET|REFRESH|EXPLAIN|SHOW|DESCRIBE|PAUSE|RESUME)[ \t]+[\w`]"
_START = re.compile(rf"(?:^|;)[ \t]*(?P<word>{_FIRST})", re.IGNORECASE | re.MULTILINE)
_SWALLOWED = re.compile(rf";(?:\s|--[^\n]*\n)*^[ \t]*{_FIRST}", re.IGNORECASE | re.MULTILINE)
"""The end of a statement and the start of the next: hardly what a quote holds, unless it was not closed."""
_QUOTED = (TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER)
_NAME = re.compile(
    r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:CONTINUOUS\s+)?\w+\s+(?:QUERY\s+)?(?:`(?P<quoted>[^`]+)`|`?(?P<plain>\w+))",
    re.IGNORECASE,
)


def split(tokens: Iterable[Token]) -> list[list[Token]]:
    """Tokens in statements, by semicolons."""
    chunks: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            chunks.append([])
        else:
            chunks[-1].append(token)
    return [c for c in chunks if c]


def swallows(text: str, chunks: Iterable[Iterable[Token]]) -> bool:
    """Whether a quote of these statements seems to hold the start of another one."""
    return any(t.token_type in _QUOTED and _SWALLOWED.search(text, t.start, t.end) for c in chunks for t in c)


def readable(text: str, file: str) -> tuple[list[list[Token]], list[tuple[str, ParseError]]]:
    """The statements of a text in which a quote or comment is not closed, and the parts that have none, each with its
    fault. A part ends where a line, or what follows a semicolon, begins a statement."""
    chunks: list[list[Token]] = []
    faults: list[tuple[str, ParseError]] = []
    start = 0
    for end in _ends(text):
        try:
            chunks += split(tokenize(text, file, start, end))
        except ParseError as error:
            if _opens_comment(error) and "*/" in text[end:]:
                continue  # the comment holds what looks like a statement
            faults.append((text[start:end], error))
        start = end
    return chunks, faults


def declared(text: str) -> str | None:
    """The name that a statement which cannot be read was to declare, if it begins as one that declares."""
    found = _NAME.match(text)
    return None if found is None else found["quoted"] or found["plain"]


def _ends(text: str) -> Iterator[int]:
    first = len(text) - len(text.lstrip())
    yield from (m.start("word") for m in _START.finditer(text) if m.start("word") > first)
    yield len(text)


def _opens_comment(error: ParseError) -> bool:
    return error.place is not None and error.place.source.startswith("/*", error.place.column - 1)
