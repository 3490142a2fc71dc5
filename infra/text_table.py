"""Rows as a table of plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A heading, a rule, a line a row; NULL for None. Wide characters are not looked at."""
    shown = [["NULL" if value is None else str(value) for value in row] for row in rows]
    widths = [max([len(column), *(len(row[i]) for row in shown)]) for i, column in enumerate(columns)]
    lines = ["  ".join(c.ljust(w) for c, w in zip(columns, widths, strict=True)).rstrip()]
    lines.append("  ".join("-" * w for w in widths))
    lines += ["  ".join(v.ljust(w) for v, w in zip(row, widths, strict=True)).rstrip() for row in shown]
    return "\n".join([*lines, f"({len(rows)} row{'' if len(rows) == 1 else 's'})"])
