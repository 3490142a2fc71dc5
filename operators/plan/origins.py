"""Of which columns of its inputs a query's columns are made: lineage by column, put together from what each node says.

A column of an input is (name of the input, its column's name); the column's name is None for the instants of the
input's rows. What an expression refers to counts, also where its value happens not to depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sweeparea.operators.plan.influence import Influence, through
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.sharing import nodes

Origin = tuple[str, str | None]
Origins = dict[Origin, frozenset[Influence]]
"""What makes a difference, and how."""


@dataclass(frozen=True)
class PlanOrigins:
    """``columns``: per output column, by its id, what goes into it; ``rows``: what decides which rows there are;
    ``times``: the inputs whose instants the output's come from.
    """

    columns: Mapping[str, Origins]
    rows: Origins
    times: frozenset[str]


@dataclass(frozen=True)
class _OfNode:
    columns: Mapping[str, Origins]
    times: frozenset[str]


def origins(root: Node) -> PlanOrigins:
    """The lineage of a plan's output.

    >>> from sweeparea.operators.nodes import Column, Expr, Project, Select, StreamScan
    >>> scan = StreamScan("S", ((Column("c0", "a"), "a"), (Column("c1", "b"), "b")))
    >>> chosen = Select(scan, Expr("`c1` > 1", "b > 1", frozenset({"c1"})))
    >>> found = origins(Project(chosen, ((Column("c2", "x"), Expr("`c0` + 1", "a + 1", frozenset({"c0"}))),)))
    >>> [(key, *how) for each in (found.columns["c2"], found.rows) for key, how in each.items()]
    [(('S', 'a'), <Influence.TRANSFORMATION: 'TRANSFORMATION'>), (('S', 'b'), <Influence.FILTER: 'FILTER'>)]
    """
    known: dict[int, _OfNode] = {}
    rows: Origins = {}
    for node in nodes(root):
        below = [known[id(child)] for child in node.inputs]
        known[id(node)] = _of_scan(node) if node.scans is not None else _of_node(node, below)
        for how, ids in node.decided_by():
            for each in below:
                _add(rows, how, ids, each.columns)
    whole = known[id(root)]
    return PlanOrigins({c.id: whole.columns.get(c.id, {}) for c in root.columns}, rows, whole.times)


def _of_scan(node: Node) -> _OfNode:
    name = node.scans
    assert name is not None
    read = dict(node.read_columns())
    columns: dict[str, Origins] = {}
    for column in node.columns:  # one that the table has not is its rows' instant
        how = Influence.IDENTITY if column.id in read else Influence.TRANSFORMATION
        columns[column.id] = {(name, read.get(column.id)): frozenset({how})}
    return _OfNode(columns, frozenset({name}))


def _of_node(node: Node, below: list[_OfNode]) -> _OfNode:
    times = frozenset().union(*(each.times for each in below))
    together: dict[str, Origins] = {}
    for each in below:
        together |= each.columns
    columns = {c.id: together[c.id] for c in node.columns if c.id in together}
    for made in node.made():
        found: Origins = {}
        _add(found, made.how, made.of, together)
        for how, ids in made.beside:
            _add(found, how, ids, together)
        if made.time:
            for name in times:
                _put(found, (name, None), Influence.TRANSFORMATION)
        columns[made.column] = found
    return _OfNode(columns, times)


def _add(found: Origins, how: Influence, ids: Iterable[str], below: Mapping[str, Origins]) -> None:
    for column in ids:
        for origin, earlier in below.get(column, {}).items():
            for each in earlier:
                _put(found, origin, through(how, each))


def _put(found: Origins, origin: Origin, how: Influence) -> None:
    found[origin] = found.get(origin, frozenset()) | {how}
