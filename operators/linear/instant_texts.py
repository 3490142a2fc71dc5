"""Instants as texts of a pattern, as Spark's ``date_format`` writes them in UTC: numbers of fixed length, and what
stands between them.

Only as many texts are made as there are different ones: days of many rows are few.

>>> import pyarrow as pa
>>> written(pa.array([0, 86_399_999_999, None], pa.timestamp("us")), "yyyy-MM-dd HH:mm").to_pylist()
['1970-01-01 00:00', '1970-01-01 23:59', None]
>>> written(pa.array([-70_000_000_000_000_000], pa.timestamp("us")), "yyyy").to_pylist()
['-0249']
>>> parts_of("yyyy-MM-dd"), parts_of("EEEE")
(['yyyy', '-', 'MM', '-', 'dd'], None)
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pyarrow as pa

_PART = re.compile(r"yyyy|MM|dd|HH|mm|ss|[-/:._ ]")
_DAY = 86_400_000_000
_UNITS = {"ss": 1_000_000, "mm": 60_000_000, "HH": 3_600_000_000}
"""Microseconds of the shortest part of a pattern, where it is shorter than a day."""


def parts_of(pattern: str) -> list[str] | None:
    """The parts of a pattern; None: it has others than these."""
    found = _PART.findall(pattern)
    # "MMMM" is a part of its own
    longer = any(a[0] == b[0] and a[0].isalpha() for a, b in pairwise(found))
    return found if found and "".join(found) == pattern and not longer else None


def written(instants: pa.Array | pa.ChunkedArray, pattern: str) -> pa.Array:
    """Instants (TIMESTAMP in microseconds) by a pattern of ``parts_of``. NULL of NULL."""
    parts = parts_of(pattern)
    assert parts is not None
    array = instants.combine_chunks() if isinstance(instants, pa.ChunkedArray) else instants
    unit = min(_UNITS.get(part, _DAY) for part in parts)
    micros = array.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    encoded = pa.array(np.floor_divide(micros, unit), mask=mask).dictionary_encode()
    days, rest = np.divmod(encoded.dictionary.to_numpy(), _DAY // unit)
    return _texts(days, rest * unit // 1_000_000, parts).take(encoded.indices)


def _texts(days: np.ndarray, second: np.ndarray, parts: list[str]) -> pa.Array:
    """Texts of days since 1970 and seconds of these."""
    date = days.astype("M8[D]")
    month = date.astype("M8[M]")
    numbers = {
        "yyyy": date.astype("M8[Y]").astype(np.int64) + 1970,
        "MM": month.astype(np.int64) % 12 + 1,
        "dd": (date - month).astype(np.int64) + 1,
        "HH": second // 3_600,
        "mm": second // 60 % 60,
        "ss": second % 60,
    }
    years = numbers["yyyy"]
    if len(years) and "yyyy" in parts and (years.min() < 0 or years.max() > 9_999):
        columns = [_signed(numbers[part], len(part)) if part in numbers else [part] * len(years) for part in parts]
        return pa.array(["".join(row) for row in zip(*columns, strict=True)], pa.string())
    width = sum(map(len, parts))
    letters, at = np.empty((len(years), width), np.uint8), 0
    for part in parts:
        for digit in range(len(part)):
            power = 10 ** (len(part) - 1 - digit)
            letters[:, at + digit] = ord(part) if part not in numbers else numbers[part] // power % 10 + ord("0")
        at += len(part)
    ends = np.arange(len(years) + 1, dtype=np.int32) * width
    return pa.StringArray.from_buffers(len(years), pa.py_buffer(ends), pa.py_buffer(letters))


def _signed(values: np.ndarray, width: int) -> list[str]:
    """As Java's ``SignStyle.EXCEEDS_PAD``: what is longer than its pattern has a sign."""
    return [f"{'-' if v < 0 else '+' if v >= 10**width else ''}{abs(v):0{width}d}" for v in values.tolist()]
