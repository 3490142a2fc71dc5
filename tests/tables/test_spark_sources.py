"""What each commit of tables written by Spark did, as read from its files, against delta-rs's snapshots around it.

The tables of ``spark_sources/`` were written by ``write_spark_sources.py``: one for each feature of Delta.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from sweeparea.tables.source import SourceTable

FOLDER = Path(__file__).with_name("spark_sources")
NAMES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


def bag(rows: pa.Table, sign: int = 1) -> Counter[str]:
    """Rows as texts with their copies; a list of maps' entries is a list, NaN a text."""
    found: Counter[str] = Counter()
    for row in rows.to_pylist():
        n = row.pop("__n", 1)
        found[repr(row)] += sign * n
    return found


def contents(source: SourceTable, version: int) -> Counter[str]:
    return bag(source.snapshot(version))


def without_zeros(counts: Counter[str]) -> dict[str, int]:
    return {row: n for row, n in counts.items() if n}


@pytest.mark.parametrize("name", NAMES)
def test_a_commit_is_the_difference_of_the_snapshots_around_it(name: str) -> None:
    source = SourceTable(FOLDER / name)
    before: Counter[str] = Counter()
    moved = 0
    for version in range(source.version() + 1):
        after = contents(source, version)
        wanted = after.copy()
        wanted.subtract(before)
        found = source.changes(version)
        assert found.column_names == [*source.schema().names, "__n"]
        assert bag(found) == without_zeros(wanted), f"version {version}"
        moved += found.num_rows
        before = after
    assert moved


def literals(name: str, version: int) -> list[dict[str, Any]]:
    return sorted(SourceTable(FOLDER / name).changes(version).to_pylist(), key=repr)
