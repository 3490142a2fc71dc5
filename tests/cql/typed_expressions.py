"""Random expressions over columns of all types, right and wrong ones: what is put together pays no heed to types.

``Expressions(random).any(depth)`` is an expression over the columns of ``INPUT``. Only what the binder and Spark's
analyzer must agree about is drawn: operators, conditional expressions, functions of values, aggregates.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from sweeparea.cql.context import InputSchema

COLUMNS = (
    ("b", "boolean"),
    ("y", "tinyint"),
    ("k", "int"),
    ("l", "bigint"),
    ("f", "double"),
    ("m", "decimal(10,2)"),
    ("s", "string"),
    ("x", "binary"),
    ("d", "date"),
    ("t", "timestamp"),
    ("u", "timestamp_ntz"),
    ("a", "array<int>"),
    ("p", "map<string,int>"),
    ("r", "struct<f:int>"),
)
INPUT = {"S": InputSchema("S", "stream", COLUMNS)}
LITERALS = (
    *("NULL", "TRUE", "1", "7L", "2.5", "1e3", "'1'", "'abc'", "DATE '2024-01-31'", "TIMESTAMP '2024-01-31 12:00:00'"),
    *("INTERVAL '1' DAY", "INTERVAL '1 02:03:04' DAY TO SECOND", "INTERVAL '2' HOUR", "INTERVAL '1' MONTH"),
    *("INTERVAL '1-2' YEAR TO MONTH", "array(1, 2)", "array('a')", "array(NULL)", "struct(1)", "map('a', 1)"),
)
_OPERATORS = ("=", "<>", "<", ">=", "<=>", "+", "-", "*", "/", "%", "||", "AND", "OR", "LIKE", "&")
_FUNCTIONS = {"abs": 1, "upper": 1, "length": 1, "size": 1, "year": 1, "date_add": 2, "nullif": 2, "coalesce": 3,
              "greatest": 2, "concat": 2, "substring": 2, "nvl": 2, "date_diff": 2}  # fmt: skip
_AGGREGATES = ("sum", "avg", "min", "max", "count", "collect_list", "first", "stddev", "bool_and", "count_if", "median")


@dataclass
class Expressions:
    random: Random

    def leaf(self) -> str:
        r = self.random
        return r.choice(LITERALS) if r.random() < 0.45 else r.choice(COLUMNS)[0]

    def any(self, depth: int) -> str:
        """An expression of at most so many levels."""
        r = self.random
        if depth == 0 or r.random() < 0.15:
            return self.leaf()
        a, b, c, e = (self.any(depth - 1) for _ in range(4))
        kind = r.randrange(10)
        if kind <= 3:
            return f"({a} {r.choice(_OPERATORS)} {b})"
        if kind == 4:
            return f"({a} {r.choice(('', 'NOT '))}BETWEEN {b} AND {c})"
        if kind == 5:
            return f"({a} IN ({', '.join((b, c, e)[: r.randint(1, 3)])}))"
        if kind == 6:
            end = r.choice((f" ELSE {e}", ""))
            return f"CASE {r.choice((a, ''))} WHEN {b} THEN {c}{end} END"
        if kind == 7:
            return f"IF({a}, {b}, {c})"
        if kind == 8:
            return r.choice((f"(NOT {a})", f"(- {a})", f"({a} IS NULL)"))
        name, count = r.choice(list(_FUNCTIONS.items()))
        return f"{name}({', '.join((a, b, c)[:count])})"

    def query(self, depth: int) -> str:
        """A query with an expression at one of the places that take one."""
        r, e = self.random, self.any(depth)
        return r.choice(
            (
                f"SELECT ({e}) IS NULL AS z FROM S",
                f"SELECT k FROM S WHERE {e}",
                f"SELECT k, COUNT(*) AS n FROM S GROUP BY k HAVING {self.aggregate(depth - 1)} IS NULL",
                f"SELECT COUNT(*) FILTER (WHERE {e}) AS n FROM S",
                f"SELECT {self.aggregate(depth - 1)} IS NULL AS z FROM S",
                f"SELECT v.k FROM S AS v JOIN (SELECT l AS w FROM S) q ON {e.replace(' l ', ' w ')}",
            )
        )

    def aggregate(self, depth: int) -> str:
        return f"{self.random.choice(_AGGREGATES)}({self.any(depth)})"
