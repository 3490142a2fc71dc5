"""Comparisons with CHAR(n), as Spark pads them (its rule ApplyCharTypePadding): a column of CHAR(n) is compared with a
constant text, or with another such column, after the shorter of both was filled up with blanks. Of two arrays or
structs that hold CHAR values the elements and fields are.

Only columns as they are count, however they are renamed: not fields of structs, not what a function makes of them, not
BETWEEN and NULLIF, not IN (SELECT ..).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sweeparea.cql.functions import types
from sweeparea.cql.text.source_text import Span

COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
SIDE = "\0"
"""Stands in a pattern for the side of the comparison that is padded."""
Padding = tuple[Span, str]
"""The characters of one side of a comparison, and the pattern to put in their place."""
_CHAR = re.compile(r"char\((\d+)\)", re.IGNORECASE)
_VARYING = (
    exp.Column, exp.Star, exp.Query, exp.Lambda, exp.Between, exp.Extract, exp.ILike, exp.Placeholder, exp.Parameter,
    exp.SessionParameter, exp.Window, exp.AggFunc,
)  # fmt: skip
_NOT_FOLDED = """
aes_decrypt aes_encrypt aggregate array_append array_compact array_prepend array_size array_sort arrays_zip btrim
date_part datepart decode elt encode equal_null exists filter forall ifnull ilike is_valid_utf8 left luhn_check
make_valid_utf8 map_concat map_contains_key map_filter map_zip_with nullif nullifzero nvl nvl2 parse_url raise_error
reduce regexp_count regexp_substr right split_part st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid
to_binary to_date to_timestamp to_timestamp_ltz to_timestamp_ntz transform transform_keys transform_values try_add
try_aes_decrypt try_divide try_element_at try_make_interval try_make_timestamp try_mod try_multiply try_parse_url
try_subtract try_to_binary try_to_date try_to_timestamp try_url_decode try_validate_utf8 unhex url_decode url_encode
validate_utf8 vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm vector_normalize
zeroifnull zip_with
"""
"""Functions that Spark 4.2 does not take for a constant where their arguments are constants (``foldable`` of the
examples in DESCRIBE FUNCTION EXTENDED): what they give is compared as it is."""


@dataclass(frozen=True)
class Compared:
    """One side: its characters and their text; ``declared`` is the type of a column that holds CHAR values, as
    ``char(5)`` or ``array<char(5)>``, ``outer`` tells that it is one of the query around; ``constant`` a text that does
    not depend on rows.
    """

    span: Span | None
    text: str
    declared: str | None
    constant: bool
    outer: bool = False

    @property
    def length(self) -> int | None:
        """The n of a column of CHAR(n)."""
        found = _CHAR.fullmatch(self.declared or "")
        return int(found[1]) if found else None

    @property
    def plain(self) -> str | None:
        """The value of a literal without escapes, the only one whose length is known here."""
        inner = self.text[1:-1]
        quoted = len(self.text) >= 2 and self.text[0] == self.text[-1] == "'"
        return inner if self.constant and quoted and not {"'", "\\"} & set(inner) else None


def is_constant(node: exp.Expr) -> bool:
    """Whether Spark knows the value of an expression without any row, before it optimizes a query."""
    return not any(isinstance(p, _VARYING) or _is_parameter(p) or _name(p) in _not_folded() for p in node.walk())


@functools.cache
def _not_folded() -> frozenset[str]:
    return frozenset(_NOT_FOLDED.split())


def _is_parameter(node: exp.Expr) -> bool:
    """Whether it is the x of a lambda function: a bare name that is no field of a struct."""
    return isinstance(node, exp.Identifier) and not (isinstance(node.parent, exp.Dot) and node.arg_key == "expression")


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return "nullif" if node.meta.get("user") is not None else node.name.lower()
    return node.sql_names()[0].lower() if isinstance(node, exp.Func) and node.sql_names() else ""


def comparison(left: Compared, right: Compared) -> list[Padding]:
    """What is padded in ``left = right`` (or ``<``, ``<=>``, ..)."""
    sides = [side for side in (left, right) if side.declared is not None]
    if len(sides) == 2:
        return _to_the_widest(sides)
    if not sides or sides[0].length is None:
        return []
    other = right if sides[0] is left else left
    return list(_with_constants(sides[0], sides[0].length, [other])) if other.constant else []


def member(column: Compared, others: Sequence[Compared]) -> list[Padding]:
    """What is padded in ``column IN (others)``: nothing but where these are all constants, or all CHAR(n)."""
    if column.declared is None:
        return []
    if all(other.constant for other in others):
        return [] if column.length is None else list(_with_constants(column, column.length, others))
    if any(other.declared is None or other.outer for other in others):
        return []
    return _to_the_widest([column, *others])


def widened(declared: str | None, other: str | None) -> str | None:
    """The pattern that pads a column declared so where it is compared with one declared as ``other``; None where there
    is nothing to pad.
    """
    return None if declared is None or other is None else _padded(SIDE, declared, _wider(declared, other))


def _to_the_widest(sides: Sequence[Compared]) -> list[Padding]:
    target = str(sides[0].declared)
    for side in sides[1:]:
        target = _wider(target, str(side.declared))
    patterns = [(side.span, _padded(SIDE, str(side.declared), target)) for side in sides]
    return [(span, pattern) for span, pattern in patterns if span is not None and pattern is not None]


def _wider(one: str, other: str) -> str:
    """The type that values of two are padded to, ``void`` where there is none."""
    lengths = _CHAR.fullmatch(one), _CHAR.fullmatch(other)
    if lengths[0] and lengths[1]:
        return f"char({max(int(lengths[0][1]), int(lengths[1][1]))})"
    if one.startswith("array<") and other.startswith("array<"):
        return f"array<{_wider(one[6:-1], other[6:-1])}>"
    if one.startswith("struct<") and other.startswith("struct<"):
        fields = types.fields(one) or [], types.fields(other) or []
        if len(fields[0]) == len(fields[1]):
            inner = (f"f:{_wider(a, b)}" for (_, a), (_, b) in zip(*fields, strict=True))
            return f"struct<{','.join(inner)}>"
    return "void"


def _padded(value: str, declared: str, target: str, depth: int = 0) -> str | None:
    """The SQL of ``value``, which is ``declared`` so, padded to ``target``; None where Spark leaves it as it is."""
    lengths = _CHAR.fullmatch(declared), _CHAR.fullmatch(target)
    if lengths[0] and lengths[1]:
        return f"rpad({value}, {lengths[1][1]})" if int(lengths[1][1]) > int(lengths[0][1]) else None
    if declared.startswith("array<") and target.startswith("array<"):
        name = f"e{depth}"
        inner = _padded(name, declared[6:-1], target[6:-1], depth + 1)
        return None if inner is None else f"transform({value}, {name} -> {inner})"
    if declared.startswith("struct<") and target.startswith("struct<"):
        fields, targets = types.fields(declared) or [], types.fields(target) or []
        parts: list[str] = []
        inner = None
        for (name, kind), (_, wanted) in zip(fields, targets, strict=True):
            field = "`" + name.replace("`", "``") + "`"
            inner = _padded(f"{value}.{field}", kind, wanted, depth)
            quoted = name.replace("\\", "\\\\").replace("'", "\\'")
            parts.append(f"'{quoted}', {inner or f'{value}.{field}'}")
        # the last field decides, as in Spark
        return None if inner is None else f"named_struct({', '.join(parts)})"
    return None


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
