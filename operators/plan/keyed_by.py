"""Which rows of the inputs a key of the result rests on, so that a correction recomputes the keys that it touches only.

A column of the result carries a key if selecting its rows by a value is the same as selecting the inputs' rows by that
value: selection commutes with time windows, with windows that count only on what they partition by, with grouping only
on its keys (Patroumpas & Sellis 2006, section 4.2; Arasu et al. 2003, section 7.2.2). Of a join the other side need not
be selected from; where an equality says that it can be, it is.

>>> from sweeparea.operators.plan.logical import Aggregate, Column, Expr, StreamScan, Window
>>> from sweeparea.operators.windows.definitions import Rows
>>> k, v, g = Column("c0", "k"), Column("c1", "v"), Column("c2", "k")
>>> scan = StreamScan("S", ((k, "k"), (v, "v")))
>>> by = Expr("c0", columns=frozenset({"c0"}))
>>> plan = Aggregate(Window(scan, Rows(2), partition=(by,)), ((g, by),), ())
>>> [(key.column, sorted(key.ids)) for key in keys(plan, {"S"})]
[('c2', ['c0', 'c2'])]
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from sweeparea.operators.plan import sharing
from sweeparea.operators.plan.conditions import take_apart
from sweeparea.operators.plan.logical import (
    Aggregate,
    Analytic,
    Enrich,
    Expr,
    Generate,
    Join,
    Node,
    Project,
    RelationScan,
    RelationToStream,
    Select,
    SetOperation,
    StreamScan,
    TopK,
    UnionAll,
    Window,
)
from sweeparea.operators.windows.definitions import TimeWindow, UserWindow

Carriers = dict[str, frozenset[str]]
"""Per column of a node that carries a key the ids of all columns below, and itself, that carry the same."""


@dataclass(frozen=True)
class Key:
    """``column`` of the result carries it, and so do all of ``ids``; a scan that has one of them is selected from."""

    column: str
    ids: frozenset[str]


def keys(root: Node, corrected: Container[str]) -> list[Key]:
    """The keys by which everything that rests on the inputs ``corrected`` can be selected."""
    if sharing.read_twice(root):
        return []  # what is read by two nodes would be selected from for both
    scans = [n for n in root.walk() if isinstance(n, StreamScan | RelationScan) and n.name in corrected]
    found = [Key(column, ids) for column, ids in _carriers(root).items()]
    return [key for key in found if all(any(c.id in key.ids for c, _ in scan.source) for scan in scans)]


def _carriers(node: Node) -> Carriers:
    match node:
        case StreamScan() | RelationScan():
            return {c.id: frozenset({c.id}) for c, _ in node.source}
        case Window() if isinstance(node.spec, TimeWindow | UserWindow):
            return _carriers(node.input)
        case Window():
            return _only(_carriers(node.input), node.partition)
        case Select() | Generate() | RelationToStream():
            return _carriers(node.input)
        case Project():
            return _renamed(_carriers(node.input), node.outputs)
        case Aggregate() if not node.global_:
            return _renamed(_carriers(node.input), node.keys)
        case Analytic():
            below = _carriers(node.input)
            for _, call in node.calls:
                below = _only(below, call.partition)
            return below
        case TopK():
            return _only(_carriers(node.input), node.keys)
        case UnionAll():
            return _by_position(node, [_carriers(part) for part in node.parts], all)
        case SetOperation():
            return _by_position(node, [_carriers(node.left), _carriers(node.right)], _first)
        case Enrich():
            return _carriers(node.stream)
        case Join():
            return _joined(node)
    return {}


def _bare(expr: Expr) -> str:
    """The column that an expression is; of any other one a text that is no column's id."""
    return expr.sql.strip().strip("`")


def _only(below: Carriers, partition: Iterable[Expr]) -> Carriers:
    kept = {_bare(expr) for expr in partition}
    return {column: ids for column, ids in below.items() if column in kept}


def _renamed(below: Carriers, outputs: Iterable[tuple]) -> Carriers:
    return {c.id: below[_bare(e)] | {c.id} for c, e in outputs if _bare(e) in below}


def _first(carry: Iterable[bool]) -> bool:
    return next(iter(carry))


def _by_position(node: UnionAll | SetOperation, sides: list[Carriers], enough: object) -> Carriers:
    found: Carriers = {}
    inputs = node.inputs
    for i, output in enumerate(node.outputs):
        columns = [side.columns[i].id for side in inputs]
        carry = [column in carriers for column, carriers in zip(columns, sides, strict=True)]
        if enough(carry):  # type: ignore[operator]
            ids = [c[column] for column, c in zip(columns, sides, strict=True) if column in c]
            found[output.id] = frozenset({output.id}).union(*ids)
    return found


def _joined(node: Join) -> Carriers:
    left, right = _carriers(node.left), _carriers(node.right)
    ids = [frozenset(c.id for c in side.columns) for side in node.inputs]
    alternatives = take_apart(node.condition, *ids)
    equal = [(_bare(e.left), _bare(e.right)) for e in alternatives[0].equalities] if len(alternatives) == 1 else []
    found: Carriers = {}
    if node.kind in ("inner", "left", "semi", "anti"):
        for column, own in left.items():
            found[column] = own.union(*(right[r] for mine, r in equal if mine == column and r in right))
    if node.kind == "inner":
        for column, own in right.items():
            found[column] = own.union(*(left[other] for other, mine in equal if mine == column and other in left))
    return found
