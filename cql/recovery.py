"""What can still be read of a text with faults: statements behind an unclosed quote, and the names that statements
which cannot be read were to declare."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sweeparea.cql.dialect import tokenize
from sweeparea.cql.errors import ParseError
from sweeparea.cql.tokens import Token, TokenType
from sweeparea.infra.errors import SweepAreaError

_FIRST = "CREATE|DROP|SET|REFRESH|EXPLAIN|SHOW|DESCRIBE|PAUSE|RESUME"
_START = re.compile(rf"(?:^[ \t]*|;[ \t]*)(?P<word>(?:{_FIRST})[ \t]+[\w`])", re.IGNORECASE | re.MULTILINE)
_SWALLOWED = re.compile(rf";(?:\s|--[^\n]*\n)*^[ \t]*(?:{_FIRST})[ \t]+[\w`]", re.IGNORECASE | re.MULTILINE)
"""A whole statement's end and the next one's start: what a quote holds only if it was not closed."""
_NOT_LINE_END = re.compile(r"[^\n]")
_QUOTED = (TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER)
_NAME = re.compile(
    r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:CONTINUOUS\s+)?(?P<kind>\w+)\s+(?:QUERY\s+)?(?:`(?P<quoted>[^`]*)`|(?P<plain>\w+))",
    re.IGNORECASE,
)


def statements(text: str, file: str) -> tuple[list[list[Token]], list[tuple[str, SweepAreaError]]]:
    """The tokens of each statement of a text; and of each part that has none, since a quote or comment is not closed,
    its characters and the fault. Such a part ends where a line begins the next statement."""
    try:
        tokens = tokenize(text, file)
        if not any(t.token_type in _QUOTED and _SWALLOWED.search(text, t.start, t.end) for t in tokens):
            return split(tokens), []
    except SweepAreaError:
        pass
    chunks: list[list[Token]] = []
    faults: list[tuple[str, SweepAreaError]] = []
    start = 0
    for end in _parts(text):
        # line ends and the number of characters before are kept, so that places are those of the whole text
        blank = _NOT_LINE_END.sub(" ", text[:start])
        part = blank + text[start:end]
        try:
            chunks += split(tokenize(part, file))
        except ParseError as error:
            if error.place is not None and "/*" in error.place.source[error.place.column - 1 :][:2]:
                if "*/" in text[end:]:
                    continue  # a comment that holds the start of a statement
            faults.append((text[start:end], error))
        start = end
    return chunks, faults


def _parts(text: str) -> Iterator[int]:
    """Where the parts of a text end that each begin with a statement."""
    yield from (m.start("word") for m in _START.finditer(text) if text[: m.start("word")].strip())
    yield len(text)


def split(tokens: list[Token]) -> list[list[Token]]:
    """Tokens in statements, by semicolons."""
    chunks: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            chunks.append([])
        else:
            chunks[-1].append(token)
    return [c for c in chunks if c]


def declared(text: str) -> str | None:
    """The name that a statement which cannot be read was to declare, if it begins as one that declares."""
    found = _NAME.match(text)
    return None if found is None else found["quoted"] or found["plain"]
