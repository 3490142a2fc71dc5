"""Random expressions over columns of all types, right and wrong ones: what is put together pays no heed to types.

``Expressions(random).any(depth)`` is an expression over the columns of ``INPUT``. Only what the binder and Spark's
analyzer must agree about is drawn: operators, conditional expressions, functions of values, aggregates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind

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
INPUT = {"S": InputSchema("S", SchemaKind.STREAM, COLUMNS)}
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


WIDE = (*COLUMNS, ("g", "float"), ("h", "smallint"), ("e", "array<string>"), ("w", "struct<q:string,v:array<double>>"))
"""Columns of the wide draw: all types that a source may have."""
_MADE = {
    "boolean": (
        "b", "NULL", "TRUE", "({number} < {number})", "({string} = {string})", "({time} >= {time})", "({any} IS NULL)",
        "({boolean} AND {boolean})", "({boolean} OR {boolean})", "(NOT {boolean})", "({number} <=> {number})",
        "({number} BETWEEN {number} AND {number})", "({number} IN ({number}, {number}, NULL))", "({string} LIKE 'a%')",
        "({days} > {days})", "array_contains(a, {int})", "({ints} = {ints})", "exists({ints}, q -> q > {number})",
        "(r = {struct})", "isnan({double})", "({string} IN ({string}, NULL))", "({months} <> {months})",
    ),
    "int": ("k", "y", "h", "1", "NULL", "length({string})", "size({ints})", "year({time})", "datediff({time}, {time})",
            "a[0]", "r.f", "({int} % 7)", "(- {int})", "element_at({ints}, 1)", "p['a']", "({int} & {int})",
            "CAST({string} AS INT)", "TRY_CAST({any} AS SMALLINT)", "instr({string}, 'a')"),
    "double": ("f", "g", "1e3", "w.v[0]", "sqrt({number})", "({number} / {number})", "CAST({number} AS DOUBLE)",
               "round({double}, 1)", "try_divide({number}, {number})"),
    "number": ("{int}", "{double}", "l", "m", "7L", "2.5", "NULL", "({number} + {number})", "({number} * {number})",
               "({number} - {number})", "abs({number})", "CAST({number} AS DECIMAL(20,4))",
               "greatest({number}, {number})",
               "coalesce({number}, {number})", "IF({boolean}, {number}, {number})", "nullif({number}, {number})",
               "CASE WHEN {boolean} THEN {number} ELSE {number} END", "CASE {number} WHEN {number} THEN {number} END",
               "unix_micros({stamp})", "CAST({boolean} AS BIGINT)", "pmod({number}, 3)", "bigint({number})"),
    "string": ("s", "'abc'", "'1'", "NULL", "upper({string})", "concat({string}, {any})", "({string} || {string})",
               "CAST({any} AS STRING)", "substring({string}, 1, {int})", "coalesce({string}, {string})", "e[0]", "w.q",
               "nvl2({any}, {string}, {string})", "replace({string}, {string}, 'x')", "hex({number})", "typeof({any})",
               "date_format({time}, 'yyyy')", "concat_ws(',', {string}, e)", "IF({boolean}, {string}, NULL)"),
    "date": ("d", "DATE '2024-01-31'", "date_add({time}, {int})", "last_day({time})", "({date} + {months})",
             "CAST({stamp} AS DATE)", "coalesce({date}, {date})", "({date} - 1)", "NULL"),
    "stamp": ("t", "TIMESTAMP '2024-01-31 12:00:00'", "({stamp} + {days})", "date_trunc('HOUR', {time})",
              "CAST({time} AS TIMESTAMP)", "({stamp} - {days})", "NULL"),
    "time": ("{date}", "{stamp}", "u", "CASE WHEN {boolean} THEN {time} ELSE {time} END", "coalesce({time}, {time})"),
    "days": ("INTERVAL '1' DAY", "INTERVAL '1 02:03:04' DAY TO SECOND", "(t - t)", "({date} - {date})", "({days} * 2)",
             "({days} + {days})", "IF({boolean}, {days}, NULL)", "CAST('1' AS INTERVAL DAY)", "({stamp} - {stamp})"),
    "months": ("INTERVAL '1' MONTH", "INTERVAL '1-2' YEAR TO MONTH", "({months} * {int})",
               "make_ym_interval(1, {int})"),
    "ints": ("a", "array(1, 2)", "array(NULL)", "array({int}, {number})", "sort_array({ints})",
             "coalesce({ints}, {ints})",
             "transform({ints}, q -> q + {int})", "filter({ints}, q -> {boolean})", "slice({ints}, 1, 2)",
             "array_union(a, {ints})", "map_values({map})", "IF({boolean}, {ints}, NULL)", "NULL"),
    "map": ("p", "map('a', {number})", "map({string}, NULL)", "map_concat(p, {map})", "coalesce({map}, p)"),
    "struct": ("r", "struct({number})", "named_struct('f', {number})", "named_struct('f', NULL)",
               "coalesce(r, {struct})"),
    "any": ("{boolean}", "{number}", "{string}", "{time}", "{days}", "{months}", "{ints}", "{map}", "{struct}", "x",
            "NULL",
            "w", "e", "CAST({string} AS BINARY)", "array({any}, {any})", "array({struct}, NULL)", "map(1, {struct})",
            "named_struct('o', {any}, 'P q', {any})", "to_json({struct})", "hash({any})"),
}  # fmt: skip
"""By family of types what gives a value of it, with the families of its parts."""
_AGGREGATED = {
    "number": ("count({any})", "sum({number})", "avg({number})", "stddev({number})", "median({number})",
               "corr({number}, l)",
               "count(DISTINCT {any}, {any})", "sum(DISTINCT {number})", "percentile({number}, 0.5)",
               "count_if({boolean})",
               "min({number})", "max({number})", "bit_or({int})", "kurtosis({number})", "max_by({number}, {time})"),
    "any": ("first({any})", "last({any})", "min({string})", "max({time})", "min({ints})", "any_value({any})",
            "mode({any})",
            "collect_list({any})", "collect_set({string})", "array_agg({struct})", "bool_or({boolean})",
            "max_by({any}, {any})",
            "listagg({string})", "min({struct})", "collect_list(DISTINCT {number})", "count({any})",
            "every({boolean})"),
}  # fmt: skip


class Wide(Expressions):
    """Expressions over all types, mostly right ones, and queries that put them at each place where the engine does more
    than to compute them: keeps, groups, sorts, joins or compares by them.
    """

    wrong = 0.04
    """How often a part is of another family than is wanted."""

    def of(self, family: str, depth: int) -> str:
        """An expression of a family of types, of about so many levels."""
        r = self.random
        family = r.choice(list(_MADE)) if r.random() < self.wrong else family
        choices = [c for c in _MADE[family] if "{" not in c] if depth <= 0 else list(_MADE[family])
        return self._filled(r.choice(choices or _MADE[family]), depth - 1)

    def _filled(self, pattern: str, depth: int) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: self.of(found[1], depth), pattern)

    def aggregate(self, depth: int) -> str:
        family = self.random.choice(list(_AGGREGATED))
        return self._filled(self.random.choice(_AGGREGATED[family]), depth - 1)

    def query(self, depth: int) -> str:
        r = self.random
        family = r.choice(list(_MADE))
        e, f, condition = self.of(family, depth), self.of(family, depth), self.of("boolean", depth)
        call = self.aggregate(depth)
        word = r.choice(("UNION ALL", "UNION", "EXCEPT", "INTERSECT ALL"))
        return r.choice(
            (
                f"SELECT {e} AS z, {f} IS NULL AS y FROM S",
                f"SELECT k FROM S WHERE {condition}",
                f"SELECT {call} AS z, {self.aggregate(depth)} AS y FROM S",
                f"SELECT k, {call} AS z FROM S GROUP BY k HAVING {self.aggregate(depth)} IS NOT NULL",
                f"SELECT {e} AS z, {call} AS y FROM S GROUP BY {e}",
                f"SELECT COUNT(*) FILTER (WHERE {condition}) AS n, COUNT(DISTINCT {f}) AS m FROM S",
                f"SELECT DISTINCT {e} AS z, {f} AS y FROM S",
                f"SELECT k FROM S ORDER BY {e}, {f} DESC, k LIMIT 2",
                f"SELECT k, {call} OVER (PARTITION BY {e}) AS z FROM S",
                f"SELECT k, LAG({e}) OVER (PARTITION BY y ORDER BY {f}, k) AS z FROM S",
                f"SELECT v.k FROM S AS v {r.choice(('', 'LEFT ', 'FULL '))}JOIN (SELECT {e} AS z0, k AS k0 FROM S) q"
                f" ON z0 = {f.replace(' k ', ' v.k ')}",
                f"SELECT {e} AS z FROM S {word} SELECT {f} FROM S",
                f"SELECT k FROM S WHERE {e} {r.choice(('', 'NOT '))}IN (SELECT {f} FROM S)",
                f"SELECT k, (SELECT MAX({e}) FROM S) = {f} AS z FROM S",
                f"SELECT COALESCE(z0, {f}) AS z FROM (SELECT DISTINCT *, {e} AS z0 FROM S) v",
                f"SELECT k, z0 FROM S LATERAL VIEW explode({self.of('ints', depth)}) x AS z0 WHERE {condition}",
                f"SELECT k FROM S QUALIFY ROW_NUMBER() OVER (ORDER BY {e}, k) > 1 AND {condition}",
            )
        )
