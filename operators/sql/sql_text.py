"""Spark SQL as tokens: expressions cut at AND, freed of parentheses, and with their columns replaced.

Expressions are texts over quoted column ids (``logical.Expr``); nothing prints them from a syntax tree. What is not
understood stays whole, so that a cut never changes a meaning.

>>> parts("((`a` > 1) AND `b` BETWEEN 1 AND 2 AND f(`c` AND `d`))")
('`a` > 1', '`b` BETWEEN 1 AND 2', 'f(`c` AND `d`)')
>>> substituted("`c1` + named.`c1` + length('`c1`')", {"c1": "t.x"})
"t.x + named.`c1` + length('`c1`')"
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""\s+ | --[^\n]* | /\*.*?\*/ | (?P<token> [rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*"
    | `(?:``|[^`])*` | \d+(?:\.\d+)?(?:[eE][+-]?\d+)?
    | \w+ | <=> | <> | != | == | <= | >= | -> | \|\| | . )""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """A piece of SQL at ``[start, end)``; ``depth`` counts the parentheses, brackets and CASEs around it."""

    text: str
    start: int
    end: int
    depth: int

    @property
    def word(self) -> str:
        return self.text.upper()


@functools.lru_cache(8192)
def tokens(sql: str) -> tuple[Token, ...]:
    """The tokens of a text, without white space and comments."""
    found, depth = [], 0
    for match in _TOKEN.finditer(sql):
        text = match["token"]
        if text is None:
            continue
        closes = text in (")", "]") or text.upper() == "END"
        depth -= closes
        found.append(Token(text, match.start("token"), match.end("token"), depth))
        depth += text in ("(", "[") or text.upper() == "CASE"
    return tuple(found)


@functools.lru_cache(8192)
def bare(sql: str) -> str:
    """The text without the parentheses around all of it."""
    return _Text(sql).whole().bare().text


@functools.lru_cache(8192)
def parts(sql: str) -> tuple[str, ...]:
    """The conditions that AND connects, from left to right, each without parentheses around it."""
    found: list[str] = []
    open_ = [_Text(sql).whole()]  # a stack, since a conjunction may be nested as deeply as it is long
    while open_:
        piece = open_.pop().bare()
        inside = piece.conjuncts()
        if inside:
            open_ += reversed(inside)
        else:
            found.append(piece.text)
    return tuple(found)


class _Text:
    """A text whose tokens are found once, however deeply its parts are taken apart."""

    def __init__(self, sql: str) -> None:
        self.sql, self.tokens = sql, tokens(sql)
        # by each token the next one that lies no deeper: all between the two lies inside what the first opens
        self.after = [len(self.tokens)] * len(self.tokens)
        pending: list[int] = []
        for i, token in enumerate(self.tokens):
            while pending and self.tokens[pending[-1]].depth >= token.depth:
                self.after[pending.pop()] = i
            pending.append(i)

    def whole(self) -> _Span:
        return _Span(self, 0, len(self.tokens), 0, len(self.sql))


@dataclass(frozen=True)
class _Span:
    """The tokens ``[first, last)`` of a text, and where they lie in it, with the white space around them."""

    of: _Text
    first: int
    last: int
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.of.sql[self.start : self.end].strip()

    def bare(self) -> _Span:
        """Without the parentheses around all of it."""
        of, first, last, start, end = self.of, self.first, self.last, self.start, self.end
        while (
            last - first > 2
            and of.tokens[first].text == "("
            and of.tokens[last - 1].text == ")"
            and of.after[first] == last - 1
        ):
            start, end = of.tokens[first].end, of.tokens[last - 1].start
            first, last = first + 1, last - 1
        return _Span(of, first, last, start, end)

    def conjuncts(self) -> list[_Span]:
        """The pieces that AND connects at its top; none where there is no such AND."""
        cuts: list[int] = []
        between, i = 0, self.first
        while i < self.last:
            word = self.of.tokens[i].word
            if word == "OR":
                return []
            if word == "BETWEEN":
                between += 1
            elif word == "AND" and between:
                between -= 1
            elif word == "AND":
                cuts.append(i)
            i = self.of.after[i]
        if not cuts:
            return []
        firsts, lasts = [self.first, *(i + 1 for i in cuts)], [*cuts, self.last]
        starts = [self.start, *(self.of.tokens[i].end for i in cuts)]
        ends = [*(self.of.tokens[i].start for i in cuts), self.end]
        return [_Span(self.of, *each) for each in zip(firsts, lasts, starts, ends, strict=True)]


def substituted(sql: str, by: Mapping[str, str]) -> str:
    """The text with its quoted column ids replaced; strings, and what is named by AS or a dot, stay."""
    pieces: list[str] = []
    at, before = 0, ""
    for token in tokens(sql):
        if token.text.startswith("`") and before not in (".", "AS"):
            new = by.get(token.text[1:-1])
            if new is not None:
                pieces += [sql[at : token.start], new]
                at = token.end
        before = token.word
    return "".join(pieces) + sql[at:] if pieces else sql
