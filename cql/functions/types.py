"""Types of expressions where they are certain without Spark, else None.

Spark's own analysis decides in the end; what is known here lets errors be told when a query is registered. Nothing is
guessed: a rule stands here only if Spark 4 in ANSI mode always agrees.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from sweeparea.cql.functions import decimals, signatures
from sweeparea.cql.functions.signatures import split_types
from sweeparea.cql.syntax.dialect.spans import span_of

INTEGRAL = ("tinyint", "smallint", "int", "bigint")
_NAMES = {
    "TINYINT": "tinyint", "SMALLINT": "smallint", "INT": "int", "BIGINT": "bigint", "FLOAT": "float",
    "DOUBLE": "double", "BOOLEAN": "boolean", "TEXT": "string", "VARCHAR": "string", "CHAR": "string",
    "DATE": "date", "TIMESTAMPTZ": "timestamp", "TIMESTAMP": "timestamp", "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz", "BINARY": "binary",
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
    exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Boolean, exp.Exists,
)  # fmt: skip
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
_SAME = frozenset(["FILTER", "ARRAY_SORT", "MAP_FILTER"])
"""Higher-order functions that give what their first argument is."""
OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div", exp.DPipe: "||",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^", exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>", exp.EQ: "=", exp.NEQ: "=", exp.NullSafeEQ: "<=>", exp.NullSafeNEQ: "<=>",
    exp.GT: "<", exp.GTE: "<", exp.LT: "<", exp.LTE: "<", exp.And: "AND", exp.Or: "OR", exp.Like: "LIKE",
    exp.ILike: "ILIKE", exp.RegexpLike: "RLIKE",
}  # fmt: skip
"""Operators of two operands by the name that ``signatures.py`` knows them by."""


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


_QUOTED = re.compile(r"`(?:``|[^`])*`")
_UNHELD = re.compile(r"(?<!\w)(?:interval(?= )|variant(?![\w:])|struct<>)")


def unheld(type_: str | None) -> str:
    """What no table holds in a type, at any depth: ``interval``, ``variant`` or ``struct<>``; empty if it can be held.
    Of NULLs without a type see ``untyped_nulls.py``.
    """
    found = _UNHELD.search(_QUOTED.sub("", type_ or ""))
    return found[0] if found else ""


def is_numeric(type_: str | None) -> bool:
    return type_ in INTEGRAL or type_ in ("float", "double") or decimals.decimal_of(type_) is not None


def family(type_: str) -> str:
    """Types of different families have no common type in Spark, except ``other``, of which nothing is said here."""
    if is_numeric(type_):
        return "number"
    if type_ in ("date", "timestamp", "timestamp_ntz"):
        return "time"
    return type_ if type_ == "boolean" else "other"


def fields(type_: str | None) -> list[tuple[str, str]] | None:
    """Names and types of a struct's fields; None if the type is no struct."""
    if type_ is None or not type_.startswith("struct<"):
        return None
    found = []
    for part in split_types(type_[7:-1]):
        name, colon, inner = part.partition(":")
        if not colon:
            name, _, inner = part.partition(" ")
        found.append((name.strip().strip("`"), inner.strip().removesuffix(" NOT NULL").removesuffix(" not null")))
    return found


def field_type(type_: str | None, name: str) -> str | None:
    """The type of ``value.name``: a struct's field, or those of an array of structs."""
    if type_ is not None and type_.startswith("array<"):
        inner = field_type(type_[6:-1], name)
        return None if inner is None else f"array<{inner}>"
    if type_ is not None and type_.startswith("map<"):
        return split_types(type_[4:-1])[1]
    return next((t for n, t in fields(type_) or [] if n.lower() == name.lower()), None)


def common(types: list[str | None]) -> str | None:
    """The type of a value that may be any of several: certain only if they are equal, or Spark widens them to
    one."""
    found = [t for t in types if t != "void"]
    if not found:
        return "void" if types else None
    widest = found[0]
    for type_ in found[1:]:
        widest = _wider(widest, type_)
    return widest


def apart(a: str, b: str) -> bool:
    """Whether Spark is certain to know no type that holds the values of both."""
    return any(signatures.refusal("COALESCE", pair) is not None for pair in ([a, b], [b, a]))


def named_otherwise(a: str | None, b: str | None) -> bool:
    """Whether structs in two types have other names of fields: Spark compares them, and makes no one type of them."""
    if a is None or b is None or a == b:
        return False
    kind = a.partition("<")[0]
    if kind not in ("array", "map", "struct") or kind != b.partition("<")[0]:
        return False
    if kind == "struct":
        left, right = fields(a) or [], fields(b) or []
        if not all(name.isidentifier() for name, _ in (*left, *right)) or len(left) != len(right):
            return False
        pairs = [(x, y) for (_, x), (_, y) in zip(left, right, strict=True)]
        if [n.lower() for n, _ in left] != [n.lower() for n, _ in right]:
            return True
    else:
        inner = [split_types(t[len(kind) + 1 : -1]) for t in (a, b)]
        pairs = [*zip(*inner, strict=True)]
    return any(named_otherwise(x, y) for x, y in pairs)


def _wider(a: str | None, b: str | None) -> str | None:
    if a is None or b is None or a == b:
        return a if a == b else None
    if "void" in (a, b):
        return b if a == "void" else a
    digits = decimals.digits(a), decimals.digits(b)
    if digits[0] is not None and digits[1] is not None and (decimals.decimal_of(a) or decimals.decimal_of(b)):
        scale = max(digits[0][1], digits[1][1])
        whole = max(digits[0][0] - digits[0][1], digits[1][0] - digits[1][1])
        return decimals.decimal(whole + scale, scale) if whole + scale <= 38 else None
    if a.endswith(">") or b.endswith(">"):
        return _wider_inside(a, b)
    return signatures.result("COALESCE", [a, b])


def _wider_inside(a: str, b: str) -> str | None:
    """The common type of two arrays, maps or structs, which Spark widens part by part; None for other pairs."""
    kind = a.partition("<")[0]
    if kind != b.partition("<")[0]:
        return None
    if kind == "struct":
        left, right = fields(a) or [], fields(b) or []
        if [n.lower() for n, _ in left] != [n.lower() for n, _ in right] or not all(n.isidentifier() for n, _ in left):
            return None
        found = [_wider(x, y) for (_, x), (_, y) in zip(left, right, strict=True)]
        parts = [f"{name}:{t}" for (name, _), t in zip(left, found, strict=True)]
    else:
        inner = [split_types(t[len(kind) + 1 : -1]) for t in (a, b)]
        found = [_wider(x, y) for x, y in zip(*inner, strict=True)]
        parts = [str(t) for t in found]
    return None if None in found else f"{kind}<{','.join(parts)}>"


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
    if isinstance(node, exp.Null):
        return "void"
    if isinstance(node, exp.HexString):
        return "binary"
    if isinstance(node, exp.RawString):
        return "string"
    if isinstance(node, exp.Neg | exp.BitwiseNot):
        return signatures.result("-" if isinstance(node, exp.Neg) else "~", [of(node.this, known)])
    if type(node) in OPERATORS:
        return _operation(node, known)
    if isinstance(node, exp.Bracket):
        return _element(of(node.this, known))
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return field_type(of(node.this, known), node.expression.name)
    if isinstance(node, exp.Interval):
        return _interval(node.args.get("unit"))
    if isinstance(node, exp.Case):
        branches = [of(i.args.get("true"), known) for i in node.args.get("ifs") or []]
        if node.args.get("default") is not None:
            branches.append(of(node.args["default"], known))
        return common(branches)
    if isinstance(node, exp.Anonymous):
        return _function(node, known)
    if isinstance(node, exp.Substring | exp.Overlay):
        text = of(node.this, known)
        return text if text in (None, "binary") else "string"
    if isinstance(node, exp.Trim):
        return "string"
    return "int" if isinstance(node, exp.StrPosition) else None


_UNITS = {"quarter": "month", "week": "day", "millisecond": "second", "microsecond": "second"}
"""Units of interval literals that Spark has no type for, by the one that it takes."""
_SPANS = ("year to month", "day to hour", "day to minute", "day to second", "hour to minute", "hour to second",
          "minute to second")  # fmt: skip


def _interval(unit: exp.Expr | None) -> str | None:
    """The type of an interval literal, by its unit or its span of units."""
    if isinstance(unit, exp.IntervalSpan):
        span = f"{unit.this.name} to {unit.expression.name}".lower()
        return f"interval {span}" if span in _SPANS else None
    if not isinstance(unit, exp.Var):
        return None
    name = unit.name.lower().removesuffix("s")
    return f"interval {_UNITS.get(name, name)}"


ARITHMETIC = frozenset("+-*/%&|^")


def beside_null(operator: str, both: list[str | None]) -> list[str | None]:
    """The operands of an operator, a NULL without a type as one of the type that Spark gives it there."""
    if "void" not in both or operator not in ("||", "AND", "OR", *ARITHMETIC):
        return both
    alone = "boolean" if operator in ("AND", "OR") else "int" if operator in "&|^" else "double"
    other = next((t for t in both if t != "void"), alone)
    taken = other
    if operator == "||":
        taken = "string"
    elif operator == "+" and other in ("date", "timestamp", "timestamp_ntz"):
        taken = "interval day to second"
    elif (other or "").startswith("interval") and (operator == "*" or (operator == "/" and both[1] == "void")):
        taken = "int"
    return [taken if t == "void" else t for t in both]


def _operation(node: exp.Expr, known: Mapping[int, str | None]) -> str | None:
    operator = OPERATORS[type(node)]
    both = beside_null(operator, [of(node.this, known), of(node.expression, known)])
    if operator == "||" and None not in both and not any(str(t).endswith(">") or t == "variant" for t in both):
        return "binary" if both == ["binary", "binary"] else "string"
    if decimals.decimal_of(both[0]) or decimals.decimal_of(both[1]):
        pairs = zip((node.this, node.expression), both, strict=True)
        sides = [_literal_digits(tree) or decimals.digits(type_) for tree, type_ in pairs]
        if sides[0] is not None and sides[1] is not None:
            return decimals.arithmetic(operator, sides[0], sides[1])
    return signatures.result(operator, both)


def _literal_digits(node: exp.Expr) -> tuple[int, int] | None:
    """A whole number beside a decimal has just the digits that are written."""
    if isinstance(node, exp.TryCast) and span_of(node) == span_of(node.this):  # 5L
        node = node.this
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
        return len(str(int(str(node.this)))), 0
    return None


def _element(type_: str | None) -> str | None:
    """The type of ``value[i]``."""
    if type_ is not None and type_.startswith("array<"):
        return type_[6:-1]
    return split_types(type_[4:-1])[1] if type_ is not None and type_.startswith("map<") else None


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
    user = node.meta.get("user")
    if user is not None:
        return user.type
    arguments = node.expressions
    if name in _CONVERSIONS and len(arguments) == 1:
        return normal(name)
    given = [of(a, known) for a in arguments]
    if name in _COMMON:
        return common(given)
    if name in ("IF", "NVL2") and len(arguments) == 3:
        return common(given[1:])
    if name in _SAME and given:
        return given[0]
    if name in ("ARRAY", "MAP", "STRUCT", "NAMED_STRUCT"):
        return _nested(name, arguments, given)
    return signatures.result(name, given)


def _nested(name: str, arguments: list[exp.Expr], given: list[str | None]) -> str | None:
    """The type of ``array(..)``, ``map(..)``, ``struct(..)`` where all parts' types are known."""
    if not given or any(t is None for t in given):
        return None
    if name == "ARRAY":
        inner = common(given)
        return None if inner is None else f"array<{inner}>"
    if name == "MAP":
        key, value = common(given[::2]), common(given[1::2])
        return f"map<{key},{value}>" if key is not None and value is not None and len(given) % 2 == 0 else None
    if name == "NAMED_STRUCT":
        names = [a.name if isinstance(a, exp.Literal) and a.is_string else "" for a in arguments[::2]]
        given = given[1::2]
    else:
        names = [_field_name(a, i) for i, a in enumerate(arguments, 1)]
    if len(names) != len(given) or not all(n.isidentifier() for n in names):
        return None
    return f"struct<{','.join(f'{n}:{t}' for n, t in zip(names, given, strict=True))}>"


def _field_name(node: exp.Expr, position: int) -> str:
    if isinstance(node, exp.Alias):
        return node.alias
    return node.name if isinstance(node, exp.Column) else f"col{position}"
