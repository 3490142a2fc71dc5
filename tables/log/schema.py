"""Column types: Spark's DDL text, Arrow's types and the Delta log's JSON, in one mapping that needs no JVM.

TIMESTAMP is microseconds since the epoch in UTC, TIMESTAMP_NTZ microseconds without a zone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sweeparea.tables.errors import TableError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_ARROW: dict[str, pa.DataType] = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "smallint": pa.int16(),
    "tinyint": pa.int8(),
    "double": pa.float64(),
    "float": pa.float32(),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_SYNONYMS = {
    "long": "bigint",
    "integer": "int",
    "short": "smallint",
    "byte": "tinyint",
    "real": "float",
    "timestamp_ltz": "timestamp",
    "varchar": "string",
    "char": "string",
    "dec": "decimal",
    "numeric": "decimal",
}
_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)|`(?P<quoted>(?:[^`]|``)+)`|(?P<number>\d+)|(?P<sign>[<>(),:]))"
)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)


def arrow_type(ddl: str) -> pa.DataType:
    """The Arrow type of a Spark DDL type.

    >>> arrow_type("struct<a:bigint,b:array<decimal(10,2)>>")
    StructType(struct<a: int64, b: list<element: decimal128(10, 2)>>)
    """
    parser = _Parser(ddl)
    parsed = parser.type()
    parser.end()
    return parsed


def declared_type(ddl: str) -> pa.DataType:
    """As :func:`arrow_type`, with a fixed-size binary of n bytes in the place of ``char(n)``."""
    parser = _DeclaredParser(ddl)
    parsed = parser.type()
    parser.end()
    return parsed


def spark_type(arrow: pa.DataType) -> str:
    """The Spark DDL type, in lower case, of an Arrow type; equal text means equal type, nullability aside.

    >>> spark_type(pa.timestamp("us", "UTC"))
    'timestamp'
    """
    types = pa.types
    if types.is_struct(arrow):
        fields = (arrow.field(i) for i in range(arrow.num_fields))
        return "struct<" + ",".join(f"{_quoted(field.name)}:{spark_type(field.type)}" for field in fields) + ">"
    if types.is_map(arrow):
        return f"map<{spark_type(arrow.key_type)},{spark_type(arrow.item_type)}>"
    if any(test(arrow) for test in (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view)):
        return f"array<{spark_type(arrow.value_type)}>"
    if types.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    if types.is_timestamp(arrow):
        return "timestamp_ntz" if arrow.tz is None else "timestamp"
    if types.is_large_string(arrow) or types.is_string_view(arrow):
        return "string"
    if types.is_large_binary(arrow) or types.is_binary_view(arrow) or types.is_fixed_size_binary(arrow):
        return "binary"
    for ddl, known in _ARROW.items():
        if arrow.equals(known):
            return ddl
    raise TableError(f"The Arrow type {arrow} has no Spark type. Convert the column to a type that Spark has first.")


def delta_type(json_type: str | dict[str, Any]) -> str:
    """The Spark DDL type of a type in a Delta log's schema JSON (``long``, ``{"type": "struct", ..}``).

    The names of fields are quoted where they must be. A type that only Spark knows (``variant``) is returned by its
    name.
    """
    if isinstance(json_type, str):
        spaced = json_type.startswith("interval")
        return _SYNONYMS.get(json_type, json_type if spaced else json_type.replace(" ", ""))
    kind = json_type["type"]
    if kind == "struct":
        return "struct<" + ",".join(f"{_quoted(f['name'])}:{delta_type(f['type'])}" for f in json_type["fields"]) + ">"
    if kind == "array":
        return f"array<{delta_type(json_type['elementType'])}>"
    if kind == "map":
        return f"map<{delta_type(json_type['keyType'])},{delta_type(json_type['valueType'])}>"
    return delta_type(kind)


def ddl_type(kind: DataType) -> str:
    """The Spark DDL type of a type of Spark's, as ``simpleString()``, which leaves out the quotes of fields' names."""
    return delta_type(kind.jsonValue())


def same_columns(left: pa.Schema, right: pa.Schema) -> bool:
    """Whether both have the same columns in the same order and of the same Spark types."""
    return [(f.name, spark_type(f.type)) for f in left] == [(f.name, spark_type(f.type)) for f in right]


def bare(schema: pa.Schema) -> pa.Schema:
    """The same columns without what the table that they come from says of them (column mapping, comments, ..)."""
    return pa.schema([pa.field(f.name, arrow_type(spark_type(f.type)), f.nullable) for f in schema])


def describe_columns(schema: pa.Schema) -> str:
    """One line for messages: ``a bigint, b string``."""
    return ", ".join(f"{field.name} {spark_type(field.type)}" for field in schema)


def _quoted(name: str) -> str:
    return name if _PLAIN_NAME.match(name) else "`" + name.replace("`", "``") + "`"


class _Parser:
    """Recursive descent over the DDL of one type."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._tokens(text)
        self.at = 0

    def type(self) -> pa.DataType:
        name = self._take().lower()
        name = _SYNONYMS.get(name, name)
        if name == "decimal":
            precision, scale = self._numbers([10, 0])
            if not 1 <= precision <= 38 or not 0 <= scale <= precision:
                raise self._error(f"decimal({precision},{scale}) is out of range (precision 1 to 38)")
            return pa.decimal128(precision, scale)
        if name == "array":
            self._expect("<")
            element = self.type()
            self._expect(">")
            return pa.list_(pa.field("element", element))
        if name == "map":
            self._expect("<")
            key = self.type()
            self._expect(",")
            value = self.type()
            self._expect(">")
            return pa.map_(key, value)
        if name == "struct":
            return pa.struct(self._fields())
        if name not in _ARROW:
            known = ", ".join(_ARROW)
            raise self._error(f"{name!r} is not one of {known}, decimal(p,s), array<..>, map<..>, struct<..>")
        self._numbers([])
        return _ARROW[name]

    def end(self) -> None:
        if self.at < len(self.tokens):
            raise self._error(f"nothing may follow at {self.tokens[self.at][1]!r}")

    def _fields(self) -> list[pa.Field]:
        fields: list[pa.Field] = []
        self._expect("<")
        while not self._accept(">"):
            if fields:
                self._expect(",")
            name = self._take(identifier=True)
            self._accept(":")
            field_type = self.type()
            if self._accept("not", "null"):
                fields.append(pa.field(name, field_type, nullable=False))
            else:
                fields.append(pa.field(name, field_type))
        return fields

    def _numbers(self, defaults: list[int]) -> list[int]:
        """The numbers in parentheses after a type, filled up from ``defaults``."""
        numbers: list[int] = []
        if self._accept("("):
            while not self._accept(")"):
                if numbers:
                    self._expect(",")
                text = self._take()
                if not text.isdigit():
                    raise self._error(f"a number was expected at {text!r}")
                numbers.append(int(text))
        return numbers + defaults[len(numbers) :]

    def _take(self, identifier: bool = False) -> str:
        if self.at >= len(self.tokens) or (identifier and self.tokens[self.at][0] not in ("name", "quoted")):
            raise self._error("it ends too early or lacks a name")
        self.at += 1
        return self.tokens[self.at - 1][1]

    def _accept(self, *words: str) -> bool:
        here = [text.lower() for kind, text in self.tokens[self.at : self.at + len(words)] if kind != "quoted"]
        if here != list(words):
            return False
        self.at += len(words)
        return True

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise self._error(f"{sign!r} was expected")

    def _tokens(self, text: str) -> list[tuple[str, str]]:
        tokens: list[tuple[str, str]] = []
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._error(f"{text[position:]!r} is no part of a type")
            kind = str(match.lastgroup)
            tokens.append((kind, match[kind].replace("``", "`") if kind == "quoted" else match[kind]))
            position = match.end()
        return tokens

    def _error(self, why: str) -> TableError:
        return TableError(f"The column type {self.text!r} cannot be read: {why}.")


class _DeclaredParser(_Parser):
    """Tells CHAR(n) from other texts."""

    def type(self) -> pa.DataType:
        if self._accept("char"):
            return pa.binary(self._numbers([1])[0])
        return super().type()
