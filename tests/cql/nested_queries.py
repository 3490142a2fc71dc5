"""Random queries with joins of every kind, set operations and nested, correlated subqueries, over three small tables.

Each comes as two texts: for the language, and for DuckDB, which differ where their syntax or DuckDB's NULLs in tuples
do. Orders under LIMIT are complete, so that the answer is a function of the tables.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

TABLES = {
    "A": (("k", "int"), ("a", "int"), ("s", "string")),
    "B": (("k", "int"), ("b", "int"), ("s", "string")),
    "C": (("k", "int"), ("c", "int"), ("u", "string")),
}


def random_tables(rng: random.Random) -> dict[str, list[tuple]]:
    """Rows with NULLs, duplicates, and now and then none at all."""
    found = {}
    for name, columns in TABLES.items():
        size = rng.choice((0, 1, 3, 5, 6))
        found[name] = [
            tuple(rng.choice((None, 0, 1, 2, 3)) if t == "int" else rng.choice((None, "x", "y")) for _, t in columns)
            for _ in range(size)
        ]
    return found


@dataclass(frozen=True)
class Text:
    """One query or part of it, for the language and for DuckDB."""

    cql: str
    duck: str


def text(template: str, *parts: Text) -> Text:
    """Both texts of a template, whose ``{}`` are the parts."""
    return Text(template.format(*(p.cql for p in parts)), template.format(*(p.duck for p in parts)))


def same(sql: str) -> Text:
    return Text(sql, sql)


Columns = list[tuple[str, str]]
"""Qualified names with types."""


@dataclass
class Generator:
    """Makes queries from one source of randomness. ``around`` are the columns of the queries around, nearest last."""

    rng: random.Random
    aliases: int = 0
    around: list[Columns] = field(default_factory=list)

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def alias(self) -> str:
        self.aliases += 1
        return f"t{self.aliases}"

    # -- queries -------------------------------------------------------------------------------------------------------

    def query(self, depth: int, wanted: list[str]) -> Text:
        """A query with columns of the given types."""
        if depth > 0 and self.chance(0.15):
            word = self.rng.choice(
                ("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL", "UNION", "EXCEPT")
            )
            return text(f"({{}}) {word} ({{}})", self.query(depth - 1, wanted), self.query(depth - 1, wanted))
        return self.select(depth, wanted)

    def select(self, depth: int, wanted: list[str]) -> Text:
        columns, source = self.source(depth)
        where = [self.condition(depth, columns) for _ in range(self.rng.choice((0, 1, 1, 2)))]
        tail = text(" WHERE " + " AND ".join("({})" for _ in where), *where) if where else same("")
        kind = self.rng.choice(("plain", "plain", "plain", "distinct", "group", "group", "top"))
        names = [f"o{i}" for i in range(len(wanted))]
        if kind == "group":
            return self.grouped(depth, wanted, columns, source, tail)
        outputs = [self.expression(depth, columns, t) for t in wanted]
        if kind == "top":
            order = [f"{n} {self.rng.choice(('ASC NULLS FIRST', 'DESC NULLS LAST'))}" for n in names]
            limit = f" ORDER BY {', '.join(order)} LIMIT {self.rng.choice((1, 2))}"
            inner = text(
                "SELECT " + ", ".join(f"{{}} AS {n}" for n in names) + " FROM {}{}" + limit, *outputs, source, tail
            )
            return text("SELECT * FROM ({}) AS " + self.alias(), inner)
        word = "DISTINCT " if kind == "distinct" else ""
        listed = ", ".join(f"{{}} AS {n}" for n in names)
        return text(f"SELECT {word}{listed} FROM {{}}{{}}", *outputs, source, tail)

    def grouped(self, depth: int, wanted: list[str], columns: Columns, source: Text, tail: Text) -> Text:
        keys = [c for c in columns if self.chance(0.3)][:2]
        if not keys and self.chance(0.5):
            keys = [self.rng.choice(columns)]
        outputs = []
        for type_ in wanted:
            fitting = [c for c in keys if c[1] == type_]
            if fitting and self.chance(0.6):
                outputs.append(same(self.rng.choice(fitting)[0]))
            elif depth > 0 and keys and type_ == "int" and self.chance(0.3):
                outputs.append(self.scalar(depth, keys))
            else:
                outputs.append(self.aggregate(columns, type_, depth))
        group = f" GROUP BY {', '.join(n for n, _ in keys)}" if keys else ""
        listed = ", ".join(f"{{}} AS o{i}" for i in range(len(wanted)))
        having = same("")
        if self.chance(0.3):
            number = self.aggregate(columns, "int", 0)
            other = self.scalar(depth, keys) if depth > 0 and self.chance(0.6) else same("1")
            having = text(" HAVING {} " + self.rng.choice((">", "<=", "=")) + " {}", number, other)
            if depth > 0 and keys and self.chance(0.3):
                having = text("{} OR {}", having, self.exists(depth, keys))
        return text(f"SELECT {listed} FROM {{}}{{}}{group}{{}}", *outputs, source, tail, having)

    def aggregate(self, columns: Columns, type_: str, depth: int) -> Text:
        name, _ = self.rng.choice([c for c in columns if c[1] == type_] or columns)
        if type_ != "int" or not any(c[1] == "int" for c in columns):
            return same(f"{self.rng.choice(('MIN', 'MAX'))}({name})") if type_ != "int" else same("COUNT(*)")
        if depth > 0 and self.chance(0.15):
            return text("SUM({} + " + name + ")", self.scalar(depth - 1, columns))
        return same(
            self.rng.choice(
                (
                    f"COUNT({name})",
                    "COUNT(*)",
                    f"MIN({name})",
                    f"MAX({name})",
                    f"SUM({name})",
                    f"COUNT(DISTINCT {name})",
                )
            )
        )

    # -- FROM ----------------------------------------------------------------------------------------------------------

    def entry(self, depth: int) -> tuple[Columns, Text]:
        alias = self.alias()
        if depth > 0 and self.chance(0.15):
            inner = self.query(depth - 1, ["int", "string"])
            return [(f"{alias}.o0", "int"), (f"{alias}.o1", "string")], text(f"({{}}) AS {alias}", inner)
        name = self.rng.choice(list(TABLES))
        return [(f"{alias}.{c}", t) for c, t in TABLES[name]], same(f"{name} AS {alias}")

    def source(self, depth: int) -> tuple[Columns, Text]:
        columns, found = self.entry(depth)
        for _ in range(self.rng.choice((0, 0, 1, 1, 2))):
            if depth > 0 and self.chance(0.12):
                columns, found = self.lateral(depth, columns, found)
                continue
            more, other = self.entry(depth)
            word = self.rng.choice(
                ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN", "CROSS JOIN")
            )
            if word == "CROSS JOIN":
                found = text("{} CROSS JOIN {}", found, other)
            elif word == "LEFT JOIN" and depth > 0 and self.chance(0.3):
                # DuckDB knows no subquery in the ON of an outer join, but the same as a lateral one
                on = self.condition(depth - 1, [*columns, *more])
                alias = more[0][0].split(".")[0]
                duck = f"{found.duck} LEFT JOIN LATERAL (SELECT * FROM {other.duck} WHERE {on.duck}) AS {alias} ON TRUE"
                found = Text(f"{found.cql} LEFT JOIN {other.cql} ON {on.cql}", duck)
            else:
                on = self.condition(depth - 1 if word == "JOIN" else 0, [*columns, *more])
                found = text(f"{{}} {word} {{}} ON {{}}", found, other, on)
            columns = columns if word in ("SEMI JOIN", "ANTI JOIN") else [*columns, *more]
        return columns, found

    def lateral(self, depth: int, columns: Columns, found: Text) -> tuple[Columns, Text]:
        alias = self.alias()
        inner = self.within(columns, lambda: self.query(depth - 1, ["int"]))
        word = self.rng.choice(
            ("CROSS JOIN LATERAL ({}) AS " + alias, "LEFT JOIN LATERAL ({}) AS " + alias + " ON TRUE")
        )
        return [*columns, (f"{alias}.o0", "int")], text("{} " + word, found, inner)

    # -- expressions ---------------------------------------------------------------------------------------------------

    def within(self, columns: Columns, make: Callable[[], Text]) -> Text:
        """What ``make`` makes as a subquery of a place where ``columns`` can be named."""
        self.around.append(columns)
        try:
            return make()
        finally:
            self.around.pop()

    def column(self, columns: Columns, type_: str) -> str:
        """A column, often of a query around."""
        pools = [columns, *(self.around[::-1])]
        pool = columns if not self.around or self.chance(0.55) else self.rng.choice(pools)
        fitting = [n for n, t in pool if t == type_] or [n for n, t in columns if t == type_]
        return self.rng.choice(fitting) if fitting else ("1" if type_ == "int" else "'x'")

    def expression(self, depth: int, columns: Columns, type_: str) -> Text:
        if type_ == "int":
            roll = self.rng.random()
            if depth > 0 and roll < 0.15:
                return self.scalar(depth, columns)
            if depth > 0 and roll < 0.2:
                return text("CASE WHEN {} THEN 1 ELSE 0 END", self.condition(depth, columns))
            if roll < 0.35:
                return same(f"{self.column(columns, 'int')} + {self.rng.choice((1, 2))}")
        return same(self.column(columns, type_))

    def condition(self, depth: int, columns: Columns) -> Text:
        roll = self.rng.random()
        if depth <= 0 or roll < 0.3:
            return self.comparison(columns)
        if roll < 0.45:
            word = self.rng.choice(("OR", "AND", "OR"))
            return text(f"({{}} {word} {{}})", self.condition(depth - 1, columns), self.condition(depth, columns))
        if roll < 0.52:
            return text("NOT ({})", self.condition(depth, columns))
        if roll < 0.68:
            return self.exists(depth, columns)
        if roll < 0.8:
            return self.membership(depth, columns)
        if roll < 0.88:
            return self.quantified(depth, columns)
        return text(
            "{} " + self.rng.choice(("=", "<", ">=", "<>", "<=>")) + " {}",
            self.expression(0, columns, "int"),
            self.scalar(depth, columns),
        )

    def comparison(self, columns: Columns) -> Text:
        roll = self.rng.random()
        if roll < 0.1:
            return same(f"{self.column(columns, 'int')} IS NULL")
        if roll < 0.25:
            return same(f"{self.column(columns, 'string')} = {self.column(columns, 'string')}")
        if roll < 0.4:
            return same(f"{self.column(columns, 'int')} {self.rng.choice(('=', '<', '>'))} {self.rng.choice((1, 2))}")
        sign = self.rng.choice(("=", "=", "=", "<", ">", "<=>"))
        return same(f"{self.column(columns, 'int')} {sign} {self.column(columns, 'int')}")

    def exists(self, depth: int, columns: Columns) -> Text:
        inner = self.within(columns, lambda: self.query(depth - 1, ["int"]))
        return text(self.rng.choice(("EXISTS ({})", "NOT EXISTS ({})")), inner)

    def membership(self, depth: int, columns: Columns) -> Text:
        word = self.rng.choice(("IN", "NOT IN"))
        if self.chance(0.3):
            left = self.expression(0, columns, "int"), self.expression(0, columns, "string")
            inner = self.within(columns, lambda: self.query(depth - 1, ["int", "string"]))
            alias = self.alias()
            equal = f"(({left[0].duck}) = {alias}.x AND ({left[1].duck}) = {alias}.y)"
            duck = (
                f"(SELECT CASE WHEN count(*) FILTER (WHERE {equal}) > 0 THEN TRUE WHEN count(*) FILTER (WHERE {equal} "
                f"IS NULL) > 0 THEN NULL ELSE FALSE END FROM ({inner.duck}) AS {alias}(x, y))"
            )
            cql = f"({left[0].cql}, {left[1].cql}) {word} ({inner.cql})"
            return Text(cql, f"NOT {duck}" if word == "NOT IN" else duck)
        type_ = self.rng.choice(("int", "string"))
        left_one = self.expression(0, columns, type_)
        inner = self.within(columns, lambda: self.query(depth - 1, [type_]))
        return text(f"{{}} {word} ({{}})", left_one, inner)

    def quantified(self, depth: int, columns: Columns) -> Text:
        sign = self.rng.choice(("=", "<>", "<", "<=", ">", ">="))
        type_ = self.rng.choice(("int", "int", "string"))
        left = self.expression(0, columns, type_)
        inner = self.within(columns, lambda: self.query(depth - 1, [type_]))
        return text(f"{{}} {sign} {self.rng.choice(('ANY', 'ALL'))} ({{}})", left, inner)

    def scalar(self, depth: int, columns: Columns) -> Text:
        """A scalar subquery that has at most one row."""

        def make() -> Text:
            inner_columns, source = self.source(depth - 1)
            where = self.condition(depth - 1, inner_columns)
            roll = self.rng.random()
            if roll < 0.7:
                value = self.aggregate(inner_columns, "int", 0)
                having = " HAVING COUNT(*) > 1" if self.chance(0.15) else ""
                plus = f" + {self.column(columns, 'int')}" if self.chance(0.15) else ""
                return text(f"SELECT {{}}{plus} AS o0 FROM {{}} WHERE {{}}{having}", value, source, where)
            order = self.rng.choice(("ASC NULLS FIRST", "DESC NULLS LAST"))
            value = self.expression(0, inner_columns, "int")
            return text(f"SELECT {{}} AS o0 FROM {{}} WHERE {{}} ORDER BY o0 {order} LIMIT 1", value, source, where)

        return text("({})", self.within(columns, make))


def random_query(rng: random.Random, depth: int = 2) -> Text:
    return Generator(rng).query(depth, ["int", "string"])
