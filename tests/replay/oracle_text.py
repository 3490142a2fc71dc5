"""CQL text to plain SQL over snapshot tables: windows and relation-to-stream operators go, FROM items are replaced.

A reader of tokens, no grammar: it knows only where FROM items stand, what brackets mean and how parentheses nest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.replay.oracle_arrivals import Shown, each
from tests.replay.oracle_windows import Reader, unbounded, window

_TOKEN = re.compile(
    r"\s+|--[^\n]*|/\*.*?\*/|('(?:[^'\\]|\\.)*'|`[^`]*`|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\w+|<=>|<>|[<>!=]=|\|\||.)",
    re.DOTALL,
)
_STREAMERS = ("ISTREAM", "DSTREAM", "RSTREAM")
_BOUNDS = {"WINDOW_START": "__start", "WINDOW_END": "__end"}
_SETS = {"UNION", "EXCEPT", "INTERSECT"}
_END_OF_FROM = {"WHERE", "GROUP", "HAVING", "SELECT", "ORDER"} | _SETS
_NO_ALIAS = _END_OF_FROM | {"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "ON", "USING", ",", ")", "NATURAL"}
_NO_ALIAS |= {"SEMI", "ANTI"}
_TAKES_BACK = {"LEFT", "RIGHT", "FULL", "ANTI", "EXCEPT"}
_AGGREGATES = {"COUNT", "SUM", "AVG", "MIN", "MAX"}


@dataclass
class Item:
    """One FROM item that needs a snapshot table: a named input or a nested stream, and its window."""

    table: str
    source: str | Query
    window: Shown = field(default_factory=lambda: Shown(each(unbounded), True))
    with_ts: bool = False
    bounds: bool = False  # whether WINDOW_START and WINDOW_END are asked for


@dataclass
class Query:
    """``sql`` reads the tables of ``items``. ``streamer``: ISTREAM, DSTREAM or RSTREAM where the text has it;
    ``every`` and ``anchor`` are RSTREAM's.
    """

    sql: str = ""
    streamer: str | None = None
    every: int = 1
    anchor: int = 0
    items: list[Item] = field(default_factory=list)
    plain: bool = True  # built without aggregates and whatever else takes rows back

    def monotonic(self, relations: set[str]) -> bool:
        """The static test of semantics, section 6."""
        return self.plain and all(
            item.window.endless and (isinstance(item.source, Query) or item.source not in relations)
            for item in self.items
        )


def tokens_of(text: str) -> list[str]:
    return [match[1] for match in _TOKEN.finditer(text) if match[1]]


def _closing(tokens: Sequence[str], start: int, opening: str = "(", closing: str = ")") -> int:
    depth = 0
    for i in range(start, len(tokens)):
        depth += (tokens[i] == opening) - (tokens[i] == closing)
        if not depth:
            return i
    raise ValueError("unbalanced")


def _name(token: str) -> str:
    return token.strip("`").lower()


class Translator:
    """``names``: the inputs' names in lower case. ``inclusive``: how a plain ``Range T`` is read."""

    def __init__(self, names: set[str], inclusive: bool) -> None:
        self.names, self.inclusive, self.count = names, inclusive, 0

    def query(self, tokens: list[str], nested: dict[str, Query] | None = None) -> Query:
        nested = dict(nested or {})
        while tokens[0] == "(" and _closing(tokens, 0) == len(tokens) - 1:
            tokens = tokens[1:-1]
        if tokens[0].upper() in _STREAMERS:
            body, every, anchor = _every(tokens[2:-1])
            inner = self.query(body, nested)
            inner.streamer, inner.every, inner.anchor = tokens[0].upper(), every, anchor
            return inner
        result, out = Query(), []
        if tokens[0].upper() == "WITH":
            tokens = self._with(tokens, nested, result, out)
        self._body(tokens, nested, result, out)
        result.sql = " ".join(out)
        return result

    def _with(self, tokens: list[str], nested: dict[str, Query], result: Query, out: list[str]) -> list[str]:
        """Reads the CTEs; those that are streams become nested streams, the others stay SQL. The rest of the tokens."""
        at, kept = 1, []
        while True:
            name, end = tokens[at], _closing(tokens, at + 2)
            inner = self.query(tokens[at + 3 : end], nested)
            if inner.streamer:
                nested[_name(name)] = inner
            else:
                kept.append(f"{_quoted(name)} AS ({inner.sql})")
                self._absorb(result, inner)
            at = end + 1
            if tokens[at] != ",":
                break
            at += 1
        if kept:
            out.append("WITH " + ", ".join(kept))
        return tokens[at:]

    @staticmethod
    def _absorb(result: Query, inner: Query) -> None:
        result.items += inner.items
        result.plain &= inner.plain

    def _body(
        self, tokens: list[str], nested: dict[str, Query], result: Query, out: list[str], inside: bool = False
    ) -> None:
        """``inside``: within the parentheses of an expression, where IN and EXISTS are values."""
        with_ts = any(_name(t) == "ts" for t in _outer(tokens))
        at, in_from = 0, False
        while at < len(tokens):
            token, word = tokens[at], tokens[at].upper()
            if (word in _AGGREGATES and tokens[at + 1 : at + 2] == ["("]) or word == "GROUP":
                result.plain = False
            if word in _TAKES_BACK and tokens[at + 1].upper() != "SEMI":
                result.plain = False
            if word == "NOT" and tokens[at + 1].upper() in ("IN", "EXISTS"):
                result.plain = False
            if word in _STREAMERS and tokens[at - 1].upper() == "SELECT":  # SELECT ISTREAM(a, b) FROM ..
                end = _closing(tokens, at + 1)
                result.streamer = word
                self._body(tokens[at + 2 : end], nested, result, out)
                at = end + 1
            elif word == "LEFT" and tokens[at + 1].upper() in ("SEMI", "ANTI"):
                at += 1
            elif word in _BOUNDS and tokens[at + 1 : at + 2] == ["("]:
                out.append(f"{_quoted(tokens[at + 2])}.{_BOUNDS[word]}")
                at += 4
            elif word in ("FROM", "JOIN") or (token == "," and in_from):
                out.append(token)
                at, in_from = self._item(tokens, at + 1, nested, result, out, with_ts), True
            elif token == "(":
                end = _closing(tokens, at)
                out.append("(")
                if _is_query(tokens, at):
                    inner = self.query(tokens[at + 1 : end], nested)
                    before = tokens[at - 1].upper() if at else "UNION"
                    if before not in (*_SETS, "ALL", "DISTINCT") and (inside or before not in ("IN", "EXISTS")):
                        result.plain = False  # a value: of a scalar subquery, or whether there is a row
                    self._absorb(result, inner)
                    out.append(inner.sql)
                else:
                    self._body(tokens[at + 1 : end], nested, result, out, True)
                out.append(")")
                at = end + 1
            else:
                in_from = in_from and word not in _END_OF_FROM
                out.append("IS NOT DISTINCT FROM" if token == "<=>" else "//" if word == "DIV" else _quoted(token))
                at += 1

    def _item(
        self, tokens: list[str], at: int, nested: dict[str, Query], result: Query, out: list[str], with_ts: bool
    ) -> int:
        name, source = "", None
        if tokens[at] == "(":
            end = _closing(tokens, at)
            source = self.query(tokens[at + 1 : end], nested)
            at = end + 1
        else:
            name, at = tokens[at], at + 1
            if _name(name) in nested:
                source = nested[_name(name)]
            elif _name(name) in self.names:
                source = _name(name)
        brackets, alias, at = _suffix(tokens, at)
        if isinstance(source, Query) and not source.streamer and brackets is None:  # a relation: SQL
            self._absorb(result, source)
            out.append(f"({source.sql}) {alias and 'AS ' + _quoted(alias)}")
        elif source is None:  # a CTE
            out.append(f"{_quoted(name)} {alias and 'AS ' + _quoted(alias)}")
        else:
            if isinstance(source, Query) and not source.streamer:
                source.streamer = "ISTREAM"  # a windowed subquery (semantics, section 6)
            self.count += 1
            bounds = any(
                t.upper() in _BOUNDS and _name(tokens[i + 2]) == _name(alias or name) for i, t in enumerate(tokens[:-2])
            )
            item = Item(f"w{self.count}", source, window(brackets or (), self.inclusive), with_ts, bounds)
            result.items.append(item)
            out.append(f"{item.table} AS {_quoted(alias or name or item.table)}")
        return at


def _every(tokens: list[str]) -> tuple[list[str], int, int]:
    """Of the inside of RSTREAM(..): the query, EVERY and ANCHOR."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token == "(") - (token == ")")
        if token.upper() == "EVERY" and not depth:
            text = Reader(tokens[at + 1 :])
            every = text.number()
            return tokens[:at], every, text.option("ANCHOR", 0)
    return tokens, 1, 0


def _is_query(tokens: Sequence[str], at: int) -> bool:
    while tokens[at] == "(":
        at += 1
    return tokens[at].upper() in ("SELECT", "WITH")


def _outer(tokens: Sequence[str]) -> list[str]:
    """The tokens outside of subqueries and windows."""
    found, at = [], 0
    while at < len(tokens):
        if tokens[at] == "(" and tokens[at + 1].upper() in ("SELECT", "WITH", *_STREAMERS):
            at = _closing(tokens, at)
        elif tokens[at] == "[":
            at = _closing(tokens, at, "[", "]")
        found.append(tokens[at])
        at += 1
    return found


def _suffix(tokens: Sequence[str], at: int) -> tuple[list[str] | None, str, int]:
    """A window and an alias, in either order."""
    brackets, alias = None, ""
    while at < len(tokens):
        if tokens[at] == "[":
            end = _closing(tokens, at, "[", "]")
            brackets, at = list(tokens[at + 1 : end]), end + 1
        elif tokens[at].upper() == "AS":
            alias, at = tokens[at + 1], at + 2
        elif not alias and re.match(r"[\w`]", tokens[at]) and tokens[at].upper() not in _NO_ALIAS:
            alias, at = tokens[at], at + 1
        else:
            break
    return brackets, alias, at


def _quoted(token: str) -> str:
    return f'"{token[1:-1]}"' if token.startswith("`") else token
