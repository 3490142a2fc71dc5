"""What the queries should give: ``expected.json``, the final state of each result as lines of text."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

FOLDER = Path(__file__).parent
LEFT_OUT = {"q5": ["starttime"]}
"""Columns that our results have besides."""
_INSTANTS = ("ts", "valid_from", "valid_to")


def expected() -> dict[str, Counter[str]]:
    """The answers by query, as bags of lines."""
    answers = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
    return {query: Counter(map(_normal, lines)) for query, lines in answers.items()}


def final(query: str, table: pa.Table) -> Counter[str]:
    """A result table's final state in the same form: all rows of a stream, the rows of a relation that still hold."""
    if "valid_to" in table.column_names:
        table = table.filter(pc.is_null(table.column("valid_to")))  # pyright: ignore[reportAttributeAccessIssue]
    left_out = {*_INSTANTS, *LEFT_OUT.get(query, ())}
    columns = [name for name in table.column_names if name not in left_out]
    return Counter(_normal(" ".join(map(_text, row.values()))) for row in table.select(columns).to_pylist())


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ", "milliseconds" if value.microsecond else "seconds")
    return value.isoformat() if isinstance(value, date) else str(value)


def _normal(line: str) -> str:
    # numbers by their value, of four digits after the point: an average of 6221.5 is one of 6221.50
    return " ".join(map(_word, line.split()))


def _word(word: str) -> str:
    try:
        return f"{round(Decimal(word), 4).normalize():f}" if word[0].isdigit() else word
    except InvalidOperation:
        return word
