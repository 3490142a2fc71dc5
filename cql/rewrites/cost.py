"""The cost of a plan per tick (Golab & Oezsu 2005, section 5.4.1).

Per operator, with input rates l1, l2 (tuples a tick), input sizes N1, N2 and output size No: selection, projection and
union sum(l); join and intersection l1*N2 + l2*N1, since each arrival probes the other input's state (section 2.1; the
paper prints l1*N1 + l2*N2); duplicate elimination l1*No/2; group-by 2*l1*C; negation 2*l1*log d1 + 2*l2*log d2. Where
negative tuples reach an operator its cost doubles.

Rates and sizes of inputs are those that statistics know, else one element a tick and a relation of 1,000 rows; sizes of
windows follow from their lengths, selectivities from the form of the condition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sqlglot import exp

from sweeparea.cql.rewrites.conditions import conjuncts, equality, tree
from sweeparea.cql.rewrites.rule import Rewriting
from sweeparea.operators.nodes import (
    Aggregate,
    Analytic,
    Difference,
    Enrich,
    Generate,
    Intersect,
    Join,
    OneRow,
    RelationScan,
    RelationToStream,
    Select,
    StreamScan,
    TopK,
    Window,
)
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Expr
from sweeparea.operators.windows import Rows

RATE = 1.0
ROWS = 1_000.0
CHANGES = 0.01
"""Changes a tick of a relation of which nothing is known."""
HORIZON = 1e6
"""Ticks that an unbounded window is taken to have run."""
PARTITIONS = 10.0
EQUAL, OTHER, DISTINCT = 0.1, 1 / 3, 0.1


@dataclass(frozen=True)
class Estimate:
    """Of a node's output: tuples a tick, rows at an instant, cost a tick of making them, whether negative tuples are
    among them.
    """

    rate: float
    size: float
    cost: float
    negative: bool = False


def cost(node: Node, rewriting: Rewriting) -> float:
    """What a plan costs a tick, in tuples touched."""
    return estimate(node, rewriting).cost


def estimate(node: Node, rewriting: Rewriting, seen: dict[int, Estimate] | None = None) -> Estimate:
    """The estimate of a node's output and of all that is below it."""
    seen = {} if seen is None else seen
    if id(node) not in seen:
        below = [estimate(child, rewriting, seen) for child in node.inputs]
        seen[id(node)] = _estimate(node, below, rewriting)
    return seen[id(node)]


def _estimate(node: Node, below: list[Estimate], rewriting: Rewriting) -> Estimate:
    spent = sum(e.cost for e in below)
    negative = any(e.negative for e in below)
    double = 2.0 if negative else 1.0
    rate, size = sum(e.rate for e in below), sum(e.size for e in below)
    match node:
        case StreamScan() | RelationScan():
            return _scan(node, rewriting)
        case OneRow():
            return Estimate(0, 1, 0)
        case Window():
            if isinstance(node.spec, Rows):
                held = node.spec.count * (PARTITIONS if node.partition else 1.0)
                return Estimate(rate, min(held, rate * HORIZON), spent + rate)
            return Estimate(rate, rate * min(float(node.spec.reach), HORIZON), spent + rate)
        case Select():
            kept = selectivity(node.condition)
            return Estimate(rate * kept, size * kept, spent + double * rate, negative)
        case Join() | Enrich():
            kind = node.kind
            return _join(kind, node.condition, below[0], below[1], spent, double)
        case Intersect():
            a, b = below
            return Estimate(rate / 2, min(a.size, b.size) / 2, spent + double * _probes(a, b), negative)
        case Difference():
            a, b = below
            return Estimate(rate / 2, a.size / 2, spent + double * _negation(a, b), True)
        case Aggregate() if not node.calls and not node.global_:
            kept = max(1.0, size * DISTINCT) if node.keys else 1.0
            return Estimate(rate, kept, spent + double * rate * kept / 2, negative)
        case Aggregate():
            groups = max(1.0, size * DISTINCT) if node.keys else 1.0
            return Estimate(2 * rate, groups, spent + 2 * rate)
        case Analytic() | TopK():
            return Estimate(2 * rate, size, spent + double * rate * max(1.0, math.log2(size + 1)), True)
        case Generate():
            return Estimate(2 * rate, 2 * size, spent + double * rate, negative)
        case RelationToStream():
            return Estimate(rate, rate, spent + double * rate)
        case _:
            return Estimate(rate, size, spent + double * rate, negative)


def _scan(node: StreamScan | RelationScan, rewriting: Rewriting) -> Estimate:
    known = rewriting.inputs.get(node.name)
    if isinstance(node, StreamScan):
        rate = known.rate if known is not None and known.rate is not None else RATE
        return Estimate(rate, rate, 0)
    static = known is not None and known.static
    rate = 0.0 if static else known.rate if known is not None and known.rate is not None else CHANGES
    size = known.rows if known is not None and known.rows is not None else ROWS
    return Estimate(rate, size, 0, not static)


def _probes(a: Estimate, b: Estimate) -> float:
    return a.rate * b.size + b.rate * a.size


def _negation(a: Estimate, b: Estimate) -> float:
    values = (max(2.0, e.size * DISTINCT) for e in (a, b))
    return sum(2 * e.rate * math.log2(d) for e, d in zip((a, b), values, strict=True))


def _join(kind: JoinKind, condition: Expr | None, a: Estimate, b: Estimate, spent: float, double: float) -> Estimate:
    matching = _matching(condition, a, b)
    pairs, rate = a.size * b.size * matching, _probes(a, b) * matching
    negative = a.negative or b.negative
    if kind == JoinKind.ANTI:
        return Estimate((a.rate + b.rate) / 2, a.size / 2, spent + double * _negation(a, b), True)
    if kind == JoinKind.SEMI:
        kept = min(1.0, b.size * matching)
        return Estimate(a.rate * kept + b.rate, a.size * kept, spent + double * _probes(a, b), negative)
    if kind == JoinKind.INNER:
        return Estimate(rate, pairs, spent + double * _probes(a, b), negative)
    missing = a.size + (b.size if kind == JoinKind.FULL else 0)
    return Estimate(rate + a.rate + b.rate, pairs + missing, spent + double * _probes(a, b) + _negation(a, b), True)


def _matching(condition: Expr | None, a: Estimate, b: Estimate) -> float:
    """The part of all pairs that match."""
    kept, keyed = 1.0, False
    for part in conjuncts(condition):
        if equality(part) and not keyed:
            kept, keyed = kept / max(1 / EQUAL, a.size * DISTINCT, b.size * DISTINCT), True
        else:
            kept *= EQUAL if equality(part) else OTHER
    return kept


def selectivity(condition: Expr) -> float:
    """The part of the rows that a condition keeps, guessed from its form."""
    kept = 1.0
    for part in conjuncts(condition):
        node = tree(part.sql)
        kept *= EQUAL if isinstance(node, exp.EQ | exp.NullSafeEQ) else OTHER
    return kept
