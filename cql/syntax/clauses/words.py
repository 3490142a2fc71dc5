"""The tokens of one statement, read word by word: what the clauses of all statements share."""

from __future__ import annotations

from sqlglot.errors import ErrorLevel

from sweeparea.cql.syntax import statements as st
from sweeparea.cql.syntax.dialect.cql import Cql, CqlParser
from sweeparea.cql.text.durations import DurationText, parse_duration, parse_instant
from sweeparea.cql.text.errors import ParseError, Place
from sweeparea.cql.text.keywords import PLACES, misspelt
from sweeparea.cql.text.source_text import SourceText, Span
from sweeparea.cql.text.tokens import Token, TokenType

STRINGS = (TokenType.STRING, TokenType.RAW_STRING)


_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "ON", "AND", "OR", "AS", "BY", "JOIN", "SET")
"""Keywords that are hardly meant as names."""
_LONGER = "Write a length such as INTERVAL 1 HOUR, or leave the clause out"


class Words(CqlParser):
    """Reads one statement from its tokens; the grammar is in its subclasses. ``at`` and ``whole`` are the place and the
    text of the statement.
    """

    at: Place
    whole: str

    def __init__(self, source: SourceText, tokens: list[Token]) -> None:
        super().__init__(dialect=Cql(), error_level=ErrorLevel.IMMEDIATE)
        self.reset()
        self.sql = source.text
        self.source = source
        self._chunks = [tokens]
        self._advance_chunk()

    # -- where the reader stands -------------------------------------------------------------------------------------

    def word(self) -> str:
        if not self._curr or self._curr.token_type in (TokenType.STRING, TokenType.NUMBER):
            return ""
        return self._curr.text.upper()

    def position(self) -> int:
        if self._curr:
            return self._curr.start
        return self._tokens[-1].end if self._tokens else 0

    def before(self, count: int) -> list[Token]:
        """The last tokens before the reader."""
        return self._tokens[max(self._index - count, 0) : self._index]

    def behind(self, count: int) -> list[Token]:
        """The next tokens, with the one at which the reader stands."""
        return self._tokens[self._index : self._index + count]

    def found(self) -> str:
        return f"'{self._curr.text}'" if self._curr else "the end of the statement"

    def near_keyword(self) -> str:
        """What to do about the word that stands here: the keyword that it or, where a misspelt keyword was taken for an
        alias, the one before resembles; or where this keyword belongs."""
        before = self._prev.text.upper() if self._prev and self._prev.token_type == TokenType.VAR else ""
        place = PLACES.get(" ".join(self.word().split()), "")
        return misspelt(self.word()) or misspelt(before) or place or PLACES.get(before, "") or self._as_name()

    def _as_name(self) -> str:
        """What to do if the keyword that stands here is meant as a name."""
        word = self._curr.text if self._curr else ""
        if not word.replace("_", "a").isalnum() or not word[0].isalpha() or word.upper() in _CLAUSES:
            return ""
        return "" if self._curr.token_type in (TokenType.VAR, TokenType.STRING) else f"If it is a name, write `{word}`"

    def here(self) -> Place:
        return self.source.place(self.position())

    def span_from(self, first: int) -> Span:
        return self._tokens[first].start, self._tokens[self._index - 1].end + 1

    def fail(self, wanted: str, *known: str, hint: str = "") -> ParseError:
        return ParseError(
            f"{wanted} is expected, found {self.found()}", self.here(), hint or misspelt(self.word(), known)
        )

    def end(self) -> None:
        if self._curr:
            raise ParseError(f"{self.found()} is not expected here", self.here(), self.near_keyword())

    # -- what is read ------------------------------------------------------------------------------------------------

    def take(self, *words: str) -> bool:
        """Whether these words follow; if they do, the reader stands behind them."""
        return bool(self._match_text_seq(*words))

    def need(self, *words: str) -> None:
        for word in words:
            if not self.take(word):
                raise self.fail(word, word)

    def open(self, example: str) -> None:
        if not self._match(TokenType.L_PAREN):
            raise self.fail("'('", hint=f"Write {example}")

    def close(self, wanted: str = "')'") -> None:
        if not self._match(TokenType.R_PAREN):
            raise self.fail(wanted)

    def name(self, what: str) -> str:
        token = self._curr
        if (
            not token
            or token.token_type in (TokenType.STRING, TokenType.NUMBER)
            or not (token.token_type == TokenType.IDENTIFIER or token.text.replace("_", "a").isalnum())
        ):
            raise self.fail(what, hint="Names are letters, digits and _, or anything between backticks")
        self._advance()
        return token.text

    def names(self, what: str) -> tuple[str, ...]:
        """Names with commas between them."""
        found = [self.name(what)]
        while self._match(TokenType.COMMA):
            found.append(self.name(what))
        return tuple(found)

    def string(self, what: str, example: str) -> str:
        token = self._curr
        if not token or token.token_type not in STRINGS:
            raise self.fail(f"{what} in quotes", hint=f"Write {example}")
        if not token.text.strip():
            raise ParseError(f"{what} is empty", self.here(), f"Write {example}")
        self._advance()
        return token.text

    def length(self, what: str) -> DurationText:
        """A length of time or a number of ticks."""
        value, index = parse_duration(self.source, self._tokens, self._index, what)
        self._retreat(index)
        return value

    def instant(self, what: str) -> DurationText:
        value, index = parse_instant(self.source, self._tokens, self._index, what)
        self._retreat(index)
        return value

    def positive_length(self, what: str) -> DurationText:
        here, value = self.here(), self.length(what)
        if (value.ticks if value.micros is None else value.micros) <= 0:  # type: ignore[operator]
            raise ParseError(f"{what} must be longer than zero", here, _LONGER)
        return value

    def duration(self, what: str) -> int:
        """A length of time in microseconds."""
        return self.length(what).in_micros(what)

    def positive(self, what: str) -> int:
        here, value = self.here(), self.duration(what)
        if value <= 0:
            raise ParseError(f"{what} must be longer than zero", here, _LONGER)
        return value

    def expression_here(self, what: str) -> st.SourceExpression:
        first = self._index
        tree = self._parse_disjunction()
        if tree is None or self._index == first:
            raise self.fail(f"an expression for {what}")
        return st.SourceExpression(tree, self.span_from(first), self.source)

    def value(self) -> str:
        """A setting's or option's value as text."""
        sign = "-" if self._match(TokenType.DASH) else ""
        token = self._curr
        if not token or token.token_type in (TokenType.COMMA, TokenType.L_PAREN, TokenType.R_PAREN):
            raise self.fail("a value")
        self._advance()
        return sign + (token.text if token.token_type in STRINGS else token.text.lower())
