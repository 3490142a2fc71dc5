"""Types of expressions where they are certain without Spark, else None.

Spark's own analysis decides in the end; what is known here lets errors be told when a query is registered. Nothing is
guessed: a rule stands here only if Spark 4 in ANSI mode always agrees.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

INTEGRAL = ("tinyint", "smallint", "int", "bigint")
_DECIMAL = re.compile(r"^decimal\((\d+),\s*(\d+)\)$")
_NAMES = {
    "TINYINT": "tinyint", "SMALLINT": "smallint", "INT": "int", "BIGINT": "bigint", "FLOAT": "float", "DOUBLE":
    "double",
    "BOOLEAN": "boolean", "TEXT": "string", "VARCHAR": "string", "CHAR": "string", "DATE": "date", "TIMESTAMPTZ":
    "timestamp",
    "TIMESTAMP": "timestamp", "TIMESTAMPLTZ": "timestamp", "TIMESTAMPNTZ": "timestamp_ntz", "BINARY": "binary",
}  # fmt: skip
_ALIASES = {
    "integer": "int",
    "long": "bigint",
    "short": "smallint",
    "byte": "tinyint",
    "real": "float",
    "timestamp_ltz": "timestamp",
}
_BOOLEAN = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.And, exp.Or, exp.Not, exp.Is, exp.In,
    exp.Between,
    exp.Like, exp.ILike, exp.RegexpLike, exp.Boolean, exp.Exists,
)  # fmt: skip
_FIXED = {
    "LENGTH": "int", "CHAR_LENGTH": "int", "YEAR": "int", "QUARTER": "int", "MONTH": "int", "DAY": "int",
    "DAYOFMONTH": "int",
    "DAYOFWEEK": "int", "DAYOFYEAR": "int", "WEEKOFYEAR": "int", "HOUR": "int", "MINUTE": "int", "SECOND": "int",
    "SQRT": "double",
    "LN": "double", "EXP": "double", "POW": "double", "POWER": "double", "SIN": "double", "COS": "double", "TAN":
    "double",
    "ATAN2": "double", "RADIANS": "double", "DATE_TRUNC": "timestamp", "TO_DATE": "date", "DATE_FORMAT": "string",
    "UNIX_MICROS": "bigint", "UNIX_MILLIS": "bigint", "UNIX_SECONDS": "bigint", "ISNULL": "boolean", "ISNOTNULL":
    "boolean",
    "ISNAN": "boolean", "MD5": "string", "SHA2": "string", "XXHASH64": "bigint", "HASH": "int",
}  # fmt: skip
_FIRST = frozenset(
    ("UPPER", "LOWER", "UCASE", "LCASE", "TRIM", "LTRIM", "RTRIM", "INITCAP", "REGEXP_REPLACE", "TRANSLATE")
)
"""Functions that give a string where their first argument is one."""
_CONVERSIONS = frozenset(
    [
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "STRING",
        "BOOLEAN",
        "DATE",
        "TIMESTAMP",
        "BINARY",
        "DECIMAL",
    ]
)
"""Functions that are casts by another name."""
_COMMON = frozenset(["COALESCE", "NVL", "IFNULL", "GREATEST", "LEAST"])


def normal(type_: str | None) -> str | None:
    """One spelling for a type: ``BIGINT`` and ``long`` are ``bigint``."""
    if type_ is None:
        return None
    lowered = type_.strip().lower()
    if lowered in ("decimal", "numeric", "dec"):
        return "decimal(10,0)"
    lowered = re.sub(r"^(numeric|dec)\(", "decimal(", lowered)
    if match := re.fullmatch(r"decimal\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", lowered):
        return f"decimal({match[1]},{match[2] or 0})"
    if re.fullmatch(r"(var)?char\(\d+\)", lowered):
        return "string"
    return _ALIASES.get(lowered, lowered) if "<" not in lowered else type_.strip()


def decimal_of(type_: str | None) -> tuple[int, int] | None:
    """Precision and scale of a decimal type."""
    match = _DECIMAL.match(type_ or "")
    return (int(match[1]), int(match[2])) if match else None


def is_numeric(type_: str | None) -> bool:
    return type_ in INTEGRAL or type_ in ("float", "double") or decimal_of(type_) is not None


def family(type_: str) -> str:
    """Types of different families have no common type in Spark, except ``other``, of which nothing is said here."""
    if is_numeric(type_):
        return "number"
    if type_ in ("date", "timestamp", "timestamp_ntz"):
        return "time"
    return type_ if type_ == "boolean" else "other"


def aggregate_type(function: str, argument: str | None) -> str | None:
    """The result type of an aggregate over an argument of a type, as Spark has it."""
    if function == "COUNT":
        return "bigint"
    if function in ("MIN", "MAX"):
        return argument
    decimal = decimal_of(argument)
    if function == "SUM":
        if argument in INTEGRAL:
            return "bigint"
        if decimal:
            return f"decimal({min(38, decimal[0] + 10)},{decimal[1]})"
        return "double" if argument in ("float", "double", "string") else None
    if function == "AVG":
        if decimal:
            return _adjusted(decimal[0] + 4, decimal[1] + 4)
        return "double" if argument is not None and (is_numeric(argument) or argument == "string") else None
    return None


def _adjusted(precision: int, scale: int) -> str | None:
    # beyond 38 digits Spark caps the precision and, for AVG, gives up digits behind the point
    return f"decimal({precision},{scale})" if precision <= 38 else None


def aggregate_refuses(function: str, argument: str | None) -> bool:
    """Whether Spark cannot aggregate a type: it is certain to fail there, so it is told here."""
    if argument is None:
        return False
    nested = argument.split("<")[0] in ("array", "struct", "map")
    if function in ("SUM", "AVG"):
        return nested or argument in ("boolean", "date", "timestamp", "timestamp_ntz", "binary")
    if function in ("MIN", "MAX"):
        return argument.startswith("map<") or argument in ("variant", "interval")
    return False


def common(types: list[str | None]) -> str | None:
    """The type of a value that may be any of several: certain only if they are equal, or integers of several widths."""
    if not types or any(t is None for t in types):
        return None
    if len(set(types)) == 1:
        return types[0]
    if all(t in INTEGRAL for t in types):
        return max((t for t in types if t is not None), key=INTEGRAL.index)
    return None


def of(node: exp.Expr | None, known: Mapping[int, str | None]) -> str | None:
    """The type of a tree; ``known`` has the types of nodes (by ``id``) that the binder resolved: columns, keys,
    aggregates."""
    if node is None:
        return None
    if id(node) in known:
        return known[id(node)]
    if isinstance(node, exp.Paren | exp.Alias):
        return of(node.this, known)
    if isinstance(node, exp.Literal):
        return _literal(node)
    if isinstance(node, _BOOLEAN):
        return "boolean"
    if isinstance(node, exp.Cast):
        return _cast(node)
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and str(node.this.this).isdigit():
        return "int" if int(str(node.this.this)) <= 2**31 else _literal(node.this)
    if isinstance(node, exp.Neg):
        inner = of(node.this, known)
        return inner if is_numeric(inner) else None
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Mod):
        both = [of(node.this, known), of(node.expression, known)]
        if both == ["double", "double"] or ("double" in both and all(b in INTEGRAL or b == "double" for b in both)):
            return "double"
        return common(both) if all(b in INTEGRAL for b in both) else None
    if isinstance(node, exp.Div):
        both = [of(node.this, known), of(node.expression, known)]
        return "double" if all(b in INTEGRAL or b == "double" for b in both) else None
    if isinstance(node, exp.IntDiv):
        both = [of(node.this, known), of(node.expression, known)]
        return "bigint" if all(b in INTEGRAL for b in both) else None
    if isinstance(node, exp.DPipe):
        return "string" if [of(node.this, known), of(node.expression, known)] == ["string", "string"] else None
    if isinstance(node, exp.Case):
        branches = [of(i.args.get("true"), known) for i in node.args.get("ifs") or []]
        if node.args.get("default") is not None:
            branches.append(of(node.args["default"], known))
        return common(branches)
    if isinstance(node, exp.Anonymous):
        return _function(node, known)
    return None


def _literal(node: exp.Literal) -> str | None:
    if node.is_string:
        return "string"
    text = str(node.this)
    if text.isdigit():
        value = int(text)
        return "int" if value <= 2**31 - 1 else "bigint" if value <= 2**63 - 1 else f"decimal({len(text)},0)"
    if "e" in text.lower():
        return "double"
    whole, _, fraction = text.partition(".")
    digits = len(whole.lstrip("0")) + len(fraction)
    return f"decimal({max(digits, len(fraction), 1)},{len(fraction)})" if digits <= 38 else None


def _cast(node: exp.Cast) -> str | None:
    to = node.args.get("to")
    if not isinstance(to, exp.DataType) or isinstance(to.this, str):
        return None
    name = to.this.name
    if name == "DECIMAL":
        parameters = [p.name for p in to.expressions]
        if not all(p.isdigit() for p in parameters):
            return None
        return f"decimal({parameters[0] if parameters else 10},{parameters[1] if len(parameters) > 1 else 0})"
    return _NAMES.get(name) if not to.expressions or name in ("VARCHAR", "CHAR") else None


def _function(node: exp.Anonymous, known: Mapping[int, str | None]) -> str | None:
    name = node.name.upper()
    arguments = node.expressions
    if name in _FIXED:
        return _FIXED[name]
    if name in _CONVERSIONS and len(arguments) == 1:
        return normal(name)
    if name in _FIRST:
        return "string" if arguments and of(arguments[0], known) == "string" else None
    if name in _COMMON:
        return common([of(a, known) for a in arguments])
    if name == "IF" and len(arguments) == 3:
        return common([of(a, known) for a in arguments[1:]])
    if name == "ABS" and arguments:
        inner = of(arguments[0], known)
        return inner if is_numeric(inner) else None
    return None
