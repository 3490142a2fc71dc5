"""Random queries over a schema: joins of all kinds, set operations, subqueries, grouping, windows, streams of streams.

``QueryGenerator(random, inputs).query()`` is a text that parses and whose names and types fit, so whatever does not
bind is refused for a reason of its own. Take away ``features`` to leave kinds of queries out. Every query reads a
stream; every output column has an alias.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random

from sweeparea.cql.binding.scope.inputs import InputSchema
from sweeparea.cql.functions.types import family

FEATURES = frozenset(
    {
        "joins",  # inner, cross, USING, comma
        "outer joins",
        "semi joins",
        "set operations",  # UNION [ALL], EXCEPT [ALL], INTERSECT [ALL]
        "subqueries",  # IN, EXISTS, scalar; correlated or not
        "grouping",
        "distinct",
        "windows",  # windows other than those of time
        "streams",  # ISTREAM, DSTREAM, RSTREAM around subqueries and the whole
        "with",
        "nesting",  # subqueries in FROM
    }
)
Column = tuple[str, str]
"""How a column is referred to, and its family of types: number, text or other."""


@dataclass
class QueryGenerator:
    """``depth`` bounds how deep queries nest."""

    random: Random
    inputs: Mapping[str, InputSchema]
    features: frozenset[str] = FEATURES
    depth: int = 2
    _names: int = field(default=0, init=False)

    def query(self) -> str:
        """A whole query."""
        r, with_ = self.random, ""
        ctes: list[tuple[str, list[str]]] = []
        if "with" in self.features and r.random() < 0.15:
            name = self._name("w")
            text, families = self._select(self.depth - 1, None)
            with_ = f"WITH {name} AS ({text}) "
            ctes.append((name, families))
        text, _ = self._select(self.depth, None, ctes)
        if "set operations" in self.features and r.random() < 0.2:
            text = self._set_operation(self.depth)[0]
        if "streams" in self.features and r.random() < 0.25:
            kind = r.choice(("ISTREAM", "DSTREAM", "RSTREAM", "Istream"))
            every = f" EVERY {r.randint(1, 9)}" if kind == "RSTREAM" else ""
            return f"{with_}{kind}({text}{every})"
        return with_ + text

    # -- queries -----------------------------------------------------------------------------------------------------

    def _name(self, letter: str = "t") -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def _set_operation(self, depth: int) -> tuple[str, list[str]]:
        r = self.random
        first, families = self._select(depth - 1, None)
        second, _ = self._select(depth - 1, families)
        operator = r.choice(("UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"))
        return f"({first}) {operator} ({second})", families

    def _select(
        self, depth: int, wanted: list[str] | None, ctes: Iterable[tuple[str, list[str]]] = ()
    ) -> tuple[str, list[str]]:
        """A SELECT and the families of its columns; ``wanted`` fixes them."""
        r = self.random
        from_, columns = self._from(depth, list(ctes))
        where = f" WHERE {self._condition(columns, depth)}" if r.random() < 0.6 else ""
        if "grouping" in self.features and r.random() < 0.35:
            items, families, rest = self._grouped(columns, wanted)
        else:
            families = wanted or [r.choice(("number", "text")) for _ in range(r.randint(1, 3))]
            items, rest = [self._expression(columns, f) for f in families], ""
        listed = ", ".join(f"{item} AS o{i}" for i, item in enumerate(items))
        distinct = "DISTINCT " if "distinct" in self.features and r.random() < 0.15 else ""
        return f"SELECT {distinct}{listed} FROM {from_}{where}{rest}", families

    def _grouped(self, columns: list[Column], wanted: list[str] | None) -> tuple[list[str], list[str], str]:
        r = self.random
        families = wanted or [r.choice(("number", "text")) for _ in range(r.randint(1, 3))]
        keys = [self._expression(columns, f, 0) for f in families if r.random() < 0.5]
        usable = list(zip(keys, (self._family(k, columns) for k in keys), strict=True))
        items = []
        for f in families:
            key = next((k for k, kf in usable if kf == f), None)
            items.append(key if key is not None and r.random() < 0.6 else self._aggregate(columns, f))
        having = f" HAVING {self._aggregate(columns, 'number')} > {r.randint(0, 3)}" if r.random() < 0.3 else ""
        named = [k for k in keys if not k.replace("'", "").isdigit() and not k.startswith("'")]
        group = f" GROUP BY {', '.join(dict.fromkeys(named))}" if named else ""
        if not group:
            items = [i if "(" in i else self._aggregate(columns, f) for i, f in zip(items, families, strict=True)]
        else:
            literals = set(keys) - set(named)
            items = [self._aggregate(columns, f) if i in literals else i for i, f in zip(items, families, strict=True)]
        return items, families, group + having

    def _aggregate(self, columns: list[Column], family_: str) -> str:
        r = self.random
        if family_ == "text":
            return f"{r.choice(('min', 'max'))}({self._expression(columns, 'text', 0)})"
        number = self._expression(columns, "number", 0)
        return r.choice(
            ("count(*)", f"sum({number})", f"avg({number})", f"min({number})", f"max({number})", f"COUNT({number})")
        )

    # -- FROM --------------------------------------------------------------------------------------------------------

    def _from(self, depth: int, ctes: list[tuple[str, list[str]]]) -> tuple[str, list[Column]]:
        r = self.random
        text, columns = self._entry(depth, True, ctes)
        before: list[Column] = []  # what stands before the last comma, which ON does not see
        while "joins" in self.features and r.random() < 0.4:
            right, more = self._entry(depth - 1, False, ctes)
            kind = r.choice(("comma", "INNER JOIN", "JOIN", "CROSS JOIN", *self._more_joins()))
            if kind == "comma":
                text += f", {right}"
                before, columns = before + columns, more
            elif kind == "CROSS JOIN":
                text += f" CROSS JOIN {right}"
                columns = columns + more
            else:
                text += f" {kind} {right} ON {self._join_condition(columns, more)}"
                columns = columns if kind in ("LEFT SEMI JOIN", "LEFT ANTI JOIN") else columns + more
        return text, before + columns

    def _more_joins(self) -> list[str]:
        outer = ["LEFT JOIN", "RIGHT OUTER JOIN", "FULL OUTER JOIN"] if "outer joins" in self.features else []
        return outer + (["LEFT SEMI JOIN", "LEFT ANTI JOIN"] if "semi joins" in self.features else [])

    def _join_condition(self, left: list[Column], right: list[Column]) -> str:
        r = self.random
        pairs = [(a, b) for a, fa in left for b, fb in right if fa == fb]
        if not pairs or r.random() < 0.1:
            return self._comparison(left + right)
        a, b = r.choice(pairs)
        more = f" AND {self._comparison(left + right)}" if r.random() < 0.3 else ""
        return f"{a} {r.choice(('=', '=', '=', '<'))} {b}{more}"

    def _entry(self, depth: int, stream: bool, ctes: list[tuple[str, list[str]]]) -> tuple[str, list[Column]]:
        """One entry of FROM with an alias; ``stream`` asks for one that moves."""
        r, alias = self.random, self._name()
        if ctes and r.random() < 0.3:
            name, families = ctes[0]
            return f"{name} AS {alias}", [(f"{alias}.o{i}", f) for i, f in enumerate(families)]
        if depth > 0 and "nesting" in self.features and r.random() < 0.35:
            if "set operations" in self.features and r.random() < 0.25:
                text, families = self._set_operation(depth)
            else:
                text, families = self._select(depth - 1, None)
            columns = [(f"{alias}.o{i}", f) for i, f in enumerate(families)]
            if "streams" in self.features and r.random() < 0.35:
                kind = r.choice(("ISTREAM", "DSTREAM", "RSTREAM"))
                every = f" EVERY {r.randint(1, 9)}" if kind == "RSTREAM" else ""
                window = self._window([(ref.partition(".")[2], f) for ref, f in columns])
                return f"({kind}({text}{every})) {window} AS {alias}", columns
            return f"({text}) AS {alias}", columns
        schemas = [s for s in self.inputs.values() if s.kind == "stream" or not stream]
        schema = r.choice(schemas)
        columns = [(f"{alias}.{n}", _family(t)) for n, t in schema.columns]
        if schema.kind == "relation":
            return f"{schema.name} AS {alias}", columns
        window = self._window([(ref.partition(".")[2], f) for ref, f in columns])
        return f"{schema.name} {window} AS {alias}", columns

    def _window(self, columns: list[Column]) -> str:
        r = self.random
        n, m = r.randint(1, 9), r.randint(1, 9)
        time = [
            "[Now]", f"[Range {n}]", f"[Range {n} Exclusive]", "[Range Unbounded]", "", f"[Range {n} Slide {m}]",
            f"[Range {n} Slide {m} Lag {m} Anchor {n}]", f"[Tumbling {n}]", f"[Hopping {n} Slide {m} Anchor 1]",
            f"[Fixed {n}]", f"[From {n}]", f"[From {n} Until {n + m}]",
        ]  # fmt: skip
        if "windows" not in self.features or r.random() < 0.6:
            return r.choice(time)
        key = r.choice(columns)[0]
        numbers = [c for c, f in columns if f == "number"]
        rows = [
            f"[Rows {n}]", f"[Rows {n} Slide {m}]", f"[Partition By {key} Rows {n}]",
            f"[Partition By {key} Rows {n} Range {m}]", f"[Session {n}]", f"[Session {n} Partition By {key}]",
        ]  # fmt: skip
        if numbers:
            rows.append(f"[Tumbling When ({r.choice(numbers)} > {m}) Partition By {key}]")
        return r.choice(rows)

    # -- expressions -------------------------------------------------------------------------------------------------

    def _family(self, expression: str, columns: list[Column]) -> str:
        return next((f for ref, f in columns if ref in expression), "text" if "'" in expression else "number")

    def _expression(self, columns: list[Column], family_: str, depth: int = 1) -> str:
        r = self.random
        fitting = [ref for ref, f in columns if f == family_]
        if not fitting or r.random() < 0.08:
            return str(r.randint(0, 9)) if family_ == "number" else f"'{r.choice('abc')}'"
        column = r.choice(fitting)
        if depth == 0 or r.random() < 0.6:
            return column
        if family_ == "text":
            return r.choice((f"upper({column})", f"concat({column}, 'x')", f"coalesce({column}, 'none')"))
        other = self._expression(columns, "number", 0)
        return r.choice(
            (f"{column} + {other}", f"abs({column})", f"CASE WHEN {column} > {other} THEN {column} ELSE {other} END")
        )

    def _comparison(self, columns: list[Column]) -> str:
        r = self.random
        family_ = r.choice([f for _, f in columns if f != "other"] or ["number"])
        left, right = self._expression(columns, family_), self._expression(columns, family_, 0)
        return r.choice(
            (f"{left} {r.choice(('=', '<', '>=', '<>', '<=>'))} {right}", f"{left} IS NOT NULL", f"{left} IN ({right})")
        )

    def _condition(self, columns: list[Column], depth: int) -> str:
        r = self.random
        parts = [self._comparison(columns) for _ in range(r.randint(1, 2))]
        if depth > 0 and "subqueries" in self.features and r.random() < 0.3:
            parts.append(self._subquery(columns, depth - 1))
        joined = r.choice((" AND ", " AND ", " OR ")).join(parts)
        return f"NOT ({joined})" if r.random() < 0.05 else joined

    def _subquery(self, outer: list[Column], depth: int) -> str:
        r = self.random
        kind = r.choice(("IN", "NOT IN", "EXISTS", "NOT EXISTS", "scalar"))
        if kind in ("IN", "NOT IN"):
            family_ = r.choice(("number", "text"))
            return f"{self._expression(outer, family_)} {kind} ({self._select(depth, [family_])[0]})"
        from_, columns = self._from(depth - 1, [])
        condition = self._join_condition(outer, columns) if r.random() < 0.7 else self._comparison(columns)
        if kind == "scalar":
            item = self._aggregate(columns, "number")
            return f"{self._expression(outer, 'number')} > (SELECT {item} AS o0 FROM {from_} WHERE {condition})"
        return f"{kind} (SELECT 1 AS o0 FROM {from_} WHERE {condition})"


def _family(type_: str | None) -> str:
    if type_ == "string":
        return "text"
    return "number" if type_ is not None and family(type_) == "number" else "other"
