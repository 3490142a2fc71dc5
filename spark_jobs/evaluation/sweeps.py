"""Sweeps on Spark: new rows beside what a SweepArea holds, by key in workers, or whole in one; sweeps that stand one
above the other run in one worker (``bridge.Pipe``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sweeparea.operators import bridge
from sweeparea.operators.plan import support
from sweeparea.operators.plan.logical import Aggregate, Node, Project, Select
from sweeparea.operators.state.sweep_area import Due, SweepArea
from sweeparea.operators.values.bag import BAG
from sweeparea.spark_jobs.evaluation.grouping import Grouping
from sweeparea.spark_jobs.spark.frames import concatenated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sweeparea.spark_jobs.evaluation.evaluate import Evaluation


class Sweeps:
    """How an ``Evaluation`` runs sweeps, and what it remembers of those that it has made."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._of = evaluation
        self._spread: set[str] = set()
        self._pipes: dict[str, bridge.Pipe] = {}

    def idle(self, op: str, keys: Sequence[str]) -> bool:
        """Whether a sweep that gets no new rows has nothing to do."""
        return self._of.areas.quiet(op) if keys else not self._of.areas.files(op)

    def swept(
        self,
        op: str,
        new: DataFrame | None,
        schema: pa.Schema,
        keys: Sequence[str],
        due: Due,
        task: Callable[[bridge.Target | SweepArea], Callable[..., Any]],
        ddl: str,
        of: Node | None = None,
    ) -> DataFrame:
        """What ``task`` makes of new rows and of what the SweepArea of ``op`` holds (``areas.py``), all of ``schema``.

        Without ``keys`` the SweepArea is whole, and one worker has it. ``of``: the node whose rows ``new`` are, perhaps
        with more columns: they need not move if they lie by the keys already.
        """
        if not keys:
            return self.swept_whole(op, new, schema, (), task, ddl)
        workers = self._of.partitions if bridge.hashable(schema, keys) else 1
        area = self._of.areas.keyed(op, schema, keys, due, workers)
        if workers == self._of.partitions:
            self._spread.add(op)
        if new is not None and of is not None:
            pipe, lie_by = self._pipe_with(of, schema.names), self.spread_by(of)
            stay = workers > 1 and lie_by and lie_by <= set(keys) and not self._of.areas.due(area)
            if pipe is not None and pipe.workers == workers and (stay or area.alone):
                return pipe.given.mapInArrow(pipe.then(task(area), schema.names), ddl)
            if stay:
                return new.mapInArrow(task(area), ddl)
        # one worker where others have several: rows move to it, since sweeps below must not run in its task
        by = keys if workers == self._of.partitions else ()
        given = bridge.spread(self._of.areas.given(area, new), by, workers)
        return self._through(op, given, task(area), workers, ddl)

    def _through(self, op: str, given: DataFrame, task: Callable[..., Any], workers: int, ddl: str) -> DataFrame:
        made = given.mapInArrow(task, ddl)
        self._pipes[op] = bridge.Pipe(given, task, workers, {name: name for name in made.columns})
        return made

    def pipe(self, node: Node) -> bridge.Pipe | None:
        """How the rows of ``new(node)``, which has been made, come from a sweep, if nothing has been computed of them
        since; a further sweep may stand behind it in the same worker.
        """
        if id(node) in self._of.once_computed or self._of.edges.splits(node) or support.expansion(node) is not None:
            return None
        match node:
            case Aggregate() if (made := self._pipes.get(self._of.names[id(node)])) is not None:
                plain = Grouping(node).plain
                return None if plain is None else made.renamed(plain | {name: name for name in BAG})
            case Project() if (below := self.pipe(node.input)) is not None:
                chosen = {column.id: expr.sql.strip("`") for column, expr in node.outputs}
                return below.renamed(chosen | {name: name for name in BAG})
        return None

    def _pipe_with(self, node: Node, names: Sequence[str]) -> bridge.Pipe | None:
        """``pipe``, if it has the columns ``names``."""
        found = self.pipe(node)
        return found if found is not None and found.columns.keys() >= set(names) else None

    def net(self, node: Node) -> bool:
        """Whether in ``new(node)``, which has been made, no record ends where an equal one begins, and all that ends
        in the slice's future is open (``emission.changes``).
        """
        match node:
            case Aggregate():
                swept = not self._of.two_sided.is_interval_distinct(node) and support.expansion(node) is None
                return swept and Grouping(node).plain is not None
            case Select():
                return self.net(node.input)
            case Project():
                # equal records must come of equal ones
                kept = {expr.sql.strip("`") for _, expr in node.outputs}
                return self.net(node.input) and {column.id for column in node.input.columns} <= kept
        return False

    def spread_by(self, node: Node) -> frozenset[str] | None:
        """Columns by which the rows of ``new(node)``, which has been made, lie in the slice's partitions: those with
        equal values together. None: they lie anyhow. What one sweep has brought together needs no second shuffle.
        """
        if id(node) in self._of.once_computed:
            return None
        match node:
            case Aggregate() if self._of.names[id(node)] in self._spread and support.expansion(node) is None:
                return frozenset(column.id for column, _ in node.keys)
            case Select():
                return self.spread_by(node.input)
            case Project():
                below = self.spread_by(node.input)
                kept = {expr.sql.strip("`"): column.id for column, expr in reversed(node.outputs)}
                return frozenset(kept[c] for c in below) if below and below <= kept.keys() else None
        return None

    def swept_whole(
        self,
        op: str,
        new: DataFrame | None,
        schema: pa.Schema,
        keys: Sequence[str],
        task: Callable[[bridge.Target | SweepArea], Callable[..., Any]],
        ddl: str,
    ) -> DataFrame:
        """As ``swept``, of a sweep that looks at every row in every slice."""
        state = self._of.areas.read(op)
        rows = [] if new is None else [new]
        if state is not None:
            rows.append(state.selectExpr(*(f"`{name}`" for name in schema.names)))
        workers = self._of.partitions if keys else 1
        given = bridge.spread(concatenated(rows), keys, workers)
        return self._through(op, given, task(self._of.areas.target(op, schema)), workers, ddl)

    def passed(
        self, of: Node | None, new: DataFrame, schema: pa.Schema, task: Callable[..., Any], ddl: str
    ) -> DataFrame:
        """What ``task`` makes of the rows of ``new``, however they lie; ``of``: as of ``swept``."""
        pipe = None if of is None else self._pipe_with(of, schema.names)
        if pipe is not None:
            return pipe.given.mapInArrow(pipe.then(task, schema.names), ddl)
        if self._of.partitions == 1 or not self._of.areas.staged:
            new = new.coalesce(self._of.partitions)  # else a task would run a sweep for several of its workers
        return new.mapInArrow(task, ddl)

    def sweep_task(
        self, sweep: Callable[..., Any], schema: pa.Schema, output: pa.Schema, area: bridge.Target | SweepArea
    ) -> bridge.SweepTask:
        return bridge.SweepTask(sweep, self._of.h0, self._of.h1, schema, output, area, self._of.attempt)
