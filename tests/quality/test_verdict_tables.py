"""Verdicts as data: they come with commits, once each, however runs end; refused ones are marked."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import pytest

from sweeparea.quality import ranges, records, report
from sweeparea.quality.verdict import Verdict
from sweeparea.quality.verdict_tables import VerdictTables, refused
from sweeparea.tables.log.compaction import compact
from sweeparea.tables.publication import publish
from sweeparea.tables.publication.info import QueryInfo
from sweeparea.tables.publication.ledger import Ledger, LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication, recover
from sweeparea.tables.publication.retention import trim

HOUR = 3_600_000_000


def verdict(broken: int = 0, rows: int = 10) -> Verdict:
    results = [
        {"id": id_, "type": "t", "severity": severity, "status": "fail" if n else "pass", "unexpected": n,
         "observed": None, "error": None, "sample": [], "meta": {}}
        for id_, severity, n in (("law:columns", "critical", 0), ("constraint:small", "warning", broken))
    ]  # fmt: skip
    return Verdict(True, results, 0.01, rows)


def commit(ledger: Ledger, name: str, broken: int = 0, judged: bool = True) -> LedgerRow:
    publication = Publication(ledger.layout.data_folder, ledger, name, NameKind.QUERY, "r1")
    attempt = publication.begin()
    previous = publication.previous
    tick = (previous.committed or 0) + 1 if previous else 1
    samples = {"constraint:small": [{"n": i} for i in range(broken)]}
    info = dict(previous.info) if previous else {}
    if judged:
        told = records.bounded([records.entry(name, verdict(broken), samples)])
        info |= QueryInfo(h0=tick - 1, chronon=HOUR, verdicts=told, judged=attempt).to_json()
    return publication.commit(tick, {}, info)


def told(ledger: Ledger, name: str | None = None) -> list[tuple]:
    rows = VerdictTables(ledger).read(name)[0].to_pylist()
    keys = ("name", "seq", "expectation", "status", "unexpected", "rows", "share", "refused")
    return sorted(tuple(row[key] for key in keys) for row in rows)


def test_every_commit_has_its_verdict_once(tmp_path: Path):
    ledger = Ledger(tmp_path)
    commit(ledger, "q", 3)
    commit(ledger, "q", judged=False)  # carries the first one on
    commit(ledger, "p")
    wanted = [
        ("p", 1, "constraint:small", "pass", 0, 10, 0.0, False),
        ("p", 1, "law:columns", "pass", 0, 10, 0.0, False),
        ("q", 1, "constraint:small", "fail", 3, 10, 0.3, False),
        ("q", 1, "law:columns", "pass", 0, 10, 0.0, False),
    ]
    assert told(ledger) == wanted
    assert told(Ledger(tmp_path)) == wanted  # nothing is copied twice
    assert VerdictTables(ledger).bring_up() == 0
    commit(ledger, "q")
    history = ledger.log(ledger.layout.history)
    compact(history, "seq", ("name", "seq"))
    assert len(told(ledger)) == 6
    row = VerdictTables(ledger).read("q")[0].to_pylist()[0]
    assert row["since"].hour == 0
    assert row["upto"].hour == 1
    assert [r["row"] for r in VerdictTables(ledger).read()[1].to_pylist()] == ['{"n": 0}', '{"n": 1}', '{"n": 2}']


def test_a_packed_history_tells_nothing_twice(tmp_path: Path):
    ledger = Ledger(tmp_path)
    for _ in range(9):
        commit(ledger, "q")
    before = told(ledger)
    assert compact(ledger.log(ledger.layout.history), "seq", ("name", "seq")).removed == 9
    commit(ledger, "q")
    assert len(told(ledger)) == len(before) + 2
    # where the log was shortened, what was there before is not known: all is looked at, and nothing comes twice
    trim(ledger.log(ledger.layout.history))
    commit(ledger, "p")
    assert len(told(ledger)) == len(before) + 4


def test_a_commit_that_is_not_applied_yet_has_its_verdict_when_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ledger = Ledger(tmp_path)
    commit(ledger, "q")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(publish, "apply", killed)
        with pytest.raises(KeyboardInterrupt):
            commit(ledger, "q")
    recover(str(tmp_path), Ledger(tmp_path))
    assert [seq for _, seq, *_ in told(Ledger(tmp_path))] == [1, 1, 2, 2]


def test_a_slice_that_was_never_committed_has_no_verdict_but_a_refused_one(tmp_path: Path):
    ledger = Ledger(tmp_path)
    commit(ledger, "q")
    publication = Publication(tmp_path, ledger, "q", NameKind.QUERY, "r1")
    attempt = publication.begin()
    assert len(told(ledger)) == 2
    entry = records.entry("q", verdict(7), {"constraint:small": [{"n": "x" * 9_000}] * 50})
    refused(ledger, "q", NameKind.QUERY, [entry], registration="r1", seq=2, attempt=attempt, since=1, upto=2)
    assert ("q", 2, "constraint:small", "fail", 7, 10, 0.7, True) in told(ledger)
    samples = VerdictTables(ledger).read("q")[1]
    assert samples.num_rows == records.SAMPLES
    assert max(map(len, samples.column("row").to_pylist())) <= records.SAMPLE_LENGTH + 2
    commit(ledger, "q")  # the same number, committed
    assert len(told(ledger)) == 6


def test_what_is_older_than_retain_goes(tmp_path: Path):
    ledger = Ledger(tmp_path)
    first = commit(ledger, "q", 2)
    VerdictTables(ledger).bring_up()
    second = commit(ledger, "q", 1)
    tables = VerdictTables(ledger)
    tables.bring_up()
    assert tables.let_go(first.at) == 0
    assert tables.let_go(second.at) == 4  # two verdicts, two samples
    assert {row[1] for row in told(ledger)} == {2}
    assert tables.let_go(second.at + 1) == 3
    assert told(ledger) == []  # and they do not come again


def test_a_ledger_row_stays_small(tmp_path: Path):
    many = {f"constraint:c{i}": [{"text": "x" * 600}] * 9 for i in range(50)}
    results = [
        {"id": id_, "type": "t", "severity": "warning", "status": "fail", "unexpected": 10**6, "observed": None,
         "error": None, "sample": [], "meta": {}}
        for id_ in many
    ]  # fmt: skip
    told = records.bounded([records.entry("q", Verdict(True, results, 0.1, 10**6), many)] * 3)
    shown = [row for entry in told for rows in entry.get("samples", {}).values() for row in rows]
    assert len(shown) == records.ENTRY_SAMPLES
    assert sum(map(len, shown)) <= records.ENTRY_SAMPLES * (records.SAMPLE_LENGTH + 2)


def test_several_slices_are_one_verdict():
    entries = [records.entry("q", verdict(n), {"constraint:small": [{"n": n}]}) for n in (0, 4, 1)]
    (one,) = records.merged(entries)
    assert one["rows"] == 30
    assert [r[:4] for r in one["results"]] == [
        ["law:columns", "critical", "pass", 0],
        ["constraint:small", "warning", "fail", 5],
    ]
    assert one["samples"] == {"constraint:small": ['{"n": 4}', '{"n": 1}']}
    assert one["warnings"] == {"constraint:small": 5}
    entries[0]["warnings"] = {"constraint:small": None, "constraint:mean": None}
    assert records.merged(entries)[0]["warnings"] == {"constraint:small": 5, "constraint:mean": None}


def test_a_page_needs_nothing_else_and_shows_what_there_is(tmp_path: Path):
    ledger = Ledger(tmp_path)
    for broken in (0, 3, 0, 1):
        commit(ledger, "q", broken)
    entry = records.entry("q", verdict(7), {"constraint:small": [{"n": "<script>alert(1)</script>"}]})
    refused(ledger, "q", NameKind.QUERY, [entry], registration="r1", seq=5, attempt="a", since=4, upto=5, chronon=HOUR)
    verdicts, samples = VerdictTables(ledger).read("q")
    links = [("rows", "sweeparea quarantine list shop '<b>'")]
    html = report.page("Quality of q & r", verdicts, samples, made_at=datetime(2024, 5, 1, tzinfo=UTC), links=links)
    parsed = FetchingParser()
    parsed.feed(html)
    assert not parsed.fetched
    assert "<script" not in html
    assert html.count("<svg") == 2
    assert "refused: 1 of 2 checks are not met" in html
    assert "&lt;script&gt;alert(1)" in html
    assert "Quality of q &amp; r" in html
    assert html.count("<circle") == 10  # a point a verdict of each expectation
    shares = [float(point.split(",")[1]) for point in re.findall(r"polyline points='([^']*)'", html)[0].split()]
    assert shares[0] == shares[2] > shares[3] > shares[1] > shares[4]  # y grows downwards


class FetchingParser(HTMLParser):
    """What a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [f"{tag} {k}" for k, _ in attrs if k in ("src", "href", "srcset", "data", "action")]


def test_ten_thousand_verdicts_are_a_plot_of_some_hundred_points_with_the_worst_of_them():
    at = datetime(2024, 5, 1, tzinfo=UTC)
    row = {"status": "pass", "severity": "warning", "share": 0.0, "refused": False, "observed": None, "seq": 1,
           "upto": at, "upto_tick": 1, "unit_from": None, "cause": None, "judged_at": at,
           "source_version": None}  # fmt: skip
    points = [(row | ({"status": "fail", "share": 0.5} if i == 7_777 else {}), 0.5 if i == 7_777 else 0.0)
              for i in range(10_000)]  # fmt: skip
    svg = report.plot(points, share=True)
    assert len(re.findall(r"polyline points='([^']*)'", svg)[0].split()) == report.POINTS
    assert svg.count("<circle") == 1
    assert "50 %" in svg


def test_ranges_compared(tmp_path: Path):
    ledger = Ledger(tmp_path)
    for broken in (0, 0, 5, 5, 5):
        commit(ledger, "q", broken)
    rows = VerdictTables(ledger).read()[0].to_pylist()
    start = datetime(1970, 1, 1, tzinfo=UTC)
    old, new = (
        ranges.InstantRange(start + timedelta(hours=a), start + timedelta(hours=b)) for a, b in ((1, 3), (3, 6))
    )
    (line,) = ranges.difference(rows, old, new)
    assert (line["expectation"], line["checks"], line["not met"]) == ("constraint:small", "2 -> 3", "0 -> 3")
    assert (line["share"], line["change"]) == ("0 % -> 50 %", "+50 %")
    assert len(ranges.difference(rows, old, new, changed=False)) == 2
    assert not ranges.difference(rows, old, old)


def test_columns_are_named_without_quotes_in_sql():
    connection = duckdb.connect()
    for schema in (records.VERDICTS, records.SAMPLE_ROWS):
        connection.register("rows_of", schema.empty_table())
        for name in schema.names:
            sql = f"SELECT name, {name}, seq FROM rows_of WHERE {name} IS NULL ORDER BY {name} DESC"
            assert connection.execute(sql).fetchall() == []
