"""Values of Spark types as JSON and back: what ``replay`` reads and writes.

JSON numbers, strings and booleans stand for themselves. As strings: DECIMAL (full scale), BIGINT beyond 2^53, NaN and
infinities, dates and timestamps (ISO; ``Z`` marks an instant), binary (base64). Structs and arrays are arrays, maps
are arrays of pairs.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from sweeparea.infra.errors import DataError

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
SAFE = 1 << 53
"""Whole numbers up to this are JSON numbers, greater ones texts: readers that know DOUBLE only would change them."""
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def micros_of(text: str) -> int:
    """Microseconds since 1970 UTC of an ISO instant; without a zone it is UTC."""
    moment = dt.datetime.fromisoformat(text)
    moment = moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment
    return (moment - EPOCH) // dt.timedelta(microseconds=1)


def iso(micros: int, zone: str = "Z") -> str:
    """The ISO text of an instant, with a fraction only where there is one."""
    try:
        moment = EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        return str(micros)
    return moment.replace(tzinfo=None).isoformat() + zone


def decode(value: Any, kind: pa.DataType) -> Any:
    """A JSON value as the Python value that pyarrow takes for ``kind``. Raises ValueError or TypeError for one that
    does not fit.
    """
    if value is None:
        return None
    if pa.types.is_boolean(kind):
        if not isinstance(value, bool):
            raise TypeError(f"{value!r} is no boolean")
        return value
    if pa.types.is_integer(kind):
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            raise TypeError(f"{value!r} is no integer")
        return int(value)
    if isinstance(value, bool):
        raise TypeError("true and false are of type BOOLEAN")
    if pa.types.is_floating(kind):
        return _NON_FINITE[value] if isinstance(value, str) and value in _NON_FINITE else float(value)
    if pa.types.is_decimal(kind):
        with decimal.localcontext(decimal.Context(prec=76)):
            exact = decimal.Decimal(str(value))
            scaled = exact.quantize(decimal.Decimal(1).scaleb(-kind.scale))
        if scaled != exact:
            raise ValueError(f"it has more than {kind.scale} digits after the point")
        return scaled
    if pa.types.is_string(kind):
        if not isinstance(value, str):
            raise TypeError(f"{value!r} is no string")
        value.encode()  # half of a surrogate pair is no character
        return value
    if pa.types.is_binary(kind):
        return base64.b64decode(value, validate=True)
    if pa.types.is_date(kind):
        return dt.date.fromisoformat(value)
    if pa.types.is_timestamp(kind):
        micros = micros_of(value)
        return (
            EPOCH + dt.timedelta(microseconds=micros)
            if kind.tz
            else (EPOCH + dt.timedelta(microseconds=micros)).replace(tzinfo=None)
        )
    return _decode_nested(value, kind)


def _decode_nested(value: Any, kind: pa.DataType) -> Any:
    # what holds values of other types; any other type has no values in JSON
    if pa.types.is_struct(kind) and isinstance(value, dict):
        names = [kind.field(i).name for i in range(kind.num_fields)]
        if sorted(value) != sorted(names):
            raise ValueError(f"the struct has the fields {', '.join(names)}")
        value = [value[name] for name in names]
    if not isinstance(value, list):
        raise TypeError("arrays and maps (pairs of key and value) are arrays in JSON, structs too or objects")
    if pa.types.is_struct(kind):
        if len(value) != kind.num_fields:
            raise ValueError(f"a struct of {kind.num_fields} fields is given {len(value)} values")
        return {kind.field(i).name: decode(v, kind.field(i).type) for i, v in enumerate(value)}
    if pa.types.is_map(kind):
        entries = [(decode(k, kind.key_type), decode(v, kind.item_type)) for k, v in value]
        if any(k is None for k, _ in entries) or any(
            k == e[0] for i, (k, _) in enumerate(entries) for e in entries[:i]
        ):
            raise ValueError("keys of a map are not NULL, and each is there once")
        return entries
    if pa.types.is_list(kind):
        return [decode(v, kind.value_type) for v in value]
    raise TypeError(f"values of type {kind} cannot be given as JSON")


def column(values: Sequence[Any], kind: pa.DataType, what: str) -> pa.Array:
    """JSON values as an Arrow column. ``what`` names the column in errors."""
    decoded = []
    for value in values:
        try:
            decoded.append(decode(value, kind))
        except (ValueError, TypeError, decimal.InvalidOperation, binascii.Error, OverflowError) as error:
            raise DataError(f"{what}: {value!r} is no value of type {kind} ({error}).") from None
    try:
        return pa.array(decoded, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise DataError(f"{what}: a value does not fit type {kind}: {error}.") from None


def encode(value: Any, kind: pa.DataType) -> Any:
    """A value of an Arrow scalar (``as_py``) as JSON."""
    if value is None:
        return None
    if pa.types.is_integer(kind):
        return value if abs(value) <= SAFE else str(value)
    if pa.types.is_floating(kind):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if pa.types.is_decimal(kind):
        return f"{value:f}"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return base64.b64encode(value).decode()
    if pa.types.is_date(kind):
        return value.isoformat()
    if pa.types.is_timestamp(kind):
        return value.replace(tzinfo=None).isoformat() + ("Z" if kind.tz else "")
    if pa.types.is_struct(kind):
        return [encode(value[kind.field(i).name], kind.field(i).type) for i in range(kind.num_fields)]
    if pa.types.is_map(kind):
        return [[encode(k, kind.key_type), encode(v, kind.item_type)] for k, v in value]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [encode(v, kind.value_type) for v in value]
    return value


def _encoded(column: pa.ChunkedArray) -> list[Any]:
    """A column as JSON values; one with an instant beyond Python's years 1 to 9999 tells it as a number."""
    kind = column.type
    try:
        values = column.to_pylist()
        if pa.types.is_string(kind) or pa.types.is_boolean(kind):
            return values
        if pa.types.is_floating(kind):
            return [v if v is None or math.isfinite(v) else encode(v, kind) for v in values]
        return [encode(value, kind) for value in values]
    except (OverflowError, ValueError):
        pass
    found, numbers = [], _numbers_for_times(kind)
    for i in range(len(column)):
        try:
            found.append(encode(column[i].as_py(), kind))
        except (OverflowError, ValueError):
            found.append(encode(column.slice(i, 1).cast(numbers)[0].as_py(), numbers))
    return found


def _numbers_for_times(kind: pa.DataType) -> pa.DataType:
    """A type with BIGINT for TIMESTAMP (microseconds) and INT for DATE (days), nested too."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date(kind):
        return pa.int32()
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([f.with_type(_numbers_for_times(f.type)) for f in fields])
    if pa.types.is_map(kind):
        return pa.map_(_numbers_for_times(kind.key_type), _numbers_for_times(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_numbers_for_times(kind.value_type))
    return kind


def rows(table: pa.Table, columns: Sequence[int]) -> list[list[Any]]:
    """The given columns (by position) of every row, as JSON values."""
    encoded = [_encoded(table.column(i)) for i in columns]
    return [list(row) for row in zip(*encoded, strict=True)] if encoded else [[] for _ in range(table.num_rows)]
