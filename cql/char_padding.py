"""Comparisons with CHAR(n), as Spark pads them (its rule ApplyCharTypePadding): a column of CHAR(n) is compared with a
constant text, or with another such column, after the shorter of both was filled up with blanks.

Only columns as they are count, however they are renamed: not fields of structs, not what a function makes of them, not
BETWEEN and NULLIF.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sweeparea.cql.source_text import Span

COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
SIDE = "\0"
"""Stands in a pattern for the side of the comparison that is padded."""
Padding = tuple[Span, str]
"""The characters of one side of a comparison, and the pattern to put in their place."""
_CONSTANT = (
    exp.Literal, exp.RawString, exp.Null, exp.Boolean, exp.Cast, exp.DataType, exp.DPipe, exp.Paren, exp.Concat, exp.If,
    exp.Case,
)  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """One side: its characters and their text; ``length`` is n of a column of CHAR(n), ``constant`` tells a text that
    does not depend on rows.
    """

    span: Span | None
    text: str
    length: int | None
    constant: bool

    @property
    def plain(self) -> str | None:
        """The value of a literal without escapes, the only one whose length is known here."""
        inner = self.text[1:-1]
        quoted = len(self.text) >= 2 and self.text[0] == self.text[-1] == "'"
        return inner if self.constant and quoted and not {"'", "\\"} & set(inner) else None


def is_constant(node: exp.Expr) -> bool:
    """Whether an expression is made of literals alone."""
    return all(isinstance(part, _CONSTANT) for part in node.walk())


def comparison(left: Compared, right: Compared) -> list[Padding]:
    """What is padded in ``left = right`` (or ``<``, ``<=>``, ..)."""
    if right.length is not None and left.length is None:
        left, right = right, left
    return member(left, [right])


def member(column: Compared, others: Sequence[Compared]) -> list[Padding]:
    """What is padded in ``column IN (others)``: nothing but where these are all constants, or all CHAR(n)."""
    if column.length is None:
        return []
    if all(other.constant for other in others):
        return list(_with_constants(column, column.length, others))
    lengths = [other.length for other in others if other.length is not None]
    if len(lengths) < len(others):
        return []
    longest = max(column.length, *lengths)
    sides = [side for side in (column, *others) if side.length is not None and side.length < longest]
    return [(side.span, f"rpad({SIDE}, {longest})") for side in sides if side.span is not None]


def cases(column: Compared, whens: Sequence[Compared]) -> list[Padding]:
    """What is padded in ``CASE column WHEN ..``: the constants among ``whens``."""
    constants = [when for when in whens if when.constant]
    if column.length is None or not constants:
        return []
    found = list(_with_constants(column, column.length, constants))
    # where the column itself is compared with other things too, it stays as it is
    return found if len(constants) == len(whens) else [each for each in found if each[0] != column.span]


def _with_constants(column: Compared, length: int, constants: Iterable[Compared]) -> Iterable[Padding]:
    unknown = [f"length({other.text})" for other in constants if other.plain is None]
    longest = max([length, *(len(other.plain) for other in constants if other.plain is not None)])
    target = f"greatest({longest}, {', '.join(unknown)})" if unknown else str(longest)
    if column.span is not None and (unknown or longest > length):
        yield column.span, f"rpad({SIDE}, {target})"
    for other in constants:
        if other.span is None:
            continue
        if other.plain is None or unknown:
            yield other.span, f"rpad({SIDE}, {target})"
        elif len(other.plain) < longest:
            yield other.span, f"'{other.plain.ljust(longest)}'"
