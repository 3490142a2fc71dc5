"""What a logical plan means at an instant, by brute force: for tests of the binder and of rewrites (laws S1 and S4).

    evaluate(plan.root, {"S": Stream(("a", "b"), [(1, (7, "x"))]), "R": Relation(("a",), [(0, 1, (7,))])}, tick=5)
    evaluate(plan.root, {"R": Table(("a",), [(7,), (8,)])})  # without time: a window holds its whole input

Both give a ``Counter`` of rows (tuples in the order of ``node.columns``). ``elements`` gives a stream-valued node's
elements, ``emitted`` what a plan publishes as a stream.

Streams and windows are read off their definitions (semantics, section 3), element by element; every other node becomes
one DuckDB query over its inputs. Nothing is shared with the engine. Expressions are Spark SQL put into DuckDB's dialect
by sqlglot, so tests must keep to what means the same in both (no integer overflow, no division by zero, no decimals of
different scale), and to doubles whose sums are exact. User-defined windows and functions are not covered.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from sweeparea.operators import windows as w
from sweeparea.operators.nodes import (
    Aggregate,
    AggregateCall,
    Analytic,
    Difference,
    Enrich,
    Generate,
    Intersect,
    Join,
    OneRow,
    Project,
    RelationScan,
    RelationToStream,
    Select,
    StreamScan,
    TopK,
    UnionAll,
    Window,
    WindowFunction,
)
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.stream_kind import StreamKind
from sweeparea.operators.sql.expressions import Column, Expr, SortKey
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.tables.log.schema import arrow_type

Row = tuple[Any, ...]
Elements = list[tuple[int, Row]]


@dataclass(frozen=True)
class Stream:
    """A stream: (tick, row) pairs in any order."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[int, Row]]


@dataclass(frozen=True)
class Relation:
    """A relation: changes (tick, signed copies, row)."""

    columns: tuple[str, ...]
    changes: Sequence[tuple[int, int, Row]]

    def at(self, tick: int) -> list[Row]:
        held: Counter[Row] = Counter()
        for t, n, row in self.changes:
            if t <= tick:
                held[row] += n
        return sorted(held.elements(), key=order_key)


@dataclass(frozen=True)
class Table:
    """A relation or stream without time: its rows."""

    columns: tuple[str, ...]
    rows: Sequence[Row]


Inputs = Mapping[str, Stream | Relation | Table]


def evaluate(
    node: Node, inputs: Inputs, tick: int | None = None, *, start: int = 0, time: TimeDomain | None = None
) -> Counter[Row]:
    """The contents of a relation-valued node at ``tick`` of a query that starts at ``start``; without ``tick`` over
    ``Table`` inputs.
    """
    return Counter(Oracle(inputs, start, time).contents(node, tick))


def elements(node: Node, inputs: Inputs, last: int, *, start: int = 0, time: TimeDomain | None = None) -> Elements:
    """The elements up to ``last`` of a stream-valued node, sorted."""
    found = Oracle(inputs, start, time).elements(node, last)
    return sorted(found, key=lambda e: (e[0], order_key(e[1])))


def emitted(plan: Plan, inputs: Inputs, last: int) -> Elements:
    """The stream that a stream-valued plan publishes, up to ``last``, sorted."""
    kind = plan.stream or "istream"
    oracle = Oracle(inputs, plan.start, plan.time)
    if plan.emits_each:  # each row when it appears
        return [
            (t, row)
            for t in range(plan.start, last + 1)
            for row in sorted(oracle.appearing(plan.root, t).elements(), key=order_key)
        ]
    stream = RelationToStream(plan.root, StreamKind(kind), plan.every, plan.anchor)
    return sorted(oracle.elements(stream, last), key=lambda e: (e[0], order_key(e[1])))


def order_key(row: Iterable[Any]) -> tuple[Any, ...]:
    """The total order of records: columns left to right, NULL first, NaN greatest."""
    return tuple(_order(v) for v in row)


def _order(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    if isinstance(value, str):
        return (1, value.encode())
    if isinstance(value, tuple | list):
        return (1, *(_order(v) for v in value))
    return (1, value)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, list):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return tuple((k, _plain(v)) for k, v in value.items())
    return value


# -- expressions -------------------------------------------------------------------------------------------------------


@functools.lru_cache(10_000)
def _duck(sql: str) -> str:
    text = sqlglot.transpile(f"SELECT {sql}", read="spark", write="duckdb")[0].removeprefix("SELECT ")
    return text.replace("RPAD(", "spark_rpad(")  # whose length may be a BIGINT


def _sql(expr: Expr) -> str:
    return f"({_duck(expr.sql)})"


def _order_by(keys: Sequence[SortKey]) -> str:
    parts = (
        f"{_sql(k.expr)} {'DESC' if k.descending else 'ASC'} NULLS {'FIRST' if k.nulls_first else 'LAST'}" for k in keys
    )
    return "ORDER BY " + ", ".join(parts) if keys else ""


_AGGREGATES = {
    "COLLECT_LIST": "list",
    "ARRAY_AGG": "list",
    "FIRST_VALUE": "first",
    "LAST_VALUE": "last",
    "EVERY": "bool_and",
    "SOME": "bool_or",
    "ANY": "bool_or",
    "VARIANCE": "var_samp",
    "STDDEV": "stddev_samp",
    "APPROX_COUNT_DISTINCT": "count_distinct",
}


def _call(call: AggregateCall) -> str:
    name = call.function.upper()
    condition = f" FILTER (WHERE {_sql(call.filter)})" if call.filter is not None else ""
    if name == "SINGLE_VALUE":
        value = _sql(call.argument) if call.argument is not None else "1"
        return f"CASE WHEN count(*){condition} > 1 THEN error('more than one row') ELSE first({value}){condition} END"
    if call.argument is None:
        return f"{_AGGREGATES.get(name, name.lower())}(*){condition}"
    arguments = [_sql(e) for e in (call.argument, *call.extra)]
    if name in ("MAX_BY", "MIN_BY"):  # the order begins with the second argument
        present = f"{arguments[1]} IS NOT NULL{' AND ' + _sql(call.filter) if call.filter is not None else ''}"
        return f"first({arguments[0]} {_order_by(call.order)}) FILTER (WHERE {present})"
    if name.startswith("PERCENTILE"):
        within = "percentile_disc" if name == "PERCENTILE_DISC" else "percentile_cont"
        order = _order_by(call.order) or f"ORDER BY {arguments[0]}"
        return f"{within}({arguments[1]}) WITHIN GROUP ({order}){condition}"
    if name in ("COLLECT_LIST", "ARRAY_AGG") and name == "COLLECT_LIST":
        inner = f"{arguments[0]} IS NOT NULL"
        condition = f" FILTER (WHERE {inner}{' AND ' + _sql(call.filter) if call.filter is not None else ''})"
    if call.ignore_nulls:
        inner = f"{arguments[0]} IS NOT NULL"
        condition = f" FILTER (WHERE {inner}{' AND ' + _sql(call.filter) if call.filter is not None else ''})"
    distinct = "DISTINCT " if call.distinct else ""
    if call.distinct and len(arguments) > 1:  # COUNT(DISTINCT a, b): pairs without NULL
        present = " AND ".join(f"{a} IS NOT NULL" for a in arguments)
        arguments = [f"CASE WHEN {present} THEN ({', '.join(arguments)}) END"]
    function = _AGGREGATES.get(name, name.lower())
    value = f"{function}({distinct}{', '.join(arguments)} {_order_by(call.order)}){condition}"
    return f"coalesce({value}, [])" if name == "COLLECT_LIST" else value


def _over(call: WindowFunction) -> str:
    distinct = "DISTINCT " if call.distinct else ""
    text = (
        f"{call.function}({distinct}{', '.join(e.sql for e in call.arguments) or ('*' * (call.function == 'COUNT'))})"
    )
    if call.filter is not None:
        text += f" FILTER (WHERE {call.filter.sql})"
    if call.ignore_nulls:
        text += " IGNORE NULLS"
    partition = f"PARTITION BY {', '.join(e.sql for e in call.partition)}" if call.partition else ""
    order = ", ".join(
        f"{k.expr.sql} {'DESC' if k.descending else 'ASC'} NULLS {'FIRST' if k.nulls_first else 'LAST'}"
        for k in call.order
    )
    window = _duck(f"{text} OVER ({partition} {'ORDER BY ' + order if order else ''} {call.frame})")
    # Spark's take a NULL as a value like any other
    return window.replace("ARG_MAX(", "ARG_MAX_NULL(").replace("ARG_MIN(", "ARG_MIN_NULL(")


# -- plans as DuckDB queries -------------------------------------------------------------------------------------------


def _ids(columns: Iterable[Column]) -> list[str]:
    return [c.id for c in columns]


def _list(ids: Sequence[str]) -> str:
    return ", ".join(f'"{i}"' for i in ids) if ids else "1 AS __none"


class Query:
    """One DuckDB query over a plan: a common table expression for each node, ``leaf`` gives the rows of those that are
    not SQL. A stream-valued plan carries its elements' instants in a column ``__tick``.
    """

    def __init__(self, leaf: Callable[[Node], list[Row] | None], streamed: bool = False) -> None:
        self.leaf, self.extra = leaf, ["__tick"] if streamed else []
        self.db = _connection()
        self.steps: list[str] = []
        self.names: dict[int, str] = {}
        self.registered: list[str] = []

    def run(self, node: Node) -> list[Row]:
        try:
            name = self.name(node)
            ids = [*_ids(node.columns), *self.extra]
            found = self.db.execute(f"WITH {', '.join(self.steps)} SELECT {_list(ids)} FROM {name}").fetchall()
        finally:
            for table in self.registered:
                self.db.unregister(table)
        return [tuple(map(_plain, row)) if ids else () for row in found]

    def name(self, node: Node) -> str:
        if id(node) not in self.names:
            rows = self.leaf(node)
            sql = self._leaf(node, rows) if rows is not None else self._query(node)
            name = f"n{len(self.steps)}"
            self.steps.append(f"{name} AS ({sql})")
            self.names[id(node)] = name
        return self.names[id(node)]

    def _leaf(self, node: Node, rows: list[Row]) -> str:
        columns = [*node.columns, *(Column(x, x, "bigint") for x in self.extra)] or [Column("__none", "", "int")]
        if not node.columns:
            rows = [(*row, 1) if not self.extra else row for row in rows]
        arrays = [
            pa.array([row[i] for row in rows], _arrow(c.type, (row[i] for row in rows))) for i, c in enumerate(columns)
        ]
        name = f"leaf{next(_counter)}"
        self.db.register(name, pa.Table.from_arrays(arrays, names=[c.id for c in columns]))
        self.registered.append(name)
        return f"SELECT * FROM {name}"

    def _query(self, node: Node) -> str:
        inputs = [self.name(child) for child in node.inputs]
        extra = [f'"{x}"' for x in self.extra]
        match node:
            case OneRow():
                return "SELECT 1 AS __none"
            case Select():
                return f"SELECT * FROM {inputs[0]} WHERE {_sql(node.condition)}"
            case Project():
                outputs = [f'{_sql(e)} AS "{c.id}"' for c, e in node.outputs] + extra
                return f"SELECT {', '.join(outputs) or '1 AS __none'} FROM {inputs[0]}"
            case Join():
                return self._join(node, *inputs)
            case Generate():
                return self._generate(node, inputs[0])
            case UnionAll() | Difference() | Intersect():
                word = {UnionAll: "UNION ALL", Difference: "EXCEPT", Intersect: "INTERSECT"}[type(node)]
                if not isinstance(node, UnionAll) and node.all:
                    word += " ALL"
                return f" {word} ".join(
                    f"SELECT {_renamed(child.columns, node.outputs, self.extra)} FROM {name}"
                    for child, name in zip(node.inputs, inputs, strict=True)
                )
            case Aggregate():
                outputs = [f'{_sql(e)} AS "{c.id}"' for c, e in node.keys]
                outputs += [f'{_call(call)} AS "{c.id}"' for c, call in node.calls]
                outputs = outputs or ["count(*) AS __none"]
                tail = ""
                if node.keys:
                    # a number alone would be the place of a column
                    keys = [_sql(e) if e.columns else f"CASE WHEN TRUE THEN {_sql(e)} END" for _, e in node.keys]
                    tail = f"GROUP BY {', '.join(keys)}"
                elif not node.global_:
                    tail = "HAVING count(*) > 0"
                return f"SELECT {', '.join(outputs)} FROM {inputs[0]} {tail}"
            case Analytic():
                outputs = [f'{_over(call)} AS "{c.id}"' for c, call in node.calls]
                return f"SELECT *, {', '.join(outputs)} FROM {inputs[0]}"
            case TopK():
                partition = f"PARTITION BY {', '.join(map(_sql, node.keys))}" if node.keys else ""

                def number(function: str) -> str:
                    order = node.order if function == "ROW_NUMBER" else node.order[: node.peers]
                    return f"{function.lower()}() OVER ({partition} {_order_by(order)})"

                last = f"AND __place <= {node.offset + node.limit}" if node.limit is not None else ""
                numbers = "".join(f', {number(function)} AS "{c.id}"' for c, function in node.numbers)
                return (
                    f"SELECT * EXCLUDE (__place) FROM (SELECT *{numbers}, {number(node.by)} AS __place "
                    f"FROM {inputs[0]}) WHERE __place > {node.offset} {last}"
                )
        raise NotImplementedError(f"the plan oracle does not know {type(node).__name__}")

    def _join(self, node: Join, left: str, right: str) -> str:
        condition = _sql(node.condition) if node.condition is not None else "TRUE"
        if node.kind in ("semi", "anti"):
            word = "NOT EXISTS" if node.kind == "anti" else "EXISTS"
            return f"SELECT * FROM {left} WHERE {word} (SELECT 1 FROM {right} WHERE {condition})"
        word = {"inner": "JOIN", "left": "LEFT JOIN", "full": "FULL JOIN"}[node.kind]
        return f"SELECT {_list(_ids(node.columns))} FROM {left} {word} {right} ON {condition}"

    def _generate(self, node: Generate, name: str) -> str:
        call = sqlglot.parse_one(node.generator.sql, read="spark")
        function = type(call).__name__.lower() if not isinstance(call, exp.Anonymous) else call.name.lower()
        places = function.startswith("pos")
        array = _duck(call.this.sql("spark") if call.this is not None else call.expressions[0].sql("spark"))
        inner = f"CASE WHEN len({array}) > 0 THEN {array} END"
        if node.outer or function.endswith("outer"):
            inner = f"coalesce({inner}, [NULL])"
        outputs = _ids(node.outputs)
        kept = _list(_ids(node.input.columns))
        value = f'u.v AS "{outputs[-1]}"'
        place = f'CASE WHEN len({array}) > 0 THEN u.p - 1 END AS "{outputs[0]}", ' if places else ""
        unnested = f"(SELECT unnest({inner}) AS v, generate_subscripts({inner}, 1) AS p)"
        return f"SELECT {kept}, {place}{value} FROM {name}, LATERAL {unnested} AS u"


def _renamed(given: Sequence[Column], outputs: Sequence[Column], extra: Sequence[str]) -> str:
    parts = [f'"{a.id}" AS "{b.id}"' for a, b in zip(given, outputs, strict=True)] + list(extra)
    return ", ".join(parts) or "1 AS __none"


_counter = itertools.count()


@functools.cache
def _connection() -> duckdb.DuckDBPyConnection:
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'; SET threads = 1")
    db.execute("CREATE MACRO spark_rpad(x, n, p) AS rpad(x, CAST(n AS INTEGER), p)")
    return db


def _arrow(ddl: str | None, values: Iterable[Any]) -> pa.DataType | None:
    if ddl is not None:
        return arrow_type(ddl)
    first = next((v for v in values if v is not None), None)
    return None if first is not None else pa.string()


# -- streams and windows -----------------------------------------------------------------------------------------------


@dataclass
class Oracle:
    """One query's inputs; remembers what it has found."""

    inputs: Inputs
    start: int = 0
    time: TimeDomain | None = None
    _contents: dict[tuple[int, int | None], list[Row]] = field(default_factory=dict)
    _nodes: dict[int, Node] = field(default_factory=dict)  # keeps ids from being used again

    def contents(self, node: Node, tick: int | None) -> list[Row]:
        """Rows of a relation-valued node at an instant."""
        self._nodes[id(node)] = node
        if (id(node), tick) not in self._contents:
            self._contents[id(node), tick] = Query(lambda n: self._leaf(n, tick)).run(node)
        return self._contents[id(node), tick]

    def _leaf(self, node: Node, tick: int | None) -> list[Row] | None:
        if isinstance(node, RelationScan):
            return self._scanned(node, tick)
        if isinstance(node, StreamScan) and tick is None:
            return self._scanned(node, tick)
        if isinstance(node, Window):
            if tick is not None:
                return self._window(node, tick)
            return self.contents(node.input, None)
        if isinstance(node, RelationToStream | Enrich | StreamScan):
            raise TypeError(f"{type(node).__name__} is a stream, and no window is above it")
        return None

    def _scanned(self, node: StreamScan | RelationScan, tick: int | None) -> list[Row]:
        given = self.inputs[node.name]
        at = [given.columns.index(name) for _, name in node.source]
        if isinstance(given, Table):
            rows: Iterable[Row] = given.rows
        elif isinstance(given, Relation) and tick is not None:
            rows = given.at(tick)
        else:
            raise TypeError(f"{node.name} is needed as a relation at an instant, or as a table")
        return [tuple(row[i] for i in at) for row in rows]

    def elements(self, node: Node, last: int) -> Elements:
        """Elements of a stream-valued node from START to ``last``."""
        match node:
            case StreamScan():
                given = self.inputs[node.name]
                assert isinstance(given, Stream), f"{node.name} is no stream"
                at = [given.columns.index(name) for _, name in node.source]
                instant = node.instant is not None
                return [
                    (s, (*(row[i] for i in at), *([self.instant(s)] if instant else [])))
                    for s, row in given.rows
                    if self.start <= s <= last
                ]
            case RelationToStream():
                return self._to_stream(node, last)
            case Enrich():
                return self._enriched(node, last)
        below = Query(lambda n: self._stream_leaf(n, last), streamed=True).run(node)
        return [(row[-1], row[:-1]) for row in below]

    def _stream_leaf(self, node: Node, last: int) -> list[Row] | None:
        if isinstance(node, StreamScan | RelationToStream | Enrich):
            return [(*row, tick) for tick, row in self.elements(node, last)]
        if isinstance(node, Select | Project | UnionAll | Generate):
            return None
        raise TypeError(f"{type(node).__name__} is no stream")

    def instant(self, tick: int) -> Any:
        if self.time is None or self.time.kind == TimeKind.BIGINT:
            return tick
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=tick * self.time.chronon)

    def appearing(self, node: Node, tick: int) -> Counter[Row]:
        """Copies that are in a relation at ``tick`` because of elements of that very instant: every element counts
        once, whatever was there before.
        """
        if any(isinstance(n, Join) for n in node.walk()):  # pairs, of which one part may be older
            return Counter(self.contents(node, tick)) - Counter(self.before(node, tick))

        def arrived(window: Node) -> list[Row] | None:
            if not isinstance(window, Window):
                return None
            now = [(s, row) for s, row in self.elements(window.input, tick) if s == tick]
            return [row for s, row in now if isinstance(window.spec, w.TimeWindow) and _visible(window.spec, s, tick)]

        return Counter(Query(arrived).run(node))

    def before(self, node: Node, tick: int) -> list[Row]:
        return self.contents(node, tick - 1) if tick > self.start else []

    def _to_stream(self, node: RelationToStream, last: int) -> Elements:
        found: Elements = []
        for t in range(self.start, last + 1):
            if node.kind == "rstream":
                hop = node.every is None or (t - node.anchor) % node.every == 0
                rows = Counter(self.contents(node.input, t)) if hop else Counter()
            else:
                now, before = Counter(self.contents(node.input, t)), Counter(self.before(node.input, t))
                rows = now - before if node.kind == "istream" else before - now
            added = [self.instant(t)] if node.instant is not None else []
            found += [(t, (*row, *added)) for row in rows.elements()]
        return found

    def _enriched(self, node: Enrich, last: int) -> Elements:
        # the relation as it was before each element's instant
        found: Elements = []
        by_tick: dict[int, list[Row]] = {}
        for s, row in self.elements(node.stream, last):
            by_tick.setdefault(s, []).append(row)
        joined = Join(node.stream, node.relation, node.condition, node.kind)
        for s, rows in by_tick.items():
            sides = {id(node.stream): rows, id(node.relation): self.contents(node.relation, s - 1)}
            found += [(s, row) for row in Query(lambda n, sides=sides: sides.get(id(n))).run(joined)]
        return found

    def _window(self, node: Window, tau: int) -> list[Row]:
        arrived = self.elements(node.input, tau)
        spec = node.spec
        if isinstance(spec, w.Calendar):  # its bounds have a brute-force test of their own
            return [row for s, row in arrived if (i := spec.interval(s)) is not None and i[0] <= tau < i[1]]
        if isinstance(spec, w.TimeWindow):
            return [
                (*row, *(map(self.instant, bounds) if node.bounds else ()))
                for s, row in arrived
                if (bounds := _visible(spec, s, tau)) is not None
            ]
        groups = self._partitions(node, arrived)
        if isinstance(spec, w.Rows):
            return [row for group in groups for row in _last(spec, group, tau)]
        if isinstance(spec, w.Session):
            shown = []
            for first, past, row in (x for group in groups for x in _sessions(spec.gap, group, tau)):
                shown.append((*row, *(map(self.instant, (first, past)) if node.bounds else ())))
            return shown
        if isinstance(spec, w.When):
            return [row for group in groups for row in _bucket(group)]
        raise NotImplementedError(f"the plan oracle does not know {type(spec).__name__}")

    def _partitions(self, node: Window, arrived: Elements) -> list[list[_Arrival]]:
        """The elements of each partition in order of instant and ties, with the window's condition."""
        ids = _ids(node.input.columns)
        outputs = [(Column(f"__p{i}", ""), e) for i, e in enumerate(node.partition)]
        outputs += [(Column("__when", ""), node.condition)] if node.condition is not None else []
        known = [(c, Expr(f"`{c.id}`")) for c in node.input.columns]
        asked = Project(node.input, (*known, *outputs))
        rows = Query(lambda n: [(*r, s) for s, r in arrived] if n is node.input else None, streamed=True).run(asked)
        groups: dict[Row, list[_Arrival]] = {}
        size = len(ids)
        for row in rows:
            record = row[:size]
            ties = order_key(record[ids.index(i)] for i in node.ties)
            meets = node.condition is not None and bool(row[-2])
            arrival = _Arrival((row[-1], *ties, *order_key(record)), row[-1], record, meets)
            groups.setdefault(row[size : size + len(node.partition)], []).append(arrival)
        return [sorted(group, key=lambda a: a.place) for group in groups.values()]


@dataclass(frozen=True)
class _Arrival:
    place: tuple[Any, ...]
    tick: int
    row: Row
    meets: bool


def _last(spec: w.Rows, group: list[_Arrival], tau: int) -> list[Row]:
    count = len(group) - len(group) % spec.slide
    shown = group[max(0, count - spec.count) : count]
    return [a.row for a in shown if spec.length is None or tau < a.tick + spec.length]


def _sessions(gap: int, group: list[_Arrival], tau: int) -> list[tuple[int, int, Row]]:
    sessions: list[list[_Arrival]] = []
    for arrival in group:
        if sessions and arrival.tick - sessions[-1][-1].tick < gap:
            sessions[-1].append(arrival)
        else:
            sessions.append([arrival])
    return [
        (session[0].tick, session[-1].tick + gap, a.row)
        for session in sessions
        if session[-1].tick + gap - 1 == tau
        for a in session
    ]


def _bucket(group: list[_Arrival]) -> list[Row]:
    meeters = [i for i, a in enumerate(group) if a.meets]
    if not meeters:
        return []
    first = meeters[-2] + 1 if len(meeters) > 1 else 0
    return [a.row for a in group[first : meeters[-1] + 1]]


def _visible(spec: w.TimeWindow, s: int, tau: int) -> tuple[int, int] | None:
    """The bounds of the bucket through which an element of instant s shows at tau (of windows without buckets: any
    pair), or None.
    """
    match spec:
        case w.Unbounded():
            shown = s <= tau
        case w.Landmark():
            low = spec.start is None or spec.start <= s
            shown = s <= tau and low and (spec.end is None or s <= spec.end)
        case w.Range():
            shown = tau - spec.length < s <= tau
        case w.Slide():
            hop = tau - (tau - spec.anchor) % spec.slide
            shown = hop - spec.lag - spec.length < s <= hop - spec.lag
        case w.Fixed():
            first = s - (s - spec.anchor) % spec.length
            shown = s <= tau < first + spec.length
            return (first, first + spec.length) if shown else None
        case w.Hopping():
            latest = tau - spec.length + 1
            first = latest - (latest - spec.anchor) % spec.slide
            return (first, first + spec.length) if first <= s < first + spec.length else None
        case _:
            raise NotImplementedError(f"the plan oracle does not know {type(spec).__name__}")
    return (s, tau) if shown else None
