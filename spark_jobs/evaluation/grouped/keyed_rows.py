"""The rows that a sweep by key takes, computed by Spark from a bag: keys, other columns, and orders over them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sweeparea.operators.bridge import Pipe
from sweeparea.operators.ordered.snapshot import SnapshotSpec, rank_column
from sweeparea.operators.plan.node import Node, ids_of
from sweeparea.operators.sql.expressions import Expr, SortKey
from sweeparea.operators.values.bag import BAG
from sweeparea.operators.values.order import OrderKey
from sweeparea.spark_jobs.evaluation.sweeping import Sweeps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NAME = re.compile(r"`?([A-Za-z_][A-Za-z0-9_]*)`?\Z")


class KeyedRows:
    """The rows of one node's sweep. ``keys`` and ``columns``: their columns by name, as SQL over the input's.

    ``orders`` are those asked for by ``rank``; ``global_`` as in ``SnapshotSpec``.
    """

    def __init__(self) -> None:
        self.keys: dict[str, str] = {}
        self.columns: dict[str, str] = {}
        self.orders: list[tuple[OrderKey, ...]] = []
        self.global_ = False

    def raw(self, bag: DataFrame) -> DataFrame:
        """The rows of a bag."""
        computed = {**self.keys, **self.columns}
        return bag.selectExpr(*(f"({sql}) AS `{name}`" for name, sql in computed.items()), *BAG)

    def source(self, below: Pipe | None) -> Pipe | None:
        """How ``raw`` of a bag comes about without Spark SQL, from how the bag does; None: there is something to do."""
        computed = {name: Expr(sql).bare for name, sql in {**self.keys, **self.columns}.items()}
        return None if below is None else below.renamed(computed | {name: name for name in BAG})

    def spec(self, start: int) -> SnapshotSpec:
        return SnapshotSpec(tuple(self.keys), tuple(self.columns), tuple(self.orders), self.global_, start)

    def column(self, expr: Expr) -> str:
        """The column that holds an expression's value."""
        plain = _NAME.match(expr.sql)
        if plain and self.columns.get(plain[1]) == f"`{plain[1]}`":
            return f"`{plain[1]}`"
        for name, sql in self.columns.items():
            if sql == expr.sql:
                return f"`{name}`"
        name = f"__x{len(self.columns)}"
        self.columns[name] = expr.sql
        return f"`{name}`"

    def rank(self, order: Sequence[SortKey]) -> str:
        """The column of the rows' ranks in an order."""
        keys = tuple(OrderKey(self.column(k.expr).strip("`"), k.descending, k.nulls_first) for k in order)
        if keys not in self.orders:
            self.orders.append(keys)
        return rank_column(self.orders.index(keys))


def lie_by(sweeps: Sweeps, op: str, keys: Sequence[Expr], input_: Node) -> frozenset[str] | None:
    """``Bags.spread_by`` of a sweep that shows the columns of its input: by its keys, where these are such columns."""
    found = frozenset(key.bare for key in keys)
    return found if found and found <= ids_of(input_) and sweeps.spreads(op) else None
