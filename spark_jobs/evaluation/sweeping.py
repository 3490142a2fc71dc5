"""How sweeps run on Spark: rows spread by their keys, each worker with its part of the SweepArea, and one sweep behind
another in the same worker where no row has to move between them.

Which to take: ``swept`` for a sweep whose SweepArea is a log by key, so that only the keys that are due are looked at;
``swept_whole`` for one that looks at every row in every slice. Under them, for a task that is more than a sweep (the
one that writes results): ``through`` and ``through_whole``; ``passed`` where there is no SweepArea and rows stay where
they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sweeparea.operators import bridge, exchange, reading
from sweeparea.operators.plan.node import Node
from sweeparea.operators.state.due import Due
from sweeparea.operators.state.sweep import Sweep
from sweeparea.operators.state.sweep_area import SweepArea
from sweeparea.spark_jobs.evaluation import hot_keys
from sweeparea.spark_jobs.evaluation.running import Bags, RunningSlice
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.frames import concatenated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Sweeps:
    """How a slice runs sweeps, and what is remembered of those that have been made."""

    def __init__(self, slice: RunningSlice, bags: Bags) -> None:
        self._slice, self._bags = slice, bags
        self._spread: set[str] = set()
        self._pipes: dict[str, bridge.Pipe] = {}

    def idle(self, op: str, keys: Sequence[str]) -> bool:
        """Whether a sweep that gets no new rows has nothing to do."""
        return self._slice.areas.quiet(op) if keys else not self._slice.areas.files(op)

    def swept(
        self,
        op: str,
        new: DataFrame | None,
        sweep: Sweep,
        *sources: bridge.Pipe | None,
        lie_by: frozenset[str] | None = None,
    ) -> DataFrame:
        """What a sweep makes of new rows and of what its SweepArea, a log by key, holds (``areas.py``). The usual.

        ``sources``: how ``new`` comes about, in parts, or columns of it if no row has others, where Spark SQL has no
        part in that. ``lie_by``: keys by which the rows of the one source there is lie in the slice's partitions.
        """
        task = partial(self._task, sweep)
        known = [source for source in sources if source is not None]
        complete = bool(known) and len(known) == len(sources)
        if new is not None and self._slice.partitions > 1 and hot_keys.divisible(sweep):
            # rows that Spark has computed are sent by us as well: so it is seen of which keys there are too many
            known = known if complete else [bridge.Pipe.of(new, self._slice.partitions)]
            complete = True
            if not sweep.keys:
                return self._whole(op, known[0], sweep)
        if complete and new is not None and sweep.keys:
            made = self._piped(op, known, sweep, task, lie_by)
            if made is not None:
                return made
        return self.through(op, new, sweep.rows, sweep.keys, sweep.due, task, sweep.result)

    def _piped(
        self,
        op: str,
        sources: Sequence[bridge.Pipe],
        sweep: Sweep,
        task: Callable[[bridge.Target | SweepArea], Callable[..., Any]],
        lie_by: frozenset[str] | None,
    ) -> DataFrame | None:
        """``swept`` behind what makes the rows: in the same worker, or sent to the workers of their keys. None: they
        are many, or come in parts, and have to come together in one.
        """
        workers, source = self._workers(sweep), sources[0]
        if workers == 1 and (source.workers > 1 or len(sources) > 1):
            return None
        area = self._slice.areas.keyed(op, sweep.rows, sweep.keys, sweep.due, workers)
        sent = pa.schema([f for f in sweep.rows if f.name in source.columns])
        stay = len(sources) == 1 and workers == source.workers and self._stay(lie_by, sweep.keys, area)
        if workers > 1 and not stay:
            lines = self._sent(op, (*sources, *self._due(sent, area)), sent, area.key_columns)
            divided = hot_keys.divided(self._slice, op, lines, sweep, area, self._slice.areas.watch(op, sweep.keys))
            if divided is not None:
                return self._made(op, self._numbers(workers), divided, workers, sweep.result)
            source = self._received(lines, workers, sent)
        if workers == self._slice.partitions:
            self._spread.add(op)
        watched = self._watched(op, sweep.keys, task(area))
        return self._made(op, source.given, source.then(watched, sent.names), workers, sweep.result)

    def _whole(self, op: str, source: bridge.Pipe, sweep: Sweep) -> DataFrame:
        """``swept`` of a sweep without keys, whose rows one worker has unless they are too many."""
        state, names = self._slice.areas.read(op), sweep.rows.names
        nothing = self._slice.spark.range(1).selectExpr(*(f"NULL AS `{name}`" for name in names))  # that it runs at all
        also = [bridge.Pipe.of(rows, 1) for rows in (nothing, state) if rows is not None]
        lines = self._sent(op, (source, *also), sweep.rows, ())
        area = self._slice.areas.target(op, sweep.rows)
        watch = self._slice.areas.watch(op, ())
        task = hot_keys.divided(self._slice, op, lines, sweep, area, watch)
        workers, given = self._slice.partitions, self._numbers(self._slice.partitions)
        if task is None:
            workers, received = 1, self._received(lines, 1, sweep.rows)
            given, task = received.given, received.then(replace(self._task(sweep, area), watch=watch), names)
        return self._made(op, given, task, workers, sweep.result)

    def _stay(self, lie_by: frozenset[str] | None, keys: Sequence[str], area: SweepArea) -> bool:
        """Whether rows need not move that lie in the slice's partitions by some columns: no worker has to be told of a
        key that only its SweepArea has.
        """
        return bool(not area.alone and lie_by and lie_by <= set(keys) and not self._slice.areas.due(area))

    def _workers(self, sweep: Sweep) -> int:
        return self._slice.partitions if bridge.hashable(sweep.rows, sweep.keys) else 1

    def _exchanged(self, op: str, sources: Sequence[bridge.Pipe], sent: pa.Schema, area: SweepArea) -> bridge.Pipe:
        """The rows of ``sources``, and those that name a due key, with the workers of their keys: a job of its own."""
        lines = self._sent(op, (*sources, *self._due(sent, area)), sent, area.key_columns)
        return self._received(lines, area.partitions, sent)

    def _due(self, sent: pa.Schema, area: SweepArea) -> Sequence[bridge.Pipe]:
        """Rows that name the keys that are due."""
        due, workers = self._slice.areas.due(area), area.partitions
        if not due:
            return ()
        shares = reading.shares([(file.path, file.rows) for file in due], workers)
        keys = exchange.DueTask(shares, area.stored, sent, area.key_columns, area.h0, area.h1)
        return [bridge.Pipe(self._numbers(workers), keys, workers, {name: name for name in sent.names})]

    def _sent(
        self, op: str, sources: Sequence[bridge.Pipe], sent: pa.Schema, keys: Sequence[str]
    ) -> list[dict[str, Any]]:
        """Sends the rows of the sources to the workers of their keys; a line a file."""
        send = exchange.SendTask(sent, tuple(keys), self._slice.partitions, f"{self._slice.areas.spill}/exchange/{op}")
        rows = [pipe.given.mapInArrow(pipe.then(send, sent.names), exchange.SENT_DDL) for pipe in sources]
        return [line.asDict() for line in concatenated(rows).collect()]

    def _received(self, lines: Sequence[Mapping[str, Any]], workers: int, sent: pa.Schema) -> bridge.Pipe:
        receive = exchange.ReceiveTask(exchange.by_receiver(lines, workers))
        return bridge.Pipe(self._numbers(workers), receive, workers, {name: name for name in sent.names})

    def _numbers(self, workers: int) -> DataFrame:
        return frames.workers(self._slice.spark, workers)

    def swept_whole(self, op: str, new: DataFrame | None, sweep: Sweep) -> DataFrame:
        """As ``swept``, of a sweep that looks at every row in every slice: its SweepArea is read and written whole."""
        task = partial(self._task, sweep)
        return self.through_whole(op, new, sweep.rows, sweep.keys, task, sweep.result)

    def _watched(self, op: str, keys: Sequence[str], task: Any) -> Any:
        """``task`` of the operator ``op``, which tells of its rows when memory runs out."""
        return replace(task, watch=self._slice.areas.watch(op, keys))

    def _task(self, sweep: Sweep, area: bridge.Target | SweepArea) -> bridge.SweepTask:
        return bridge.SweepTask(sweep, self._slice.h0, self._slice.h1, area, self._slice.attempt)

    def through(  # eight parameters: what a task reads, by what it is spread and when due, and what it makes
        self,
        op: str,
        new: DataFrame | None,
        schema: pa.Schema,
        keys: Sequence[str],
        due: Due,
        task: Callable[[bridge.Target | SweepArea], Callable[..., Any]],
        made: pa.Schema,
        of: Node | None = None,
    ) -> DataFrame:
        """``swept`` for any task: what it makes of new rows and of those of the SweepArea of ``op``, all of ``schema``.

        Without ``keys`` the SweepArea is whole, and one worker has it. ``of``: the node whose rows ``new`` are, perhaps
        with more columns: they need not move if they lie by the keys already.
        """
        if not keys:
            return self.through_whole(op, new, schema, (), task, made)
        workers = self._slice.partitions if bridge.hashable(schema, keys) else 1
        area = self._slice.areas.keyed(op, schema, keys, due, workers)
        watched = self._watched(op, keys, task(area))
        if workers == self._slice.partitions:
            self._spread.add(op)
        if new is not None and of is not None:
            pipe, lie_by = self._pipe_with(of, schema.names), self._bags.spread_by(of)
            stay = self._stay(lie_by, keys, area)
            if pipe is not None and pipe.workers == workers and (stay or area.alone):
                return self._mapped(pipe.given, pipe.then(watched, schema.names), made)
            if stay:
                return self._mapped(new, watched, made)
            if pipe is not None and workers > 1:
                moved = self._exchanged(op, [pipe], schema, area)
                return self._mapped(moved.given, moved.then(watched, schema.names), made)
        # one worker where others have several: rows move to it, since sweeps below must not run in its task
        by = keys if workers == self._slice.partitions else ()
        given = bridge.spread(self._slice.areas.given(area, new), by, workers)
        return self._made(op, given, watched, workers, made)

    def _made(self, op: str, given: DataFrame, task: Callable[..., Any], workers: int, made: pa.Schema) -> DataFrame:
        self._pipes[op] = bridge.Pipe(given, task, workers, {name: name for name in made.names})
        return self._mapped(given, task, made)

    def _mapped(self, given: DataFrame, task: Callable[..., Any], made: pa.Schema) -> DataFrame:
        return frames.mapped(self._slice.spark, given, task, made)

    def pipe(self, op: str) -> bridge.Pipe | None:
        """How the rows of a sweep that has been made come about; a further sweep may stand behind it."""
        return self._pipes.get(op)

    def spreads(self, op: str) -> bool:
        """Whether a sweep has spread its rows by its keys over all partitions."""
        return op in self._spread

    def _pipe_with(self, node: Node, names: Sequence[str]) -> bridge.Pipe | None:
        """``pipe``, if it has the columns ``names``."""
        found = self._bags.pipe(node)
        return found if found is not None and found.columns.keys() >= set(names) else None

    def through_whole(
        self,
        op: str,
        new: DataFrame | None,
        schema: pa.Schema,
        keys: Sequence[str],
        task: Callable[[bridge.Target | SweepArea], Callable[..., Any]],
        made: pa.Schema,
    ) -> DataFrame:
        """``swept_whole`` for any task: as ``through``, of one that looks at every row in every slice."""
        state = self._slice.areas.read(op)
        rows = [] if new is None else [new]
        if state is not None:
            rows.append(state.selectExpr(*(f"`{name}`" for name in schema.names)))
        workers = self._slice.partitions if keys else 1
        given = bridge.spread(concatenated(rows), keys, workers)
        watched = self._watched(op, keys, task(self._slice.areas.target(op, schema)))
        return self._made(op, given, watched, workers, made)

    def passed(
        self, op: str, of: Node | None, new: DataFrame, schema: pa.Schema, task: Callable[..., Any], made: pa.Schema
    ) -> DataFrame:
        """What a task without a SweepArea makes of the rows of ``new``, however they lie; ``of``: as of ``through``."""
        task = self._watched(op, (), task)
        pipe = None if of is None else self._pipe_with(of, schema.names)
        if pipe is not None:
            return self._mapped(pipe.given, pipe.then(task, schema.names), made)
        if self._slice.partitions == 1 or not self._slice.areas.staged:
            new = new.coalesce(self._slice.partitions)  # else a task would run a sweep for several of its workers
        return self._mapped(new, task, made)
