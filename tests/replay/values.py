"""Values of cases for DuckDB, their total order (semantics, section 2) and JSON form. No code of the engine is used."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import math
import re
from typing import Any

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SIMPLE = {
    "tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INTEGER", "bigint": "BIGINT", "float": "FLOAT",
    "double": "DOUBLE", "string": "VARCHAR", "boolean": "BOOLEAN", "binary": "BLOB", "date": "DATE",
    "timestamp": "TIMESTAMPTZ", "timestamp_ntz": "TIMESTAMP",
}  # fmt: skip


class CaseError(Exception):
    """The case must fail with a DataError."""


def split(text: str) -> list[str]:
    """The comma-separated parts of a type's parameters, outermost commas only."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def duck_type(ddl: str) -> str:
    """The DuckDB type for a Spark type."""
    ddl = ddl.strip().lower()
    if match := re.fullmatch(r"(\w+)<(.*)>", ddl):
        parts = split(match[2])
        if match[1] == "array":
            return f"{duck_type(parts[0])}[]"
        if match[1] == "map":
            return f"MAP({duck_type(parts[0])}, {duck_type(parts[1])})"
        fields = [part.split(":", 1) for part in parts]
        return f"STRUCT({', '.join(f'{name.strip()} {duck_type(kind)}' for name, kind in fields)})"
    return _SIMPLE.get(ddl) or ddl.upper()


def micros(text: str) -> int:
    moment = dt.datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return (moment - EPOCH) // dt.timedelta(microseconds=1)


def iso(tick: int) -> str:
    return (EPOCH + dt.timedelta(microseconds=tick)).replace(tzinfo=None).isoformat() + "Z"


def decode(value: Any, ddl: str) -> Any:
    """A JSON value as the Python value that DuckDB takes for the type."""
    ddl = ddl.strip().lower()
    if value is None:
        return None
    if match := re.fullmatch(r"(\w+)<(.*)>", ddl):
        parts = split(match[2])
        if match[1] == "array":
            return [decode(v, parts[0]) for v in value]
        if match[1] == "map":
            # DuckDB compares maps entry by entry, as they stand
            entries = sorted(((decode(k, parts[0]), v) for k, v in value), key=lambda entry: order_key(entry[0]))
            return {k: _positive(decode(v, parts[1])) for k, v in entries}
        return {
            name.strip(): decode(v, kind)
            for v, (name, kind) in zip(value, (part.split(":", 1) for part in parts), strict=True)
        }
    if ddl in ("double", "float"):
        return float(value)
    if ddl.startswith("decimal"):
        return decimal.Decimal(str(value))
    if ddl == "binary":
        return base64.b64decode(value)
    if ddl == "date":
        return dt.date.fromisoformat(value)
    if ddl == "timestamp":
        return EPOCH + dt.timedelta(microseconds=micros(value))
    if ddl == "timestamp_ntz":
        return dt.datetime.fromisoformat(value)
    return int(value) if ddl in ("tinyint", "smallint", "int", "bigint") else value


def _positive(value: Any) -> Any:
    """The value with 0.0 for -0.0."""
    if isinstance(value, dict):
        return {k: _positive(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_positive(v) for v in value]
    return value + 0.0 if isinstance(value, float) else value


def order_key(value: Any) -> tuple:
    """A hashable key: equal keys are one value, smaller keys come first."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, 1, 0.0) if math.isnan(value) else (1, 0, value + 0.0)
    if isinstance(value, str):
        return (1, value.encode())
    if isinstance(value, list | tuple):
        return (1, tuple(order_key(v) for v in value))
    if isinstance(value, dict):  # a struct's fields stand in order; a map's entries are sorted
        return (1, tuple(order_key(v) for v in value.values()))
    return (1, value)


def plain(value: Any, kind: str) -> Any:
    """A value of DuckDB type ``kind``, in which every map, however deep, is the list of its entries by their keys."""
    if value is None:
        return None
    if kind.endswith("[]"):
        return [plain(v, kind[:-2]) for v in value]
    if match := re.fullmatch(r"MAP\((.*)\)", kind):
        of_key, of_value = split(match[1])
        return sorted(([plain(k, of_key), plain(v, of_value)] for k, v in value.items()), key=lambda e: order_key(e[0]))
    if match := re.fullmatch(r"STRUCT\((.*)\)", kind):
        kinds = [re.sub(r'^("[^"]*"|\S+) ', "", field) for field in split(match[1])]
        return [plain(v, of_field) for v, of_field in zip(value.values(), kinds, strict=True)]
    return value


def encode(value: Any, kind: str) -> Any:
    """A value that DuckDB gave for a column of DuckDB type ``kind``, as JSON."""
    return _encode(plain(value, kind))


def _encode(value: Any) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value + 0.0
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int):
        return value if abs(value) <= 1 << 53 else str(value)
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.datetime):
        if value.tzinfo:
            value = value.astimezone(dt.UTC).replace(tzinfo=None)
            return value.isoformat() + "Z"
        return value.isoformat()
    if isinstance(value, dt.date):
        return value.isoformat()
    return [_encode(v) for v in value]
