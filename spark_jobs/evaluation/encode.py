"""Edges whose ends travel as negative tuples, on Spark: W-Expire at windows, and rows that come and go within a slice
told as two. Which edges these are ``operators/plan/encoding.py`` says.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators.plan.logical import Node
from sweeparea.operators.state.sweep_area import bag_due
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import BAG, TE, TS, N
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.operators.windows import negative_tuples
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.frames import fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sweeparea.spark_jobs.evaluation.evaluate import Evaluation


class Encoder:
    """The encoding's part of an ``Evaluation``."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._of = evaluation

    def encoded(self, node: Node, bag: DataFrame | None) -> DataFrame | None:
        """What a slice adds to the node's relation, as its edge carries it."""
        if self._of.edges.expires(node):
            return self._expired(node, bag)
        if bag is None or not self._of.edges.splits(node):
            return bag
        whole, begins, ends = _row(TS, TE, N), _row(TS, f"{INF}L", N), _row(TE, f"{INF}L", f"-{N}")
        rows = f"inline(IF({TE} = {INF}L, array({whole}), array({begins}, {ends})))"
        return bag.selectExpr(*(c.id for c in node.columns), rows)

    def _expired(self, node: Node, bag: DataFrame | None) -> DataFrame | None:
        op, ids = f"expire_{self._of.names[id(node)]}", [c.id for c in node.columns]
        if bag is None and self._of.sweeps.idle(op, ids):
            return None
        new = None if bag is None else bag.selectExpr(*ids, *BAG)
        like = new if new is not None else self._of.shape.bag(node)
        schema = pa.schema([*fields(like, ids), *BAG_FIELDS])
        task = partial(self._of.sweeps.sweep_task, negative_tuples.sweep, schema, schema)
        return self._of.sweeps.swept(op, new, schema, ids, bag_due, task, frames.ddl(schema))

    def held(self, node: Node, past: DataFrame | None) -> DataFrame | None:
        """A window's rows of earlier slices, read again, as its edge has told them up to h0."""
        if past is None or not self._of.edges.expires(node):
            return None if past is None else past.where(f"{TE} > {self._of.h0 + 1}L")
        told = past.where(f"{TS} <= {self._of.h0}L AND {TE} > {self._of.h0}L")
        return told.selectExpr(*(c.id for c in node.columns), TS, f"{INF}L AS {TE}", N)


def _row(ts: str, te: str, n: str) -> str:
    return "named_struct(" + ", ".join(f"'{name}', {x}" for name, x in zip(BAG, (ts, te, n), strict=True)) + ")"
