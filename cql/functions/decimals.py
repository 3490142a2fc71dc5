"""Precision and scale of decimals, and of what Spark makes of them."""

from __future__ import annotations

import re

_DECIMAL = re.compile(r"^decimal\((\d+),\s*(\d+)\)$")


def decimal_of(type_: str | None) -> tuple[int, int] | None:
    """Precision and scale of a decimal type."""
    match = _DECIMAL.match(type_ or "")
    return (int(match[1]), int(match[2])) if match else None


def decimal_sum(function: str, argument: str | None) -> str | None:
    """The type of SUM and AVG over a decimal: Spark widens it by ten digits, or by four behind the point."""
    digits = decimal_of(argument)
    if digits is None:
        return None
    if function in ("SUM", "TRY_SUM"):
        return f"decimal({min(38, digits[0] + 10)},{digits[1]})"
    if function in ("AVG", "TRY_AVG"):
        return f"decimal({min(38, digits[0] + 4)},{min(38, digits[1] + 4)})"
    return None


_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}


def digits(type_: str | None) -> tuple[int, int] | None:
    """Precision and scale of a decimal, or of the decimal that an integer becomes beside one."""
    if type_ in _INTEGER_DIGITS:
        return _INTEGER_DIGITS[type_], 0
    return decimal_of(type_)


def decimal(precision: int, scale: int) -> str:
    """A decimal of at most 38 digits: of what is too much Spark first gives up digits behind the point, down to six."""
    if precision > 38:
        precision, scale = 38, max(38 - (precision - scale), min(scale, 6))
    return f"decimal({precision},{scale})"


def arithmetic(operator: str, a: tuple[int, int], b: tuple[int, int]) -> str | None:
    """The type of arithmetic over decimals, as Spark has it from SQL Server."""
    (p1, s1), (p2, s2) = a, b
    if operator in "+-":
        scale = max(s1, s2)
        return decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if operator == "*":
        return decimal(p1 + p2 + 1, s1 + s2)
    if operator == "/":
        scale = max(6, s1 + p2 + 1)
        return decimal(p1 - s1 + s2 + scale, scale)
    if operator == "%":
        scale = max(s1, s2)
        return decimal(min(p1 - s1, p2 - s2) + scale, scale)
    return None
