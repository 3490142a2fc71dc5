"""Which rows of the inputs a key of the result rests on, so that a correction recomputes the keys that it touches only.

A column of the result carries a key if selecting its rows by a value is the same as selecting the inputs' rows by that
value: selection commutes with time windows, with windows that count only on what they partition by, with grouping only
on its keys (Patroumpas & Sellis 2006, section 4.2; Arasu et al. 2003, section 7.2.2). Of a join the other side need not
be selected from; where an equality says that it can be, it is.

>>> from sweeparea.operators.nodes import Column, Expr, Project, StreamScan, Window
>>> from sweeparea.operators.windows import Rows
>>> k, v, g = Column("c0", "k"), Column("c1", "v"), Column("c2", "k")
>>> scan = StreamScan("S", ((k, "k"), (v, "v")))
>>> by = Expr("c0", columns=frozenset({"c0"}))
>>> plan = Project(Window(scan, Rows(2), partition=(by,)), ((g, by),))
>>> [(key.column, sorted(key.ids)) for key in keys(plan, {"S"})]
[('c2', ['c0', 'c2'])]
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from sweeparea.operators.plan import sharing
from sweeparea.operators.plan.carriers import Carriers
from sweeparea.operators.plan.node import Node, ids_of


@dataclass(frozen=True)
class Key:
    """``column`` of the result carries it, and so do all of ``ids``; a scan that has one of them is selected from."""

    column: str
    ids: frozenset[str]


def keys(root: Node, corrected: Container[str]) -> list[Key]:
    """The keys by which everything that rests on the inputs ``corrected`` can be selected."""
    if sharing.read_twice(root):
        return []  # what is read by two nodes would be selected from for both
    scanned = [ids_of(node) for node in root.walk() if node.scans is not None and node.scans in corrected]
    found = [Key(column, ids) for column, ids in _carriers(root).items()]
    return [key for key in found if all(ids & key.ids for ids in scanned)]


def _carriers(node: Node) -> Carriers:
    return node.carriers([_carriers(child) for child in node.inputs])
