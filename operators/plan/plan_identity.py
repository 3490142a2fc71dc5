"""What two plans share that compute the same: their identity as a short text, equal in every process and version.

Two uses. A query whose definition was spelt otherwise has the same results if its plan has the same ``result_identity``
(law S4). And SweepAreas that one plan has left can be continued by another only if both have the same
``state_identity``: their operators, their places in the plan and their columns are the names of what is stored.
The words for kinds and fields are those of ``stored_names.py``.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
from collections.abc import Iterator
from typing import Any

from sweeparea.operators.base.stored_names import name_of, plain, text_of, told_of
from sweeparea.operators.plan.encoding import strategy_of
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.sql.expressions import Column, Expr


def state_identity(plan: Plan) -> str:
    """Equal for plans whose SweepAreas fit each other. Types are left out: they become known as tables come to be.

    Where ends travel otherwise, other operators keep them (``encoding.py``): it ends with the strategy unless that is
    ``upa``.
    """
    strategy = strategy_of(plan)
    return _hash(_tokens(plan.root, {})) + ("" if strategy == "upa" else f"-{strategy}")


def strategy_in(identity: str) -> str:
    """The strategy of the plan that has this ``state_identity``."""
    return identity.partition("-")[2] or "upa"


def result_identity(plan: Plan) -> str:
    """Equal for plans that have the same result tables, row for row, from the same inputs."""

    def tokens() -> Iterator[str]:
        yield from (plan.name, str(plan.stream), text_of(plan.time), str(plan.start), str(plan.every), str(plan.anchor))
        yield from sorted(plan.materialize)
        yield from (column.label for column in plan.root.columns)
        for constraint in plan.constraints:
            if constraint.on_violation == "quarantine":  # it filters the result
                yield from (constraint.name, constraint.condition.sql)
        yield from _tokens(plan.root, {})

    return _hash(tokens())


def _hash(tokens: Iterator[str]) -> str:
    digest = hashlib.sha256()
    for token in tokens:
        digest.update(token.encode())
        digest.update(b"\0")
    return digest.hexdigest()[:16]


def _tokens(value: Any, seen: dict[int, int]) -> Iterator[str]:
    """The parts of a plan that say what is computed, in a fixed order. A node that is used twice is told once."""
    if isinstance(value, Node):
        if id(value) in seen:
            yield f"#{seen[id(value)]}"
            return
        seen[id(value)] = len(seen)
    if isinstance(value, Column):
        yield value.id
    elif isinstance(value, Expr):
        yield value.sql
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield name_of(value)
        for text, part in told_of(value):
            yield text
            yield from _tokens(part, seen)
    elif isinstance(value, tuple | list):
        yield f"({len(value)}"
        for part in value:
            yield from _tokens(part, seen)
    elif isinstance(value, set | frozenset):
        yield from sorted(str(part) for part in value)
    elif isinstance(value, dict):
        for key in sorted(value):
            yield str(key)
            yield from _tokens(value[key], seen)
    elif value is None or isinstance(value, str | int | float | bool | enum.Enum):
        yield plain(value)
    else:
        raise TypeError(f"a plan holds {value!r}, which has no stored form")
