"""What a user is told about a text: the kind of fault, its place, the line with a caret, and the way out.

The four kinds are those that ``replay`` reports: ParseError (text, window sizes and units), BindError (unknown,
ambiguous or clashing names), TypeError (argument types, a window on a relation, a missing Istream, mixed chronons) and
RefusedError (understood but not offered).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from sweeparea.infra.errors import SweepAreaError, shortened


@dataclass(frozen=True)
class Place:
    """A character of a text: 1-based line and column, and the whole line it stands in."""

    file: str
    line: int
    column: int
    source: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class CqlError(SweepAreaError):
    """One fault of a text. ``message`` says what is wrong and what was expected, ``hint`` the way out."""

    exit_code = 2

    def __init__(self, message: str, place: Place | None = None, hint: str = "") -> None:
        self.message = message
        self.place = place
        self.hint = hint
        super().__init__(self._render())

    def _render(self) -> str:
        message = shortened(self.message)
        sentence = message if message.endswith((".", "?", "!")) else message + "."
        if self.hint:
            sentence += f" {self.hint}" if self.hint.endswith((".", "?", "!")) else f" {self.hint}."
        if self.place is None:
            return f"{self.type}: {sentence}"
        line, at = around(self.place.source, self.place.column - 1)
        # tabs count as one column, so the caret line repeats them to stay under its character
        lead = "".join(c if c == "\t" else " " for c in line[:at])
        return f"{self.place}: {self.type}: {sentence}\n    {line}\n    {lead}^"


class ParseError(CqlError):
    """The text is not of the language, or a window's size or unit is wrong."""

    type = "ParseError"


class BindError(CqlError):
    """A name is unknown, ambiguous or clashes with another."""

    type = "BindError"


class TypeError_(CqlError):
    """A thing of the wrong type: an argument, a relation where a stream is needed, mixed chronons."""

    type = "TypeError"


class RefusedError(CqlError):
    """The language has it, or SQL has it, but it is not offered; the message says why."""

    type = "RefusedError"


class CqlErrors(SweepAreaError):
    """All faults of one text, in the order of their places. ``type`` is that of the first."""

    exit_code = 2

    def __init__(self, errors: Iterable[SweepAreaError]) -> None:
        self.errors: tuple[SweepAreaError, ...] = tuple(errors)
        self.type = self.errors[0].type if self.errors else "ParseError"
        super().__init__("\n".join(str(e) for e in self.errors))


def raise_all(errors: list[SweepAreaError]) -> None:
    """Raise what was collected: nothing, the one error itself, or all of them together, in the order of their places.
    Repeated errors are told once."""
    found = in_order(errors)
    if len(found) == 1:
        raise found[0]
    if found:
        raise CqlErrors(found)


def in_order(errors: Iterable[SweepAreaError]) -> list[SweepAreaError]:
    """Errors one by one, each once, by file, line and column; those without a place come last."""
    unique: dict[str, SweepAreaError] = {}
    for error in errors:
        for one in error.errors if isinstance(error, CqlErrors) else (error,):
            unique.setdefault(str(one), one)
    return sorted(unique.values(), key=_position)


def beside(error: SweepAreaError, faults: Iterable[SweepAreaError]) -> list[SweepAreaError]:
    """``error`` and those of ``faults`` that are about other places."""
    told = {_position(one) for one in in_order([error])}
    return [error, *(one for one in in_order(faults) if _position(one) not in told)]


def _position(error: SweepAreaError) -> tuple[bool, str, int, int]:
    place = error.place if isinstance(error, CqlError) else None
    return (True, "", 0, 0) if place is None else (False, place.file, place.line, place.column)


_LINE = 200
"""Characters of a line that a message shows at most."""


def around(line: str, at: int) -> tuple[str, int]:
    """What a message shows of a line, however long that is, and where the character ``at`` stands in it."""
    if len(line) <= _LINE:
        return line, at
    first = max(0, min(at - _LINE // 2, len(line) - _LINE))
    lead = ".. " if first else ""
    rest = " .." if first + _LINE < len(line) else ""
    return f"{lead}{line[first : first + _LINE]}{rest}", at - first + len(lead)


def not_offered(what: str, place: Place | None, hint: str = "") -> RefusedError:
    """The refusal of a construct that the language knows and no operator of this version covers."""
    return RefusedError(f"{what} is not offered by this version", place, hint)


def nearest(name: str, known: Iterable[str]) -> str:
    """``Did you mean x?`` for the closest known name, or an empty text."""
    lowered = {k.lower(): k for k in known}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return f"Did you mean {lowered[close[0]]}?" if close and close[0] != name.lower() else ""


def listing(names: Iterable[str], limit: int = 12) -> str:
    """Names for a sentence: ``a, b, c`` or ``a, b, .. (40 in all)``."""
    all_names = list(names)
    if len(all_names) <= limit:
        return ", ".join(all_names)
    return ", ".join(all_names[:limit]) + f", .. ({len(all_names)} in all)"
