"""Several versions of a source as one commit: the rows, their numbers and the heartbeat of commits one by one.

Spark's part is done by hand, but where results are the subject.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.admission import admit as admission
from sweeparea.spark_jobs.admission.admit import Admitted, StreamAdmission, admit
from sweeparea.spark_jobs.admission.stream import several
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.tables.log.delta_log import DeltaLog
from tests.spark_jobs import shop

TICKS = pa.schema([("t", pa.int64()), ("id", pa.string()), ("x", pa.float64())])
POLICY = """
def second_greatest(version):
    seen = sorted([*version.state.get("last", []), *version.elements["__tick"].to_pylist()])[-2:]
    version.state["last"] = seen
    return seen[0] if len(seen) == 2 else None
"""
OF_ITS_COMMIT = ("rows", "quarantined", "clamped", "tables", "verdicts", "judged")
"""What a ledger row says of its own commit alone, not of the stream."""


def application(folder: Path, clauses: str) -> Application:
    shop.application(folder, f"CREATE STREAM s FROM DELTA 'source/s' TIMESTAMP BY t {clauses};")
    (folder / "shop" / "policies.py").write_text(POLICY)
    return Application.open(folder / "shop", folder / "data")


def add(folder: Path, rows: list[tuple[Any, ...]]) -> None:
    columns = list(zip(*rows, strict=True)) or [()] * len(TICKS)
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, TICKS, strict=True)], schema=TICKS)
    write_deltalake(str(folder / "data/source/s"), table, mode="append")


def source(folder: Path, seed: int, versions: int) -> None:
    """Commits of a few rows each: late ones, some without a time or against a constraint, empty ones, some that only
    rearrange files, some that delete.
    """
    draw = random.Random(seed)
    for version in range(versions):
        now = 10 * version
        rows: list[tuple[Any, ...]] = [
            (now + draw.randint(-25, 10), draw.choice("abc"), draw.choice([1.0, -1.0, None, float("nan")]))
            for _ in range(draw.choice([0, 1, 3, 5]))
        ]
        add(folder, [*rows, (None, "a", 1.0)] if draw.random() < 0.2 else rows)
        table = DeltaTable(str(folder / "data/source/s"))
        if version and draw.random() < 0.15:
            table.optimize.compact()
        elif version and draw.random() < 0.15:
            table.delete(f"t < {now - 20} AND id = 'a'")


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Spark says of rows: heartbeat t - 3, the constraint x > 0, where x = 0 is an error."""

    def evaluated(spark: None, rows: pa.Table, expressions: dict[str, str], scratch: str) -> pa.Table:
        x = rows.column("x").to_pylist()
        if 0.0 in x and "__check_0" in expressions:
            raise SweepAreaError("division by zero")
        made = {
            "__tick": rows.column("t"),
            "__heartbeat": pc.subtract(rows.column("t"), 3),
            "__check_0": pa.array([v is None or v != v or v > 0 for v in x], pa.bool_()),
        }
        for name in expressions:
            rows = rows.append_column(name, made[name])
        return rows

    monkeypatch.setattr(admission, "evaluated", evaluated)


def take(app: Application) -> Admitted:
    """Admits what is new, without Spark."""
    registration = app.registry.registration("s", app.ledger.head().get("s"))
    return StreamAdmission(app, "s", registration, None, lambda text: None).run()  # type: ignore[arg-type]


def outcome(app: Application) -> dict[str, Any]:
    """All that admission has made but files and the times of its commits."""
    row = app.ledger.head()["s"]
    tables = [DeltaLog(app.layout.admitted("s")), DeltaLog(app.layout.quarantine("s"))]
    rows = [Counter(map(repr, log.read().to_pylist())) for log in tables]
    info = {key: value for key, value in row.info.items() if key not in OF_ITS_COMMIT}
    return {"rows": rows, "seq": row.seq, "heartbeat": row.committed, "info": info}


CLAUSES = (
    "HEARTBEAT FOR t AS t - 3 CONSTRAINT positive EXPECT (x > 0) LATE REPAIR WITHIN 12 ON SOURCE CHANGE CORRECT",
    "HEARTBEAT EACH BATCH ON SOURCE CHANGE IGNORE",
    "HEARTBEAT PER id AS t - 3 IDLE AFTER INTERVAL 1 DAY LATE REPAIR ON SOURCE CHANGE CORRECT",
    "HEARTBEAT POLICY 'policies:second_greatest' CONSTRAINT w EXPECT (x > 0) ON VIOLATION WARN ON SOURCE CHANGE IGNORE",
    "DEDUPLICATE BY id WITHIN 7 HEARTBEAT FOR t AS t - 3 ON SOURCE CHANGE CORRECT",
)


@pytest.mark.parametrize("number", range(len(CLAUSES)))
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 40))])
def test_rows_numbers_and_heartbeats_are_those_of_commits_one_by_one(by_hand, tmp_path, monkeypatch, number, seed):
    clauses, draw = CLAUSES[number], random.Random(seed)
    alone, together = tmp_path / "alone", tmp_path / "together"
    app = application(alone, clauses)
    source(alone, seed, 10)
    shutil.copytree(alone, together)
    both = Application.open(together / "shop", together / "data")
    monkeypatch.setattr(several, "VERSIONS", 1)
    reports = [take(app)]
    monkeypatch.setattr(several, "VERSIONS", draw.choice([2, 3, 256]))
    monkeypatch.setattr(several, "ROWS", draw.choice([4, 100_000]))
    reports.append(take(both))
    assert outcome(both) == outcome(app)
    told = [{k: v for k, v in report.as_dict().items() if k != "seconds"} for report in reports]
    assert told[0] == told[1]
    commits = [len(each.ledger.history("s")) for each in (app, both)]
    assert (commits[1] < commits[0]) is ("DEDUPLICATE" not in clauses)


def test_a_commit_takes_no_more_than_its_bounds(by_hand, tmp_path, monkeypatch):
    app = application(tmp_path, "HEARTBEAT FOR t AS t")
    for t in range(12):
        add(tmp_path, [(t, "a", 1.0), (t, "b", 1.0)])
    monkeypatch.setattr(several, "VERSIONS", 5)
    monkeypatch.setattr(several, "ROWS", 8)
    assert take(app).rows == 24
    assert [row.seq for row in app.ledger.history("s")] == [4, 8, 12]  # 8 rows each


def test_what_stops_the_stream_stops_it_where_it_did_alone(by_hand, tmp_path):
    """Versions before the one that fails are taken, and the error names that one."""
    for name, clauses, bad, words in (
        ("constraint", "CONSTRAINT c EXPECT (x > 0) ON VIOLATION FAIL UPDATE", (7, "a", -1.0), "version 3 of its"),
        ("expression", "CONSTRAINT c EXPECT (1 / x > 0)", (7, "a", 0.0), "division by zero"),
        ("removed", "", None, "version 3 of its source removes"),
    ):
        folder = tmp_path / name
        app = application(folder, f"HEARTBEAT FOR t AS t - 3 {clauses}")
        for t in (1, 2, 3):
            add(folder, [(t, "a", 1.0)])
        if bad is None:
            DeltaTable(str(folder / "data/source/s")).delete("t = 2")
        else:
            add(folder, [bad])
        add(folder, [(9, "a", 1.0)])
        for _ in range(2):
            with pytest.raises(SweepAreaError, match=words):
                take(app)
            row = app.ledger.head()["s"]
            assert (row.seq, row.committed, row.info["source_version"]) == (3, 0, 2), name


@pytest.mark.spark
def test_results_do_not_depend_on_how_many_versions_a_commit_takes(spark, tmp_path, monkeypatch):
    """A query between commits, late elements repaired: the same results."""
    text = shop.STREAM.replace("10 SECONDS", "10 SECONDS LATE REPAIR") + shop.QUERY
    found = []
    for name, most in (("alone", 1), ("together", 256)):
        monkeypatch.setattr(several, "VERSIONS", most)
        app = shop.application(tmp_path / name, text)
        days = [*shop.DAYS, [(15, "a", 7.0, 1)], [(390, "c", 1.0, 9), (700, "a", 1.0, 1)]]
        for number, day in enumerate(days):
            shop.sell(tmp_path / name, day)
            if most == 1 or number in (1, 4):
                admit(app, "sales", spark)
                process(app, "turnover", spark)
        found.append(shop.contents(app, "turnover"))
    assert found[0] == found[1]
