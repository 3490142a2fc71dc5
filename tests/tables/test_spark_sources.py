"""What each commit of tables written by Spark did, as read from its files, against delta-rs's snapshots around it.

The tables of ``spark_sources/`` were written by ``write_spark_sources.py``: one for each feature of Delta.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from sweeparea.tables.sources.opening import opened
from sweeparea.tables.sources.source import SourceTable

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


def test_values_of_odd_partitions_and_of_widened_types() -> None:
    odd = {r["a"]: r for v in (1, 2) for r in SourceTable(FOLDER / "odd_partitions").changes(v).to_pylist()}
    assert (odd[1]["s"], odd[1]["ts"].isoformat()) == ('é y/%20=+?#:"', "2024-03-31T01:30:00.123456+00:00")
    assert (str(odd[1]["n"]), str(odd[1]["d"]), repr(odd[1]["x"])) == (
        "1969-12-31 23:59:59.500000",
        "0001-01-01",
        "nan",
    )
    assert (odd[1]["f"], str(odd[1]["dec"]), odd[1]["b"], odd[1]["sm"]) == (float("-inf"), "-0.05", True, -32768)
    assert (odd[1]["bin"], odd[3]["x"], odd[3]["s"]) == (b"AB", 1e300, " ")
    assert {c: v for c, v in odd[2].items() if v is not None} == {"a": 2, "__n": 1}
    assert (odd[4]["s"], repr(odd[4]["x"])) == (None, "-0.0")
    wide = SourceTable(FOLDER / "widened_types")
    assert [r["a"] for r in wide.snapshot(wide.version()).to_pylist()] == [5_000_000_000]
    old = wide.changes(1).to_pylist()[0]
    assert (old["a"], old["f"], str(old["d"]), str(old["dec"]), old["sm"], old["st"]) == (
        1, 1.5, "2024-01-01 00:00:00", "12.2500", 7, {"x": 1},
    )  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_snapshot_read_from_its_files_is_that_of_delta_rs(name: str) -> None:
    """Tables with widened types are read so: any other feature may come with that one."""
    source = SourceTable(FOLDER / name)
    for version in range(source.version() + 1):
        found: Counter[str] = Counter()
        for rows in source._live_files(opened(source.uri, version, source.storage_options)):
            assert rows.column_names == source.schema().names
            found.update(bag(rows))
        assert found == contents(source, version), f"version {version}"
