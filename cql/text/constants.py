"""Constant expressions: ``5 * 60 SECONDS`` from tokens, where a length or a number may stand, and the number that a
parsed expression stands for. All in exact fractions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from sqlglot import exp

from sweeparea.cql.text.errors import ParseError
from sweeparea.cql.text.source_text import SourceText
from sweeparea.cql.text.tokens import Token, TokenType

_SUMS = (TokenType.PLUS, TokenType.DASH)
_PRODUCTS = (TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.DIV)


class AmountKind(StrEnum):
    """What a constant is; lengths are in microseconds, instants in microseconds since 1970."""

    NUMBER = "number"
    LENGTH = "length"
    INSTANT = "instant"


_A = {AmountKind.NUMBER: "a number", AmountKind.LENGTH: "a length", AmountKind.INSTANT: "an instant"}
_NUMBERS = (AmountKind.NUMBER, AmountKind.NUMBER)
_LENGTHS = (AmountKind.LENGTH, AmountKind.LENGTH)
_SCALED = (AmountKind.NUMBER, AmountKind.LENGTH)
_DIVIDED = (AmountKind.LENGTH, AmountKind.NUMBER)


@dataclass(frozen=True)
class Amount:
    """A constant."""

    value: Fraction
    kind: AmountKind


class Arithmetic(ABC):
    """Reads sums and products of constants from tokens. A subclass reads one constant (``primary``)."""

    def __init__(self, source: SourceText, tokens: Sequence[Token], index: int, what: str) -> None:
        self.source, self.tokens, self.index, self.what = source, tokens, index, what

    @abstractmethod
    def primary(self) -> Amount:
        """The constant at ``index``, which is left behind it."""

    def behind_parenthesis(self, inner: Amount) -> Amount:
        """What ``(2 + 3)`` means with the tokens behind it, such as a unit."""
        return inner

    @property
    def token(self) -> Token | None:
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    def _is(self, *kinds: TokenType) -> bool:
        return self.token is not None and self.token.token_type in kinds

    def sum(self) -> Amount:
        return self._chain(self._product, _SUMS)

    def _product(self) -> Amount:
        return self._chain(self._factor, _PRODUCTS)

    def _chain(self, part: Callable[[], Amount], operators: tuple[TokenType, ...]) -> Amount:
        first = self.index
        left = part()
        while self.token is not None and self.token.token_type in operators:
            operator = self.token
            self.index += 1
            left = self._combined(left, operator, part(), first)
        return left

    def _factor(self) -> Amount:
        sign = 1
        while self._is(*_SUMS):
            sign = -sign if self._is(TokenType.DASH) else sign
            self.index += 1
        if self._is(TokenType.L_PAREN):
            opened = self.token
            self.index += 1
            found = self.sum()
            if not self._is(TokenType.R_PAREN):
                raise ParseError(
                    f"{self.what}: a parenthesis is not closed, or holds more than constants",
                    self.source.place(opened.start if opened is not None else 0),
                    "Write numbers and lengths with +, -, *, / and parentheses",
                )
            self.index += 1
            found = self.behind_parenthesis(found)
        else:
            found = self.primary()
        return found if sign == 1 else Amount(-found.value, found.kind)

    def _combined(self, left: Amount, operator: Token, right: Amount, first: int) -> Amount:
        text, kinds = operator.text.upper(), (left.kind, right.kind)
        if text in ("+", "-") and kinds in (_NUMBERS, _LENGTHS, (AmountKind.INSTANT, AmountKind.LENGTH)):
            return Amount(left.value + right.value if text == "+" else left.value - right.value, left.kind)
        if text == "*" and kinds in (_NUMBERS, _SCALED, _DIVIDED):
            return Amount(left.value * right.value, AmountKind.NUMBER if kinds == _NUMBERS else AmountKind.LENGTH)
        whole = left.value.denominator == right.value.denominator == 1
        fits = kinds == _NUMBERS and (text == "/" or whole)
        if not fits and (text, kinds) != ("/", _DIVIDED):
            written = self.source.splice((self.tokens[first].start, self.tokens[self.index - 1].end + 1))
            raise ParseError(
                f"{self.what} {written}: {text} does not go between {_A[left.kind]} and {_A[right.kind]}",
                self.source.place(operator.start),
                "Put the numbers into parentheses, with the unit behind them: (2 + 3) SECONDS"
                if kinds == _SCALED
                else "Write INTERVAL 1 HOUR + INTERVAL 5 MINUTES, 2 * INTERVAL 1 HOUR, or a plain constant",
            )
        if right.value == 0:
            raise ParseError(f"{self.what} divides by zero", self.source.place(operator.start), "Write a constant")
        return Amount(_quotient(text, left.value, right.value), left.kind)


def _quotient(operator: str, left: Fraction, right: Fraction) -> Fraction:
    """``/`` is exact; DIV and % cut towards zero, as in Spark."""
    if operator == "/":
        return left / right
    whole = abs(left.numerator) // abs(right.numerator) * (1 if (left < 0) == (right < 0) else -1)
    return Fraction(whole) if operator == "DIV" else left - right * whole


def number_of(tree: exp.Expr) -> Fraction | None:
    """The number that a parsed expression stands for, if it is a constant."""
    if isinstance(tree, exp.Paren | exp.Cast):
        return number_of(tree.this)
    if isinstance(tree, exp.Literal):
        return Fraction(str(tree.this)) if not tree.is_string and str(tree.this).isdigit() else None
    if isinstance(tree, exp.Neg):
        inner = number_of(tree.this)
        return None if inner is None else -inner
    if not isinstance(tree, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.IntDiv | exp.Mod):
        return None
    left, right = number_of(tree.this), number_of(tree.expression)
    if left is None or right is None:
        return None
    if isinstance(tree, exp.Add | exp.Sub):
        return left + right if isinstance(tree, exp.Add) else left - right
    if isinstance(tree, exp.Mul):
        return left * right
    if right == 0:
        return None
    if not isinstance(tree, exp.Div) and not left.denominator == right.denominator == 1:
        return None
    name = "/" if isinstance(tree, exp.Div) else "DIV" if isinstance(tree, exp.IntDiv) else "%"
    return _quotient(name, left, right)


def decimal_text(value: Fraction) -> str:
    """A fraction for a message: ``2.5``, ``1/3``."""
    rest = value.denominator
    for factor in (2, 5):
        while rest % factor == 0:
            rest //= factor
    return f"{float(value):g}" if rest == 1 else str(value)
