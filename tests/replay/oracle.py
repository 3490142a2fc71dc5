"""What a replay case must give, by brute force and by definition (Law S1). Shares no code with the engine.

At every instant from START to the last heartbeat the instantaneous inputs are built as semantics sections 1, 3 and 8
define them, and DuckDB evaluates the query's plain SQL on them. Istream and Dstream are bag differences of neighbouring
instants (section 5), also where a query nests them. Sums and averages are exact: DuckDB's are replaced by Python's.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

import duckdb

from tests.replay.oracle_arrivals import Element, Seen
from tests.replay.oracle_text import Item, Query, Translator, tokens_of
from tests.replay.values import CaseError, decode, duck_type, encode, iso, micros, order_key, plain

LIMIT = 1 << 62
MOST_INSTANTS = 5000


def _sum(numbers: list[float | None] | None) -> float | None:
    """The real sum, rounded once; NaN and infinities as IEEE adds them."""
    given = [x for x in numbers or () if x is not None]
    if not given:
        return None
    if not all(map(math.isfinite, given)):
        rest = {x for x in given if not math.isfinite(x)}
        return math.nan if len(rest) > 1 or any(map(math.isnan, rest)) else rest.pop()
    total = sum(map(Fraction, given))
    try:
        return total.numerator / total.denominator
    except OverflowError:
        return math.inf if total > 0 else -math.inf


# as text, since DuckDB takes a NaN from Python for a NULL


def _exact_sum(numbers: list[float | None] | None) -> str | None:
    total = _sum(numbers)
    return None if total is None else repr(total)


def _exact_average(numbers: list[float | None] | None) -> str | None:
    total = _sum(numbers)
    return None if total is None else repr(total / sum(x is not None for x in numbers or ()))


def _integer_average(numbers: list[int | None] | None) -> float | None:
    given = [x for x in numbers or () if x is not None]
    return float(sum(given)) / len(given) if given else None


def _decimal_average(numbers: list[Decimal | None] | None) -> Decimal | None:
    given = [x for x in numbers or () if x is not None]
    return (sum(given, Decimal(0)) / len(given)).quantize(Decimal("0.000001"), ROUND_HALF_UP) if given else None


def connect() -> duckdb.DuckDBPyConnection:
    """DuckDB with Spark's SUM and AVG. DECIMAL averages are those of DECIMAL(8,2)."""
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'; SET threads = 1")
    for function, argument, result in (
        (_exact_sum, "DOUBLE", "VARCHAR"),
        (_exact_average, "DOUBLE", "VARCHAR"),
        (_integer_average, "BIGINT", "DOUBLE"),
        (_decimal_average, "DECIMAL(8,2)", "DECIMAL(12,6)"),
    ):
        db.create_function(
            f"o{function.__name__}",
            function,
            [f"{argument}[]"],
            result,
            null_handling="special",  # type: ignore[arg-type]
        )
    db.execute(
        """CREATE MACRO sum(x DOUBLE) AS o_exact_sum(list(x))::DOUBLE,
                        (x BIGINT) AS system.main.sum(x)::BIGINT,
                        (x DECIMAL(8,2)) AS system.main.sum(x)::DECIMAL(18,2)"""
    )
    db.execute(
        """CREATE MACRO avg(x DOUBLE) AS o_exact_average(list(x))::DOUBLE,
                        (x BIGINT) AS o_integer_average(list(x)),
                        (x DECIMAL(8,2)) AS o_decimal_average(list(x))"""
    )
    return db


@dataclass
class Table:
    """Columns with DuckDB types, and rows. A stream's rows have ticks; a relation's are shown by instant."""

    columns: list[tuple[str, str]]
    rows: list[list[Any]] = field(default_factory=list)
    ticks: list[int] | None = None  # of a stream
    contents: dict[int, list[int]] = field(default_factory=dict)  # of a relation: instant -> row numbers
    sequence: int | None = None  # the number of a stream's SEQUENCE BY column


@dataclass
class History:
    """A relation: a bag per instant; ``rows`` gives the values of a record's key."""

    columns: list[tuple[str, str]]
    instants: range
    bags: list[Counter[tuple]]
    rows: dict[tuple, list[Any]]

    def repeated(self, every: int, anchor: int) -> list[tuple[int, tuple]]:
        """Rstream: at each instant ``anchor + k * every`` the whole bag."""
        bags = zip(self.instants, self.bags, strict=True)
        return [(t, key) for t, bag in bags if (t - anchor) % every == 0 for key in sorted(bag.elements())]

    def emitted(self, query: Query, streamer: str | None = None) -> list[tuple[int, tuple]]:
        """The stream of a query; ``streamer`` where the text has none."""
        kind = query.streamer or streamer or "ISTREAM"
        return self.repeated(query.every, query.anchor) if kind == "RSTREAM" else self.differences(kind)

    def differences(self, streamer: str) -> list[tuple[int, tuple]]:
        """Istream or Dstream as (instant, key), a key as often as it is emitted, in total order."""
        found, before = [], Counter()
        for instant, bag in zip(self.instants, self.bags, strict=True):
            gone = bag - before if streamer == "ISTREAM" else before - bag
            found += [(instant, key) for key in sorted(gone.elements())]
            before = bag
        return found

    def intervals(self) -> list[tuple[int, int | None, tuple]]:
        """The canonical relation: per record and k the maximal intervals in which it occurs at least k times."""
        found = []
        for key in self.rows:
            for k in range(1, max((bag[key] for bag in self.bags), default=0) + 1):
                since = None
                for instant, bag in zip(self.instants, self.bags, strict=True):
                    if bag[key] >= k and since is None:
                        since = instant
                    elif bag[key] < k and since is not None:
                        found.append((since, instant, key))
                        since = None
                if since is not None:
                    found.append((since, None, key))
        return sorted(found, key=lambda f: (f[0], math.inf if f[1] is None else f[1], f[2]))


class Oracle:
    """``grain``: look only at every so many ticks, where the case cannot change in between."""

    def __init__(self, case: dict[str, Any], grain: int = 1) -> None:
        self.case, self.grain = case, grain
        self.timestamps = str(case.get("time", "BIGINT")).upper() == "TIMESTAMP"
        self.start = self.tick(case.get("start_at", 0))
        self.tables: dict[str, Table] = {}
        self.ends: dict[str, int] = {}
        self.used = 0
        for name, spec in (case.get("streams") or {}).items():
            self._stream(name, spec)
        for name, spec in (case.get("relations") or {}).items():
            self._relation(name, spec)

    @functools.cached_property
    def db(self) -> duckdb.DuckDBPyConnection:
        """Made when it is asked for: some want of an oracle only what a tick is."""
        return connect()

    def tick(self, given: Any) -> int:
        return micros(given) if isinstance(given, str) and self.timestamps else int(given)

    def instants(self, end: int) -> range:
        instants = range(self.start, end + 1, self.grain)
        if len(instants) > MOST_INSTANTS:
            raise ValueError(f"{len(instants)} instants are too many to try each of them")
        return instants

    # -- inputs --------------------------------------------------------------------------------------------------------

    def _heartbeats(self, name: str) -> list[int | None]:
        given = self.case["heartbeats"]
        steps = given.get(name, []) if isinstance(given, dict) else given
        beats = [None if h is None else self.tick(h) for h in steps]
        known = [b for b in beats if b is not None]
        if known != sorted(known):
            raise CaseError("a heartbeat goes back")
        self.ends[name.lower()] = known[-1] if known else -LIMIT - 1
        return beats

    def _stream(self, name: str, spec: dict[str, Any]) -> None:
        beats = self._heartbeats(name)
        rows = [(self.tick(t), values) for t, values in spec.get("rows", []) if t is not None]
        for after, t, values in spec.get("arrivals", []):
            stands = max((b for b in beats[:after] if b is not None), default=-LIMIT - 1)
            if t is not None and self.tick(t) > stands:
                rows.append((self.tick(t), values))
        rows = [r for r in rows if self.start <= r[0] <= self.ends[name.lower()] and abs(r[0]) <= LIMIT]
        types = list(spec["columns"].values())
        self.tables[name.lower()] = Table(
            [(column, duck_type(ddl)) for column, ddl in spec["columns"].items()],
            [[decode(v, ddl) for v, ddl in zip(values, types, strict=True)] for _, values in rows],
            [tick for tick, _ in rows],
            sequence=list(spec["columns"]).index(spec["sequence_by"]) if spec.get("sequence_by") else None,
        )

    def _relation(self, name: str, spec: dict[str, Any]) -> None:
        self._heartbeats(name)
        end, types = self.ends[name.lower()], list(spec["columns"].values())
        table = Table([(column, duck_type(ddl)) for column, ddl in spec["columns"].items()])
        numbers: dict[tuple, int] = {}
        changes: dict[int, Counter[int]] = {}
        for t, sign, values in spec.get("changes", []):
            if t is None or abs(self.tick(t)) > LIMIT:
                continue
            row = [decode(v, ddl) for v, ddl in zip(values, types, strict=True)]
            number = numbers.setdefault(_key(row, table.columns), len(table.rows))
            if number == len(table.rows):
                table.rows.append(row)
            changes.setdefault(self.tick(t), Counter())[number] += 1 if sign == "+" else -1
        bag: Counter[int] = Counter()
        instants = sorted(t for t in changes if t <= end)
        for t in instants:
            bag.update(changes[t])
            if min(bag.values()) < 0:
                raise CaseError(f"{name}: net below zero at {t}")
        for tau in self.instants(end):
            at = Counter()
            for t in instants:
                if t <= tau:
                    at.update(changes[t])
            table.contents[tau] = sorted(at.elements())
        self.tables[name.lower()] = table

    # -- queries -------------------------------------------------------------------------------------------------------

    def history(self, query: Query, end: int) -> History:
        """The query's instantaneous relation at every instant of [start, end]."""
        shown: list[dict[int, list[int]]] = []
        for item in query.items:
            table = self.tables[item.source] if isinstance(item.source, str) else self._nested(item.source, end)
            columns, rows = table.columns, table.rows
            if item.with_ts and table.ticks is not None:
                columns = [*columns, ("ts", "TIMESTAMPTZ" if self.timestamps else "BIGINT")]
                rows = [
                    [*row, decode(iso(t), "timestamp") if self.timestamps else t]
                    for row, t in zip(rows, table.ticks, strict=True)
                ]
            if table.ticks is None:
                self._create(item.table, columns, rows)
                shown.append(table.contents)
                continue
            seen = self._windowed(item, table, end)
            if item.bounds:  # a row for each element and bucket
                kind = "TIMESTAMPTZ" if self.timestamps else "BIGINT"
                columns = [*columns, ("__start", kind), ("__end", kind)]
                places = {key: i for i, key in enumerate(sorted({key for keys in seen.values() for key in keys}))}
                rows = [[*rows[i], self._moment(start), self._moment(stop)] for i, start, stop in places]
                shown.append({tau: sorted(places[key] for key in keys) for tau, keys in seen.items()})
            else:
                shown.append({tau: sorted(i for i, _, _ in keys) for tau, keys in seen.items()})
            self._create(item.table, columns, rows)
        return self._evaluate(query, shown, end)

    def _moment(self, tick: int | None) -> Any:
        return decode(iso(tick), "timestamp") if self.timestamps and tick is not None else tick

    def _windowed(self, item: Item, table: Table, end: int) -> dict[int, list[Seen]]:
        """What the item's window shows at every instant."""
        ticks, window = table.ticks or [], item.window
        computed = [*window.partition, *([f"coalesce({window.condition}, FALSE)"] if window.condition else [])]
        values: list[list[Any]] = [[] for _ in ticks]
        if computed and ticks:
            columns = ", ".join(f'"{column}" {kind}' for column, kind in table.columns)
            self.db.execute(f"CREATE OR REPLACE TABLE elements (__row BIGINT, {columns})")
            for i, row in enumerate(table.rows):
                self.db.execute(f"INSERT INTO elements VALUES (?{', ?' * len(row)})", [i, *row])
            text = ", ".join(computed).replace("`", '"')
            values = [list(v) for v in self.db.execute(f"SELECT {text} FROM elements ORDER BY __row").fetchall()]
        sequence = [[row[table.sequence]] for row in table.rows] if table.sequence is not None else [[]] * len(ticks)
        width = len(window.partition)
        elements = [
            Element(
                i, s, (*order_key(first), *_key(row, table.columns)), order_key(v[:width]), bool(v[width:] and v[width])
            )
            for i, (s, row, first, v) in enumerate(zip(ticks, table.rows, sequence, values, strict=True))
        ]
        return {tau: window.show(elements, tau) for tau in self.instants(end)}

    def _create(self, name: str, columns: list[tuple[str, str]], rows: list[list[Any]]) -> None:
        """The table ``all_<name>`` of all rows, ``shown_<name>`` of row numbers, and their join as view ``name``."""
        declared = ", ".join(f'"{column}" {kind}' for column, kind in columns)
        self.db.execute(f"CREATE OR REPLACE TABLE all_{name} (__row BIGINT{', ' * bool(columns)}{declared})")
        self.db.execute(f"CREATE OR REPLACE TABLE shown_{name} (__row BIGINT)")
        for i, row in enumerate(rows):
            self.db.execute(f"INSERT INTO all_{name} VALUES (?{', ?' * len(row)})", [i, *row])
        self.db.execute(
            f"CREATE OR REPLACE VIEW {name} AS SELECT * EXCLUDE (__row) FROM all_{name} JOIN shown_{name} USING (__row)"
        )

    def _evaluate(self, query: Query, shown: list[dict[int, list[int]]], end: int) -> History:
        relation = self.db.execute(f"DESCRIBE {query.sql}").fetchall()
        columns = _labels([(name, kind) for name, kind, *_ in relation])
        rows: dict[tuple, list[Any]] = {}
        bags: list[Counter[tuple]] = []
        known: dict[tuple, Counter[tuple]] = {}
        for tau in self.instants(end):
            contents = tuple(tuple(s[tau]) for s in shown)
            if contents not in known:  # equal inputs give equal results: nothing else may depend on tau
                for item, numbers in zip(query.items, contents, strict=True):
                    self.db.execute(f"DELETE FROM shown_{item.table}")
                    if numbers:
                        values = ", ".join(f"({n})" for n in numbers)
                        self.db.execute(f"INSERT INTO shown_{item.table} VALUES {values}")
                found = self.db.execute(query.sql).fetchall()
                keys = [_key(row, columns) for row in found]
                rows.update(zip(keys, map(list, found), strict=True))
                known[contents] = Counter(keys)
            bags.append(known[contents])
        return History(columns, self.instants(end), bags, rows)

    def _nested(self, query: Query, end: int) -> Table:
        history = self.history(query, end)
        emitted = history.emitted(query)
        return Table(history.columns, [history.rows[key] for _, key in emitted], [t for t, _ in emitted])

    def _end(self, query: Query) -> int:
        """The least of the heartbeats of all inputs that the query reads, however deep."""
        ends = [self.ends[i.source] if isinstance(i.source, str) else self._end(i.source) for i in query.items]
        return min(ends, default=-LIMIT)

    def result(self) -> dict[str, Any]:
        """The result line that replay must give, without name and quarantine."""
        inclusive = (self.case.get("settings") or {}).get("range_bounds", "inclusive") != "exclusive"
        relations = {r.lower() for r in self.case.get("relations") or {}}
        translator = Translator(set(self.tables), inclusive)
        for step in [*(self.case.get("queries") or []), {"name": "", "query": self.case["query"]}]:
            query = translator.query(tokens_of(step["query"]))
            end = self._end(query)
            history = self.history(query, end)
            streamer = query.streamer or ("ISTREAM" if query.monotonic(relations) else None)
            name = step["name"].lower()
            if not name:
                return self._shown(history, streamer, query)
            self.ends[name] = end
            self.tables[name] = self._derived(history, history.emitted(query, streamer) if streamer else None)
            self.tables[f"{name}__istream"] = self._derived(history, history.differences("ISTREAM"))
            self.tables[f"{name}__dstream"] = self._derived(history, history.differences("DSTREAM"))
            for what in ("istream", "dstream"):
                self.ends[f"{name}__{what}"] = end
            translator.names = set(self.tables)
            if not streamer:
                relations.add(name)
        raise AssertionError("unreachable")

    @staticmethod
    def _derived(history: History, emitted: list[tuple[int, tuple]] | None) -> Table:
        if emitted is not None:
            return Table(history.columns, [history.rows[key] for _, key in emitted], [t for t, _ in emitted])
        keys = list(history.rows)
        place = {key: i for i, key in enumerate(keys)}
        bags = zip(history.instants, history.bags, strict=True)
        contents = {instant: [place[k] for k in bag.elements()] for instant, bag in bags}
        return Table(history.columns, [history.rows[key] for key in keys], None, contents)

    def _shown(self, history: History, streamer: str | None, query: Query) -> dict[str, Any]:
        kinds = [kind for _, kind in history.columns]
        values = {k: [encode(v, kind) for v, kind in zip(row, kinds, strict=True)] for k, row in history.rows.items()}

        def at(tick: int | None) -> Any:
            return iso(tick) if tick is not None and self.timestamps else tick

        shown: dict[str, Any] = {"columns": [name for name, _ in history.columns]}
        for streamer_ in ("ISTREAM", "DSTREAM"):
            shown[streamer_.lower()] = [[at(t), values[key]] for t, key in history.differences(streamer_)]
        shown["relation"] = [[at(ts), at(te), values[key]] for ts, te, key in history.intervals()]
        if streamer:
            shown["stream"] = [[at(t), values[key]] for t, key in history.emitted(query, streamer)]
        if asked := self.case.get("rstream"):
            every, anchor = int(asked.get("every", 1)), self.tick(asked.get("anchor", 0))
            shown["rstream"] = [[at(t), values[key]] for t, key in history.repeated(every, anchor)]
        return shown


def _key(row: Sequence[Any], columns: list[tuple[str, str]]) -> tuple:
    """One key per record of the total order; of a map, the entries in order of their keys."""
    return tuple(order_key(plain(value, kind)) for value, (_, kind) in zip(row, columns, strict=True))


def _labels(columns: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Repeated output names become ``a``, ``a_2``, .."""
    seen: Counter[str] = Counter()
    found = []
    for name, kind in columns:
        seen[name] += 1
        found.append((name if seen[name] == 1 else f"{name}_{seen[name]}", kind))
    return found


def expected(case: dict[str, Any], grain: int = 1) -> dict[str, Any]:
    """The result line of a case: the tables, or ``{"error": {"type": "DataError"}}``."""
    try:
        return Oracle(case, grain).result()
    except (CaseError, duckdb.OutOfRangeException, duckdb.ConversionException):
        return {"error": {"type": "DataError"}}
    except duckdb.InvalidInputException as error:
        if "More than one row returned by a subquery" not in str(error):
            raise
        return {"error": {"type": "DataError"}}
