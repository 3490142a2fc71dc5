"""Tables with CHAR columns, and what Spark 4.2 answers over them: ``char_queries.json`` (verified by a slow test of
``tests/spark_jobs/test_char_columns.py``).

Conditions are over all rows of a table, in the order of ``t``; queries have the sorted rows of their results.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DECLARED = {
    "s": {
        "t": "bigint", "c": "char(5)", "v": "varchar(5)", "s": "string", "d": "char(8)", "i": "int",
        "st": "struct<x:char(5),y:int>", "st8": "struct<x:char(8),y:int>", "ar": "array<char(5)>",
        "ar8": "array<char(8)>",
    },
    "r": {"t": "bigint", "c": "char(8)", "w": "string", "d": "char(5)"},
    "n": {
        "t": "bigint", "st3": "struct<y:int,x:char(5)>", "st4": "struct<y:int,x:char(8)>",
        "aa": "array<array<char(5)>>", "aa8": "array<array<char(8)>>", "sa": "array<struct<x:char(5)>>",
        "sa8": "array<struct<x:char(8)>>",
    },
}  # fmt: skip
"""The columns of each table as Spark declares them."""
_S = [
    ("ab", "ab", "ab", "ab", 7), ("ab   ", "ab   ", "ab   ", "ab", None), ("abcdefg", "b", "b", "zz", 1),
    (None, None, None, None, None), ("zz", "zz", "zz", "zz", 2), ("", "", "", "", 0), ("12", "12", "12", "12", 12),
]  # fmt: skip
_R = [(0, "ab", "ab", "ab"), (2, "abcdefg", "b", "b"), (4, "zz", "q", "zz"), (5, None, None, None)]
_R += [(6, "ab", "ab   ", "zz")]
_N = [("ab", "ab"), ("zz", "q"), (None, None), ("ab", None)]


def stored() -> dict[str, list[tuple[Any, ...]]]:
    """The rows as files hold them: unpadded, ``abcdefg`` longer than its column allows."""
    return {
        "s": [
            (t, c, v, s, d, i, c and {"x": c, "y": i}, d and {"x": d, "y": i}, c and [c], d and [d])
            if c != ""
            else (t, c, v, s, d, i, {"x": c, "y": i}, {"x": d, "y": i}, [c], [d])
            for t, (c, v, s, d, i) in enumerate(_S)
        ],
        "r": list(_R),
        "n": [
            (t, a and {"y": 1, "x": a}, b and {"y": 1, "x": b}, a and [[a]], b and [[b]], a and [{"x": a}],
             b and [{"x": b}])
            for t, (a, b) in enumerate(_N)
        ],
    }  # fmt: skip


def read() -> dict[str, list[tuple[Any, ...]]]:
    """The rows as they are read, padded."""
    return {
        name: [tuple(_padded(v, k) for v, k in zip(row, DECLARED[name].values(), strict=True)) for row in rows]
        for name, rows in stored().items()
    }


def _padded(value: Any, kind: str) -> Any:
    if isinstance(value, str):
        return value.ljust(int(kind[5:-1])) if kind.startswith("char(") else value
    if isinstance(value, list):
        return [_padded(v, kind[6:-1]) for v in value]
    if isinstance(value, dict):
        kinds = dict(part.split(":") for part in kind[7:-1].split(","))
        return {name: _padded(v, kinds[name]) for name, v in value.items()}
    return value


def answers() -> dict[str, Any]:
    """Spark's answers by the kinds ``conditions of s``, ``conditions of n`` and ``queries``."""
    return json.loads((Path(__file__).parent / "char_queries.json").read_text())


def plain(value: Any) -> Any:
    """A row as lists, as JSON has it; structs without their names."""
    if isinstance(value, dict):
        return [plain(v) for v in value.values()]
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value
