"""Types that only Spark knows: found in a plan, asked for once, and filled in."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from sweeparea.cql.text.errors import TypeError_, raise_all
from sweeparea.cql.text.source_text import SourceText
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import UserFunction
from sweeparea.operators.sql.expressions import Column

Analyze = Callable[[Node], Mapping[str, str]]
"""From a plan to the types (Spark DDL) of its columns by their ids, as far as they can be told; it runs no job."""


class Untyped(SweepAreaError):
    """What ``analyze`` raises where an expression has no type: ``texts`` are the expressions that may be to blame, as
    their author wrote them; ``hint`` what to do about them, where the message does not say it."""

    type = "TypeError"

    def __init__(
        self, message: str, texts: Iterable[str] = (), hint: str = "CAST its arguments, or use another function"
    ) -> None:
        self.texts, self.hint = tuple(texts), hint
        super().__init__(message)


@runtime_checkable
class Checks(Protocol):
    """An ``Analyze`` that also tells of every expression of a plan what Spark would refuse in it."""

    def __call__(self, root: Node) -> Mapping[str, str]: ...

    def check(self, root: Node, functions: Iterable[UserFunction] = ()) -> Sequence[Untyped]: ...


def checked(root: Node, analyze: Analyze | None, source: SourceText, functions: Iterable[UserFunction] = ()) -> None:
    """Raises a TypeError_, with its place in ``source``, for each expression that Spark refuses, where ``analyze`` is
    one that checks. ``functions`` are the user's that are called.
    """
    if isinstance(analyze, Checks):
        raise_all([_placed(error, source) for error in analyze.check(root, functions)])


def _placed(error: Untyped, source: SourceText) -> SweepAreaError:
    known = source.expressions
    exact = [t for t in error.texts if t in known]
    # what was made of several expressions, as a comparison with a subquery's column is, stands where the longest does
    parts = exact[:1] or sorted((t for t in known if any(t in text for text in error.texts)), key=len)[-1:]
    first = source.tokens[0].start if source.tokens else 0
    return TypeError_(
        str(error), source.place(known[parts[0]] if parts else first), "CAST its arguments, or use another function"
    )


def filled(root: Node, analyze: Analyze | None, source: SourceText) -> Node:
    """``root`` with the types that ``analyze`` knows; it is asked only if one is missing. TypeError_ with the place in
    ``source`` of an expression that has none.
    """
    if analyze is None or not unknown(root):
        return root
    try:
        types = analyze(root)
    except Untyped as error:
        raise _placed(error, source) from error
    made: dict[int, Node] = {}

    def fill(node: Node) -> Node:
        # a node that is used twice stays one node
        if id(node) not in made:
            changes = {f.name: _filled(getattr(node, f.name), types, fill) for f in dataclasses.fields(node)}
            made[id(node)] = replace(node, **changes)
        return made[id(node)]

    return fill(root)


def unknown(root: Node) -> list[Column]:
    """The columns of a plan without a type."""
    return [c for node in root.walk() for c in node.columns if c.type is None]


def _filled(value: Any, types: Mapping[str, str], fill: Callable[[Node], Node]) -> Any:
    if isinstance(value, Column):
        return replace(value, type=types.get(value.id)) if value.type is None else value
    if isinstance(value, Node):
        return fill(value)
    if isinstance(value, tuple):
        return tuple(_filled(part, types, fill) for part in value)
    return value
