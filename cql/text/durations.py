"""Lengths of time and instants as they are written in windows and statements, and their value in ticks.

Three spellings: a Spark interval (``INTERVAL 6 HOURS``, ``INTERVAL '1 02:03:04' DAY TO SECOND``), a number with a unit
as the papers write it (``30 Seconds``), and a bare number of ticks for BIGINT time. Months and years have no fixed
length. Where one of them may stand, constants may be reckoned with: ``5 * 60 SECONDS``, ``INTERVAL 1 HOUR + INTERVAL 5
MINUTES``, ``(2 + 3) HOURS``; exactly, as fractions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sweeparea.cql.text.constants import Amount, AmountKind, Arithmetic, decimal_text
from sweeparea.cql.text.errors import ParseError, RefusedError, TypeError_, nearest
from sweeparea.cql.text.source_text import SourceText, Span
from sweeparea.cql.text.time_units import CALENDAR, FINER, SHORT, unit_of
from sweeparea.cql.text.timestamps import micros_of_timestamp
from sweeparea.cql.text.tokens import Token, TokenType
from sweeparea.operators.time.domain import MICROS, TimeDomain, micros_text
from sweeparea.operators.time.ticks import MAX_TICK

_SHORT_TEXT = re.compile(r"(?P<number>\d+)(?P<unit>[A-Za-z]+)")
_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
_OPERATORS = (TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.DIV)
_FIELDS = ("DAY", "HOUR", "MINUTE", "SECOND")
_DAY_TIME = re.compile(r"^\s*([+-]?)\s*(?:(\d+)(?:\s+|$))?(?:(\d+)(?::(\d+))?(?::(\d+(?:\.\d*)?))?)?\s*$")
_UNIT_PAIR = re.compile(r"\s*([+-]?\s*\d+(?:\.\d+)?)\s+([A-Za-z]+)")


@dataclass(frozen=True)
class DurationText:
    """A length or an instant as written: ``ticks`` where it is a bare number, else ``micros`` (exact microseconds).

    ``instant`` tells a TIMESTAMP or DATE literal from a length of time; ``point`` says that a point of time is meant.
    """

    span: Span
    source: SourceText
    ticks: int | None = None
    micros: Fraction | None = None
    instant: bool = False
    point: bool = field(default=False, compare=False)

    @property
    def text(self) -> str:
        return self.source.splice(self.span)

    @property
    def _number(self) -> str:
        """The number as it may stand before a unit."""
        text = self.text.lstrip("+-")
        return text if text.isdigit() else f"({text})"

    def in_ticks(self, time: TimeDomain, what: str) -> int:
        """The value in ticks of a time domain. ParseError where its spelling does not fit the domain's kind or
        chronon."""
        place = self.source.place(self.span[0])
        if time.kind == "BIGINT":
            if self.ticks is None:
                raise ParseError(
                    f"{what} {self.text} has a unit of time, but time is BIGINT here",
                    place,
                    "Write a bare number of ticks, such as 10; units need a stream "
                    "whose TIMESTAMP BY column is a TIMESTAMP",
                )
            value = self.ticks
        elif self.micros is None and self.point:
            raise ParseError(
                f"{what} {self.text} is a bare number, but time is TIMESTAMP here",
                place,
                "Write TIMESTAMP '2024-01-31 12:00:00'; bare numbers are for streams whose time is BIGINT",
            )
        elif self.micros is None:
            raise ParseError(
                f"{what} {self.text} has no unit, but time is TIMESTAMP here",
                place,
                f"Write INTERVAL {self._number} SECONDS or {self._number} Seconds; "
                "bare numbers are for streams whose time is BIGINT",
            )
        else:
            ticks = self.micros / time.chronon
            if ticks.denominator != 1:
                finest = time.chronon == 1 and self.micros.denominator != 1
                raise ParseError(
                    f"{what} {self.text} is no multiple of the chronon, {micros_text(time.chronon)}",
                    place,
                    "Ticks are no finer than that: round it, such as to 1 MICROSECOND"
                    if finest
                    else "Round it, or declare a finer CHRONON on the stream",
                )
            value = ticks.numerator
        if abs(value) > MAX_TICK:
            raise ParseError(f"{what} {self.text} is longer than time itself, which ends at tick 2^62", place)
        return value

    def in_micros(self, what: str) -> int:
        """Whole microseconds, for clauses of statements that do not know the time domain."""
        place = self.source.place(self.span[0])
        if self.micros is None:
            raise ParseError(f"{what} {self.text} has no unit", place, f"Write INTERVAL {self._number} SECONDS")
        if self.micros.denominator != 1:
            raise ParseError(f"{what} {self.text} is finer than a microsecond", place, "Write 1 MICROSECOND or more")
        return self.micros.numerator


def starts_duration(token: Token, following: Token | None = None) -> bool:
    """Whether a length begins at ``token``; ``following`` is the one behind it."""
    if token.token_type == TokenType.L_PAREN and following is not None:
        token = following
    return token.token_type in (TokenType.NUMBER, TokenType.INTERVAL)


def parse_duration(source: SourceText, tokens: Sequence[Token], index: int, what: str) -> tuple[DurationText, int]:
    """A length of time at ``tokens[index]``, and the index behind it."""
    reader = _DurationReader(source, tokens, index, what)
    return reader.duration(), reader.index


def parse_number(source: SourceText, tokens: Sequence[Token], index: int, what: str) -> tuple[Fraction, str, int]:
    """A constant number at ``tokens[index]``, how it is written, and the index behind it."""
    reader = _DurationReader(source, tokens, index, what, units=False)
    found = reader.sum()
    if found.kind != AmountKind.NUMBER:
        place = source.place(reader.span()[0])
        raise ParseError(f"{what} {source.splice(reader.span())} is a length of time, and no number", place)
    return found.value, source.splice(reader.span()), reader.index


def refuse_reference(source: SourceText, tokens: Sequence[Token], index: int, what: str) -> None:
    """TypeError_ where a qualified column stands for a length or a number: a window has to be known before any row."""
    following = [t.token_type for t in tokens[index : index + 3]]
    if len(following) < 3 or following[1] != TokenType.DOT or tokens[index].text.isdigit():
        return
    name = f"{tokens[index].text}.{tokens[index + 2].text}"
    raise TypeError_(
        f"{what} is {name}, but windows cannot depend on a column, neither of their own stream nor of the query "
        "around: a stream has one window for all rows",
        source.place(tokens[index].start),
        f"Write a constant, wide enough for all, and compare ts with {name} in WHERE",
    )


def parse_instant(source: SourceText, tokens: Sequence[Token], index: int, what: str) -> tuple[DurationText, int]:
    """An instant: a TIMESTAMP or DATE literal, a length since tick 0, or a bare tick; and the index behind it."""
    reader = _DurationReader(source, tokens, index, what, instants=True)
    return replace(reader.duration(), point=True), reader.index


class _DurationReader(Arithmetic):
    """Reads lengths, numbers and, where ``instants`` says so, instants."""

    def __init__(
        self,
        source: SourceText,
        tokens: Sequence[Token],
        index: int,
        what: str,
        instants: bool = False,
        units: bool = True,
    ) -> None:
        super().__init__(source, tokens, index, what)
        self.first, self.instants, self.units = index, instants, units

    def _fail(self, message: str, hint: str = "", token: Token | None = None) -> ParseError:
        at = token or self.token
        offset = at.start if at is not None else (self.tokens[-1].end + 1 if self.tokens else 0)
        return ParseError(message, self.source.place(offset), hint)

    def _take(self) -> Token:
        token = self.token
        if token is None:
            raise self._fail(
                f"{self.what} ends too early", "A length of time such as INTERVAL 6 HOURS or 10 is expected"
            )
        self.index += 1
        return token

    def span(self) -> Span:
        return self.tokens[self.first].start, self.tokens[self.index - 1].end + 1

    def _sign(self) -> int:
        if self._is(TokenType.DASH):
            self.index += 1
            return -1
        if self._is(TokenType.PLUS):
            self.index += 1
        return 1

    # -- the way in --------------------------------------------------------------------------------------------------

    def duration(self) -> DurationText:
        """A length, a number of ticks, or an instant."""
        found = self.sum()
        span = self.span()
        if found.kind != AmountKind.NUMBER:
            return DurationText(span, self.source, micros=found.value, instant=found.kind == AmountKind.INSTANT)
        if found.value.denominator != 1:
            raise ParseError(
                f"{self.what} {self.source.splice(span)} is no whole number of ticks: {decimal_text(found.value)}",
                self.source.place(span[0]),
                "Write 10, or INTERVAL 6 HOURS",
            )
        return DurationText(span, self.source, ticks=found.value.numerator)

    # -- one constant ------------------------------------------------------------------------------------------------

    def primary(self) -> Amount:
        token = self.token
        if self.instants and token is not None:
            instant = self._instant(token)
            if instant is not None:
                return instant
        if self._is(TokenType.INTERVAL):
            self.index += 1
            return self._interval()
        if self._is(TokenType.NUMBER):
            return self._number_or_length()
        refuse_reference(self.source, self.tokens, self.index, self.what)
        found = f"found {token.text!r}" if token is not None else "found the end"
        if self.instants and self._is(*_STRINGS):
            text = token.text if token is not None else ""
            raise self._fail(f"{self.what} needs an instant, found the string '{text}'", _instant_hint(text))
        raise self._fail(f"{self.what} needs a length of time, {found}", self._length_hint())

    def _length_hint(self) -> str:
        token = self.token
        if token is not None and token.token_type in _STRINGS and _UNIT_PAIR.fullmatch(token.text.strip()):
            return f"Write INTERVAL '{token.text.strip()}'"
        short = _SHORT_TEXT.fullmatch(token.text.strip()) if token is not None else None
        if short is not None and short["unit"].lower() in SHORT:
            return f"Write {short['number']} {SHORT[short['unit'].lower()]}"
        return "Write INTERVAL 6 HOURS, 30 Seconds, or ticks such as 10"

    def behind_parenthesis(self, inner: Amount) -> Amount:
        unit = self.token
        if inner.kind != AmountKind.NUMBER or unit is None or not self.units or unit_of(unit.text) is None:
            return inner
        return Amount(inner.value * self._unit(self._take()), AmountKind.LENGTH)

    def _instant(self, token: Token) -> Amount | None:
        kind = token.text.upper()
        literal = self.tokens[self.index + 1] if self.index + 1 < len(self.tokens) else None
        if kind not in ("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "DATE") or literal is None:
            return None
        if literal.token_type not in _STRINGS:
            return None
        self.index += 2
        try:
            return Amount(Fraction(micros_of_timestamp(literal.text)), AmountKind.INSTANT)
        except ValueError as error:
            raise self._fail(
                f"'{literal.text}' is no {kind} ({error})", "Write TIMESTAMP '2013-01-31 12:00:00'", literal
            ) from None

    def _interval(self) -> Amount:
        sign = self._sign()
        refuse_reference(self.source, self.tokens, self.index, self.what)
        if self._is(*_STRINGS):
            return Amount(sign * self._quoted(self._take()), AmountKind.LENGTH)
        following = self.tokens[self.index + 1] if self.index + 1 < len(self.tokens) else None
        reckoned = self._is(TokenType.L_PAREN) or (following is not None and following.token_type in _OPERATORS)
        if self._is(TokenType.NUMBER) and not reckoned:
            return Amount(sign * self._pairs((TokenType.DASH, TokenType.PLUS)), AmountKind.LENGTH)
        if not reckoned:
            raise self._fail("INTERVAL needs a number or a string behind it", "Write INTERVAL 6 HOURS")
        first = self.token
        found = self.sum()
        if found.kind != AmountKind.LENGTH:
            raise self._fail("INTERVAL needs a unit of time behind its number", "Write INTERVAL 6 HOURS", first)
        return Amount(sign * found.value, AmountKind.LENGTH)

    def _number_or_length(self) -> Amount:
        following = self.tokens[self.index + 1] if self.index + 1 < len(self.tokens) else None
        if self.units and following is not None and following.token_type not in _STRINGS:
            if unit_of(following.text) is not None:
                return Amount(self._pairs(), AmountKind.LENGTH)
            short = SHORT.get(following.text.lower())
            if short is not None and following.token_type != TokenType.IDENTIFIER:
                number = self.token.text if self.token is not None else ""
                what = f"units of time are spelled out here, found {following.text!r}"
                raise self._fail(what, f"Write {number} {short}", following)
        token = self._take()
        text = self.source.text[token.start : token.end + 1]
        if re.fullmatch(r"\d+", text):
            return Amount(Fraction(text), AmountKind.NUMBER)
        if re.fullmatch(r"\d*\.\d+|\d+\.", text) and self.token is not None and self.token.token_type in _OPERATORS:
            return Amount(Fraction(text + "0"), AmountKind.NUMBER)
        short = _SHORT_TEXT.fullmatch(text)
        unit = SHORT.get(short["unit"].lower()) if short is not None else None
        raise self._fail(
            f"{self.what} {text} is no whole number of ticks",
            "Write 10, or INTERVAL 6 HOURS" if short is None or unit is None else f"Write {short['number']} {unit}",
            token,
        )

    def _pairs(self, signs: tuple[TokenType, ...] = ()) -> Fraction:
        """``1 DAY 2 HOURS``: at least one number with its unit. ``signs`` may stand before those behind the first."""
        total = Fraction(0)
        first = True
        while self._is(TokenType.NUMBER, *signs) or first:
            unit_at = self.index + (0 if self._is(TokenType.NUMBER) else 1) + 1
            if not first and (unit_at >= len(self.tokens) or unit_of(self.tokens[unit_at].text) is None):
                break
            sign = self._sign()
            number = self._take()
            total += sign * self._number(number) * self._unit(self._take())
            first = False
        return total

    def _number(self, token: Token) -> Fraction:
        text = self.source.text[token.start : token.end + 1]
        try:
            return Fraction(text)
        except (ValueError, ZeroDivisionError):
            raise self._fail(f"{text!r} is no number", "", token) from None

    def _unit(self, token: Token) -> int | Fraction:
        unit = unit_of(token.text)
        if unit is None and token.text.lower() in SHORT:
            raise self._fail(
                f"units of time are spelled out here, found {token.text!r}",
                f"Write {SHORT[token.text.lower()]}",
                token,
            )
        if unit is None:
            raise self._fail(
                f"{token.text!r} is no unit of time",
                nearest(token.text, (u.lower() + "s" for u in MICROS))
                or f"Units are {', '.join(u.lower() + 's' for u in MICROS)}",
                token,
            )
        if unit in CALENDAR:
            raise RefusedError(
                f"{unit.lower()}s have no fixed length, so {self.what} cannot be given in them",
                self.source.place(token.start),
                "Write days, such as INTERVAL 30 DAYS",
            )
        return MICROS.get(unit) or FINER[unit]

    def _quoted(self, literal: Token) -> Fraction:
        unit = self.token
        if (
            unit is not None
            and unit_of(unit.text) is not None
            and unit.token_type not in (TokenType.STRING, TokenType.NUMBER)
        ):
            first = self._take()
            micros = self._unit(first)
            following = self.token
            if following is not None and following.text.upper() == "TO":
                self.index += 1
                last = self._take()
                self._unit(last)
                return self._fields(literal, unit_of(first.text) or "", unit_of(last.text) or "")
            try:
                return Fraction(literal.text.strip().replace(" ", "")) * micros
            except (ValueError, ZeroDivisionError):
                raise self._fail(f"'{literal.text}' is no number of {first.text.lower()}s", "", literal) from None
        rest, total, found = literal.text.strip(), Fraction(0), False
        if rest.lower().startswith("interval "):
            rest = rest[len("interval ") :]
        while match := _UNIT_PAIR.match(rest):
            token = Token(TokenType.VAR, match[2], start=literal.start, end=literal.end)
            total += Fraction(match[1].replace(" ", "")) * self._unit(token)
            rest, found = rest[match.end() :], True
        if not found or rest.strip():
            raise self._fail(
                f"'{literal.text}' is no interval", "Write INTERVAL '6' HOUR or INTERVAL '1 day 6 hours'", literal
            )
        return total

    def _fields(self, literal: Token, first: str, last: str) -> Fraction:
        """``'1 02:03:04.5' DAY TO SECOND`` and its shorter forms."""
        if first not in _FIELDS or last not in _FIELDS or _FIELDS.index(first) >= _FIELDS.index(last):
            raise self._fail(
                f"INTERVAL {first} TO {last} is no interval", "Write DAY TO SECOND, HOUR TO MINUTE or the like", literal
            )
        text = literal.text.strip()
        sign = -1 if text.startswith("-") else 1
        parts = [p for p in re.split(r"[ :]+", text.lstrip("+-").strip()) if p]
        wanted = _FIELDS[_FIELDS.index(first) : _FIELDS.index(last) + 1]
        if len(parts) != len(wanted) or not all(re.fullmatch(r"\d+(\.\d*)?", p) for p in parts):
            raise self._fail(
                f"'{literal.text}' does not fit {first} TO {last}", "Write INTERVAL '1 02:03:04' DAY TO SECOND", literal
            )
        return sign * sum(
            (Fraction(p.rstrip(".")) * MICROS[u] for p, u in zip(parts, wanted, strict=True)), Fraction(0)
        )


def _instant_hint(text: str) -> str:
    """How a string that is a time or a length is written as one."""
    try:
        micros_of_timestamp(text)
    except ValueError:
        pair = _UNIT_PAIR.fullmatch(text)
        if pair is not None and unit_of(pair[2]) is not None:
            return f"Write INTERVAL '{text}'"
        return "Write TIMESTAMP '2024-01-31 12:00:00'"
    return f"Write TIMESTAMP '{text}'"
