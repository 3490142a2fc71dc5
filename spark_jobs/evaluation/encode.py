"""Edges whose ends travel as negative tuples, on Spark: W-Expire at windows, and rows that come and go within a slice
told as two. Which edges these are ``operators/plan/encoding.py`` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators.plan.node import Node
from sweeparea.operators.state.due import bag_due
from sweeparea.operators.state.sweep import Sweep
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import BAG, TE, TS, N
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.operators.windows import negative_tuples
from sweeparea.spark_jobs.evaluation.running import Bags, RunningSlice
from sweeparea.spark_jobs.evaluation.sweeping import Sweeps
from sweeparea.spark_jobs.spark.frames import fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Encoder:
    """What an edge carries of the rows that a node gives."""

    def __init__(self, slice: RunningSlice, bags: Bags, sweeps: Sweeps) -> None:
        self.slice, self.bags, self.sweeps = slice, bags, sweeps

    def encoded(self, node: Node, bag: DataFrame | None) -> DataFrame | None:
        """What a slice adds to the node's relation, as its edge carries it."""
        if self.slice.edges.expires(node):
            return self._expired(node, bag)
        if bag is None or not self.slice.edges.splits(node):
            return bag
        whole, begins, ends = _row(TS, TE, N), _row(TS, f"{INF}L", N), _row(TE, f"{INF}L", f"-{N}")
        rows = f"inline(IF({TE} = {INF}L, array({whole}), array({begins}, {ends})))"
        return bag.selectExpr(*(c.id for c in node.columns), rows)

    def _expired(self, node: Node, bag: DataFrame | None) -> DataFrame | None:
        op, ids = f"expire_{self.slice.names[id(node)]}", [c.id for c in node.columns]
        if bag is None and self.sweeps.idle(op, ids):
            return None
        new = None if bag is None else bag.selectExpr(*ids, *BAG)
        like = new if new is not None else self.bags.empty(node)
        schema = pa.schema([*fields(like, ids), *BAG_FIELDS])
        return self.sweeps.swept(op, new, Sweep(tuple(ids), schema, schema, bag_due, negative_tuples.sweep))

    def held(self, node: Node, past: DataFrame | None) -> DataFrame | None:
        """A window's rows of earlier slices, read again, as its edge has told them up to h0."""
        if past is None or not self.slice.edges.expires(node):
            return None if past is None else past.where(f"{TE} > {self.slice.h0 + 1}L")
        told = past.where(f"{TS} <= {self.slice.h0}L AND {TE} > {self.slice.h0}L")
        return told.selectExpr(*(c.id for c in node.columns), TS, f"{INF}L AS {TE}", N)


def _row(ts: str, te: str, n: str) -> str:
    return "named_struct(" + ", ".join(f"'{name}', {x}" for name, x in zip(BAG, (ts, te, n), strict=True)) + ")"
