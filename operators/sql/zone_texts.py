"""The time zones that texts of Spark SQL name, and the places where a zone is a value that only the rows tell.

Where the rules of a zone differ at some instants only, a text that asks for the zone at an instant by
``from_utc_timestamp`` or ``to_utc_timestamp`` fails at those alone (``bounded``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sweeparea.operators.sql.sql_text import Token, tokens

Spans = Sequence[tuple[int | None, int | None]]
"""Intervals ``[from, to)`` of seconds since 1970 UTC, in order; None: without a bound."""

_PATH = re.compile(r"[A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+")
_AFTER_TIME = re.compile(r"\s*[+-]?\d{4,}-.*?\d\s*([A-Za-z][A-Za-z0-9_+-]*)\s*")
_ZONED: dict[str, Callable[[int], range]] = {
    "FROM_UTC_TIMESTAMP": lambda count: range(1, 2),
    "TO_UTC_TIMESTAMP": lambda count: range(1, 2),
    "CONVERT_TIMEZONE": lambda count: range(count - 1),
    **dict.fromkeys(
        ("MAKE_TIMESTAMP", "MAKE_TIMESTAMP_LTZ", "TRY_MAKE_TIMESTAMP", "TRY_MAKE_TIMESTAMP_LTZ"),
        lambda count: range(count - 1, count) if count in (3, 7) else range(0),
    ),
}
"""Which arguments of a function are zones, by how many there are."""
_AT_AN_INSTANT = {"FROM_UTC_TIMESTAMP": 0, "TO_UTC_TIMESTAMP": 86_400}
"""The functions whose first argument is an instant, or the local time of one: so many seconds from it at most."""


def zone_arguments(function: str, count: int) -> range:
    """Which of the arguments of a function (its name in capitals) are zones."""
    which = _ZONED.get(function)
    return range(0) if which is None else which(count)


def named(text: str, zones: Collection[str]) -> set[str]:
    """Those of ``zones`` that an expression names: with a "/" wherever it holds them, as ``'Cuba'`` only where a zone
    is meant, since that may as well be a country.

    >>> zones = {"Europe/Berlin", "Cuba", "CET"}
    >>> sorted(named("IF(land = 'Cuba', from_utc_timestamp(`c0`, 'CET'), TIMESTAMP '2024-01-01 Europe/Berlin')", zones))
    ['CET', 'Europe/Berlin']
    >>> sorted(named("`c0` > TIMESTAMP '2024-01-01 00:00:00 Cuba'", zones))
    ['Cuba']
    """
    literals = [_content(t) for t in tokens(text) if _is_text(t)]
    found = {zone for literal in literals for zone in _PATH.findall(literal)}
    found |= {match[1] for literal in literals if (match := _AFTER_TIME.fullmatch(literal))}
    found |= {_content(t) for argument in _arguments(text) for t in argument if _is_text(t)}
    if any(literal.lower() == "timezone" for literal in literals):  # an option of from_json and others
        found |= set(literals)
    return found & set(zones)


def elsewhere(text: str, zones: Collection[str]) -> set[str]:
    """Those of ``zones`` that an expression names, but not only where ``bounded`` reaches them.

    >>> sorted(elsewhere("from_utc_timestamp(t, 'CET') > TIMESTAMP '2024-01-01 Europe/Rome'", ["CET", "Europe/Rome"]))
    ['Europe/Rome']
    """
    for call in sorted(_at_an_instant(text), key=lambda call: -call.zone.start):
        text = f"{text[: call.zone.start]}''{text[call.zone.end :]}"
    return named(text, zones)


def bounded(text: str, differing: Mapping[str, Spans], message: Callable[[str], str]) -> str:
    """The expression, which fails with the message for a zone where it asks for it at an instant of ``differing``.

    >>> print(bounded("from_utc_timestamp(t, 'CET')", {"CET": [(5, 8)]}, "no {}".format))
    from_utc_timestamp(transform(array(CAST(t AS TIMESTAMP)), __at -> CASE WHEN (unix_seconds(__at) >= 5 AND\
 unix_seconds(__at) < 8) THEN raise_error('no CET') ELSE __at END)[0], 'CET')
    """
    grown: list[tuple[int, int]] = []
    for call in sorted(_at_an_instant(text), key=lambda call: -call.start):  # those inside begin behind
        spans = differing.get(_content(call.zone), ())
        if not spans:
            continue
        end = call.end + sum(more for at, more in grown if at < call.end)
        given = text[call.start : end]
        fails = f"raise_error({_literal(message(_content(call.zone)))})"
        case = f"CASE WHEN {_within('unix_seconds(__at)', spans, call.margin)} THEN {fails} ELSE __at END"
        # by a lambda, so that a text inside a text stands there once
        made = f"transform(array(CAST({given} AS TIMESTAMP)), __at -> {case})[0]"
        text = text[: call.start] + made + text[end:]
        grown.append((call.start, len(made) - len(given)))
    return text


def _within(second: str, spans: Spans, margin: int) -> str:
    found = []
    for first, past in spans:
        bounds = [f"{second} >= {first - margin}"] if first is not None else []
        bounds += [f"{second} < {past + margin}"] if past is not None else []
        found.append(f"({' AND '.join(bounds) or f'{second} IS NOT NULL'})")
    return " OR ".join(found)


@dataclass(frozen=True)
class _ZoneCall:
    """A call whose zone is a literal, and where its first argument stands."""

    start: int
    end: int
    margin: int
    zone: Token


def _at_an_instant(text: str) -> Iterator[_ZoneCall]:
    for function, arguments in _calls(text):
        plain = [token for token in arguments[-1] if token.text not in "()"]
        if function in _AT_AN_INSTANT and len(arguments) == 2 and len(plain) == 1 and _is_text(plain[0]):
            first = arguments[0]
            yield _ZoneCall(first[0].start, first[-1].end, _AT_AN_INSTANT[function], plain[0])


def varies(text: str) -> bool:
    """Whether a zone of an expression is no literal."""
    return any(True for _ in _varying(text))


def guarded(text: str, refused: Collection[str], message: str) -> str:
    """The expression, which fails with ``message`` (its ``{zone}`` being the zone) in a row whose zone is one of
    ``refused``.

    >>> guarded("from_utc_timestamp(t, z)", ["Cuba"], "no {zone}")
    "from_utc_timestamp(t, CASE WHEN (z) IN ('Cuba') THEN raise_error(replace('no {zone}', '{zone}', z)) ELSE z END)"
    """
    spans = [(argument[0].start, argument[-1].end) for argument in _varying(text)]
    inner = [s for s in spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in spans)]
    listed = ", ".join(map(_literal, sorted(refused)))
    for start, end in sorted(inner, reverse=True):
        zone = text[start:end]
        fails = f"raise_error(replace({_literal(message)}, '{{zone}}', {zone}))"
        text = f"{text[:start]}CASE WHEN ({zone}) IN ({listed}) THEN {fails} ELSE {zone} END{text[end:]}"
    return text


def _varying(text: str) -> Iterator[list[Token]]:
    for argument in _arguments(text):
        plain = [token for token in argument if token.text not in "()"]
        if not (len(plain) == 1 and _is_text(plain[0])):
            yield argument


def _arguments(text: str) -> Iterator[list[Token]]:
    """The arguments of the text's calls that are zones."""
    for function, arguments in _calls(text):
        yield from (arguments[k] for k in _ZONED[function](len(arguments)) if k < len(arguments) and arguments[k])


def _calls(text: str) -> Iterator[tuple[str, list[list[Token]]]]:
    """The text's calls of functions that take a zone: name and arguments."""
    if not any(name in text.upper() for name in _ZONED):
        return
    found = tokens(text)
    for i, token in enumerate(found[:-1]):
        if token.word not in _ZONED or found[i + 1].text != "(":
            continue
        arguments: list[list[Token]] = [[]]
        for inside in found[i + 2 :]:
            if inside.depth <= token.depth:
                break
            if inside.text == "," and inside.depth == token.depth + 1:
                arguments.append([])
            else:
                arguments[-1].append(inside)
        yield token.word, arguments


def _is_text(token: Token) -> bool:
    return token.text.lstrip("rR")[:1] in ("'", '"')


def _content(token: Token) -> str:
    return token.text.lstrip("rR")[1:-1]


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
