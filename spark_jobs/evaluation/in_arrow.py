"""Which expressions Arrow computes as Spark does: their texts as trees (``operators/linear/computed.py``).

What is not known here to be the same goes through Spark SQL, which costs a row and a column more of each row, never an
answer. Values that are equal and not alike (0.0 and -0.0, collations) are left to Spark, and so is what may fail:
a sum that overflows is an error there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from sweeparea.cql.rewrites.conditions import tree as parsed
from sweeparea.operators.linear.computed import CallValue, ColumnValue, Computed, ConstantValue
from sweeparea.operators.linear.instant_texts import parts_of
from sweeparea.operators.sql.sql_text import tokens

_COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
}
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
"""The precision of the decimals that Spark makes of whole numbers."""
_MOST = 38
_DATE_FORMAT = "__date_format"
_LONGEST = 2_000
"""Characters of a text beyond which Spark has to compute it."""
_NUMBER = re.compile(r"\d+|\d+\.\d*|\.\d+")


def computed(sql: str, types: Mapping[str, pa.DataType]) -> Computed | None:
    """An expression over columns of these types; None: Spark has to compute it."""
    # an escape in a text is Spark's to read; trees are no deeper than short texts
    node = None if "\\" in sql or len(sql) > _LONGEST else parsed(_raw_patterns(sql))
    return None if node is None else _value(node, types)


def _raw_patterns(sql: str) -> str:
    """The text with ``date_format`` as a function that sqlglot does not know: it rewrites the patterns of that one."""
    if "date_format" not in sql.lower():
        return sql
    for token in reversed([token for token in tokens(sql) if token.word == "DATE_FORMAT"]):
        sql = f"{sql[: token.start]}{_DATE_FORMAT}{sql[token.end :]}"
    return sql


def condition(sql: str, types: Mapping[str, pa.DataType]) -> Computed | None:
    """``computed`` of a condition."""
    found = computed(sql, types)
    return found if found is not None and pt.is_boolean(found.type) else None


def _value(node: exp.Expr, types: Mapping[str, pa.DataType]) -> Computed | None:
    node = node.unnest()
    match node:
        case exp.Column():
            kind = types.get(node.name) if len(node.parts) == 1 else None
            return None if kind is None or not _plain(kind) else ColumnValue(node.name, kind)
        case exp.And() | exp.Or():
            name = "and_kleene" if isinstance(node, exp.And) else "or_kleene"
            return _logic(name, _value(node.this, types), _value(node.expression, types))
        case exp.Not():
            return _logic("invert", _value(node.this, types))
        case exp.Is() if isinstance(node.expression, exp.Null):
            below = _value(node.this, types)
            return None if not isinstance(below, ColumnValue) else CallValue("is_null", (below,), pa.bool_())
        case exp.Between():
            value, low, high = (_value(node.this, types), node.args["low"], node.args["high"])
            above = _compared("greater_equal", value, _value(low, types))
            return _logic("and_kleene", above, _compared("less_equal", value, _value(high, types)))
        case exp.In() if node.expressions and not node.args.get("query"):
            value, found = _value(node.this, types), None
            for member in node.expressions:
                equal = _compared("equal", value, _value(member, types))
                if equal is None:
                    return None
                found = equal if found is None else _logic("or_kleene", found, equal)
            return found
        case exp.Mod():
            return _remainder(_value(node.this, types), _value(node.expression, types))
        case exp.Mul():
            return _product(_value(node.this, types), _value(node.expression, types))
        case exp.If():
            return _case([(node.this, node.args["true"])], node.args.get("false"), types)
        case exp.Case() if node.this is None:
            return _case([(each.this, each.args["true"]) for each in node.args["ifs"]], node.args.get("default"), types)
        case exp.Anonymous() if node.name == _DATE_FORMAT:
            return _date_format(node.expressions, types)
        case exp.Literal() | exp.Neg():
            return _constant(node)
        case _:
            name = _COMPARED.get(type(node))
            return None if name is None else _compared(name, _value(node.this, types), _value(node.expression, types))


def _plain(kind: pa.DataType) -> bool:
    """Whether equal values of a type are alike, and in the order that Arrow has them in."""
    whole = pt.is_signed_integer(kind) or pt.is_decimal128(kind) or pt.is_boolean(kind)
    return whole or pt.is_string(kind) or pt.is_date32(kind) or pt.is_timestamp(kind)


def _logic(name: str, *parts: Computed | None) -> Computed | None:
    found = tuple(part for part in parts if part is not None and pt.is_boolean(part.type))
    return CallValue(name, found, pa.bool_()) if len(found) == len(parts) else None


def _case(
    pairs: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None, types: Mapping[str, pa.DataType]
) -> Computed | None:
    """CASE WHEN .. THEN .. ELSE .. END, of values of one type; constants have that of the others."""
    conditions = [_value(when, types) for when, _ in pairs]
    texts = [*(then for _, then in pairs), exp.Null() if default is None else default]
    values = [None if isinstance(text.unnest(), exp.Null) else _value(text, types) for text in texts]
    given = [value for value in values if value is not None]
    if len(given) < sum(not isinstance(text.unnest(), exp.Null) for text in texts) or not given:
        return None
    if any(when is None or isinstance(when, ConstantValue) or not pt.is_boolean(when.type) for when in conditions):
        return None
    kind = next((value.type for value in given if not isinstance(value, ConstantValue)), given[0].type)
    fitted = [_branch(value, kind) for value in values]
    if any(value is None for value in fitted):
        return None
    parts = [part for pair in zip(conditions, fitted, strict=False) for part in pair]
    return CallValue("case", (*filter(None, parts), *filter(None, fitted[-1:])), kind)


def _branch(value: Computed | None, kind: pa.DataType) -> Computed | None:
    """A value of CASE (None: NULL) whose type is to be ``kind``; None: Spark has another type for all of it."""
    if value is None:
        return ConstantValue(None, kind)
    if value.type == kind:
        return value
    wider = pt.is_signed_integer(kind) and pt.is_signed_integer(value.type) and value.type.bit_width > kind.bit_width
    return (
        _fitted(value, kind) if isinstance(value, ConstantValue) and pt.is_signed_integer(kind) and not wider else None
    )


def _date_format(given: Sequence[exp.Expr], types: Mapping[str, pa.DataType]) -> Computed | None:
    """An instant by a pattern; sessions have the zone UTC."""
    if len(given) != 2:
        return None
    value, pattern = (_value(node, types) for node in given)
    if value is None or value.type not in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        return None
    if not isinstance(pattern, ConstantValue) or not isinstance(pattern.value, str) or not parts_of(pattern.value):
        return None
    return CallValue("date_format", (value, pattern), pa.string())


def _compared(name: str, left: Computed | None, right: Computed | None) -> Computed | None:
    if left is None or right is None or (isinstance(left, ConstantValue) and isinstance(right, ConstantValue)):
        return None
    if isinstance(left, ConstantValue):
        fitted = _fitted(left, right.type)
        return None if fitted is None else CallValue(name, (fitted, right), pa.bool_())
    other = _fitted(right, left.type) if isinstance(right, ConstantValue) else right
    return None if other is None or other.type != left.type else CallValue(name, (left, other), pa.bool_())


def _fitted(constant: ConstantValue, kind: pa.DataType) -> ConstantValue | None:
    """A constant as a value of the type that it is compared with, if it is one."""
    value = constant.value
    if isinstance(value, str) or pt.is_string(kind):
        return ConstantValue(value, kind) if isinstance(value, str) and pt.is_string(kind) else None
    if pt.is_signed_integer(kind):
        bound = 1 << (kind.bit_width - 1)
        return ConstantValue(value, kind) if isinstance(value, int) and -bound <= value < bound else None
    if isinstance(kind, pa.Decimal128Type):
        number = Decimal(value)
        whole = len(str(abs(int(number))))
        exact = -number.as_tuple().exponent <= kind.scale and whole <= kind.precision - kind.scale  # type: ignore[operator]
        return ConstantValue(number, kind) if exact else None
    return None


def _constant(node: exp.Expr) -> ConstantValue | None:
    negative = isinstance(node, exp.Neg)
    node = node.this.unnest() if negative else node
    if not isinstance(node, exp.Literal):
        return None
    text = str(node.this)
    if node.is_string:
        return None if negative else ConstantValue(text, pa.string())
    if not _NUMBER.fullmatch(text):
        return None
    if text.isdigit():
        value = -int(text) if negative else int(text)
        kind = pa.int32() if abs(value) < 1 << 31 else pa.int64()
        return ConstantValue(value, kind) if abs(value) < 1 << 63 else None
    number = -Decimal(text) if negative else Decimal(text)
    exponent = number.as_tuple().exponent
    scale = max(0, -exponent) if isinstance(exponent, int) else 0
    precision = max(len(number.as_tuple().digits), scale)
    return ConstantValue(number, pa.decimal128(precision, scale)) if precision <= _MOST else None


def _remainder(value: Computed | None, by: Computed | None) -> Computed | None:
    """The remainder by a constant above zero. It has the wider of two types, here that of the value."""
    whole = all(side is not None and pt.is_signed_integer(side.type) for side in (value, by))
    if not whole or value is None or isinstance(value, ConstantValue) or not isinstance(by, ConstantValue):
        return None
    if by.value <= 0 or by.type.bit_width > value.type.bit_width:
        return None
    return CallValue("remainder", (value, ConstantValue(by.value, value.type)), value.type)


def _product(left: Computed | None, right: Computed | None) -> Computed | None:
    """The product of a decimal constant and a column of whole numbers or decimals: where it fits it never fails."""
    constant, column = (left, right) if isinstance(left, ConstantValue) else (right, left)
    if not isinstance(constant, ConstantValue) or not isinstance(column, ColumnValue):
        return None
    digits = _DIGITS.get(column.type)
    kind = column.type if digits is None else pa.decimal128(digits, 0)
    if not isinstance(constant.type, pa.Decimal128Type) or not isinstance(kind, pa.Decimal128Type):
        return None  # whole numbers have a product that may overflow
    precision, scale = constant.type.precision + kind.precision + 1, constant.type.scale + kind.scale
    made = pa.decimal128(precision, scale) if precision <= _MOST else None
    return None if made is None else CallValue("multiply", (constant, ColumnValue(column.name, kind)), made)
