"""The canonical text of a declaration: what two spellings of one statement share.

White space, comments, the case of words, needless backticks, ``OR REPLACE`` and the order of clauses do not count.
Strings and numbers stand as they were written. Words keep their author's case in the text, since names of result
columns are made of them, but are compared without it, as Spark compares them. The text parses again to an equal
statement, so a definition that was stored by one version of the engine can be read and compared by the next.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sweeparea.cql.syntax.dialect.streams import TO_STREAM
from sweeparea.cql.syntax.dialect.tokenizing import tokenize
from sweeparea.cql.syntax.labels import label_of
from sweeparea.cql.syntax.statements import CreateQuery, CreateRelation, CreateStream, Statement
from sweeparea.cql.text.source_text import SourceText
from sweeparea.cql.text.tokens import TokenType

_STRINGS = {
    TokenType.STRING,
    TokenType.RAW_STRING,
    TokenType.HEX_STRING,
    TokenType.BIT_STRING,
    TokenType.BYTE_STRING,
    TokenType.NATIONAL_STRING,
    TokenType.UNICODE_STRING,
}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)
_KEYWORDS = frozenset(
    """
    ADD AHEAD ALL ANCHOR AND ANTI AS ASC BATCH BETWEEN BY CASE CAST CHANGE CHANGES CHRONON CLOCK COLUMN CONSTRAINT
    CONTINUOUS CREATE CROSS CUBE CURRENT DATA DATE DEDUPLICATE DELTA DESC DISTINCT DROP DSTREAM EACH ELSE END EVERY
    EXCEPT EXCLUSIVE EXISTS EXPECT FAIL FALSE FEED FILTER FIXED FOLLOWING FOR FORMAT FROM FULL FUNCTION GROUP GROUPING
    HAVING HEARTBEAT HISTORY HOPPING IDLE IGNORE IN INCLUSIVE INNER INTERSECT INTERVAL IS ISTREAM JOIN KEY LAG LATE
    LATERAL LEFT LIKE LIMIT MANUAL MATERIALIZE MAX MINUS NATURAL NON NOT NOW NULL NULLS ON OPTIONS OR ORDER OUTER OVER
    PARTITION PER POLICY PRECEDING QUALIFY QUARANTINE QUERY RANGE REJECT RELATION REPAIR REPLACE RETAIN RETROACTIVE
    RIGHT ROLLUP ROW ROWS RSTREAM SCHEMA SELECT SEMI SEQUENCE SESSION SETS SLIDE SOURCE START STATIC STREAM THEN
    TIMESTAMP TO TRUE TUMBLING UNBOUNDED UNION UNTIL UPDATE USING VALUES VIEW VIOLATION WARN WHEN WHERE WINDOW WITH
    WITHIN
    """.split()  # noqa: SIM905
)
"""Words that are no functions and are quoted as names. Only the look of a text depends on the list, not what is equal.
"""


@dataclass(frozen=True)
class Piece:
    """One token: as it is shown, and as it is compared."""

    text: str
    folded: str
    word: bool = False

    def is_(self, *words: str) -> bool:
        return self.word and self.folded.upper() in words


Pieces = tuple[Piece, ...]

STREAM_CLAUSES: tuple[tuple[str, ...], ...] = (
    ("FROM",), ("TIMESTAMP", "BY"), ("CHRONON",), ("SEQUENCE", "BY"), ("DEDUPLICATE", "BY"), ("HEARTBEAT",),
    ("MAX", "AHEAD"), ("LATE",), ("ON", "SOURCE", "CHANGE"), ("RETAIN",), ("STATIC",), ("HISTORY", "BY"),
    ("CHANGES", "BY"), ("CHANGE", "DATA", "FEED"), ("KEY",), ("NON", "RETROACTIVE"), ("CONSTRAINT",),
    ("SUITE",),
)  # fmt: skip
QUERY_CLAUSES: tuple[tuple[str, ...], ...] = (
    ("START", "AT"), ("CHRONON",), ("MATERIALIZE",), ("CONSTRAINT",), ("SUITE",), ("WITH",), ("AS",),
)  # fmt: skip
BODY_CLAUSES: tuple[tuple[str, ...], ...] = (
    ("SELECT",), ("FROM",), ("WHERE",), ("GROUP", "BY"), ("HAVING",), ("ORDER", "BY"), ("LIMIT",),
)  # fmt: skip
_BEFORE_SIGN = ("(", "[", ",", "=", "<", ">", "<=", ">=", "*", "/", "BETWEEN", "AND", "THEN", "ELSE", "SELECT", "WHEN")
_SET_OPERATIONS = ("UNION", "EXCEPT", "INTERSECT", "MINUS")


def pieces_of(text: str) -> Pieces:
    """The tokens of a text that parses."""
    source = SourceText(text, "<definition>", tokenize(text, "<definition>"))
    found: list[Piece] = []
    end = -1
    for token in source.tokens:
        raw = text[token.start : token.end + 1]
        if token.token_type in _STRINGS:
            if found and token.start == end and found[-1].text[-1] in "'\"":
                raw = found.pop().text + raw  # 'It''s': two quotes inside a string, no second string
            found.append(Piece(raw, raw))
        elif token.token_type == TokenType.IDENTIFIER:
            plain = _PLAIN.match(token.text) and token.text.upper() not in _KEYWORDS
            shown = token.text if plain else "`" + token.text.replace("`", "``") + "`"
            found.append(Piece(shown, shown.lower()))
        elif token.token_type == TokenType.NUMBER:
            found.append(Piece(raw.upper(), raw.lower()))
        else:
            for word in raw.split():  # GROUP BY is one token, however far its words stand apart
                found.append(Piece(word, word.lower(), word=bool(_PLAIN.match(word))))
        end = token.end + 1
    return tuple(found)


def shown(pieces: Sequence[Piece]) -> str:
    """Tokens as one line."""
    out: list[str] = []
    for i, piece in enumerate(pieces):
        before = pieces[i - 1] if i else None
        if before is not None and _spaced(before, piece, pieces[i - 2] if i > 1 else None):
            out.append(" ")
        out.append(piece.text)
    return "".join(out)


def _spaced(left: Piece, right: Piece, before: Piece | None) -> bool:
    if right.text in (",", ")", "]", ".", "::") or left.text in ("(", "[", ".", "::"):
        return False
    if right.text == "(":
        # f(x), but IN (x) and AS (x); MAX is a keyword of MAX AHEAD only
        named = left.word and (left.text.upper() not in _KEYWORDS or left.is_("MAX", "ISTREAM", "DSTREAM", "RSTREAM"))
        return not (named or left.text.endswith("`"))
    sign = left.text in ("-", "+") and (before is None or before.text.upper() in _BEFORE_SIGN)
    return not sign


def folded(pieces: Sequence[Piece]) -> str:
    """Tokens as they are compared."""
    return " ".join(piece.folded for piece in pieces)


def split(pieces: Pieces, starts: Sequence[tuple[str, ...]]) -> list[tuple[str, Pieces]]:
    """Clauses outside parentheses: (first words, the rest). What precedes the first clause has the name ''.

    Nothing is split behind AS where it starts a clause: there the query's own text begins.
    """
    found: list[tuple[str, Pieces]] = []
    name, begun, depth, i = "", 0, 0, 0
    while i < len(pieces):
        text = pieces[i].text
        depth += (text in "([") - (text in ")]")
        start = None
        if depth == 0 and not (i and name == "HEARTBEAT" and i == begun):
            start = next((s for s in starts if _at(pieces, i, s)), None)
            if start == ("CHRONON",) and starts is QUERY_CLAUSES and name == "CONSTRAINT" and i == begun:
                start = None  # a constraint of that name, which deployed queries may have
        if start is None:
            i += 1
            continue
        found.append((name, pieces[begun:i]))
        name, i = " ".join(start), i + len(start)
        begun = i
        if name == "AS":
            break
    found.append((name, pieces[begun:]))
    return found


def _at(pieces: Pieces, i: int, words: tuple[str, ...]) -> bool:
    return len(pieces) - i >= len(words) and all(pieces[i + k].is_(w) for k, w in enumerate(words))


def commas(pieces: Pieces) -> list[Pieces]:
    """The parts between commas outside parentheses."""
    found: list[Pieces] = []
    begun = depth = 0
    for i, piece in enumerate(pieces):
        depth += (piece.text in "([") - (piece.text in ")]")
        if piece.text == "," and depth == 0:
            found.append(pieces[begun:i])
            begun = i + 1
    return [*found, pieces[begun:]]


@dataclass(frozen=True)
class Declaration:
    """A statement taken apart: ``head`` is CREATE .. name, ``clauses`` by their names in the order written.

    Constraints and settings are clauses of their own (``CONSTRAINT positive``, ``WITH dag``); ``body`` is the query.
    """

    head: Pieces
    clauses: dict[str, Pieces]
    body: Pieces
    labels: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The statement's canonical text, a clause a line."""
        lines = [" ".join([*(piece.text.upper() for piece in self.head[:-1]), self.head[-1].text])]
        settings = [f"{n.removeprefix('WITH ')} = {shown(p)}" for n, p in self.clauses.items() if n.startswith("WITH ")]
        lines += ["  " + _line(n, p) for n, p in self.clauses.items() if not n.startswith("WITH ")]
        lines += [f"  WITH ({', '.join(settings)})"] if settings else []
        lines += ["AS", *_body_lines(self.body)] if self.body else []
        return "\n".join(line.rstrip() for line in lines)

    @property
    def fingerprint(self) -> str:
        """Equal for statements that differ in nothing that counts: 16 hexadecimal digits."""
        parts = [folded(self.head), *(f"{n.lower()} {folded(p)}" for n, p in sorted(self.clauses.items()))]
        parts += [folded(self.body), *self.labels]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _line(name: str, pieces: Pieces) -> str:
    return f"{name} {shown(pieces)}"


def _body_lines(body: Pieces) -> list[str]:
    """The query's text with each clause of its outermost SELECT on a line of its own."""
    operator, inner = unwrapped(body)
    lines = [shown(inner)]
    if is_one_select(inner):
        lines = [f"{name} {shown(rest)}".strip() for name, rest in split(inner, BODY_CLAUSES) if name or rest]
    return [f"{operator}(", *(f"  {line}" for line in lines), ")"] if operator else lines


def unwrapped(body: Pieces) -> tuple[str, Pieces]:
    """The relation-to-stream operator around a whole query, and the query inside: ``ISTREAM(SELECT ..)``."""
    if len(body) > 3 and body[0].is_("ISTREAM", "DSTREAM", "RSTREAM") and body[1].text == "(" and body[-1].text == ")":
        inner, depth = body[2:-1], 0
        for piece in inner:
            depth += (piece.text == "(") - (piece.text == ")")
            if depth < 0 or (depth == 0 and piece.is_("EVERY")):
                return "", body
        return body[0].text.upper(), inner
    return "", body


def is_one_select(body: Pieces) -> bool:
    """Whether a query is a single SELECT, not a set operation or a WITH."""
    depth = 0
    for piece in body:
        depth += (piece.text in "([") - (piece.text in ")]")
        if depth == 0 and piece.is_(*_SET_OPERATIONS, "WITH"):
            return False
    return bool(body) and body[0].is_("SELECT")


def declaration(statement: Statement) -> Declaration:
    """A CREATE statement taken apart."""
    pieces = pieces_of(statement.text)
    if len(pieces) > 2 and pieces[1].is_("OR") and pieces[2].is_("REPLACE"):
        pieces = (pieces[0], *pieces[3:])
    if isinstance(statement, CreateQuery):
        head, *clauses = split(pieces, QUERY_CLAUSES)
        labels = tuple(_labels(statement))
    elif isinstance(statement, CreateStream | CreateRelation):
        head, *clauses = split(pieces, STREAM_CLAUSES)
        labels = ()
    else:
        return Declaration(pieces, {}, ())
    found: dict[str, Pieces] = {}
    body: Pieces = ()
    for name, rest in clauses:
        if name == "AS":
            body = rest
        elif name == "CONSTRAINT" and rest:
            found[f"CONSTRAINT {rest[0].folded.strip('`')}"] = rest[1:]
        elif name == "SUITE" and rest:
            found[f"SUITE {rest[0].text}"] = rest[1:]
        elif name == "WITH" and rest and rest[0].text == "(":
            for part in commas(rest[1:-1]):
                at = next((i for i, p in enumerate(part) if p.text == "="), len(part))
                found[f"WITH {''.join(p.folded for p in part[:at])}"] = part[at + 1 :]
        else:
            found[name] = rest
    return Declaration(head[1], found, body, labels)


def _labels(statement: CreateQuery) -> list[str]:
    """The names that the result's columns are given, as far as the text tells: their case is the table's."""
    node = statement.select
    while isinstance(node, exp.Subquery | exp.SetOperation) and isinstance(node.this, exp.Query):
        node = node.this
    if not isinstance(node, exp.Select):
        return []
    found: list[str] = []
    items = []
    for item in node.expressions:
        operator = isinstance(item, exp.Anonymous) and item.name.upper() in TO_STREAM
        items += item.expressions if operator else [item]  # ISTREAM(a, b)
    for item in items:
        try:
            found.append(label_of(item, statement.source))
        except Exception:  # a fault of the query, which the binder tells of with its place
            found.append("")
    return found


def fingerprint(statement: Statement) -> str:
    """A declaration's identity; see ``Declaration.fingerprint``."""
    return declaration(statement).fingerprint
