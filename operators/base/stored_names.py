"""The names under which what is stored knows a plan's parts, whatever Python calls them.

Identities of plans, names of hidden queries and of SweepAreas are made of the kinds of nodes, windows and calls and of
their fields. They lie in the ledgers and folders of deployed applications, so the texts given to ``stored`` stay for
ever; classes, fields and modules may be renamed and moved.

>>> from dataclasses import dataclass
>>> @stored("TopK", "input", "limit", now={"limit": "most"})
... @dataclass(frozen=True)
... class First:
...     input: str
...     most: int | None = None
>>> name_of(First("R", 3)), dict(parts_of(First("R", 3))), text_of(First("R", 3))
('TopK', {'input': 'R', 'limit': 3}, "TopK(input='R', limit=3)")
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type)
_ATTRIBUTE = "stored_as"


@dataclass(frozen=True)
class StoredAs:
    """``name`` of a kind; ``fields``: each field's stored name and the attribute that holds it, in the stored order;
    ``later``: those that plans which are deployed may not have.
    """

    name: str
    fields: tuple[tuple[str, str], ...]
    later: frozenset[str] = frozenset()


def stored(
    name: str, *fields: str, later: Iterable[str] = (), now: Mapping[str, str] | None = None
) -> Callable[[Kind], Kind]:
    """Above ``@dataclass``: under which name a class and its fields are stored, in which order.

    A field that is added afterwards stands in ``later``, and has a default: what has it as that is stored as before.
    ``now`` tells attributes that are called otherwise today, by their stored names. TypeError if fields are missing.
    """
    given = (*fields, *later)

    def decorate(cls: Kind) -> Kind:
        held = tuple((text, (now or {}).get(text, text)) for text in given)
        defaults = {f.name: f.default for f in dataclasses.fields(cls)}
        if sorted(defaults) != sorted(attribute for _, attribute in held):
            raise TypeError(f"{cls.__name__} has the fields {', '.join(defaults)}; stored are {', '.join(given)}.")
        if any(defaults[attribute] is dataclasses.MISSING for text, attribute in held if text in frozenset(later)):
            raise TypeError(f"{cls.__name__}: a field that is stored later needs a default.")
        setattr(cls, _ATTRIBUTE, StoredAs(name, held, frozenset(later)))
        return cls

    return decorate


def stored_as(kind: type) -> StoredAs:
    """What was given to ``stored``. TypeError for a class that has nothing of its own: a base's is not its."""
    found = vars(kind).get(_ATTRIBUTE)
    if found is None:
        raise TypeError(
            f"{kind.__name__} has no stored name: write @stored(..) above it (operators/base/stored_names.py)."
        )
    return found


def name_of(value: object) -> str:
    """The stored name of a value's kind."""
    return stored_as(type(value)).name


def parts_of(value: object) -> Iterator[tuple[str, Any]]:
    """A value's fields by their stored names, in the stored order; of the later ones those that are told."""
    later = stored_as(type(value)).later
    told = dict(told_of(value)) if later else {}
    for text, attribute in stored_as(type(value)).fields:
        if text not in later or text in told:
            yield text, getattr(value, attribute)


def told_of(value: object) -> Iterator[tuple[str, Any]]:
    """A value's fields by their stored names, without those that are as their defaults."""
    defaults = {f.name: f.default for f in dataclasses.fields(value)}  # type: ignore[arg-type]
    for text, attribute in stored_as(type(value)).fields:
        part = getattr(value, attribute)
        if part != defaults[attribute]:
            yield text, part


def text_of(value: object) -> str:
    """A value with plain fields as one text."""
    return f"{name_of(value)}({', '.join(f'{text}={plain(part)}' for text, part in parts_of(value))})"


def plain(value: Any) -> str:
    """A plain value as text. That of an Enum is its value's: a word that becomes an Enum stays the word."""
    return repr(value.value if isinstance(value, enum.Enum) else value)
