"""``INTERVAL`` in an expression, as Spark's grammar has it: one or more amounts, each with its unit, or one text.

sqlglot reads on where Spark does not: of ``INTERVAL '1' DAY + 1`` it makes two intervals, where 1 is an operand of
``+``; and it takes any expression for an amount. ``INTERVAL 1 DAY - 1 HOUR`` is one interval of 23 hours in Spark.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from sweeparea.cql.syntax.dialect.strict import StrictParser
from sweeparea.cql.text.errors import ParseError
from sweeparea.cql.text.tokens import TokenType

UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND",
         "NANOSECOND")  # fmt: skip
AMOUNTS = "amounts"
"""Key of a node's ``meta``: the amounts of an interval as (text with its sign, whether it was quoted, unit or "")."""
_SIGNS = (TokenType.PLUS, TokenType.DASH)
_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
_LITERALS = (TokenType.NUMBER, *_STRINGS)
_SIZES = {unit: len(UNITS) - at for at, unit in enumerate(UNITS)}


def parse_interval(parser: Any) -> exp.Interval | None:
    """The interval that begins at the parser's token INTERVAL; None, the parser standing where it stood, if the word
    is a name here. ParseError if what follows is no amount.
    """
    begin = parser._index
    parser._match(TokenType.INTERVAL)
    signed = parser._curr.token_type in _SIGNS
    first = _amount(parser)
    if first is None or (signed and not first[1] and not first[2]):
        parser._retreat(begin)
        return _refused(parser) if first is None and not signed else None
    if not first[1] and not first[2]:
        place = parser.source.place(parser._tokens[begin].start)
        raise ParseError(f"INTERVAL {first[0]} has no unit of time", place, f"Write INTERVAL {first[0]} HOURS")
    amounts, last = [first], ""  # the unit behind TO
    if first[2] and parser._match_text_seq("TO"):
        last = parser._curr.text.upper()
        parser._advance()
    while first[2] and not last and _amount_follows(parser):
        more = _amount(parser)
        if more is None:
            break
        amounts.append(more)
    interval = exp.Interval(this=exp.Literal.string(first[0].strip()), unit=_unit(amounts, last))
    start, end = parser._tokens[begin].start, parser._tokens[parser._index - 1].end + 1
    interval.meta.update({"span": (start, end), AMOUNTS: tuple(amounts)})
    return interval


def _amount(parser: Any) -> tuple[str, bool, str] | None:
    """A number or a text with its sign, whether it is a text, and the unit behind it."""
    sign = ""
    if parser._curr.token_type in _SIGNS:
        sign = "-" if parser._curr.token_type == TokenType.DASH else ""
        parser._advance()
    begin = parser._curr
    if begin.token_type == TokenType.DOT and parser._next.token_type == TokenType.NUMBER:  # .5
        parser._advance()
    token = parser._curr
    if token.token_type not in _LITERALS:
        return None
    quoted = token.token_type in _STRINGS
    value = token.text if quoted else parser.source.text[begin.start : token.end + 1]
    parser._advance()
    while quoted and parser._curr.token_type in _STRINGS:  # Spark puts them together
        value += parser._curr.text
        parser._advance()
    value = value.strip()
    if sign:
        value = value[1:] if value.startswith("-") else f"-{value}"
    unit = parser._curr
    named = _of_unit(unit.text) in UNITS or (unit.token_type == TokenType.VAR and not quoted)
    if not named or unit.token_type in (TokenType.IDENTIFIER, *_LITERALS):
        return value, quoted, ""
    parser._advance()
    return value, quoted, unit.text.upper()


def _amount_follows(parser: Any) -> bool:
    """Whether a sign, a number or text, and a unit stand next: more of the same interval."""
    tokens, at = parser._tokens, parser._index
    at += at < len(tokens) and tokens[at].token_type in _SIGNS
    begin = at
    while at < len(tokens) and tokens[at].token_type in (_STRINGS if at > begin else _LITERALS):
        at += 1
    return begin < at < len(tokens) and tokens[at].token_type not in _LITERALS and _of_unit(tokens[at].text) in UNITS


def _refused(parser: Any) -> None:
    """None if INTERVAL is a name here. ParseError for an expression with a unit: a length that is computed."""
    at = parser._index + 1
    if at + 1 >= len(parser._tokens):
        return
    token, following = parser._tokens[at : at + 2]
    if _of_unit(token.text) in UNITS and following.token_type in _LITERALS:
        hint = f"Write INTERVAL '{following.text}' {token.text}"
        raise ParseError("the unit of an INTERVAL stands behind its number", parser.source.place(token.start), hint)
    named = token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
    if named and following.token_type == TokenType.VAR and _of_unit(following.text) in UNITS:
        raise ParseError(
            f"INTERVAL takes a number or a text, found {token.text}",
            parser.source.place(token.start),
            f"Write {token.text} * INTERVAL 1 {following.text}",
        )


def _unit(amounts: list[tuple[str, bool, str]], last: str) -> exp.Expr | None:
    """The unit, or the span of units, that the interval's type is made of."""
    if last:
        return exp.IntervalSpan(this=exp.Var(this=amounts[0][2]), expression=exp.Var(this=last))
    units = [amount[2] for amount in amounts]
    if not units[0]:
        words = [word.upper() for word in amounts[0][0].split() if word.isalpha() and word.lower() != "interval"]
        units = [unit for unit in words if _of_unit(unit) in UNITS] if words else []
    fields = sorted({_FIELDS.get(_of_unit(unit), _of_unit(unit)) for unit in units}, key=lambda f: -_SIZES.get(f, 0))
    if not fields:
        return None
    if len(units) == 1:
        return exp.Var(this=units[0])
    if len(fields) == 1:
        return exp.Var(this=fields[0])
    return exp.IntervalSpan(this=exp.Var(this=fields[0]), expression=exp.Var(this=fields[-1]))


_FIELDS = {"QUARTER": "MONTH", "WEEK": "DAY", "MILLISECOND": "SECOND", "MICROSECOND": "SECOND", "NANOSECOND": "SECOND"}
"""Units that are written, by the field of the type that Spark gives."""


def _of_unit(text: str) -> str:
    return text.upper().removesuffix("S")


class IntervalParser(StrictParser):
    """Reads an interval wherever the word stands for one."""

    def _parse_interval(
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Add | exp.Interval | None:
        if self._curr.token_type != TokenType.INTERVAL:
            return super()._parse_interval(require_interval, parse_function_unit)
        return parse_interval(self)
