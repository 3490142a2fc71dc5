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
    while True:
        found = list(tokens(sql))
        wrapped = len(found) > 2 and found[0].text == "(" and found[-1].text == ")"
        if not wrapped or any(t.depth == 0 for t in found[1:-1]):
            return sql.strip()
        sql = sql[found[0].end : found[-1].start]


@functools.lru_cache(8192)
def parts(sql: str) -> tuple[str, ...]:
    """The conditions that AND connects, from left to right, each without parentheses around it."""
    sql = bare(sql)
    cuts: list[Token] = []
    between = 0
    for token in tokens(sql):
        if token.depth:
            continue
        if token.word == "OR":
            return (sql,)
        if token.word == "BETWEEN":
            between += 1
        elif token.word == "AND" and between:
            between -= 1
        elif token.word == "AND":
            cuts.append(token)
    if not cuts:
        return (sql,)
    starts, ends = [0, *(c.end for c in cuts)], [*(c.start for c in cuts), len(sql)]
    return tuple(part for a, b in zip(starts, ends, strict=True) for part in parts(sql[a:b].strip()))


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
