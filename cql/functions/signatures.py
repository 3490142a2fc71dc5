"""Types that Spark's functions and operators take and give, without asking Spark.

``spark_signatures.txt`` holds what Spark's analyzer says of sample types (``spark_jobs/*/function_signatures.py`` wrote
it). A type that is no sample stands for its family where all samples of the family behave alike. What is not certain is
None, and nothing is refused for it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path

Sample = str

FAMILIES: dict[str, tuple[Sample, ...]] = {
    "boolean": ("boolean",),
    "integer": ("tinyint", "smallint", "int", "bigint"),
    "fractional": ("float", "double"),
    "decimal": ("decimal(10,2)", "decimal(20,5)"),
    "string": ("string",),
    "binary": ("binary",),
    "date": ("date",),
    "timestamp": ("timestamp",),
    "timestamp_ntz": ("timestamp_ntz",),
    "array": ("array<int>", "array<string>"),
    "map": ("map<string,int>", "map<int,double>"),
    "struct": ("struct<f:int>",),
    "interval": ("interval day to second", "interval year to month"),
    "variant": ("variant",),
}
"""Families of types and the samples of each that Spark was asked about."""

_WORDS = {
    "boolean": "BOOLEAN",
    "integer": "numbers",
    "fractional": "numbers",
    "decimal": "numbers",
    "string": "STRING",
    "binary": "BINARY",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP",
    "array": "ARRAY",
    "map": "MAP",
    "struct": "STRUCT",
    "interval": "INTERVAL",
    "variant": "VARIANT",
}


@lru_cache(1024)
def family_of(type_: str) -> str | None:
    """The family of a type; None if nothing is known of it."""
    head = type_.split("(")[0].split("<")[0].split(" ")[0]
    if head in FAMILIES:
        return head
    return next((family for family, samples in FAMILIES.items() if head in samples), None)


def sample_of(type_: str) -> str:
    """An interval by the sample of its kind: Spark takes all intervals of days alike, and all of months."""
    if not type_.startswith("interval "):
        return type_
    return FAMILIES["interval"][type_.split()[1] in ("year", "month")]


class RuleKind(StrEnum):
    """How a result's type follows from an argument's: it is itself, an array of it, its element; of a map the keys or
    values (arrays), or a value. ``CONST``: from none.
    """

    CONST = "const"
    ARG = "arg"
    ARRAY = "array"
    ELEMENT = "element"
    KEYS = "keys"
    VALUES = "values"
    VALUE = "value"


@dataclass(frozen=True, order=True)
class ResultRule:
    """How a result's type follows from the arguments': from that at position ``at``, or always ``type``."""

    kind: RuleKind
    at: int = 0
    type: str = ""

    @classmethod
    def parse(cls, text: str) -> ResultRule:
        kind, _, at = text.partition("@")
        return cls(RuleKind(kind), int(at)) if at else cls(RuleKind.CONST, 0, text)

    def __str__(self) -> str:
        return self.type if self.kind == RuleKind.CONST else f"{self.kind}@{self.at}"

    def apply(self, types: Sequence[str | None]) -> str | None:
        if self.kind == RuleKind.CONST:
            return self.type
        given = types[self.at]
        if given is None or given == "void" or (given.startswith("interval") and given not in FAMILIES["interval"]):
            return None  # Spark widens an interval's unit where it computes with it
        return dict(_shapes(given)).get(self.kind)


def _shapes(type_: str) -> list[tuple[RuleKind, str]]:
    """Types that a result may have from an argument of a type, by the rule's kind."""
    found = [(RuleKind.ARG, type_), (RuleKind.ARRAY, f"array<{type_}>")]
    if type_.startswith("array<"):
        found.append((RuleKind.ELEMENT, type_[6:-1]))
    if type_.startswith("map<"):
        key, value = split_types(type_[4:-1])
        found += [
            (RuleKind.KEYS, f"array<{key}>"),
            (RuleKind.VALUES, f"array<{value}>"),
            (RuleKind.VALUE, value),
        ]
    return found


def split_types(text: str) -> list[str]:
    """Types between commas that are in no brackets: ``int,decimal(10,2)`` as two."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "<(") - (c in ">)")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()]


def rules_of(types: Sequence[str], result: str) -> set[ResultRule]:
    """All rules that explain a result."""
    found = {ResultRule(RuleKind.CONST, 0, result)}
    for at, type_ in enumerate(types):
        found |= {ResultRule(kind, at) for kind, shape in _shapes(type_) if shape == result}
    return found


@dataclass
class Signature:
    """A function with a number of arguments: rows of accepted types by position, and the result of each row. Without
    rows nothing is known.
    """

    rows: list[tuple[tuple[frozenset[str], ...], ResultRule | None]] = field(default_factory=list)

    def matching(self, types: Sequence[str | None]) -> list[tuple[tuple[frozenset[str], ...], ResultRule | None]]:
        few = len(types) > 2
        return [row for row in self.rows if all(_fits(s, t, few) for s, t in zip(row[0], types, strict=True))]


_NUMBERS = ("integer", "fractional", "decimal")
_NESTED = ("array", "map", "struct")
_HARDLY_TRIED = (*_NESTED, "timestamp_ntz", "interval", "variant")


_NULLS = frozenset({"void"})
"""What a row holds that Spark was asked about with nothing but NULLs without a type."""


@lru_cache(8192)
def _fits(accepted: frozenset[str], type_: str | None, few: bool) -> bool:
    """Whether a type may stand where a set of families and samples is accepted; None may be anything. ``few``: Spark
    was asked about few samples only.
    """
    if accepted == _NULLS:
        return type_ in (None, "void")
    family = None if type_ is None else family_of(type_)
    if type_ is None or family is None or sample_of(type_) in accepted or (few and family in _HARDLY_TRIED):
        return True
    asked = type_ in FAMILIES[family] and not (few and family in _NUMBERS)
    if family == "interval" or asked:
        return family in accepted  # Spark was asked about this very type
    families = {family_of(a) for a in accepted}
    return family in families or (few and family in _NUMBERS and bool(families & set(_NUMBERS)))


def _unsampled(type_: str | None) -> bool:
    """Whether a nested type is none of the samples: what else fits beside it depends on its inside."""
    family = None if type_ is None else family_of(type_)
    return family in _NESTED and type_ not in FAMILIES[family]


def _certain(accepted: frozenset[str], type_: str | None) -> bool:
    return type_ is not None and (type_ in accepted or family_of(type_) in accepted)


_BETWEEN_NAMES = re.compile(r",(?![^(<]*[)>])")
"""A comma that does not stand in a type, as in ``cast decimal(10,2)``."""


@cache
def _table() -> dict[str, dict[int, Signature]]:
    table: dict[str, dict[int, Signature]] = {}
    current: list[Signature] = []
    text = Path(__file__).with_name("spark_signatures.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if not line.startswith(" "):
            names, _, count = line.rpartition(" ")
            current = []
            for name in _BETWEEN_NAMES.split(names) if names.startswith("cast ") else names.split(","):
                known = table.setdefault(name.upper(), {})
                current.append(known.setdefault(int(count), Signature()))
            continue
        types, _, result = line.strip().rpartition("-> ")
        sets = (
            tuple(frozenset(t.strip() for t in part.split("|")) for part in types.split(";")) if types.strip() else ()
        )
        rule = None if result == "?" else ResultRule.parse(result)
        for signature in current:
            signature.rows.append((sets, rule))
    return table


MOST = 7
"""A function that takes so many arguments takes any number."""


def counts(name: str) -> tuple[int, ...] | None:
    """The numbers of arguments that a function takes, where it takes fewer than ``MOST``; None if that is not known."""
    known = _table().get(name.upper())
    return None if known is None or MOST in known else tuple(sorted(known))


def result(name: str, types: Sequence[str | None]) -> str | None:
    """The type of a call's result where that is certain."""
    signature = _table().get(name.upper(), {}).get(len(types))
    if signature is None or not signature.rows:
        return None
    if types[:1] == ["void"] and name.upper() in _FIRST_ALONE:
        return "void"
    if name.upper() in _OF_ONE_TYPE and _mixed(types) and (widened := _widened(types)) is not None:
        return widened
    possible = signature.matching(types)
    # several rows may fit a type that is no sample; those that name it or its family are certain
    rules = {rule for sets, rule in possible if all(_certain(s, t) for s, t in zip(sets, types, strict=True))}
    rules = rules or {rule for _, rule in possible}
    if len(rules) != 1:
        return None
    [rule] = rules
    if rule is None or (rule.kind != RuleKind.CONST and name.upper() not in _FIRST_ALONE and _mixed(types)):
        return None
    return rule.apply(types)


def _widened(types: Sequence[str | None]) -> str | None:
    """The one type that arrays of several have, where that of their elements is certain."""
    arrays = [t[6:-1] for t in types if t is not None and t.startswith("array<")]
    if len(arrays) < len(types) or any(element.startswith("decimal") for element in arrays):
        return None  # of decimals, which are as wide as both, no row tells (decimals.py)
    typed = [element for element in arrays if element != "void"]
    common: str | None = typed[0] if typed else None
    for element in typed[1:]:
        common = common if common in (None, element) else result("COALESCE", [common, element])
    return None if common is None else f"array<{common}>"


_FIRST_ALONE = frozenset({"NULLIF", "MAX_BY", "MIN_BY"})
"""Functions of two like arguments that give the first one as it is."""


_OF_ONE_TYPE = frozenset({"||", "CONCAT", "COALESCE"})
"""What gives the one type that all its arguments have."""
_SIDE_BY_SIDE = frozenset({"=", "<", "<=>", "||", "COALESCE"})
"""What wants two values of one family, whatever is inside them."""


def _mixed(types: Sequence[str | None]) -> bool:
    """Whether two arguments are nested types of one family that differ: the result may be as wide as both together."""
    found = [(family_of(t), t) for t in types if t is not None and family_of(t) in _NESTED]
    return any(family == other and t != u for (family, t), (other, u) in itertools.pairwise(sorted(found)))


def refusal(name: str, types: Sequence[str | None]) -> tuple[int, str] | None:
    """The position of an argument that Spark is certain to refuse, and the types it takes there in words; None if the
    call may be right.
    """
    signature = _table().get(name.upper(), {}).get(len(types))
    if signature is None or not signature.rows:
        return None
    if name in _SIDE_BY_SIDE and _apart_inside(types):
        return 1, str(types[0]).upper()
    if signature.matching(types):
        return None
    if _unsampled(types[0]) and name not in _SIDE_BY_SIDE:  # what else fits depends on its inside
        types = [types[0], *[None] * (len(types) - 1)]
    for at in range(len(types)):
        alone: list[str | None] = [None] * len(types)
        alone[at] = types[at]
        if not signature.matching(alone):
            return at, words(a for sets, _ in signature.rows for a in sets[at])
    # each would do alone: one does not fit those before it
    for at in range(1, len(types) + 1):
        before: list[str | None] = [*types[:at], *[None] * (len(types) - at)]
        if not signature.matching(before):
            given: list[str | None] = [*types[: at - 1], *[None] * (len(types) - at + 1)]
            return at - 1, words(a for sets, _ in signature.matching(given) for a in sets[at - 1])
    return None


def _apart_inside(types: Sequence[str | None]) -> bool:
    """Whether two types are arrays, maps or structs of parts that Spark knows no common type of."""
    if len(types) != 2 or None in types or types[0] == types[1]:
        return False
    kinds = {str(t).partition("<")[0] for t in types}
    if kinds not in ({"array"}, {"map"}, {"struct"}):
        return False
    [kind] = kinds
    inner = [split_types(str(t)[len(kind) + 1 : -1]) for t in types]
    if kind == "struct":
        named = [[part.partition(":") for part in parts] for parts in inner]
        if not all(name.isidentifier() and colon for parts in named for name, colon, _ in parts):
            return False
        if len(named[0]) != len(named[1]):
            return True
        inner = [[part for _, _, part in parts] for parts in named]
    pairs = [[*pair] for pair in zip(*inner, strict=True) if "void" not in pair]
    return any(refusal("COALESCE", p) or refusal("COALESCE", p[::-1]) for p in pairs)


def words(accepted: Iterable[str]) -> str:
    """Families for a sentence: ``numbers, STRING or DATE``. Of whole numbers their types, where not all of them do."""
    given = set(accepted)
    found = {family_of(a) for a in given}
    whole = [sample for sample in FAMILIES["integer"] if sample in given]
    few = "integer" not in given and len(whole) < len(FAMILIES["integer"]) and found & set(_NUMBERS) == {"integer"}
    named = {family: [word] for family, word in _WORDS.items()} | ({"integer": [*map(str.upper, whole)]} if few else {})
    names = list(dict.fromkeys(word for family in FAMILIES if family in found for word in named[family]))
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else "nothing"
