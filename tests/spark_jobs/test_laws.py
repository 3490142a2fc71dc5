"""The laws between the tables of a query, in tables that are right and in ones that were damaged; no Spark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sweeparea.operators.state import splice
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.time.ticks import INF
from sweeparea.spark_jobs.slices.history import History
from sweeparea.spark_jobs.upkeep import laws
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import write_file

TIME = TimeDomain("BIGINT", 1)
RELATION = [("a", 1, 4), ("a", 2, 3), ("b", 2, None), (None, 4, 9)]
ISTREAM = [("a", 1), ("a", 2), ("b", 2), (None, 4)]
DSTREAM = [("a", 3), ("a", 4), (None, 9)]


def history(folder: Path, kind: str, rows: list[tuple]) -> History:
    names = ("v", "valid_from", "valid_to") if kind == "relation" else ("v", "ts")
    schema = pa.schema([(name, pa.string() if name == "v" else pa.int64()) for name in names])
    log = DeltaLog(folder / kind)
    log.create(schema, name=kind, description="a table of a test")
    table = pa.table([pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), schema, strict=True)], schema=schema)
    halves = [table.slice(0, 2), table.slice(2)]
    files = [write_file(part, log.uri, "a", f"part-{i}") for i, part in enumerate(halves)]
    log.commit(files, [], app=None, base_version=0)
    return History.of(log, TIME)


def broken(folder: Path, committed: int = 20, **tables: list[tuple]) -> str:
    return "; ".join(laws.broken({kind: history(folder, kind, rows) for kind, rows in tables.items()}, committed))


@pytest.mark.parametrize("part_rows", [4_000_000, 2])
def test_tables_of_one_query_that_agree_break_no_law(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_rows: int
) -> None:
    monkeypatch.setattr(laws, "PART_ROWS", part_rows)
    assert broken(tmp_path, relation=RELATION, istream=ISTREAM, dstream=DSTREAM) == ""
    assert broken(tmp_path / "both", istream=ISTREAM, dstream=DSTREAM) == ""


@pytest.mark.parametrize("part_rows", [4_000_000, 2])
@pytest.mark.parametrize(
    ("tables", "fault"),
    [
        ({"istream": ISTREAM[1:]}, "istream is not what the relation's changes are (R1, R2), first at 1: {'v': 'a'}"),
        ({"dstream": [*DSTREAM, ("b", 7)]}, "dstream is not what the relation's changes are (R1, R2), first at 7"),
        ({"istream": [*ISTREAM[:-1], (None, 5)]}, "(R1, R2), first at 4: {'v': None}"),
        (
            {"relation": [*RELATION[:2], ("b", 2, 5), ("b", 5, None), *RELATION[3:]]},
            "not canonical, first at 2: {'v': 'b'}",
        ),
        ({"relation": [("a", 1, 3), ("a", 2, 4), *RELATION[2:]]}, "levels of the relation are not canonical"),
        ({"relation": [*RELATION, ("c", 5, 5)]}, "rows of the relation are empty"),
        ({"relation": [*RELATION, ("c", 21, None)], "istream": [*ISTREAM, ("c", 21)]}, "after the committed instant"),
    ],
)
def test_tables_that_do_not_agree_name_the_law_and_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_rows, tables, fault
) -> None:
    monkeypatch.setattr(laws, "PART_ROWS", part_rows)
    found = broken(tmp_path, **{"relation": RELATION, "istream": ISTREAM, "dstream": DSTREAM, **tables})
    assert fault in found


def test_laws_of_streams_without_their_relation(tmp_path: Path) -> None:
    assert "both" not in broken(tmp_path / "a", istream=ISTREAM, dstream=DSTREAM)
    assert "in istream and dstream at one instant (R1), first at 2: {'v': 'b'}" in broken(
        tmp_path / "b", istream=ISTREAM, dstream=[*DSTREAM, ("b", 2)]
    )
    assert "dstream takes values that istream never brought (R2), first at 1: {'v': 'b'}" in broken(
        tmp_path / "c", istream=ISTREAM, dstream=[("b", 1), *DSTREAM]
    )


def test_canonical_levels_are_those_of_a_count_by_hand() -> None:
    chance = np.random.default_rng(1)
    for _ in range(50):
        code, start = chance.integers(0, 3, 12), chance.integers(0, 9, 12)
        end = np.where(chance.random(12) < 0.3, INF, start + chance.integers(1, 6, 12))
        found = laws.canonical(*splice.events(code, start, end, np.ones(12, np.int64)))
        for record in range(3):
            for at in range(20):
                wanted = np.sum((code == record) & (start <= at) & (end > at))
                assert np.sum((found[0] == record) & (found[1] <= at) & (found[2] > at)) == wanted
            mine = [(s, e) for c, s, e in zip(*found, strict=True) if c == record]
            assert not any(e1 == s2 for _, e1 in mine for s2, _ in mine)
            assert not any(s1 < s2 < e1 < e2 for s1, e1 in mine for s2, e2 in mine)
