"""The expectations of Great Expectations that can be declared by name, as ``expectations.json`` lists them.

``quality/expectation_list.py`` writes the list, so that a text is checked without Great Expectations.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path

PATH = Path(__file__).with_name("expectations.json")
COLUMN, COLUMNS, NUMBER, VALUE, TEXT, BOOLEAN, LIST, JSON, CHOICE = (
    "column", "columns", "number", "value", "text", "boolean", "list", "json", "one of ",
)  # fmt: skip
"""What an argument is: the name of a column, several of them, a number, a number or an instant, a text, TRUE or FALSE,
a list, a text of JSON, one of several words."""


@dataclass(frozen=True)
class ExpectationArgument:
    """``kind`` as above; ``required``: it has no default."""

    name: str
    kind: str
    required: bool = False

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it may be; none where it is something else."""
        return tuple(self.kind.removeprefix(CHOICE).split("|")) if self.kind.startswith(CHOICE) else ()


@dataclass(frozen=True)
class KnownExpectations:
    """``expectations`` with their arguments by name in lower case; ``refused`` ones with the reason."""

    version: str
    expectations: dict[str, dict[str, ExpectationArgument]]
    refused: dict[str, str]


@functools.cache
def known() -> KnownExpectations:
    """The list."""
    stored = json.loads(PATH.read_text())
    found = {
        name: {
            a.lower(): ExpectationArgument(a, told["kind"], told.get("required", False))
            for a, told in arguments.items()
        }
        for name, arguments in stored["expectations"].items()
    }
    return KnownExpectations(stored["version"], found, stored["refused"])
