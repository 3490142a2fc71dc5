"""Random replay cases: streams with ties, NULLs and hostile values, windows, queries, relations that change, slicings.

All chance comes from the ``random.Random`` that is handed in: a seed gives a case, Hypothesis' own Random shrinks one.
Simple alternatives stand first in every choice, since that is where shrinking leads.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.replay.oracle_text import Translator, tokens_of
from tests.replay.slicing import slicing
from tests.replay.values import iso

VALUES: dict[str, list[Any]] = {
    "int": [1, 2, 0, None, 3, -1],
    "double": [1.0, 0.1, None, 2.5, 0.0, -0.0, 1e16, -1e16, 0.3, "NaN", "Infinity", "-Infinity", 1e-300, 1e300],
    "string": ["a", "b", None, "", "B", "é", "😀", "ﬁ", "a b", "'"],
    "decimal(8,2)": ["1.00", "2.50", None, "-0.01", "999999.99", "0.10"],
    "bigint": [1, 2, None, "9007199254740993", -5, 0],
    "boolean": [True, False, None],
    "date": ["2013-01-01", "1969-12-31", None, "2024-02-29"],
    "timestamp": ["2013-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", None, "2013-01-01T00:00:00.000001Z"],
    "timestamp_ntz": ["2013-01-01T00:00:00", None, "2013-06-01T12:30:00.5"],
    "binary": ["", "AQ==", None, "/w==", "AQA="],
    "array<int>": [[1], [], None, [1, 2], [None], [2]],
    "array<double>": [[0.0], [-0.0], None, ["NaN"], [1.0, None]],
    "struct<x:int,y:double>": [[1, 0.0], [1, -0.0], None, [None, "NaN"], [2, None]],
}
NUMBERS = ("int", "double", "bigint", "decimal(8,2)")
WINDOWS = (
    *("range", "", "now", "range", "slide", "tumbling", "hopping", "fixed", "landmark", "unbounded"),
    *("rows", "rows", "partitioned", "partitioned", "session", "when"),
)
JOINS = (
    *("comma", "JOIN", "CROSS JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"),
    *("LEFT SEMI JOIN", "LEFT ANTI JOIN"),
)
STRATEGIES = ("upa", "direct", "negative")
SETS = ("UNION", "EXCEPT", "INTERSECT")
SCALARS = (*NUMBERS, "string", "boolean", "date", "timestamp", "timestamp_ntz", "binary")


@dataclass(frozen=True)
class Column:
    """How an expression is written, and its type; ``opaque``: a type that is only passed on and counted."""

    text: str
    type: str


def _some(rng: random.Random, choices: Sequence[Any], most: int) -> list[Any]:
    return [rng.choice(choices) for _ in range(rng.randint(1, most))]


class Generator:
    """One case. ``rows``: at most so many a stream."""

    def __init__(self, rng: random.Random, rows: int = 12) -> None:
        self.rng, self.rows = rng, rows
        self.timestamps = self.chance(0.15)
        self.start = rng.choice([0, 0, 3, -7])
        self.end = self.start + rng.randint(1, 22)
        self.streams: dict[str, dict[str, str]] = {}
        self.relations: dict[str, dict[str, str]] = {}
        self.pools: dict[str, list[Any]] = {}
        self.aliases = 0
        self.inclusive = True

    def chance(self, likelihood: float) -> bool:
        return self.rng.random() > 1 - likelihood

    def instant(self, tick: int) -> Any:
        return iso(tick) if self.timestamps else tick

    # -- inputs --------------------------------------------------------------------------------------------------------

    def case(self) -> dict[str, Any]:
        rng = self.rng
        case: dict[str, Any] = {"streams": {}, "query": ""}
        for name in ("S", "T")[: rng.choice([1, 1, 2])]:
            self.streams[name] = self._columns()
            rows = [
                [self.instant(self._tick()), self._record(self.streams[name])]
                for _ in range(rng.choice([self.rows, rng.randint(0, self.rows)]))
            ]
            if rows and self.chance(0.1):
                rows.append([None, rows[0][1]])
            case["streams"][name] = {"columns": self.streams[name], "rows": rows}
            if self.chance(0.1):
                case["streams"][name]["sequence_by"] = rng.choice(list(self.streams[name]))
        if self.chance(0.3):
            self.relations["R"] = self._columns()
            case["relations"] = {"R": {"columns": self.relations["R"], "changes": self._changes(self.relations["R"])}}
        if self.start or self.timestamps:
            case["start_at"] = self.instant(self.start)
        if self.timestamps:
            case["time"] = "TIMESTAMP"
        if self.chance(0.1):
            case["settings"] = {"range_bounds": "exclusive"}
            self.inclusive = False
        case["strategy"] = rng.choice(STRATEGIES)
        if self.chance(0.2):
            text, columns, streams = self._step()
            case["queries"] = [{"name": "q1", "query": text}]
            (self.streams if streams else self.relations)["q1"] = columns
        case["query"] = self.query(2)[0]
        if self.chance(0.15):
            case["rstream"] = {"every": rng.randint(1, 6), "anchor": rng.randint(-3, 9)}
        names = [*case["streams"], *case.get("relations", ())]
        apart = self.chance(0.1)
        ends = {name: self.end + (rng.choice([0, 0, 2]) if apart else 0) for name in names}
        case["heartbeats"] = slicing(rng, self.start, ends, self.timestamps)
        return case

    def _step(self) -> tuple[str, dict[str, str], bool]:
        """A query that another one reads: its text, columns, and whether it is a stream."""
        while True:
            text, columns = self.query(1)
            relations = {name.lower() for name in self.relations}
            read = Translator({n.lower() for n in (*self.streams, *self.relations)}, True).query(tokens_of(text))
            streams = bool(read.streamer) or read.monotonic(relations)
            return text, {c.text: c.type for c in columns}, streams

    def _columns(self) -> dict[str, str]:
        rng = self.rng
        columns = {"k": "int", "v": rng.choice(["int", "double", "double", "decimal(8,2)", "bigint", "string"])}
        if self.chance(0.4):
            columns["x"] = rng.choice(list(VALUES))
        if self.chance(0.1):
            columns["odd name"] = rng.choice(["int", "double"])
        return columns

    def _tick(self) -> int:
        return self.rng.randint(self.start - 3, self.end + 2)

    def _record(self, columns: dict[str, str]) -> list[Any]:
        # few different values, else nothing ever meets
        return [self.rng.choice(self.pool(kind)) for kind in columns.values()]

    def pool(self, kind: str) -> list[Any]:
        """The values of a type that this case uses."""
        if kind not in self.pools:
            offset = self.rng.choice([0, *[self.rng.randint(0, len(VALUES[kind]) - 1)] * 2])
            self.pools[kind] = (VALUES[kind][offset:] + VALUES[kind][:offset])[: self.rng.choice([3, 2, 4, 8])]
        return self.pools[kind]

    def _changes(self, columns: dict[str, str]) -> list[list[Any]]:
        live: list[list[Any]] = []
        changes: list[list[Any]] = []
        for tick in sorted(self.rng.randint(self.start - 5, self.end + 1) for _ in range(self.rng.randint(0, 8))):
            if live and self.chance(0.4):
                record = live.pop(self.rng.randint(0, len(live) - 1))
                changes.append([self.instant(tick), "-", record])
            else:
                record = self._record(columns)
                live.append(record)
                changes.append([self.instant(tick), "+", record])
        self.rng.shuffle(changes)
        return changes

    # -- windows -------------------------------------------------------------------------------------------------------

    def _partition(self, columns: Sequence[Column]) -> str:
        usable = [c for c in columns if c.type in SCALARS]
        if not usable:
            return ""
        return f"Partition By {', '.join(dict.fromkeys(c.text for c in _some(self.rng, usable, 2)))}"

    def _length(self, least: int = 1) -> str:
        ticks = self.rng.randint(least, 7)
        if not self.timestamps:
            return str(ticks)
        return self.rng.choice(
            [f"{ticks} Microseconds", f"INTERVAL {ticks} MICROSECONDS", f"INTERVAL '{ticks}' MICROSECOND"]
        )

    def _moment(self, tick: int | None = None) -> str:
        if tick is None:
            tick = self.rng.randint(self.start - 2, self.end)
        return f"TIMESTAMP '{iso(tick)}'" if self.timestamps else str(tick)

    def _anchor(self) -> str:
        if not self.chance(0.3):
            return ""
        return f" Anchor {self._moment()}"

    def window(self, columns: Sequence[Column] = ()) -> str:
        """The text of a window over a stream with these columns, named without a qualifier."""
        rng = self.rng
        kind = rng.choice(WINDOWS)
        match kind:
            case "rows":
                return f"[Rows {rng.randint(1, 5)}{f' Slide {rng.randint(1, 4)}' if self.chance(0.3) else ''}]"
            case "partitioned":
                length = f" Range {self._length()}{rng.choice(['', ' Exclusive'])}" if self.chance(0.3) else ""
                partition = self._partition(columns)
                return f"[{partition and partition + ' '}Rows {rng.randint(1, 3)}{length if partition else ''}]"
            case "session":
                partition = self._partition(columns) if self.chance(0.5) else ""
                return f"[Session {self._length()}{partition and ' ' + partition}]"
            case "when":
                usable = [c for c in columns if c.type != "opaque"]
                if not usable:
                    return "[Rows 2]"
                partition = self._partition(columns) if self.chance(0.5) else ""
                return f"[Tumbling When ({self.predicate(usable, 0)}){partition and ' ' + partition}]"
            case "range":
                bounds = rng.choice(["", " Inclusive", " Exclusive"])
                return f"[Range {self._length()}{bounds}]"
            case "now":
                return "[Now]"
            case "slide":
                inclusive = " Inclusive" if self.chance(0.2) else ""
                slide = f" Slide {self._length()}" if self.chance(0.8) else ""
                lag = f" Lag {self._length()}" if self.chance(0.3) or not slide else ""
                anchor = self._anchor() if slide else ""
                return f"[Range {self._length()}{inclusive}{slide}{lag}{anchor}]"
            case "tumbling":
                return f"[Tumbling {self._length()}{self._anchor()}]"
            case "hopping":
                return f"[Hopping {self._length()} Slide {self._length()}{self._anchor()}]"
            case "fixed":
                return f"[Fixed {self._length()}{self._anchor()}]"
            case "landmark":
                first, last = rng.choice([(True, False), (False, True), (True, True)])
                if first and last:
                    a, b = sorted(rng.randint(self.start - 2, self.end) for _ in range(2))
                    return f"[From {self._moment(a)} Until {self._moment(b)}]"
                return f"[From {self._moment()}]" if first else f"[Until {self._moment()}]"
            case "unbounded":
                return rng.choice(["[Range Unbounded]", "[Rows Unbounded]"])
        return ""

    # -- expressions ---------------------------------------------------------------------------------------------------

    def scalar(self, columns: Sequence[Column]) -> Column:
        column = self.rng.choice(columns)
        if not self.chance(0.4):
            return column
        c = column.text
        match column.type:
            case "int" | "bigint":
                form = self.rng.choice(
                    [
                        "{} + 1",
                        "{} * 2",
                        "{} % 3",
                        "- {}",
                        "abs({})",
                        "coalesce({}, 0)",
                        "CASE WHEN {} > 1 THEN {} ELSE 0 END",
                    ]
                )
                kind = column.type
            case "double":
                form = self.rng.choice(
                    ["{} * 0.5e0", "{} + 1e0", "coalesce({}, 0e0)", "- {}", "abs({})", "CASE WHEN {} > 1e0 THEN {} END"]
                )
                kind = "double"
            case "string":
                form, kind = self.rng.choice(
                    [
                        ("{} || 'x'", "string"),
                        ("length({})", "int"),
                        ("coalesce({}, '')", "string"),
                        ("substr({}, 1, 1)", "string"),
                        ("CASE WHEN {} IN ('a', 'b') THEN {} ELSE '?' END", "string"),
                    ]
                )
            case "boolean":
                form, kind = self.rng.choice(["NOT {}", "coalesce({}, FALSE)"]), "boolean"
            case _:
                return column
        return Column(f"({form.replace('{}', c)})", kind)

    def literal(self, kind: str) -> str:
        rng = self.rng
        match kind:
            case "int" | "bigint":
                return str(rng.randint(0, 3))
            case "double":
                return rng.choice(["1e0", "0.1e0", "0e0", "1e16", "CAST('NaN' AS DOUBLE)"])
            case "string":
                return rng.choice(["'a'", "'b'", "''", "'é'"])
            case "decimal(8,2)":
                return rng.choice(["1.00", "2.5", "0"])
            case "boolean":
                return rng.choice(["TRUE", "FALSE"])
            case "date":
                return "DATE '2013-01-01'"
            case "timestamp":
                return "TIMESTAMP '2013-01-01 00:00:00Z'"
            case _:
                return "NULL"

    def predicate(self, columns: Sequence[Column], depth: int = 1) -> str:
        rng = self.rng
        if depth and self.chance(0.25):
            form = rng.choice(["({} AND {})", "({} OR {})", "NOT ({})"])
            return form.format(*(self.predicate(columns, depth - 1) for _ in range(form.count("{}"))))
        column = self.scalar(columns)
        literal = self.literal(column.type)
        same = [c for c in columns if c.type == column.type and c.text != column.text]
        if literal == "NULL" or self.chance(0.15):
            return f"{column.text} IS {rng.choice(['NOT ', ''])}NULL"
        if same and self.chance(0.3):
            return f"{column.text} {rng.choice(['=', '<', '<=>'])} {rng.choice(same).text}"
        if column.type != "boolean" and self.chance(0.2):
            return f"{column.text} IN ({literal}, {self.literal(column.type)})"
        return f"{column.text} {rng.choice(['=', '>', '<=', '<>', '<=>'])} {literal}"

    def aggregate(self, columns: Sequence[Column]) -> Column:
        rng = self.rng
        function = rng.choice(["COUNT(*)", "SUM", "AVG", "MIN", "MAX", "COUNT"])
        if function == "COUNT(*)":
            return Column(function, "bigint")
        if function in ("SUM", "AVG"):
            numbers = [c for c in columns if c.type in NUMBERS]
            if not numbers:
                return Column("COUNT(*)", "bigint")
            argument = self.scalar(numbers)
            if argument.type in ("int", "bigint"):
                return Column(f"{function}({argument.text})", "bigint" if function == "SUM" else "double")
            return Column(f"{function}({argument.text})", "double" if argument.type == "double" else "opaque")
        argument = self.scalar(columns)
        if function == "COUNT":
            return Column(f"COUNT({argument.text})", "bigint")
        if argument.type not in SCALARS:
            return Column(f"COUNT({argument.text})", "bigint")
        return Column(f"{function}({argument.text})", argument.type)

    # -- queries -------------------------------------------------------------------------------------------------------

    def alias(self) -> str:
        self.aliases += 1
        return f"t{self.aliases}"

    def _streamed(self, text: str, kind: str) -> str:
        every = ""
        if kind == "RSTREAM" and (self.timestamps or self.chance(0.7)):  # a microsecond is too short a tick without
            every = f" EVERY {self._length()}"
            if self.chance(0.3):
                every += f" ANCHOR {self._moment()}"
        return f"{kind}({text}{every})"

    def item(self, depth: int) -> tuple[str, list[Column]]:
        """A FROM item and its columns."""
        rng = self.rng
        alias = self.alias()
        kind = rng.choice(["stream", "stream", "stream", "stream", "relation", "relation", "subquery", "nested"])
        if kind == "subquery" and depth:
            text, columns = self.select(depth - 1)
            return f"({text}) AS {alias}", _qualified(alias, columns)
        if kind == "nested" and depth:
            text, columns = self.select(depth - 1)
            text = self._streamed(text, rng.choice(["ISTREAM", "DSTREAM", "RSTREAM"]))
            return f"({text}) {self.window(columns)} AS {alias}", _qualified(alias, columns)
        if kind == "relation" and self.relations:
            name = rng.choice(list(self.relations))
            return f"{name} AS {alias}", [Column(f"{alias}.{_quote(c)}", t) for c, t in self.relations[name].items()]
        name = rng.choice(list(self.streams) or list(self.relations))
        source = self.streams.get(name) or self.relations[name]
        window = self.window([Column(_quote(c), t) for c, t in source.items()]) if name in self.streams else ""
        text = rng.choice([f"{name} {window} AS {alias}", f"{name} AS {alias} {window}", f"{name} {window} {alias}"])
        columns = [Column(f"{alias}.{_quote(c)}", t) for c, t in source.items()]
        if window.startswith(("[Tumbling", "[Hopping", "[Fixed", "[Session")) and " When " not in window:
            for bound in ("START", "END"):
                if self.chance(0.3):
                    columns.append(Column(f"WINDOW_{bound}({alias})", "timestamp" if self.timestamps else "bigint"))
        if name in self.streams and self.chance(0.1):
            columns.append(Column(f"{alias}.ts", "timestamp" if self.timestamps else "bigint"))
        return text, columns

    def sources(self, depth: int) -> tuple[str, list[Column], list[str]]:
        """A FROM clause, its columns, and conditions for WHERE."""
        text, columns = self.item(depth)
        joined = columns  # what ON may see: a comma ends the scope
        conditions: list[str] = []
        for _ in range(self.rng.choice([0, 0, 0, 0, 1, 1, 1, 2])):
            other, more = self.item(depth)
            form = self.rng.choice(JOINS)
            condition = self._join(columns if form == "comma" else joined, more)
            if form == "comma":
                text += f", {other}"
                conditions.append(condition)
            elif form == "CROSS JOIN":
                text += f" CROSS JOIN {other}"
            else:
                usable = [c for c in [*joined, *more] if c.type != "opaque"]
                if usable and self.chance(0.15):
                    condition += f" AND {self.predicate(usable, 0)}"
                text += f" {form} {other} ON {condition}"
            if "SEMI" in form or "ANTI" in form:
                continue
            joined = more if form == "comma" else [*joined, *more]
            columns = [*columns, *more]
        return text, columns, conditions

    def _join(self, left: Sequence[Column], right: Sequence[Column]) -> str:
        pairs = [(a, b) for a in left for b in right if a.type == b.type and a.type in SCALARS]
        if not pairs:
            return "TRUE"
        parts = []
        for _ in range(self.rng.choice([1, 1, 2])):
            a, b = self.rng.choice(pairs)
            parts.append(f"{a.text} {self.rng.choice(['=', '=', '=', '<=>', '<', '<>'])} {b.text}")
        return " AND ".join(parts)

    def subquery(self, outer: Sequence[Column]) -> str:
        """A condition with a subquery, most often one that reads columns of the query around it."""
        rng = self.rng
        source, columns = self.item(0)
        conditions = [self._join(outer, columns)] if self.chance(0.6) else []
        if self.chance(0.3):
            conditions.append(self.predicate(columns, 0))
        rest = f" FROM {source}" + (f" WHERE {' AND '.join(conditions)}" if conditions else "")
        pairs = [(a, b) for a in outer for b in columns if a.type == b.type and a.type in SCALARS]
        kind = rng.choice(["EXISTS", "IN", "NOT EXISTS", "NOT IN", "value"])
        if kind == "value" or (pairs and kind.endswith("IN")):
            if not pairs:
                return f"(SELECT COUNT(*){rest}) {rng.choice(['=', '>', '<='])} {rng.randint(0, 2)}"
            mine, theirs = rng.choice(pairs)
            if kind == "value":
                extreme = f"{rng.choice(['MIN', 'MAX'])}({theirs.text})"
                return f"{mine.text} {rng.choice(['=', '<', '>='])} (SELECT {extreme}{rest})"
            found = f"{mine.text} {kind} (SELECT {theirs.text}{rest})"
        else:
            found = f"{'NOT ' * kind.startswith('NOT')}EXISTS (SELECT 1{rest})"
        return found if self.chance(0.8) else f"({self.predicate(outer, 0)} OR {found})"

    def value(self, outer: Sequence[Column]) -> Column:
        """A scalar subquery."""
        source, columns = self.item(0)
        where = f" WHERE {self._join(outer, columns)}" if outer and self.chance(0.6) else ""
        inner = self.aggregate([c for c in columns if c.type != "opaque"])
        if self.streams and self.chance(0.3):  # never more than one row
            name, alias = self.rng.choice(list(self.streams)), self.alias()
            source, column = f"{name} [Rows 1] AS {alias}", self.rng.choice(list(self.streams[name].items()))
            inner, where = Column(f"{alias}.{_quote(column[0])}", column[1]), ""
        return Column(f"(SELECT {inner.text} FROM {source}{where})", inner.type)

    def select(self, depth: int) -> tuple[str, list[Column]]:
        """One SELECT or a UNION, EXCEPT or INTERSECT of two, and its output columns (unqualified)."""
        rng = self.rng
        if depth and self.chance(0.2):
            left, columns = self.branch(depth - 1)
            for _ in range(20):
                right, others = self.branch(depth - 1)
                if [c.type for c in columns] == [c.type for c in others]:
                    return f"{left} {rng.choice(SETS)}{rng.choice([' ALL', ''])} {right}", columns
            return left, columns
        return self.branch(depth)

    def branch(self, depth: int) -> tuple[str, list[Column]]:
        rng = self.rng
        source, columns, conditions = self.sources(depth)
        if self.chance(0.25):
            conditions.append(self.predicate(columns))
        outer = [c for c in columns if c.type in SCALARS and not c.text.endswith((".ts", ")"))]
        if outer and self.chance(0.15):
            conditions.append(self.subquery(outer))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        shape = rng.choice(["plain", "group", "group", "global", "distinct"])
        usable = [c for c in columns if c.type != "opaque"]
        tail = ""
        if (
            shape == "plain"
            and self.chance(0.15)
            and not any(c.text.endswith((".ts", ")")) for c in columns)
            and len({_plain(c) for c in columns}) == len(columns)
        ):
            return f"SELECT * FROM {source}{where}", [Column(_plain(c), c.type) for c in columns]
        if shape in ("group", "global") and usable:
            keys = (
                [] if shape == "global" else list(dict.fromkeys(self.scalar(usable) for _ in range(rng.randint(1, 2))))
            )
            calls = [self.aggregate(usable) for _ in range(rng.randint(1, 3))]
            items = [*(keys if self.chance(0.9) else []), *calls]
            if self.chance(0.15):
                items.append(Column("COUNT(*) + 1", "bigint"))
            if keys:
                tail = f" GROUP BY {', '.join(k.text for k in keys)}"
            if self.chance(0.2):
                tail += f" HAVING {self.predicate([Column(c.text, c.type) for c in calls], 0)}"
        else:
            items = [self.scalar(columns) for _ in range(rng.randint(1, 3))]
            if self.chance(0.1):
                items.append(self.value(outer))
        distinct = "DISTINCT " if shape == "distinct" else ""
        named = [Column(f"c{i}", c.type) for i, c in enumerate(items)]
        listed = ", ".join(f"{c.text} AS c{i}" for i, c in enumerate(items))
        return f"SELECT {distinct}{listed} FROM {source}{where}{tail}", named

    def query(self, depth: int) -> tuple[str, list[Column]]:
        """A whole query, maybe a stream, maybe with a CTE."""
        text, columns = self.select(depth)
        if self.chance(0.1):
            name = self.alias()
            inner = f"ISTREAM({text})" if self.chance(0.3) else text
            alias = self.alias()
            shown = f" {self.window(columns)}" if inner != text else ""
            self_join = self.chance(0.3)
            source = f"{name}{shown} AS {alias}" + (f", {name}{shown} AS {self.alias()}" if self_join else "")
            text = f"WITH {name} AS ({inner}) SELECT {', '.join(f'{alias}.{c.text}' for c in columns)} FROM {source}"
        form = self.rng.choice(["", "", "", "ISTREAM", "DSTREAM", "RSTREAM"])
        if (
            form
            and form != "RSTREAM"
            and self.chance(0.3)
            and text.startswith("SELECT t")
            and text.count("SELECT") == 1
        ):
            listed, rest = text.removeprefix("SELECT ").split(" FROM ", 1)
            return f"SELECT {form}({listed}) FROM {rest}", columns
        return (self._streamed(text, form) if form else text), columns


def _quote(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"


def _plain(column: Column) -> str:
    return column.text.split(".", 1)[1].strip("`")


def _qualified(alias: str, columns: Sequence[Column]) -> list[Column]:
    return [Column(f"{alias}.{_quote(c.text)}", c.type) for c in columns]


def generate(rng: random.Random, rows: int = 12) -> dict[str, Any]:
    """A random case."""
    return Generator(rng, rows).case()
