"""Arguments and operands that Spark is certain to refuse, and strings that it would read as the current time.

What is checked is what ``signatures.py`` is certain of; the rest is left to Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from sweeparea.cql import functions, signatures, types
from sweeparea.cql.aggregates import is_star
from sweeparea.cql.errors import RefusedError, TypeError_

if TYPE_CHECKING:
    from sweeparea.cql.expressions import Binder

_TIME_TYPES = ("date", "timestamp", "timestamp_ntz")
_COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_TIMES = frozenset(
    """
    ADD_MONTHS CONVERT_TIMEZONE DATE DATE_ADD DATE_DIFF DATE_FORMAT DATE_PART DATE_SUB DATE_TRUNC DATEADD DATEDIFF
    DATEPART DAY DAYNAME DAYOFMONTH DAYOFWEEK DAYOFYEAR FROM_UTC_TIMESTAMP HOUR LAST_DAY MINUTE MONTH MONTHNAME
    MONTHS_BETWEEN NEXT_DAY QUARTER SECOND TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF TO_DATE TO_TIMESTAMP TO_TIMESTAMP_LTZ
    TO_TIMESTAMP_NTZ TO_UNIX_TIMESTAMP TO_UTC_TIMESTAMP TRUNC TRY_TO_DATE TRY_TO_TIMESTAMP UNIX_DATE UNIX_MICROS
    UNIX_MILLIS UNIX_SECONDS UNIX_TIMESTAMP WEEKDAY WEEKOFYEAR YEAR
    """.split()  # noqa: SIM905
)
"""Functions of times: a string among their arguments may be read as one."""
_MIXED = frozenset(("COALESCE", "NVL", "IFNULL", "NVL2", "NULLIF", "GREATEST", "LEAST", "IF", "ARRAY", "MAP"))
"""Functions that bring their arguments to one type."""


_OWN: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Substring: ("SUBSTRING", ("this", "start", "length")),
    exp.Overlay: ("OVERLAY", ("this", "expression", "from_", "for_")),
    exp.StrPosition: ("POSITION", ("substr", "this", "position")),
}
"""Spark's name of a function that has a node of its own, and its arguments in Spark's order."""


def comparison(text: str, type_: str) -> str:
    """The advice to compare an expression of a type, instead of taking it as a condition."""
    text = text if len(text) <= 40 else "a"
    values = {"string": "'x'", "date": "DATE '2024-01-31'"}
    values |= dict.fromkeys(("timestamp", "timestamp_ntz"), "TIMESTAMP '2024-01-31 12:00:00'")
    if type_ in values:
        return f"Write a comparison, such as {text} {'=' if type_ == 'string' else '>'} {values[type_]}"
    if types.family(type_) == "number":
        return f"Write a comparison, such as {text} > 0"
    return f"Write a comparison, or {text} IS NOT NULL"


class ArgumentChecks:
    """The checks of one expression. ``known`` has the types of nodes (by ``id``) that are bound already."""

    def __init__(self, binder: Binder, known: Mapping[int, str | None]) -> None:
        self.binder, self.known = binder, known

    def own_call(self, node: exp.Expr) -> None:
        """As ``call``, for functions of which the parser makes nodes of their own."""
        called = _OWN.get(type(node))
        if called is not None:
            name, parts = called
            self.call(node, name, [node.args[p] for p in parts if isinstance(node.args.get(p), exp.Expr)])

    def call(self, node: exp.Expr, name: str, arguments: list[exp.Expr] | None = None) -> None:
        """TypeError_ for a wrong number or type of arguments of Spark's function ``name``."""
        arguments = node.expressions if arguments is None else arguments
        if any(is_star(a) or isinstance(a, exp.Kwarg | exp.Lambda) for a in arguments) or node.meta.get("user"):
            return
        wanted = signatures.counts(name)
        if wanted and len(arguments) not in wanted and not (name in functions.UNIT_FIRST and len(arguments) == 3):
            low, high = wanted[0], wanted[-1]
            number = str(low) if low == high else f"{low} to {high}"
            raise TypeError_(
                f"{name} takes {number} argument{'s' if number != '1' else ''}, found {len(arguments)}",
                self.binder.place(node),
                f"Write {name}({', '.join('abcdefg'[:low])})",
            )
        times = name in _TIMES or (name in _MIXED and any(self._is_time(a) for a in arguments))
        for argument in arguments:
            self._special(argument, times)
        refusal = signatures.refusal(name, [self._operand_type(a) for a in arguments])
        if refusal is not None:
            at, families = refusal
            argument = arguments[at]
            raise TypeError_(
                f"{name} cannot take {self._text(argument)}, which is of type {self._type_text(argument)}",
                self.binder.place(argument),
                f"It takes {families} there",
            )

    def operation(self, node: exp.Expr) -> None:
        """TypeError_ for an operator over two operands that do not go together."""
        operator = types.OPERATORS.get(type(node))
        if operator is None:
            return
        left, right = node.this, node.expression
        both = [self._operand_type(left), self._operand_type(right)]
        for literal, other in ((left, both[1]), (right, both[0])):
            self._special(literal, other in _TIME_TYPES or (other or "").startswith("interval"))
        if any(isinstance(side, exp.Tuple | exp.Query) for side in (left, right)):
            return
        if signatures.refusal(operator, both) is not None:
            shown = operator if type(node) not in _COMPARISONS else "a comparison"
            told = [f"{self._text(s)}, which is {t.upper()}" for s, t in zip((left, right), both, strict=True) if t]
            raise TypeError_(
                f"{shown} cannot take {', and '.join(told)}",
                self.binder.place(node),
                "CAST one of them" if len(told) > 1 else "CAST it",
            )

    def cast(self, node: exp.Expr) -> None:
        """TypeError_ for a cast that Spark does not have."""
        to = types.of(node, self.known)
        self._special(node.this, to in _TIME_TYPES)
        if to is not None and signatures.refusal(f"cast {to}", [self._operand_type(node.this)]) is not None:
            raise TypeError_(
                f"{self._text(node.this)}, which is of type {self._type_text(node.this)}, cannot be cast to "
                f"{to.upper()}",
                self.binder.place(node),
                "Cast to a type that can hold it",
            )

    def condition(self, node: exp.Expr, where: str) -> None:
        """TypeError_ where a condition is needed and a number or a time stands."""
        type_ = self._operand_type(node)
        if type_ is not None and types.family(type_) in ("number", "time"):
            raise TypeError_(
                f"{where} needs a condition, but {self._text(node)} is of type {type_.upper()}",
                self.binder.place(node),
                comparison(self._text(node), type_),
            )

    def beside(self, node: exp.Expr) -> None:
        """CASE, BETWEEN, IN: values of one type; a string among times is read as one."""
        if not isinstance(node, exp.Case):
            self._together(list(node.iter_expressions()), node.key.upper())
            return
        branches = node.args.get("ifs") or []
        default, subject = node.args.get("default"), node.this
        for branch in branches if subject is None else ():
            self.condition(branch.this, "WHEN")
        if subject is not None:
            self._together([subject, *(b.this for b in branches)], "CASE")
        self._together([*(b.args["true"] for b in branches), *([default] if default is not None else [])], "CASE")

    def _together(self, values: list[exp.Expr], what: str) -> None:
        times = any(self._is_time(v) for v in values)
        first: tuple[exp.Expr, str] | None = None
        for value in values:
            self._special(value, times)
            type_ = None if isinstance(value, exp.Tuple | exp.Query) else self._operand_type(value)
            family = "other" if type_ is None else types.family(type_)
            if family == "other":
                continue
            if first is not None and types.family(first[1]) != family:
                raise TypeError_(
                    f"{what} cannot take {self._text(first[0])}, which is {first[1].upper()}, and {self._text(value)}, "
                    f"which is {(type_ or '').upper()}",
                    self.binder.place(value),
                    "CAST one of them",
                )
            first = first or (value, type_ or "")

    def _special(self, node: exp.Expr, as_time: bool) -> None:
        if as_time and isinstance(node, exp.Literal) and node.is_string and functions.is_special_instant(node.name):
            raise RefusedError(
                f"'{node.name}' as a time is not deterministic: it depends on when a slice is run",
                self.binder.place(node),
                "Use the stream's instant ts, or write the time itself",
            )

    def _operand_type(self, node: exp.Expr) -> str | None:
        """The type of an operand; None of a string literal, which Spark reads as whatever is wanted."""
        if isinstance(node, exp.Literal) and node.is_string:
            return None
        type_ = types.of(node, self.known)
        return None if type_ == "void" else type_

    def _is_time(self, node: exp.Expr) -> bool:
        return types.of(node, self.known) in _TIME_TYPES

    def _text(self, node: exp.Expr) -> str:
        return self.binder.source.splice(self.binder.span(node))

    def _type_text(self, node: exp.Expr) -> str:
        return (types.of(node, self.known) or "unknown").upper()
