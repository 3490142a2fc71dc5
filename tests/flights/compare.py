"""Result tables as bags of rows: equal or not, and where they part."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa


def rows(table: pa.Table) -> Counter[tuple]:
    """The rows of ``table`` with their multiplicities; columns in alphabetical order."""
    names = sorted(table.column_names)
    return Counter(zip(*(table[name].to_pylist() for name in names), strict=True))


def difference(actual: pa.Table, expected: pa.Table) -> str:
    """Empty where both hold the same columns and the same bag of rows, else what differs, earliest rows first."""
    if sorted(actual.column_names) != sorted(expected.column_names):
        return f"columns {sorted(actual.column_names)}, expected {sorted(expected.column_names)}"
    names = sorted(expected.column_names)
    have, want = rows(actual), rows(expected)
    if have == want:
        return ""
    when = names.index("ts" if "ts" in names else "valid_from")
    lines = [f"{actual.num_rows} rows, expected {expected.num_rows}; columns {names}"]
    for title, bag in (("unexpected", have - want), ("missing", want - have)):
        lines.append(f"{bag.total()} {title}")
        first = sorted(bag, key=lambda row: (row[when], repr(row)))[:5]
        lines += [f"  {bag[row]} x {row}" for row in first]
    return "\n".join(lines)
