"""The text of a statement as tokens: places for errors, and expressions spliced token by token.

Spark must see a scalar expression exactly as its author wrote it, since no printer of a syntax tree reproduces every
literal, escape and function of Spark. So expressions are never printed from the tree. The tree says which tokens are a
column, an aggregate or a grouping key; ``splice`` copies the author's tokens and replaces just those.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from sweeparea.cql.text.errors import Place
from sweeparea.cql.text.tokens import Token, TokenType

Span = tuple[int, int]
"""A range of characters of the source text, half-open."""


@dataclass(frozen=True)
class Replacement:
    """``text`` in place of the characters of ``span``."""

    span: Span
    text: str


class SourceText:
    """A text with its file name and, once tokenized, the tokens of one statement."""

    def __init__(self, text: str, file: str = "<query>", tokens: Iterable[Token] = ()) -> None:
        self.text = text
        self.file = file
        self._line_starts = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]
        self.expressions: dict[str, int] = {}
        """Where each expression that was bound begins, by its text: for what is found wrong with it later."""
        self.use(tokens)

    def use(self, tokens: Iterable[Token]) -> None:
        """Take these as the tokens that ``splice`` copies."""
        self.tokens: list[Token] = []
        last_end = -1
        for token in tokens:
            if token.start > last_end:  # a number with a suffix (5L) is three tokens at one place
                self.tokens.append(token)
                last_end = token.end
        self._starts = [t.start for t in self.tokens]

    def place(self, offset: int) -> Place:
        """The place of a character; an offset past the end is the last character's."""
        offset = max(0, min(offset, len(self.text) - 1))
        line = bisect_right(self._line_starts, offset) - 1
        start = self._line_starts[line]
        end = self.text.find("\n", start)
        source = self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")
        return Place(self.file, line + 1, offset - start + 1, source)

    def tokens_in(self, span: Span) -> list[Token]:
        first = bisect_right(self._starts, span[0] - 1)
        last = bisect_right(self._starts, span[1] - 1)
        return self.tokens[first:last]

    def count(self, span: Span) -> int:
        """How many tokens a span holds."""
        return bisect_right(self._starts, span[1] - 1) - bisect_right(self._starts, span[0] - 1)

    def opened(self, span: Span) -> int:
        """How many parentheses a span begins with."""
        first = index = bisect_right(self._starts, span[0] - 1)
        while index < len(self.tokens) and self.tokens[index].token_type == TokenType.L_PAREN:
            index += 1
        return index - first

    def splice(self, span: Span, replacements: Iterable[Replacement] = ()) -> str:
        """The author's text of a span on one line, without comments, with the replacements made (outer before
        inner)."""
        pending = sorted(replacements, key=lambda r: (r.span[0], -r.span[1]))
        pieces: list[str] = []
        end = span[0]
        index = 0
        for token in self.tokens_in(span):
            if token.start < end:
                continue  # inside what a replacement has covered
            if pieces and token.start > end:
                pieces.append(" ")  # white space and comments alike
            while index < len(pending) and pending[index].span[0] < token.start:
                index += 1
            if index < len(pending) and pending[index].span[0] == token.start:
                pieces.append(pending[index].text)
                end = pending[index].span[1]
            else:
                pieces.append(self.text[token.start : token.end + 1])
                end = token.end + 1
        return "".join(pieces)

    def canonical(self, span: Span, replacements: Iterable[Replacement] = ()) -> tuple[str, ...]:
        """What two spellings of one expression share: tokens in upper case outside quotes, columns by their ids."""
        by_start: dict[int, Replacement] = {}
        for r in sorted(replacements, key=lambda r: r.span[1]):
            by_start[r.span[0]] = r
        pieces: list[str] = []
        end = span[0]
        for token in self.tokens_in(span):
            if token.start < end:
                continue
            replacement = by_start.get(token.start)
            if replacement is not None:
                pieces.append(replacement.text)
                end = replacement.span[1]
                continue
            end = token.end + 1
            raw = self.text[token.start : token.end + 1]
            pieces.append(raw if token.token_type in _CASE_MATTERS else raw.upper())
        return _without_outer_parentheses(tuple(pieces))


_CASE_MATTERS = {TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING, TokenType.IDENTIFIER}


def _without_outer_parentheses(pieces: tuple[str, ...]) -> tuple[str, ...]:
    while len(pieces) >= 2 and pieces[0] == "(" and pieces[-1] == ")":
        depth = 0
        for i, piece in enumerate(pieces):
            depth += (piece == "(") - (piece == ")")
            if depth == 0 and i < len(pieces) - 1:
                return pieces  # the first parenthesis closes before the end
        pieces = pieces[1:-1]
    return pieces
