"""What a rewrite rule is, and what it may ask while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column

MAX_TEXT = 20_000
"""Characters of an expression beyond which no rule copies it."""


@dataclass(frozen=True)
class MeasuredInput:
    """What is known of an input before a plan runs: new rows a tick, rows of a relation, whether it never changes."""

    rate: float | None = None
    rows: float | None = None
    static: bool = False


@dataclass
class Rewriting:
    """One run of the rules over one plan. ``inputs`` by name; what is not known there is estimated. ``told`` are the
    conditions that one side of a join has learnt from the other.
    """

    inputs: Mapping[str, MeasuredInput] = field(default_factory=dict)
    next_id: int = 0
    told: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, root: Node, inputs: Mapping[str, MeasuredInput] | None = None) -> Rewriting:
        """Fresh ids begin above all that the plan has."""
        ids = [int(c.id[1:]) for node in root.walk() for c in node.columns if c.id[1:].isdigit()]
        return cls(inputs or {}, max(ids, default=-1) + 1)

    def new_column(self, label: str, type_: str | None = None) -> Column:
        column = Column(f"c{self.next_id}", label, type_)
        self.next_id += 1
        return column

    @property
    def static(self) -> frozenset[str]:
        return frozenset(name for name, known in self.inputs.items() if known.static)


@dataclass(frozen=True)
class Rule:
    """A rewrite of one node that leaves every instant's contents as they are (law S4).

    ``source`` is the paper and section, ``condition`` when it may be applied, ``kinds`` the nodes that it looks at.
    ``apply`` gives the node to put in place, with the same columns, or None where the rule does not apply.
    """

    name: str
    source: str
    condition: str
    kinds: tuple[type[Node], ...]
    apply: Callable[[Node, Rewriting], Node | None]


def ids(node: Node) -> frozenset[str]:
    """The ids of a node's columns."""
    return frozenset(c.id for c in node.columns)
