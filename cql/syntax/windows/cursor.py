"""Where the reader of a window stands in its tokens."""

from __future__ import annotations

from collections.abc import Sequence

from sweeparea.cql.text.errors import ParseError
from sweeparea.cql.text.keywords import misspelt
from sweeparea.cql.text.source_text import SourceText
from sweeparea.cql.text.tokens import Token, TokenType


class Cursor:
    """A place among tokens: what stands there, and whether it is what is wanted."""

    def __init__(self, source: SourceText, tokens: Sequence[Token], index: int) -> None:
        self.source, self.tokens, self.index = source, tokens, index

    @property
    def token(self) -> Token | None:
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    @property
    def word(self) -> str:
        token = self.token
        if token is None or token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            return ""
        return " ".join(token.text.upper().split())  # PARTITION BY is one token, with what white space it has

    @property
    def found(self) -> str:
        return repr(self.token.text) if self.token is not None else "the end of the text"

    def fail(self, message: str, hint: str = "") -> ParseError:
        offset = self.token.start if self.token is not None else self.tokens[-1].end
        return ParseError(message, self.source.place(offset), hint)

    def match(self, *words: str) -> bool:
        for i, word in enumerate(words):
            at = self.index + i
            if at >= len(self.tokens) or self.tokens[at].text.upper() != word:
                return False
            if self.tokens[at].token_type in (TokenType.STRING, TokenType.IDENTIFIER):
                return False
        self.index += len(words)
        return True

    def near(self, names: Sequence[str]) -> str:
        """The word that was meant, unless what stands there is a keyword of SQL: then the window was not closed."""
        is_name = self.token is not None and self.token.token_type == TokenType.VAR
        return misspelt(self.word, names) if is_name else ""
