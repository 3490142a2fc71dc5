"""Which rows a slice's expectations judge: of a commit, of whole units, beside what is published; and what another
relation held at the instants of rows. Tables without Spark.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.plan import Expectation
from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.quality import by_name, counts
from sweeparea.quality.verdict import QualityFailure
from sweeparea.quality.verdict_tables import VerdictTables
from sweeparea.spark_jobs.evaluation import references
from sweeparea.spark_jobs.rewriting.rewrite import Rewrite
from sweeparea.spark_jobs.slices.audit import audit, checks_of
from sweeparea.spark_jobs.slices.place import SlicePlace
from sweeparea.spark_jobs.slices.units import JudgedSlice
from sweeparea.tables.layout import Layout
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import write_file
from sweeparea.tables.publication.info import QueryInfo, SourceInfo
from sweeparea.tables.publication.ledger import Ledger
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication

STREAM = pa.schema([("x", pa.int64()), ("ts", pa.int64())])
RELATION = pa.schema([("x", pa.int64()), ("valid_from", pa.int64()), ("valid_to", pa.int64())])
SUM = Expectation("sum", "gx", "expect_column_sum_to_be_between", (("column", "x"), ("max_value", 1 << 40)), "warn", 10)
COUNT = Expectation("rows", "volume", "volume", (("min", 0), ("max", None)), "warn", 10)
EACH = Expectation("each", "volume", "volume", (("min", 0), ("max", None)), "warn")


def application(folder: Path) -> Any:
    ledger = Ledger(str(folder))
    return SimpleNamespace(ledger=ledger, layout=ledger.layout, data=str(folder))


def put(log: DeltaLog, schema: pa.Schema, rows: list[tuple], name: str) -> None:
    log.create(schema, name="q", description="q")
    table = pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), schema, strict=True)], schema=schema
    )
    log.commit([write_file(table, log.uri, name, "rows")], [], app=None, base_version=log.version())


def judged(
    app: Any,
    place: SlicePlace,
    since: int,
    h1: int,
    staged: dict[str, list[tuple]],
    *expectations: Expectation,
    start: int = 0,
) -> dict[str, list[tuple]]:
    """By expectation (unit, observed, rows) of a slice whose staged rows are given by what is written."""
    relation = "open" in staged
    schema, path = (RELATION if relation else STREAM), place.layout.result("q")
    DeltaLog(path).create(schema, name="q", description="q")
    lines = []
    for target, rows in staged.items():
        if rows:
            columns = zip(zip(*rows, strict=True), schema, strict=True)
            table = pa.Table.from_arrays([pa.array(c, f.type) for c, f in columns], schema=schema)
            file = write_file(table, path, f"{target}{since}", "rows")
            lines.append({"target": target, **file.__dict__})
    plan: Any = SimpleNamespace(
        expectations=expectations, time=TimeDomain(), start=start, kind=ResultKind.ISTREAM,
        root=SimpleNamespace(columns=[SimpleNamespace(label="x")]),
    )  # fmt: skip
    found: dict[str, list[tuple]] = {}
    tables = dict.fromkeys(staged, (path, schema))
    for result in JudgedSlice(app, plan, place, since, h1, tables, lines).judged():
        meta = result["meta"]
        found.setdefault(meta["constraint"], []).append((meta.get("unit"), result["observed"], meta["rows"]))
    return found


def test_units_of_a_stream_are_those_that_the_slice_completes(tmp_path: Path):
    app = application(tmp_path)
    place = SlicePlace(str(tmp_path), app.layout, app.ledger, "r")
    put(app.ledger.log(app.layout.result("q")), STREAM, [(1, 3), (2, 12)], "before")
    found = judged(app, place, 12, 29, {"istream": [(4, 13), (8, 20), (16, 29)]}, SUM, COUNT, EACH)
    assert found["sum"] == [([10, 20], 6, 2), ([20, 30], 24, 2)]
    assert found["rows"] == [([10, 20], 2, 2), ([20, 30], 2, 2)]
    assert found["each"] == [(None, 3, 3)]
    assert judged(app, place, 12, 18, {"istream": [(4, 13)]}, SUM, COUNT) == {}
    # a unit without rows has a volume, and one that begins before START is not judged
    assert judged(app, place, 12, 39, {"istream": [(4, 13)]}, SUM, COUNT, start=15) == {
        "rows": [([20, 30], 0, 0), ([30, 40], 0, 0)]
    }


def test_rows_of_a_relation_count_once_where_they_begin(tmp_path: Path):
    app = application(tmp_path)
    place = SlicePlace(str(tmp_path), app.layout, app.ledger, "r")
    held = [(1, 3, 9), (2, 11, None), (4, 12, None)]
    put(app.ledger.log(app.layout.result("q")), RELATION, held, "before")
    staged = {"closed": [(2, 11, 15), (8, 14, 16)], "open": [(16, 15, None)]}
    found = judged(app, place, 12, 19, staged, SUM, EACH)
    assert found["sum"] == [([10, 20], 2 + 4 + 8 + 16, 4)]
    assert found["each"] == [(None, 2, 2)]  # what began before and ends now was judged when it began


def test_what_is_computed_beside_stands_on_what_is_published_before_it(tmp_path: Path):
    app = application(tmp_path)
    put(app.ledger.log(app.layout.result("q")), STREAM, [(1, 11), (2, 14), (1_000, 16), (1_000, 21)], "published")
    beside = str(tmp_path / "beside")
    place = SlicePlace(beside, Layout(beside), Ledger(beside), "b", stands=14)
    assert judged(app, place, 14, 17, {"istream": [(4, 16)]}, SUM) == {}
    put(place.ledger.log(place.layout.result("q")), STREAM, [(4, 16)], "first")
    assert judged(app, place, 17, 29, {"istream": [(8, 18), (16, 22)]}, SUM)["sum"] == [
        ([10, 20], 1 + 2 + 4 + 8, 4),
        ([20, 30], 16, 1),
    ]
    assert judged(app, place, 5, 14, {"istream": []}, SUM, EACH) == {"each": [(None, 0, 0)]}


def test_what_was_computed_again_is_judged_as_it_will_be(tmp_path: Path):
    app = application(tmp_path)
    log = app.ledger.log(app.layout.result("q"))
    put(log, STREAM, [(1, 5), (2, 12), (4, 18)], "kept")
    put(log, STREAM, [(1_000, 14), (8, 25), (16, 31)], "wrong")
    publication = Publication(str(tmp_path), app.ledger, "q", NameKind.QUERY, "r")
    attempt = publication.begin()
    right = pa.table([[32, 8, 16], [14, 25, 31]], schema=STREAM)
    wrong = [file for file in log.files() if "wrong" in file.path]
    publication.stage(log.uri, [write_file(right, log.uri, attempt, "rows")], wrong, anew=True)
    place = SlicePlace(str(tmp_path), app.layout, app.ledger, "r")
    plan: Any = SimpleNamespace(
        expectations=(SUM, EACH), time=TimeDomain(), start=0, kind=ResultKind.ISTREAM,
        root=SimpleNamespace(columns=[SimpleNamespace(label="x")]),
    )  # fmt: skip
    tables = {"istream": (log.uri, STREAM)}
    content = publication.content(log.uri)
    again = JudgedSlice(app, plan, place, 13, 21, tables, [], content=content, committed=33)
    told = [(r["meta"]["unit"], r["observed"]) for r in again.judged()]
    assert told == [([10, 20], 2 + 4 + 32), ([20, 30], 8)]
    early = JudgedSlice(app, plan, place, 13, 21, tables, [], content=content, committed=28)
    assert [r["meta"]["unit"] for r in early.judged()] == [[10, 20]]
    publication.abandon()


def test_a_rewrite_tells_of_whole_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    app = application(tmp_path)
    log = app.ledger.log(app.layout.result("q"))
    put(log, STREAM, [(1, 12), (2, 18)], "kept")
    monkeypatch.setattr(SlicePlace, "of", lambda *_: SlicePlace(str(tmp_path), app.layout, app.ledger, "r"))
    beside = {"table": "q", "rows": 1, "checks": 2, "warnings": {}, "seconds": 0.0, "results": [
        ["law:columns", "critical", "pass", 0], ["constraint:rows", "critical", "fail", None, {"unit": [10, 20]}],
    ]}  # fmt: skip
    for most, good in ((3, True), (2, False)):
        publication = Publication(str(tmp_path), app.ledger, "q", NameKind.QUERY, "r")
        attempt = publication.begin()
        new = pa.table([[32], [14]], schema=STREAM)
        publication.stage(log.uri, [write_file(new, log.uri, attempt, "rows")], anew=True)
        expectation = replace(COUNT, arguments=(("min", 0), ("max", most)), on_violation="fail")
        plan = SimpleNamespace(
            expectations=(expectation,), time=TimeDomain(), start=0, kind=ResultKind.ISTREAM,
            materialize=(ResultKind.ISTREAM,), table=lambda kind: "q",
            root=SimpleNamespace(columns=[SimpleNamespace(label="x")]),
        )  # fmt: skip
        rewrite: Any = Rewrite.__new__(Rewrite)
        rewrite.application, rewrite.name, rewrite.upto = app, "q", 15
        rewrite.shadow = SimpleNamespace(published=plan, since=13, verdicts=[beside])
        staging: Any = SimpleNamespace(publication=publication, attempt=attempt)
        if good:
            (entry,) = rewrite._verdict(staging, 2, 25).verdicts
            assert [r[:3] for r in entry["results"]] == [
                ["law:columns", "critical", "pass"],
                ["constraint:rows", "critical", "pass"],
            ]
            assert entry["results"][1][4]["observed"] == 3
        else:
            with pytest.raises(QualityFailure, match=r"constraint:rows .*\[10, 20\) fails, observed 3"):
                rewrite._verdict(staging, 2, 25)
        publication.abandon()
    told = VerdictTables(app.ledger).read("q")[0].to_pylist()
    assert [(r["expectation"], r["status"], r["refused"], r["cause"]) for r in told] == [
        ("law:columns", "pass", True, "computed again"),
        ("constraint:rows", "fail", True, "computed again"),
    ]


def test_expectations_join_the_verdict_of_their_table_and_stop_the_slice(tmp_path: Path):
    at = str(tmp_path / "q")
    plan: Any = SimpleNamespace(
        name="q",
        time=TimeDomain(),
        constraints=(),
        root=SimpleNamespace(columns=[SimpleNamespace(label="x")]),
        materialize=(ResultKind.ISTREAM, ResultKind.DSTREAM),
    )
    tables: Any = {"istream": (at, STREAM), "dstream": (f"{at}__dstream", STREAM)}
    rows = pa.table([[5], [3]], schema=STREAM)
    broken = json.dumps(counts.counted(rows, checks_of(plan, "istream", 0, 9)))
    lines = [{"target": "istream", "path": "f", "size": 1, "rows": 1, "stats": "", "broken": broken}]
    kept: list[Any] = []

    def run(expectation: Expectation, where: list[dict[str, Any]] = lines) -> list[Any]:
        told = by_name.of_units(rows.rename_columns(["x", "__tick"]), [expectation], 10, 0, 0, 1)
        return audit(None, plan, 0, 9, tables, where, kept.append, (at, told))  # type: ignore[arg-type]

    good, bad = (replace(COUNT, arguments=(("min", n), ("max", None)), on_violation="fail") for n in (1, 2))
    (entry,) = run(good)
    assert (entry["table"], entry["checks"], entry["rows"]) == ("q", 4, 1)
    assert entry["results"][-1][:3] == ["constraint:rows", "critical", "pass"]
    (entry,) = run(good, [])  # a slice without a row
    assert [(r[0], r[4]["unit"]) for r in entry["results"]] == [("constraint:rows", [0, 10])]
    assert not kept
    (entry,) = run(replace(bad, on_violation="warn"))
    assert entry["warnings"] == {"constraint:rows": None}
    with pytest.raises(QualityFailure, match=r"1 of its 4 checks failed .*constraint:rows .*VOLUME .*observed 1"):
        run(bad)
    assert [r[:3] for r in kept[0][0]["results"]][-1] == ["constraint:rows", "critical", "fail"]


# -- references --------------------------------------------------------------------------------------------------------

KEYS = Expectation(
    "known",
    "references",
    "references",
    (("columns", ("a", "b")), ("other", "Other"), ("other_columns", ("k", "L"))),
    "warn",
)
CLOCK = TimeDomain(TimeKind.TIMESTAMP, 1_000)
"""A chronon of a millisecond: a relation's own ticks are microseconds."""


def with_other(folder: Path, kind: NameKind, rows: list[tuple], schema: pa.Schema, committed: int) -> Any:
    """An application with ``other`` committed up to a tick."""
    app = application(folder)
    publication = Publication(str(folder), app.ledger, "other", kind, "r")
    attempt = publication.begin()
    source = kind is NameKind.RELATION
    path = app.layout.admitted("other") if source else app.layout.result("other")
    DeltaLog(path).create(schema, name="other", description="other")
    table = pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), schema, strict=True)], schema=schema
    )
    publication.stage(path, [write_file(table, path, attempt, "rows")])
    info = SourceInfo(chronon=1) if source else QueryInfo(chronon=1_000)
    publication.commit(committed, {}, info.to_json())
    app.catalog = SimpleNamespace(relations={"other": 0} if source else {}, queries={} if source else {"other": 0})
    app.owner = lambda name: name
    app.is_query = lambda name: not source
    app.scale = lambda name, time: time.stored_scale if source else 1
    app.plans = SimpleNamespace(result_table=lambda name: path)
    return app


def asked(app: Any, rows: list[tuple], upto: int = 9) -> tuple[str, int, list[str]]:
    table = pa.table(
        {"a": pa.array([r[0] for r in rows], pa.int64()), "b": pa.array([r[1] for r in rows], pa.string()),
         "__tick": pa.array([r[2] for r in rows], pa.int64())}
    )  # fmt: skip
    result = references.judged(app, KEYS, table, CLOCK, upto)
    return result["status"], result["unexpected"], result["sample"]


ROWS = [
    (1, "x", 1),  # not there yet
    (1, "x", 2),
    (1, "x", 4),
    (1, "x", 5),  # gone
    (1, "y", 3),  # never there
    (None, "x", 3),
    (2, None, 3),
    (7, "z", 9),
]
MISSING = [
    '{"a": 1, "b": "x", "at": "1970-01-01 00:00:00.001000"}',
    '{"a": 1, "b": "x", "at": "1970-01-01 00:00:00.005000"}',
    '{"a": 1, "b": "y", "at": "1970-01-01 00:00:00.003000"}',
]


def test_a_relation_holds_what_came_and_was_not_taken_back(tmp_path: Path):
    schema = pa.schema(
        [("k", pa.int64()), ("l", pa.string()), ("v", pa.int64()), ("__tick", pa.int64()), ("__n", pa.int64())]
    )
    # ticks are microseconds: 2,999 is within the millisecond 2, as two records of the same key are
    rows = [
        (1, "x", 1, 2_999, 1), (1, "x", 2, 3_000, 1), (1, "x", 1, 3_500, -1), (1, "x", 2, 5_000, -1),
        (7, "z", 1, -1_500, 2), (7, "z", 1, 8_000, -1),
    ]  # fmt: skip
    app = with_other(tmp_path, NameKind.RELATION, rows, schema, 10_000)
    assert asked(app, ROWS) == ("fail", 3, MISSING)
    assert asked(app, ROWS[1:3]) == ("pass", 0, [])
    with pytest.raises(SweepAreaError, match=r"known up to 1970-01-01 00:00:00\.009000 only"):
        asked(app, ROWS, upto=10)


def test_a_query_holds_what_its_relation_does(tmp_path: Path):
    at = pa.timestamp("us", "UTC")
    schema = pa.schema([("k", pa.int64()), ("l", pa.string()), ("valid_from", at), ("valid_to", at)])
    rows = [(1, "x", 2_000, 4_000), (1, "x", 4_000, 5_000), (7, "z", 0, None)]
    app = with_other(tmp_path, NameKind.QUERY, rows, schema, 9)
    assert asked(app, ROWS) == ("fail", 3, MISSING)
    with pytest.raises(SweepAreaError, match="known up to"):
        asked(app, ROWS, upto=10)
    app.ledger.forget("other", 1)
    with pytest.raises(SweepAreaError, match="is not known yet"):
        asked(app, ROWS)
