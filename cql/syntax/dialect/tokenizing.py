"""A text to its tokens, with a place for what is not closed."""

from __future__ import annotations

import re

from sqlglot.errors import SqlglotError

from sweeparea.cql.syntax.dialect.cql import Cql
from sweeparea.cql.text import errors
from sweeparea.cql.text.source_text import SourceText
from sweeparea.cql.text.tokens import Token


def tokenize(text: str, file: str, start: int = 0, end: int | None = None) -> list[Token]:
    """The tokens of a text, or of its characters from ``start`` to ``end``; a ParseError with the place where a string
    or comment is not closed."""
    part = text[start:end]
    try:
        tokens = Cql().tokenize(part)
    except (SqlglotError, ValueError, IndexError) as error:
        offset = _unclosed(part)
        binary = re.search(r"\b[xX]'(?![0-9a-fA-F]*')", part)
        if binary is not None and offset is None:
            raise errors.ParseError(
                "a binary literal holds hexadecimal digits",
                SourceText(text, file).place(start + binary.start()),
                "Write X'1F'",
            ) from None
        detail = "a quote or comment that is opened here is not closed" if offset is not None else str(error)
        raise errors.ParseError(
            detail,
            SourceText(text, file).place(start + (offset or 0)),
            "Close it, or double a backtick inside a quoted name",
        ) from None
    for token in tokens if start else ():
        token.start += start
        token.end += start
    return tokens


def _unclosed(text: str) -> int | None:
    """The offset of the quote or comment that runs to the end of the text."""
    i = 0
    while i < len(text):
        start, c = i, text[i]
        if text.startswith("--", i):
            i = text.find("\n", i)
            if i < 0:
                return None
        elif text.startswith("/*", i):
            i = text.find("*/", i + 2)
            if i < 0:
                return start
            i += 1
        elif c in "'\"`":
            i += 1
            while i < len(text) and text[i] != c:
                i += 2 if text[i] == "\\" and c != "`" else 1
            if i >= len(text):
                return start
        i += 1
    return None
