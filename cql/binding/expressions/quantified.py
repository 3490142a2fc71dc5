"""IN, ANY (SOME) and ALL: a value compared with each row of a subquery, in three-valued logic.

All are one test of every row, and whether a row passes it (``IN``, ``= ANY``, ``> ANY``) or none does (``NOT IN``,
``<> ALL``): ``x > ALL (q)`` says that there is no row of q for which ``x > y`` is not so. Over no rows ANY is FALSE and
ALL is TRUE. Spark SQL has IN alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sweeparea.cql.rewrites.conditions import all_of, column_of
from sweeparea.operators.sql.expressions import Expr

_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_EXTREMES = {"<": ("MAX",), "<=": ("MAX",), ">": ("MIN",), ">=": ("MIN",), "<>": ("MIN", "MAX")}
_OPPOSITES = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True)
class Test:
    """What is asked of each row: ``value sign row``."""

    sign: str = "="

    @property
    def is_equality(self) -> bool:
        return self.sign == "="

    @property
    def extremes(self) -> tuple[str, ...]:
        """The aggregates of the rows such that a row passes the test if and only if one of them does; of none where
        each row has to be looked at."""
        return _EXTREMES.get(self.sign, ())

    def of(self, values: list[Expr], rows: list[Expr]) -> Expr:
        """The test as a condition."""
        condition = all_of(self._pair(enclosed(a), enclosed(b)) for a, b in zip(values, rows, strict=True))
        assert condition is not None
        return condition

    def _pair(self, a: Expr, b: Expr) -> Expr:
        columns = a.columns | b.columns
        if self.sign == "NOT <=>":
            return Expr(f"NOT ({a.sql} <=> {b.sql})", f"NOT {a.text} <=> {b.text}", columns)
        return Expr(f"{a.sql} {self.sign} {b.sql}", f"{a.text} {self.sign} {b.text}", columns)


EQUALITY = Test()


@dataclass(frozen=True)
class Membership:
    """A value and a subquery: a row of it passes ``test``, or (``negated``) none does. ``word`` is what was written,
    for errors."""

    left: exp.Expr
    query: exp.Expr
    test: Test
    negated: bool
    word: str


def membership_of(node: exp.Expr) -> Membership | None:
    """IN (..), or a comparison with ANY, SOME or ALL of a query; None for anything else."""
    if isinstance(node, exp.In):
        query = node.args.get("query")
        return None if query is None else Membership(node.this, query, EQUALITY, False, "IN")
    sign = _SIGNS.get(type(node))
    if sign is None:
        return None
    right = node.args["expression"].unnest()
    if not isinstance(right, exp.Any | exp.All) or not isinstance(right.this, exp.Query):
        return None
    if isinstance(right, exp.Any):
        return Membership(node.this, right.this, Test(sign), False, f"{sign} ANY")
    return Membership(node.this, right.this, Test(_OPPOSITES.get(sign, f"NOT {sign}")), True, f"{sign} ALL")


def enclosed(expr: Expr) -> Expr:
    """An expression as it may stand beside any operator."""
    return expr if column_of(expr) and expr.sql.startswith("`") else Expr(f"({expr.sql})", expr.text, expr.columns)


def negated(condition: Expr) -> Expr:
    return Expr(f"NOT ({condition.sql})", f"NOT {condition.text}", condition.columns)
