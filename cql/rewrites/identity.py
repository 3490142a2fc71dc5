"""When two subplans are the same up to the ids and labels of their columns."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

from sweeparea.cql.rewrites.conditions import substitute
from sweeparea.operators.base.stored_names import name_of, parts_of, plain
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column, Expr

IDS = ("ties",)
"""Fields of nodes that hold ids of columns as text. Other texts are words and names, whatever they look like."""


class Identity:
    """Digests of nodes; equal digests, equal subplans, in every process. Remembers what it has seen."""

    def __init__(self) -> None:
        self._digests: dict[int, str] = {}
        self._nodes: list[Node] = []

    def of(self, node: Node) -> str:
        if id(node) not in self._digests:
            self._nodes.append(node)  # keeps its id from being used again
            self._digests[id(node)] = self._digest(node)
        return self._digests[id(node)]

    def _digest(self, node: Node) -> str:
        places = {c.id: f"i{i}.{j}" for i, child in enumerate(node.inputs) for j, c in enumerate(child.columns)}
        own = [c for c in node.columns if c.id not in places]
        places |= {c.id: f"o{j}" for j, c in enumerate(own)}
        renamed = {id_: Expr(f"`{place}`", "", frozenset({place})) for id_, place in places.items()}
        parts = [name_of(node)]
        for text, value in parts_of(node):
            if text in IDS:
                value = tuple(places[id_] for id_ in value)
            parts.append(f"{text}={self._text(value, places, renamed)}")
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _text(self, value: Any, places: dict[str, str], renamed: dict[str, Expr]) -> str:
        if isinstance(value, Node):
            return self.of(value)
        if isinstance(value, Column):
            return places.get(value.id, value.id)  # its type follows from what it is computed of
        if isinstance(value, Expr):
            return substitute(value, renamed).sql
        if isinstance(value, tuple):
            return f"({','.join(self._text(v, places, renamed) for v in value)})"
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = (self._text(part, places, renamed) for _, part in parts_of(value))
            return f"{name_of(value)}({','.join(fields)})"
        return plain(value)
