"""Statistics of a data file from its Parquet footer, as the JSON text of the Delta protocol.

What cannot be bounded for sure is left out, which only costs skipping: boolean and binary columns, values in lists and
maps, FLOAT and DOUBLE columns that hold or may hold NaN or infinity, instants outside the years 1 to 9999. A column has
both bounds or none: delta-rs's PyArrow dataset loses rows where one is missing. Long strings are cut, and the greatest
character is put after a cut maximum. TIMESTAMP ends in Z, TIMESTAMP_NTZ does not, decimals are bare numbers.
"""

# pyarrow.compute makes its functions when it is imported, where a type checker cannot see them.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

STRING_LENGTH = 64
"""Characters of a string that go into statistics."""
_GREATEST = "\U0010ffff"
_EPOCH = datetime(1970, 1, 1)
_MIN_MICROS = -62_135_596_800_000_000
_MAX_MICROS = 253_402_300_799_999_999
_EXACT = Context(prec=60)
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def bounds(stats: str, column: str) -> tuple[int | None, int | None]:
    """Least and greatest value of a BIGINT or TIMESTAMP (in microseconds) column; None where statistics do not tell."""
    told = json.loads(stats) if stats else {}
    least, greatest = ((told.get(side) or {}).get(column) for side in ("minValues", "maxValues"))
    return _number(least), _number(greatest)


def _number(value: int | str | None) -> int | None:
    if isinstance(value, str):
        return pc.strptime(pa.scalar(value.rstrip("Z")[:19]), "%Y-%m-%dT%H:%M:%S", "us").value + int(
            f"{value.rstrip('Z')[20:]:0<6}" or 0
        )
    return value


def nulls(stats: str, column: str) -> int | None:
    """How many NULLs a column has; None where statistics do not tell."""
    return (json.loads(stats or "{}").get("nullCount") or {}).get(column)


def stats_json(footer: pq.FileMetaData, nan_leaves: set[int] | None) -> str:
    """The statistics of the file with this footer.

    ``nan_leaves``: numbers of the leaf columns that hold NaN; None if unknown, then no FLOAT or DOUBLE has bounds.
    """
    minima: dict[str, Any] = {}
    maxima: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
    for leaf, path, leaf_type in _told(footer.schema.to_arrow_schema()):
        chunks = [group.column(leaf).statistics for group in groups]
        if any(chunk is None for chunk in chunks):
            continue
        if all(chunk.has_null_count for chunk in chunks):
            _put(nulls, path, sum(chunk.null_count for chunk in chunks))
        if pa.types.is_floating(leaf_type) and (nan_leaves is None or leaf in nan_leaves):
            continue
        # A chunk without bounds is one of NULLs only, or one whose values were too long for the footer.
        bounded = [chunk for chunk in chunks if chunk.has_min_max]
        if not bounded or any(not chunk.has_min_max and chunk.num_values > 0 for chunk in chunks):
            continue
        low = _value(leaf_type, min(_raw(leaf_type, chunk.min_raw) for chunk in bounded))
        high = _value(leaf_type, max(_raw(leaf_type, chunk.max_raw) for chunk in bounded))
        if pa.types.is_string(leaf_type):
            low, high = low[:STRING_LENGTH], _upper_bound(high)
        if low is not None and high is not None:
            _put(minima, path, low)
            _put(maxima, path, high)
    return dump({"numRecords": footer.num_rows, "minValues": minima, "maxValues": maxima, "nullCount": nulls})


def float_leaves_with_nan(table: pa.Table) -> set[int]:
    """Numbers of the leaf columns of ``table`` that hold a NaN."""
    if not _has_floats(table.schema):
        return set()
    return {leaf for leaf, array in enumerate(_leaf_arrays(table)) if array is not None and _has_nan(array)}


def dump(value: Any) -> str:
    """JSON text in which a Decimal is a bare number with all its digits, as Spark writes and expects it."""
    if isinstance(value, Decimal):
        return format(value, "f")
    try:
        return _JSON.encode(value)
    except TypeError:
        # There is a Decimal in it, which json would only write as text or as a float.
        return "{" + ",".join(f"{dump(key)}:{dump(item)}" for key, item in value.items()) + "}"


def stats_value(value: Any) -> Any:
    """A bound that delta-rs gives as a Python object (nested dictionaries too), as statistics JSON holds it."""
    if isinstance(value, dict):
        nested = {key: stats_value(item) for key, item in value.items()}
        return {key: item for key, item in nested.items() if item is not None and item != {}}
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        return text + "Z" if value.tzinfo is not None else text
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, (int, float, str, Decimal)) and value == value:
        return value
    return None


_Path = tuple[str, ...] | None


def _leaves(schema: pa.Schema) -> Iterator[tuple[_Path, pa.DataType]]:
    """Path and type of each leaf column in Parquet's order; the path is None where statistics make no sense."""

    def walk(path: _Path, data_type: pa.DataType) -> Iterator[tuple[_Path, pa.DataType]]:
        if pa.types.is_nested(data_type):
            inner = path if pa.types.is_struct(data_type) else None
            if pa.types.is_map(data_type):
                yield from walk(None, data_type.key_type)
                yield from walk(None, data_type.item_type)
                return
            for i in range(data_type.num_fields):
                child = data_type.field(i)
                yield from walk(None if inner is None else (*inner, child.name), child.type)
        else:
            yield path, data_type

    for column in schema:
        yield from walk((column.name,), column.type)


@lru_cache(maxsize=64)
def _told(schema: pa.Schema) -> tuple[tuple[int, tuple[str, ...], pa.DataType], ...]:
    """Number, path and type of the leaf columns that get statistics: many files have one schema."""
    return tuple((leaf, path, kind) for leaf, (path, kind) in enumerate(_leaves(schema)) if path is not None)


@lru_cache(maxsize=64)
def _has_floats(schema: pa.Schema) -> bool:
    return any(pa.types.is_floating(kind) for _, _, kind in _told(schema))


def _leaf_arrays(table: pa.Table) -> Iterator[pa.ChunkedArray | None]:
    """The leaf columns in Parquet's order; None for leaves in lists and maps, which get no statistics anyway."""

    def walk(array: pa.ChunkedArray) -> Iterator[pa.ChunkedArray | None]:
        if pa.types.is_struct(array.type):
            for child in array.flatten():
                yield from walk(child)
        elif pa.types.is_nested(array.type):
            for _ in _leaves(pa.schema([pa.field("x", array.type)])):
                yield None
        else:
            yield array

    for column in table.columns:
        yield from walk(column)


def _has_nan(array: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(array.type) and bool(pc.any(pc.is_nan(array)).as_py())


def _put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for step in path[:-1]:
        tree = tree.setdefault(step, {})
    tree[path[-1]] = value


def _upper_bound(text: str) -> str | None:
    """A short text that sorts, by UTF-8 bytes, at or after ``text``; None if the cut falls before U+10FFFF itself."""
    if len(text) <= STRING_LENGTH:
        return text
    return None if text[STRING_LENGTH] == _GREATEST else text[:STRING_LENGTH] + _GREATEST


def _raw(leaf_type: pa.DataType, raw: Any) -> Any:
    """A bound in a form that compares as the type does: decimals as unscaled integers."""
    if pa.types.is_decimal(leaf_type) and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    return raw


def _value(leaf_type: pa.DataType, raw: Any) -> Any:
    """The bound as statistics JSON holds it, None if it has no place there."""
    types = pa.types
    if types.is_timestamp(leaf_type):
        if leaf_type.unit != "us" or not isinstance(raw, int) or not _MIN_MICROS <= raw <= _MAX_MICROS:
            return None
        text = (_EPOCH + timedelta(microseconds=raw)).isoformat(timespec="microseconds")
        return text + "Z" if leaf_type.tz is not None else text
    if types.is_date(leaf_type):
        within = _MIN_MICROS <= raw * 86_400_000_000 <= _MAX_MICROS
        return (_EPOCH + timedelta(days=raw)).date().isoformat() if within else None
    if types.is_decimal(leaf_type):
        return Decimal(raw).scaleb(-leaf_type.scale, _EXACT)
    if types.is_integer(leaf_type):
        return int(raw)
    if types.is_floating(leaf_type):
        return float(raw) if float("-inf") < raw < float("inf") else None
    if types.is_string(leaf_type):
        return raw.decode("utf-8", errors="strict")
    return None
