"""What a slice reads of each input, as signed bags: the rows that are new in it, and those that earlier rows still
hold.

Three kinds of input: an admitted stream or relation (``__tick``, ``__seq``, ``__n``), the stream result of another
query (``ts``), and the relation result of another query (``valid_from``, ``valid_to``). A slice pins each input's
sequence number when it starts; rows admitted later than the pin are not seen, whatever happens meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators import reading
from sweeparea.operators.bridge import Pipe
from sweeparea.operators.nodes import RelationScan, StreamScan
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.operators.time.ticks import INF, MIN_TICK, own_ticks
from sweeparea.operators.values.bag import TE, TS, N
from sweeparea.operators.windows import TimeWindow
from sweeparea.spark_jobs.evaluation.only import Only
from sweeparea.spark_jobs.spark import frames
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class InputKind(Enum):
    """What an input is read from: an admitted stream or relation, or another query's result."""

    STREAM = auto()
    RELATION = auto()
    QUERY_STREAM = auto()
    QUERY_RELATION = auto()

    @property
    def is_result(self) -> bool:
        """Whether it is another query's result."""
        return self in (InputKind.QUERY_STREAM, InputKind.QUERY_RELATION)


@dataclass(frozen=True)
class Input:
    """One input of a query as its slice sees it.

    ``pin`` is the sequence number up to which rows are read; ``static`` whether it can never change. ``version``: the
    table's version to read, the latest if None: of results, whose rows carry no sequence number. ``scale``: how many of
    an admitted relation's own ticks make one of the query's. ``taken_back``: elements of the stream were taken back,
    which negative copies of them tell.
    """

    name: str
    kind: InputKind
    log: DeltaLog
    pin: int
    static: bool = False
    version: int | None = None
    scale: int = 1
    taken_back: bool = False

    @property
    def tick(self) -> str:
        """Spark SQL of an admitted row's instant as a tick of the query."""
        return "__tick" if self.scale == 1 else f"((__tick - pmod(__tick, {self.scale}L)) DIV {self.scale}L)"

    def own(self, low: int | None, high: int | None) -> tuple[int | None, int | None]:
        """A range of the query's ticks in those of an admitted row."""
        return own_ticks(low, high, self.scale)


@dataclass
class RowsToRead:
    """Rows of a table: ``columns`` of those of some ``files`` that lie in all ``ranges`` (``frames.read``)."""

    log: DeltaLog
    files: list[DataFile]
    columns: list[str]
    ranges: list[frames.Range]
    among: frames.Among

    @cached_property
    def plan(self) -> scan.ScanPlan:
        return scan.plan(self.log, self.files)

    @cached_property
    def table(self) -> pa.Table | None:
        """The rows, where they are few; None: for workers to read."""
        return frames.local(self.plan, self.columns, self.ranges, self.among)

    def frame(self, spark: SparkSession) -> DataFrame | None:
        """The rows; None: there are none."""
        plan = self.plan
        return frames.read_as(spark, plan, self.columns, self.ranges, self.table) if plan.paths else None


class InputReader:
    """Reads the inputs of one slice ``(h0, h1]`` of a query that starts at ``start``; ``only``: some keys of them."""

    def __init__(
        self,
        spark: SparkSession,
        inputs: dict[str, Input],
        time: TimeDomain,
        start: int,
        h0: int,
        h1: int,
        only: Only | None = None,
    ) -> None:
        self.spark, self.inputs, self.time, self.only = spark, inputs, time, only
        self.start, self.h0, self.h1 = start, h0, h1
        self._new_rows: dict[int, RowsToRead] = {}
        self.chosen: frames.Among = {}
        """By the ids of columns, among which values they are of the rows that have to be read."""

    @contextmanager
    def among(self, values: frames.Among) -> Iterator[None]:
        """Meanwhile rows may be left out of which a column, by its id, is not among some values."""
        before, self.chosen = self.chosen, values
        try:
            yield
        finally:
            self.chosen = before

    @property
    def first(self) -> bool:
        """Whether this is the query's first slice, ``(START-1, h1]``."""
        return self.h0 < self.start

    # -- streams -------------------------------------------------------------------------------------------------------

    def new_elements(self, node: StreamScan) -> DataFrame | None:
        """Elements of the slice, as ``[s, s+1)``."""
        low = max(self.h0 + 1, self.start)
        if low > self.h1:
            return None
        rows = self._new_rows[id(node)] = self._rows_of_elements(node, low, self.h1)
        return self._elements(node, rows)

    def pipe(
        self,
        node: StreamScan,
        workers: int,
        window: TimeWindow | None = None,
        bounds: tuple[str, str] | None = None,
    ) -> Pipe | None:
        """How workers read ``new_elements(node)``, which has been made, without Spark SQL, in a window of time if there
        is one, with the ``bounds`` of its buckets in these columns; None: its rows have to be put together first.
        """
        source, rows = self.inputs[node.name], self._new_rows.get(id(node))
        if rows is None or source.taken_back or self.only is not None:
            return None
        tick, copies = ("__tick", N) if source.kind is InputKind.STREAM else ("ts", None)
        columns = tuple((column.id, name) for column, name in node.source)
        instant = None if node.instant is None else node.instant.id
        bag = reading.BagOf(columns, tick, copies, self.time.clock, instant, window, bounds)
        names = bag.schema(rows.plan.schema).names
        if rows.table is not None:
            workers, task = 1, reading.GivenTask(bag.of(rows.table))
        else:
            sizes = [(uri, file.size) for uri, file in zip(rows.plan.paths, rows.files, strict=True)]
            shares = reading.shares(sizes, workers)
            task = reading.ReadTask(shares, rows.plan.schema, tuple(rows.ranges), bag)
        return Pipe(frames.workers(self.spark, workers), task, workers, {name: name for name in names})

    def past_elements(self, node: StreamScan, reach: int) -> DataFrame | None:
        """Elements of earlier slices that a window of this reach may still hold after h0."""
        low = self.start if reach == INF else max(self.start, self.h0 - reach)
        return None if self.first or low > self.h0 else self._elements(node, self._rows_of_elements(node, low, self.h0))

    def _elements(self, node: StreamScan, rows: RowsToRead) -> DataFrame | None:
        source, frame = self.inputs[node.name], rows.frame(self.spark)
        if frame is None:
            return None
        tick, n = ("__tick", N) if source.kind is InputKind.STREAM else (self._tick_of("ts"), "1L")
        columns = [f"{frames.quoted(name)} AS {c.id}" for c, name in node.source]
        if node.instant is not None:
            columns.append(f"{self.instant_sql(tick)} AS {node.instant.id}")
        # the pseudo-column ts is a function of the tick, so the bag stays a function of (record, tick)
        bag = self._some(node, frame.selectExpr(*columns, f"{tick} AS {TS}", f"{tick} + 1L AS {TE}", f"{n} AS {N}"))
        if not source.taken_back:
            return bag
        from pyspark.sql.functions import expr

        record = [*(c.id for c in node.columns), TS, TE]
        return bag.groupBy(*record).agg(expr(f"sum({N})").alias(N)).where(f"{N} <> 0")

    def _rows_of_elements(self, node: StreamScan, low: int, high: int) -> RowsToRead:
        """The rows of the stream's table that hold its elements of the ticks ``low`` to ``high``."""
        source = self.inputs[node.name]
        if source.kind is InputKind.STREAM:
            return self._rows(source, node, ["__tick", N], [("__tick", low, high), ("__seq", None, source.pin)])
        return self._rows(source, node, ["ts"], [("ts", *self._instants(low, high))])

    # -- relations -----------------------------------------------------------------------------------------------------

    def new_changes(self, node: RelationScan, since_start: bool = True) -> DataFrame | None:
        """Changes of the slice as rows ``[tick, INF)``; in the first slice also all that happened before START.

        These count from START; ``since_start`` False: each from its own tick.
        """
        source = self.inputs[node.name]
        if source.static and not self.first:
            return None
        low = None if self.first else self.h0 + 1
        if source.kind is InputKind.RELATION:
            frame = self._read(
                source,
                node,
                ["__tick", N],
                [("__tick", *source.own(low, self.h1)), ("__seq", None, source.pin)],
            )
            tick = f"greatest({source.tick}, {self.start}L)" if since_start else source.tick
            return None if frame is None else self._changes(node, frame, tick, N)
        return self._query_changes(node, source, low, self.h1)

    def past_contents(self, node: RelationScan) -> DataFrame | None:
        """The relation's contents at h0, as rows that do not end."""
        source = self.inputs[node.name]
        if self.first:
            return None
        if source.kind is InputKind.RELATION:
            frame = self._read(
                source,
                node,
                ["__tick", N],
                [("__tick", *source.own(None, self.h0)), ("__seq", None, source.pin)],
            )
            return None if frame is None else self._changes(node, frame, f"{self.h0}L", N)
        return self._query_changes(node, source, None, self.h0)

    def _changes(self, node: RelationScan, frame: DataFrame, ts: str, n: str) -> DataFrame:
        columns = [f"{frames.quoted(name)} AS {c.id}" for c, name in node.source]
        return self._some(node, frame.selectExpr(*columns, f"{ts} AS {TS}", f"{INF}L AS {TE}", f"{n} AS {N}"))

    def _query_changes(self, node: RelationScan, source: Input, low: int | None, high: int) -> DataFrame | None:
        names = [name for _, name in node.source]
        frame = self._read(
            source, node, ["valid_from", "valid_to"], [("valid_from", None, self._instants(None, high)[1])]
        )
        if frame is None:
            return None
        start, end = self._tick_of("valid_from"), self._tick_of("valid_to")
        # a row is +1 where it begins and -1 where it ends; what lies after h1 is not known yet, whatever the table says
        events = frame.selectExpr(
            *(frames.quoted(n) for n in names),
            f"inline(array(struct({start} AS __at, 1L AS __sign), struct({end} AS __at, -1L AS __sign)))",
        ).where(f"__at IS NOT NULL AND __at <= {high}L" + (f" AND __at >= {low}L" if low is not None else ""))
        return self._changes(node, events, f"greatest(__at, {self.start}L)", "__sign")

    def _some(self, node: StreamScan | RelationScan, bag: DataFrame) -> DataFrame:
        carrier = None if self.only is None else self.only.carrier([c.id for c, _ in node.source])
        return bag if self.only is None or carrier is None else self.only.of(bag, carrier)

    # -- shared --------------------------------------------------------------------------------------------------------

    def _read(
        self, source: Input, node: StreamScan | RelationScan, extra: Sequence[str], ranges: list[frames.Range]
    ) -> DataFrame | None:
        return self._rows(source, node, extra, ranges).frame(self.spark)

    def _rows(
        self, source: Input, node: StreamScan | RelationScan, extra: Sequence[str], ranges: list[frames.Range]
    ) -> RowsToRead:
        files = source.log.files(source.version)
        for column, low, high in ranges:
            files = scan.prune(files, column, low, high)
        names = [name for _, name in node.source]
        among = {name: self.chosen[column.id] for column, name in node.source if column.id in self.chosen}
        return RowsToRead(source.log, files, list(dict.fromkeys([*names, *extra])), ranges, among)

    def _instants(self, low: int | None, high: int | None) -> tuple[int | None, int | None]:
        """Ticks as the values that a result table's instant columns hold: microseconds, or ticks."""
        scale = self.time.stored_scale
        return tuple(None if x is None or abs(x) >= -MIN_TICK // scale else x * scale for x in (low, high))  # type: ignore[return-value]

    def _tick_of(self, column: str) -> str:
        return f"unix_micros({column}) DIV {self.time.chronon}L" if self.time.kind == TimeKind.TIMESTAMP else column

    def instant_sql(self, tick: str) -> str:
        return f"timestamp_micros({tick} * {self.time.chronon}L)" if self.time.kind == TimeKind.TIMESTAMP else tick
