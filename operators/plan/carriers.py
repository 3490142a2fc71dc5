"""Columns that carry a key: selecting a node's rows by the column's value is selecting the inputs' rows by that value.

Each operator says which of its columns do (``Node.carriers``), given those of its inputs; ``keyed_by.py`` asks a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sweeparea.operators.sql.expressions import Column, Expr

Carriers = dict[str, frozenset[str]]
"""Per column of a node that carries a key the ids of all columns below, and itself, that carry the same."""


def only(below: Carriers, partition: Iterable[Expr]) -> Carriers:
    """Those that a partitioning is by: what is computed for each part alone commutes with a selection of parts."""
    kept = {expr.bare for expr in partition}
    return {column: ids for column, ids in below.items() if column in kept}


def renamed(below: Carriers, outputs: Iterable[tuple[Column, Expr]]) -> Carriers:
    """Those that are kept, under their new ids."""
    return {column.id: below[expr.bare] | {column.id} for column, expr in outputs if expr.bare in below}


def by_position(
    outputs: Sequence[Column],
    inputs: Sequence[Sequence[Column]],
    sides: Sequence[Carriers],
    enough: Callable[[Sequence[bool]], bool],
) -> Carriers:
    """Those of operators whose inputs' columns fill ``outputs`` by position; ``enough``: of which inputs they must."""
    found: Carriers = {}
    for i, output in enumerate(outputs):
        columns = [side[i].id for side in inputs]
        carry = [column in carriers for column, carriers in zip(columns, sides, strict=True)]
        if enough(carry):
            ids = [c[column] for column, c in zip(columns, sides, strict=True) if column in c]
            found[output.id] = frozenset({output.id}).union(*ids)
    return found
