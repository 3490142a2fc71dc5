"""Arguments and operands that Spark is certain to refuse, and strings that it would read as the current time.

What is checked is what ``signatures.py`` is certain of; the rest is left to Spark.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Protocol

from sqlglot import exp

from sweeparea.cql.functions import functions, signatures, types
from sweeparea.cql.syntax.trees import is_star
from sweeparea.cql.text import zone_names
from sweeparea.cql.text.errors import Place, RefusedError, TypeError_
from sweeparea.operators.sql.zone_texts import zone_arguments

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
_ALIKE: dict[str, tuple[slice, ...]] = {
    **dict.fromkeys(("COALESCE", "NVL", "IFNULL", "GREATEST", "LEAST", "ARRAY"), (slice(None),)),
    **dict.fromkeys(("IF", "NVL2"), (slice(1, None),)),
    "MAP": (slice(None, None, 2), slice(1, None, 2)),
}
"""Which of a function's arguments need a common type."""
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


class Written(Protocol):
    """Where an expression stands and how it is written."""

    def place(self, node: exp.Expr) -> Place: ...

    def text(self, node: exp.Expr) -> str: ...


class ArgumentChecks:
    """The checks of one expression. ``known`` has the types of nodes (by ``id``) that are bound already."""

    def __init__(self, written: Written, known: Mapping[int, str | None]) -> None:
        self.written, self.known = written, known

    def _zone(self, argument: exp.Expr) -> None:
        if isinstance(argument, exp.Literal) and argument.is_string and not zone_names.spark_knows(argument.this):
            message = f"'{argument.this}' is no time zone"
            raise TypeError_(message, self.written.place(argument), zone_names.hint(argument.this))

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
                self.written.place(node),
                f"Write {name}({', '.join('abcdefg'[:low])})",
            )
        for at in zone_arguments(name, len(arguments)):
            self._zone(arguments[at])
        times = name in _TIMES or (name in _MIXED and any(self._is_time(a) for a in arguments))
        for argument in arguments:
            self._special(argument, times)
        found = [self._operand_type(a) for a in arguments]
        refusal = signatures.refusal(name, found)
        if name == "CONCAT":  # takes any number, of which Spark was asked about few
            refusal = refusal or self._alone(name, found)
        if refusal is not None:
            at, families = refusal
            argument = arguments[at]
            raise TypeError_(
                f"{name} cannot take {self.written.text(argument)}, which is of type {self._type_text(argument)}",
                self.written.place(argument),
                f"It takes {families} there",
            )
        if name == "NULLIF" and len(arguments) == 2:
            self._pairs([(arguments[0], arguments[1])], name, "=")
        if name == "IF" and arguments:
            self.condition(arguments[0], "IF")
        for part in _ALIKE.get(name, ()):
            self._pairs(itertools.combinations(self._of_each_type(arguments[part]), 2), name, "COALESCE")
        if name == "CONCAT":
            self._pairs(itertools.combinations(self._of_each_type(arguments), 2), name, "||")

    def _alone(self, name: str, given: list[str | None]) -> tuple[int, str] | None:
        """As ``signatures.refusal``, of an argument that the function would not take if it were the only one."""
        refusals = {t: signatures.refusal(name, [t]) for t in dict.fromkeys(given)}
        return next(((at, refusal[1]) for at, t in enumerate(given) if (refusal := refusals[t]) is not None), None)

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
        found = types.beside_null(operator, [types.of(side, self.known) for side in (left, right)])
        found = [None if t == "void" else t for t in found]
        if signatures.refusal(operator, found) is not None or (operator == "||" and types.named_otherwise(*found)):
            both = [types.of(side, self.known) for side in (left, right)]
            shown = operator if type(node) not in _COMPARISONS else "a comparison"
            told = [
                f"{self.written.text(s)}, which is {t.upper()}" for s, t in zip((left, right), both, strict=True) if t
            ]
            raise TypeError_(
                f"{shown} cannot take {', and '.join(told)}",
                self.written.place(node),
                "CAST one of them" if len(told) > 1 else "CAST it",
            )

    def cast(self, node: exp.Expr) -> None:
        """TypeError_ for a cast that Spark does not have."""
        to = types.of(node, self.known)
        self._special(node.this, to in _TIME_TYPES)
        if to is not None and signatures.refusal(f"cast {to}", [self._operand_type(node.this)]) is not None:
            raise TypeError_(
                f"{self.written.text(node.this)}, which is of type {self._type_text(node.this)}, cannot be cast to "
                f"{to.upper()}",
                self.written.place(node),
                "Cast to a type that can hold it",
            )

    def unary(self, node: exp.Expr) -> None:
        """TypeError_ for ``-`` or ``~`` over what has none."""
        operator = "-" if isinstance(node, exp.Neg) else "~"
        if signatures.refusal(operator, [self._operand_type(node.this)]) is not None:
            raise TypeError_(
                f"{operator} cannot take {self.written.text(node.this)}, which is {self._type_text(node.this)}",
                self.written.place(node),
                "CAST it",
            )

    def subscript(self, node: exp.Expr) -> None:
        """TypeError_ for an element of an array whose number is none."""
        array = types.of(node.this, self.known) or ""
        for index in node.expressions if array.startswith("array<") else ():
            type_ = types.of(index, self.known)
            if type_ not in (None, "void", *types.INTEGRAL):
                raise TypeError_(
                    f"an element of an array is named by a whole number, and {self.written.text(index)} is "
                    f"{type_.upper()}",
                    self.written.place(index),
                    "CAST it to INT",
                )

    def condition(self, node: exp.Expr, where: str) -> None:
        """TypeError_ where a condition is needed and something else stands. Beside NOT, Spark reads a string as one."""
        type_ = types.of(node, self.known)
        if type_ not in (None, "void", "boolean") and not (where == "NOT" and type_ == "string"):
            raise TypeError_(
                f"{where} needs a condition, but {self.written.text(node)} is of type {type_.upper()}",
                self.written.place(node),
                comparison(self.written.text(node), type_),
            )

    def beside(self, node: exp.Expr) -> None:
        """CASE, BETWEEN, IN: values of one type; a string among times is read as one."""
        if not isinstance(node, exp.Case):
            values = list(node.iter_expressions())
            if isinstance(node, exp.In):
                self._together(values, "IN")
                self._with_first(values, "IN", "=")
            else:
                self._with_first(values, node.key.upper(), "<")
            return
        branches = node.args.get("ifs") or []
        default, subject = node.args.get("default"), node.this
        for branch in branches if subject is None else ():
            self.condition(branch.this, "WHEN")
        if subject is not None:
            self._with_first([subject, *(b.this for b in branches)], "CASE", "=")
        self._together([*(b.args["true"] for b in branches), *([default] if default is not None else [])], "CASE")

    def _with_first(self, values: list[exp.Expr], what: str, operator: str) -> None:
        """The first value is compared with each of the others."""
        times = any(self._is_time(v) for v in values)
        for value in values:
            self._special(value, times)
        self._pairs(((values[0], other) for other in self._of_each_type(values[1:])), what, operator)

    def _of_each_type(self, values: list[exp.Expr]) -> list[exp.Expr]:
        """The first value of each type: a list may be long."""
        found: dict[str | None, exp.Expr] = {}
        for value in values:
            found.setdefault(types.of(value, self.known), value)
        return list(found.values())

    def _pairs(self, pairs: Iterable[tuple[exp.Expr, exp.Expr]], what: str, operator: str) -> None:
        """TypeError_ for two values that Spark's ``operator`` does not take together."""
        for pair in pairs:
            if any(isinstance(value, exp.Tuple | exp.Query) for value in pair):
                continue
            both = [types.of(value, self.known) for value in pair]
            both = [None if t == "void" else t for t in types.beside_null(operator, both)]
            one = operator in ("COALESCE", "||") and what != "IN"  # IN compares only
            for found in both, both[::-1]:
                if signatures.refusal(operator, found) is not None or (one and types.named_otherwise(*found)):
                    first, second = (f"{self.written.text(v)}, which is {self._type_text(v)}" for v in pair)
                    raise TypeError_(
                        f"{what} cannot take {first}, and {second}", self.written.place(pair[1]), "CAST one of them"
                    )

    def _together(self, values: list[exp.Expr], what: str) -> None:
        """All values need a common type."""
        times = any(self._is_time(v) for v in values)
        for value in values:
            self._special(value, times)
        self._pairs(itertools.combinations(self._of_each_type(values), 2), what, "COALESCE")

    def _special(self, node: exp.Expr, as_time: bool) -> None:
        if as_time and isinstance(node, exp.Literal) and node.is_string and functions.is_special_instant(node.name):
            raise RefusedError(
                f"'{node.name}' as a time is not deterministic: it depends on when a slice is run",
                self.written.place(node),
                "Use the stream's instant ts, or write the time itself",
            )

    def _operand_type(self, node: exp.Expr) -> str | None:
        """The type of an operand; None of a NULL without one. A literal in quotes is a STRING like any other: Spark's
        casts ask what type is wanted, not whether the value is written out."""
        type_ = types.of(node, self.known)
        return None if type_ == "void" else type_

    def _is_time(self, node: exp.Expr) -> bool:
        return types.of(node, self.known) in _TIME_TYPES

    def _type_text(self, node: exp.Expr) -> str:
        return (types.of(node, self.known) or "unknown").upper()
