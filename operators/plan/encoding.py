"""How the rows of each edge travel, as the query's strategy has it. Decided here and nowhere else.

*Interval* encoding: a row carries its end (Kraemer & Seeger 2005, section 2.4; the direct approach of Golab & Oezsu
2005, section 2.3.2). *Delta* encoding: an end is a negative tuple of its own at its instant (Hammad et al., section
3.2; Golab & Oezsu, section 2.3.1). What comes out is the same (law S4). Strategies:

- ``upa``: by update pattern (Golab & Oezsu, section 5.4.3). Where expiry is known an edge is interval encoded, else
  delta encoded.
- ``negative``: every edge is delta encoded. Above each window that forgets stands W-Expire (``negative_tuples.py``).
- ``direct``: ends travel with rows on every edge that can carry them. A difference, an anti join or an outer join over
  known expiry gives the ends that hold if nothing more comes, and a negative tuple for each that comes earlier (their
  section 5.3.2, for rare premature expiry). What is left, such as a group's row, which ends when the next one replaces
  it, falls back to delta encoding.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from sweeparea.operators.plan import patterns, sharing
from sweeparea.operators.plan.edge import Edge
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan

STRATEGIES = ("upa", "negative", "direct")
INTERVAL, DELTA, CORRECTED = "interval", "delta", "corrected"
"""Encodings. ``CORRECTED``: rows carry the ends that are expected; what ends earlier is taken back by negative rows."""


def strategy_of(plan: Plan) -> str:
    """The strategy of a query; of a stream whose rows are emitted one by one ``upa``: nothing of it expires."""
    return "upa" if plan.emits_each else dict(plan.settings).get("strategy", "upa").strip("'\"").lower()


@dataclass
class Edges:
    """The edges of a plan. ``static`` names the relations that never change."""

    static: Container[str] = ()
    strategy: str = "upa"
    _seen: dict[int, Edge] = field(default_factory=dict, repr=False)
    _kept: list[Node] = field(default_factory=list, repr=False)
    """Nodes that were asked for: their identities stay theirs."""

    @classmethod
    def of(cls, plan: Plan, static: Container[str] = ()) -> Edges:
        return cls(static, strategy_of(plan))

    def pattern(self, node: Node) -> Edge:
        """The output edge of a node by itself, whatever the strategy."""
        if id(node) not in self._seen:
            self._kept.append(node)
        return patterns.edge_of(node, self.static, self._seen)

    def encoding(self, node: Node) -> str:
        """How the rows of the node's output travel."""
        edge = self.pattern(node)
        if edge.pattern == "monotonic" and edge.expiry_known:
            return INTERVAL  # nothing ends: both encodings are the same rows
        if self.strategy == "negative":
            return DELTA
        if edge.expiry_known:
            return INTERVAL
        return CORRECTED if self.ahead(node) else DELTA

    def expiry_known(self, node: Node) -> bool:
        """Whether every row of this edge carries its final end."""
        return self.encoding(node) == INTERVAL

    def ahead(self, node: Node) -> bool:
        """Whether an operator that compares two bags gives expected ends although later rows may change them."""
        return self.strategy == "direct" and node.compares and all(self.expiry_known(side) for side in node.inputs)

    def expires(self, node: Node) -> bool:
        """Whether W-Expire stands above this node."""
        return self.strategy == "negative" and node.forgets

    def splits(self, node: Node) -> bool:
        """Whether this operator's rows that come and go within a slice are told as two."""
        return self.strategy == "negative" and node.replaces

    def cheap(self, node: Node) -> bool:
        """``Node.cheap``, which W-Expire is not."""
        return node.cheap and not self.sweeps(node)

    def sweeps(self, node: Node) -> bool:
        """Whether W-Expire stands at a window in or below this node."""
        return any(self.expires(below) for below in sharing.nodes(node))

    def describe(self, node: Node) -> str:
        """The edge for ``explain``: its pattern, and how ends travel where a strategy was asked for."""
        edge = self.pattern(node)
        if self.strategy == "upa" or edge.pattern == "monotonic":
            return str(edge)
        match self.encoding(node):
            case "delta" if self.strategy == "negative":
                return f"{edge.pattern}, expiry by negative tuples"
            case "delta":
                return f"{edge}: negative tuples, its ends cannot travel"
            case "corrected":
                return f"{edge}: expected ends travel, earlier ones by negative tuples"
            case _:
                return str(edge)
