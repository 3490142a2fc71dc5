"""Versions judged one by one: duplicates, lateness, taken-back rows and heartbeats against a slow twin, without a JVM.

The twin (``Slow``) is written from the text of semantics.md, row by row over Python values.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from sweeparea.cql.syntax.parser import parse_text
from sweeparea.cql.syntax.statements import CreateStream
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.spark_jobs.admission.judging import duplicates
from sweeparea.spark_jobs.admission.judging.copies import added_and_removed
from sweeparea.spark_jobs.admission.judging.judge import Lateness, ahead_rules, judged_by
from sweeparea.spark_jobs.admission.judging.policy import policy_of
from sweeparea.spark_jobs.admission.judging.rules import Rules
from sweeparea.spark_jobs.admission.judging.stage import Stage
from sweeparea.spark_jobs.admission.judging.state import StreamState
from sweeparea.spark_jobs.admission.stream.version import Judging, judge_version, take_back
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.ledger import Ledger
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication

TIME = TimeDomain(TimeKind.BIGINT, 1)
COLUMNS = [pa.field("t", pa.int64()), pa.field("id", pa.string()), pa.field("x", pa.int64())]
Row = tuple[int | None, str | None, int | None]


def declared(clauses: str) -> CreateStream:
    [statement] = parse_text(f"CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t {clauses}")
    assert isinstance(statement, CreateStream)
    return statement


class Fast:
    """The real thing over a data folder, with Spark's part done by hand: heartbeat expression t - 2."""

    def __init__(self, folder: Path, clauses: str) -> None:
        self.folder, self.declared = folder, declared(clauses)
        self.rules = Rules.of(self.declared, TIME, [f.name for f in COLUMNS])
        self.version = -1

    def take(self, changes: list[tuple[Row, int]], commit_time: int = 0) -> None:
        """One source version: signed rows. Everything else is read from the ledger."""
        self.version += 1
        ledger = Ledger(str(self.folder))
        publication = Publication(str(self.folder), ledger, "s", NameKind.STREAM, "r")
        attempt = publication.begin()
        state = StreamState.of(publication.previous)
        state.commit_time = max(commit_time, state.commit_time)
        state.instant = state.next_instant(commit_time, TIME)
        stage = Stage(publication, attempt, COLUMNS, came=self.rules.remembers)
        added, removed = added_and_removed(_table(changes))
        counts: Counter[str] = Counter()
        came_in = None
        if removed.num_rows:
            came_in = take_back(stage, self.rules, _evaluate(removed), state, self.version, counts)
        lookup = None
        if self.rules.apart is not None:
            lookup = partial(duplicates.kept_rows, stage, self.rules.duplicate_by, within=self.rules.apart)
        corrects = counts["taken_back"] > 0
        judging = Judging(self.rules, state, self.version, commit_time, _evaluate, lookup, corrects)
        rows = [added] if added.num_rows else []
        outcome = judge_version(judging, rows, stage.admit, stage.keep_out, came_in=came_in)
        policy = policy_of(None, self.declared, TIME, self.version, None)  # type: ignore[arg-type]
        decision = policy.evaluate(state.heartbeat, outcome.facts(state, 0))
        state.corrected(stage.seq, outcome.least_tick)
        state.source_version, state.policy = self.version, dict(decision.state)
        counts += outcome.counts
        stage.commit(decision.heartbeat, state.as_info(counts))

    @property
    def row(self):
        return Ledger(str(self.folder)).head()["s"]

    def admitted(self) -> Counter[Row]:
        """Net copies by row."""
        found: Counter[Row] = Counter()
        for r in DeltaLog(f"{self.folder}/admitted/s").read().to_pylist():
            found[r["t"], r["id"], r["x"]] += r["__n"]
        assert all(n >= 0 for n in found.values())
        return +found

    def quarantine(self) -> Counter[tuple[str, str]]:
        found: Counter[tuple[str, str]] = Counter()
        for r in DeltaLog(f"{self.folder}/quarantine/s").read().to_pylist():
            found[r["__row"], r["__reason"].split(":")[0].split(" ")[0]] += r["__n"]
        return found


def _table(changes: list[tuple[Row, int]]) -> pa.Table:
    rows = [(*row, n) for row, n in changes if n]
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    fields = [*COLUMNS, pa.field("__n", pa.int64())]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)], schema=pa.schema(fields))


def _evaluate(rows: pa.Table) -> pa.Table:
    t = rows.column("t")
    back = pa.array([None if v is None else v - 2 for v in t.to_pylist()], pa.int64())
    return rows.append_column("__tick", t).append_column("__heartbeat", back)


@dataclass
class Copy:
    """One copy of a row that the source holds: ``fate`` is element, duplicate, or the reason that keeps it out.

    ``stands``: nothing speaks against it but that it may be a duplicate. ``came`` is its version.
    """

    row: Row
    came: int
    stands: bool
    fate: str = ""


def total_order(row: Row) -> list[Any]:
    """NULL first, then by value; texts by their bytes."""
    return [(v is not None, 0 if v is None else v.encode() if isinstance(v, str) else v) for v in row]


class Slow:
    """semantics.md, sections 2 and 9, row by row, and the rule of docs/streams.md for duplicates of a source that takes
    rows back: what is kept is what would be kept had the removed copies never been.
    """

    def __init__(self, clauses: str) -> None:
        spec = declared(clauses)
        self.repair, self.within = spec.late == "repair", None
        if spec.late_within is not None:
            self.within = spec.late_within.in_ticks(TIME, "")
        self.apart = None if spec.deduplicate is None else spec.deduplicate.within.in_ticks(TIME, "")
        self.per, self.idle = spec.heartbeat is not None and spec.heartbeat.kind == "per", None
        if spec.heartbeat is not None:
            self.idle = spec.heartbeat.idle
        self.h: int | None = None
        self.c = 0
        self.live: list[Copy] = []  # in the order in which they came
        self.unmatched = 0
        self.version = 0
        self.dropped = self.reinstated = self.displaced = 0
        self.corrected = False
        self.most: dict[Any, int] = {}
        self.seen: dict[Any, int] = {}

    @property
    def admitted(self) -> Counter[Row]:
        return Counter(copy.row for copy in self.live if copy.fate == "element")

    @property
    def kinds(self) -> Counter[str]:
        """Copies in quarantine by the first word of their reason."""
        found = Counter(copy.fate for copy in self.live if copy.fate != "element")
        found["taken"] -= self.unmatched
        return found

    def take(self, changes: list[tuple[Row, int]], commit_time: int = 0) -> list[Row]:
        """One version; returns the rows that became elements by it."""
        self.c = max(self.c, commit_time)
        self.version += 1
        before, corrects = self.h, False
        for row, n in changes:
            for _ in range(-n):
                corrects = self._remove(row, before) or corrects
        fresh = self._keep_anew(before)
        for row in sorted((row for row, n in changes for _ in range(n)), key=total_order):
            self.live.append(self._judged(row, before, self.repair or corrects))
            if self.live[-1].fate == "element":
                fresh.append(row)
                self._touched(row, before)
        return fresh

    def end(self, fresh: list[Row]) -> None:
        """The policy after the version, over its admitted rows."""
        for t, source, _ in fresh:
            assert t is not None
            self.most[source] = max(t - 2, self.most.get(source, t - 2))
            self.seen[source] = self.c
        if self.per:
            alive = [m for s, m in self.most.items() if self.idle is None or self.c - self.seen[s] < self.idle]
            value = min(alive, default=None)
        else:
            value = max(self.most.values(), default=None)
        if value is not None:
            self.h = value if self.h is None else max(self.h, value)

    def _touched(self, row: Row, before: int | None) -> None:
        assert row[0] is not None
        self.corrected = self.corrected or (before is not None and row[0] <= before)

    def _remove(self, row: Row, before: int | None) -> bool:
        """Whether an element goes. One that is kept out goes first, of several the one that came last."""
        copies = [copy for copy in self.live if copy.row == row]
        if not copies:
            self.unmatched += 1
            return False
        gone = max(copies, key=lambda copy: (copy.fate != "element", copy.came))
        self.live = [copy for copy in self.live if copy is not gone]
        if gone.fate == "element":
            self._touched(row, before)
        return gone.fate == "element"

    def _near(self, row: Row, others: list[Copy]) -> bool:
        """DEDUPLICATE BY id WITHIN ..: an element of equal id, no further off."""
        return self.apart is not None and any(
            other.fate == "element" and other.row[1] == row[1] and abs(other.row[0] - row[0]) <= self.apart  # type: ignore[operator]
            for other in others
        )

    def _keep_anew(self, before: int | None) -> list[Row]:
        """All copies in the order in which they came, those that were removed left out: which of them are kept? Returns
        the duplicates that are elements now.
        """
        fresh = []
        for i, copy in enumerate(self.live):
            if not copy.stands:
                continue
            fate = "duplicate" if self._near(copy.row, self.live[:i]) else "element"
            if fate != copy.fate:
                self._touched(copy.row, before)
                if fate == "element":
                    fresh.append(copy.row)
                else:
                    self.displaced += 1
                    self.dropped += 1
            copy.fate = fate
        self.reinstated += len(fresh)
        return fresh

    def _judged(self, row: Row, before: int | None, repair: bool) -> Copy:
        t = row[0]
        if t is None:
            return Copy(row, self.version, False, "timestamp")
        late = before is not None and t <= before
        out = late and (not repair or (self.within is not None and before is not None and t < before - self.within))
        if self._near(row, self.live):
            self.dropped += 1
            return Copy(row, self.version, not out, "duplicate")
        return Copy(row, self.version, not out, "late" if out else "element")


ROW = st.tuples(
    st.one_of(st.none(), st.integers(0, 30)), st.sampled_from(["a", "b", None]), st.sampled_from([1, 2, None])
)
VERSIONS = st.lists(st.tuples(st.lists(ROW, max_size=8), st.integers(0, 40)), min_size=1, max_size=6)
CLAUSES = [
    "HEARTBEAT FOR t AS t - 2",
    "HEARTBEAT FOR t AS t - 2 LATE REPAIR",
    "HEARTBEAT FOR t AS t - 2 LATE REPAIR WITHIN 5",
    "HEARTBEAT FOR t AS t - 2 DEDUPLICATE BY id WITHIN 3",
    "HEARTBEAT FOR t AS t - 2 LATE REPAIR DEDUPLICATE BY id WITHIN 6",
    "HEARTBEAT PER id AS t - 2 IDLE AFTER INTERVAL 10 MICROSECONDS",
    "HEARTBEAT PER id AS t - 2 LATE REPAIR WITHIN 4 DEDUPLICATE BY id WITHIN 2",
    "HEARTBEAT FOR t AS t - 9 DEDUPLICATE BY id WITHIN 4",
]


# a version is a real commit: some are judged in every run of the tests, many in the long ones
@pytest.mark.parametrize(
    ("clauses", "examples"), [(c, 2) for c in CLAUSES] + [pytest.param(c, 60, marks=pytest.mark.slow) for c in CLAUSES]
)
def test_every_version_is_judged_as_the_text_says(tmp_path_factory, clauses: str, examples: int):
    @settings(max_examples=examples, deadline=None, phases=[Phase.generate])
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        _judged_alike(tmp_path_factory.mktemp("s"), clauses, data)

    run()


def _judged_alike(folder: Path, clauses: str, data: st.DataObject) -> None:
    fast, slow = Fast(folder, f"{clauses} ON SOURCE CHANGE CORRECT"), Slow(clauses)
    live: Counter[Row] = Counter()
    for rows, commit_time in data.draw(VERSIONS):
        there = sorted(live.elements(), key=repr)
        gone = data.draw(st.lists(st.sampled_from(there), max_size=2)) if there else []
        change = Counter(rows)
        change.subtract(Counter(gone) & live)
        live.update(change)
        changes = [(row, n) for row, n in change.items() if n]
        slow.end(slow.take(changes, commit_time))
        fast.take(changes, commit_time)
        assert fast.admitted() == +slow.admitted
        held = fast.row
        assert held.committed == slow.h
        for count in ("reinstated", "displaced"):
            assert held.info["totals"].get(count, 0) == getattr(slow, count)
        assert held.info["totals"].get("deduplicated", 0) == slow.dropped
        assert bool(held.info["correction_seq"]) == slow.corrected
    found: Counter[str] = Counter()
    for (_, reason), n in fast.quarantine().items():
        found[reason] += n
    assert {kind: n for kind, n in found.items() if n} == {kind: n for kind, n in slow.kinds.items() if n}


def test_the_first_in_the_total_order_is_kept_and_a_kept_row_decides(tmp_path):
    """By hand: SEQUENCE BY comes first, so 14 is kept, 12 falls to it, 10 is further than 3 from it."""
    fast = Fast(tmp_path, "HEARTBEAT MANUAL SEQUENCE BY x DEDUPLICATE BY id WITHIN 3")
    fast.take([((12, "a", 2), 1), ((10, "a", 3), 1), ((14, "a", 1), 1)])
    assert fast.admitted() == Counter({(14, "a", 1): 1, (10, "a", 3): 1})
    fast.take([((11, "a", 1), 2), ((18, "a", 1), 3), ((11, "b", 1), 1)])
    assert fast.admitted() == Counter({(14, "a", 1): 1, (10, "a", 3): 1, (18, "a", 1): 1, (11, "b", 1): 1})
    assert fast.row.info["totals"]["deduplicated"] == 1 + 2 + 2


def test_a_quarantined_row_makes_no_duplicates(tmp_path):
    fast = Fast(tmp_path, "HEARTBEAT FOR t AS t - 2 LATE REPAIR WITHIN 5 DEDUPLICATE BY id WITHIN 100")
    fast.take([((20, "b", 1), 1)])
    fast.take([((1, "a", 1), 1)])  # below 18 - 5: to quarantine, not kept
    fast.take([((15, "a", 1), 1)])
    assert fast.admitted() == Counter({(20, "b", 1): 1, (15, "a", 1): 1})
    fast.take([((2, "a", 1), 1)])  # a duplicate of 15, which is told before it is late
    assert fast.row.info["totals"] == {
        "rows": 2, "quarantined": 1, "late": 2, "repaired": 1, "deduplicated": 1,
    }  # fmt: skip


def test_a_taken_back_row_cancels_quarantine_first_then_an_element(tmp_path):
    fast = Fast(tmp_path, "HEARTBEAT FOR t AS t - 2 ON SOURCE CHANGE CORRECT")
    fast.take([((20, "a", 1), 3)])
    fast.take([((5, "a", 1), 2)])
    assert sum(fast.quarantine().values()) == 2
    fast.take([((5, "a", 1), -1), ((20, "a", 1), -2), ((7, "z", 1), -1)])
    assert fast.admitted() == Counter({(20, "a", 1): 1})
    assert sorted(fast.quarantine().values()) == [-1, 1]
    info = fast.row.info
    assert (info["taken_back"], info["correction_seq"]) == (True, 0)  # tick 20 lies above the heartbeat of 18
    fast.take([((5, "a", 1), 1), ((21, "a", 1), 1)])
    fast.take([((5, "a", 1), -1)])  # of one in quarantine and none admitted
    assert fast.admitted()[5, "a", 1] == 0
    fast.take([((30, "a", 1), 1)])
    fast.take([((20, "a", 1), 1)])  # an equal one, late
    fast.take([((20, "a", 1), -1)])
    assert fast.admitted()[20, "a", 1] == 1
    fast.take([((20, "a", 1), -1)])
    assert fast.row.info["correction_seq"] == fast.row.seq


def test_the_bounds_of_lateness(tmp_path):
    """The heartbeat itself is late; exactly WITHIN below it is repaired, and a correction; a tick more is too old."""
    fast = Fast(tmp_path / "a", "HEARTBEAT FOR t AS t - 2 LATE REPAIR WITHIN 5")
    fast.take([((20, "a", 1), 1)])
    fast.take([((13, "a", 1), 1), ((12, "a", 1), 1)])
    assert fast.admitted() == Counter({(20, "a", 1): 1, (13, "a", 1): 1})
    assert (fast.row.info["correction_seq"], fast.row.info["totals"]["late"]) == (2, 2)
    fast.take([((18, "a", 1), 1)])
    assert fast.row.info["correction_seq"] == 3
    fast.take([((19, "a", 1), 1)])
    assert fast.row.info["correction_seq"] == 3
    fast = Fast(tmp_path / "b", "HEARTBEAT FOR t AS t - 2")
    fast.take([((20, "a", 1), 1)])
    fast.take([((18, "a", 1), 1), ((19, "a", 1), 1)])
    assert fast.admitted() == Counter({(20, "a", 1): 1, (19, "a", 1): 1})


def test_of_two_deliveries_one_may_be_removed(tmp_path):
    """The source holds the row still: the kept one stays, whichever copy was removed. The last one takes it along."""
    fast = Fast(tmp_path, "HEARTBEAT FOR t AS t - 2 DEDUPLICATE BY id WITHIN 3 ON SOURCE CHANGE CORRECT")
    fast.take([((10, "a", 1), 2)])
    fast.take([((10, "a", 1), 1), ((20, "b", 1), 1)])
    assert sum(fast.quarantine().values()) == 2
    for left in (1, 0):
        fast.take([((10, "a", 1), -1)])
        assert fast.admitted()[10, "a", 1] == 1
        assert sum(fast.quarantine().values()) == left
    assert fast.row.info["correction_seq"] == 0
    fast.take([((10, "a", 1), -1)])
    assert fast.admitted() == Counter({(20, "b", 1): 1})


def test_a_later_copy_with_other_columns_comes_in_where_the_kept_row_goes(tmp_path):
    """It is a correction, even under LATE REJECT, and one of its two copies stays a duplicate."""
    fast = Fast(tmp_path, "HEARTBEAT FOR t AS t - 2 DEDUPLICATE BY id WITHIN 3 ON SOURCE CHANGE CORRECT")
    fast.take([((10, "a", 1), 1)])
    fast.take([((12, "a", 2), 2), ((30, "b", 1), 1)])
    fast.take([((10, "a", 1), -1)])
    assert fast.admitted() == Counter({(12, "a", 2): 1, (30, "b", 1): 1})
    assert list(fast.quarantine().values()) == [1]
    info = fast.row.info
    assert (info["correction_seq"], info["totals"]["reinstated"], info["taken_back"]) == (3, 1, True)
    fast.take([((9, "a", 9), 1)])  # a duplicate of the one that came in
    assert fast.admitted() == Counter({(12, "a", 2): 1, (30, "b", 1): 1})


def test_what_a_kept_row_hid_is_chosen_anew_along_a_chain(tmp_path):
    """10 kept 13 out, which would have kept 16 out, which kept 19 out: without 10 it is 13 and 19. The order in which
    rows came lasts, also through a second correction.
    """
    fast = Fast(tmp_path, "HEARTBEAT MANUAL DEDUPLICATE BY id WITHIN 3 ON SOURCE CHANGE CORRECT")
    for t in (10, 13, 16, 19, 100):
        fast.take([((t, "a", 1), 1)])
    assert sorted(t or 0 for t, *_ in fast.admitted()) == [10, 16, 100]
    fast.take([((10, "a", 1), -1)])
    assert sorted(t or 0 for t, *_ in fast.admitted()) == [13, 19, 100]
    assert fast.row.info["totals"]["displaced"] == 1
    fast.take([((11, "a", 1), 1)])  # near 13, which came before it
    fast.take([((13, "a", 1), -1)])
    assert sorted(t or 0 for t, *_ in fast.admitted()) == [11, 16, 100]


def test_of_equal_duplicates_the_last_is_removed_first(tmp_path):
    """13 came before 16 and once more after it; the first of both would have been kept without 10, so 16 would not."""
    fast = Fast(tmp_path, "HEARTBEAT MANUAL DEDUPLICATE BY id WITHIN 3 ON SOURCE CHANGE CORRECT")
    for t in (10, 13, 16, 13):
        fast.take([((t, "a", 1), 1)])
    fast.take([((13, "a", 1), -1)])
    fast.take([((10, "a", 1), -1)])
    assert fast.admitted() == Counter({(13, "a", 1): 1})


def test_a_duplicate_that_something_else_speaks_against_never_comes_in(tmp_path):
    """It came too late to be repaired; without the kept row it would have been kept out for that."""
    fast = Fast(
        tmp_path, "HEARTBEAT FOR t AS t - 2 LATE REPAIR WITHIN 5 DEDUPLICATE BY id WITHIN 9 ON SOURCE CHANGE CORRECT"
    )
    fast.take([((10, "a", 1), 1), ((30, "b", 1), 1)])
    fast.take([((11, "a", 2), 1), ((28, "a", 3), 1), ((26, "a", 4), 1)])
    fast.take([((10, "a", 1), -1)])
    assert fast.admitted() == Counter({(30, "b", 1): 1, (26, "a", 4): 1})
    fast.take([((26, "a", 4), -1)])
    assert fast.admitted() == Counter({(30, "b", 1): 1, (28, "a", 3): 1})


def test_a_source_that_only_grows_remembers_no_duplicates(tmp_path):
    fast = Fast(tmp_path, "HEARTBEAT MANUAL DEDUPLICATE BY id WITHIN 3")
    fast.take([((10, "a", 1), 3)])
    assert not fast.quarantine()
    assert DeltaLog(f"{tmp_path}/admitted/s").schema().names == ["t", "id", "x", "__tick", "__seq", "__n"]


@pytest.mark.parametrize("examples", [3, pytest.param(80, marks=pytest.mark.slow)])
def test_what_was_removed_might_as_well_never_have_been(tmp_path_factory, examples: int):
    """Whatever is removed in whatever order: the elements are those of a source that never held it."""
    rows = st.tuples(st.integers(0, 24), st.sampled_from("ab"), st.sampled_from([1, 2]))
    clauses = "HEARTBEAT MANUAL DEDUPLICATE BY id WITHIN 3 ON SOURCE CHANGE CORRECT"

    @settings(max_examples=examples, deadline=None, phases=[Phase.generate])
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        versions = data.draw(st.lists(st.lists(rows, max_size=5), min_size=2, max_size=6))
        came = [(row, i) for i, version in enumerate(versions) for row in version]
        fast = Fast(tmp_path_factory.mktemp("s"), clauses)
        for version in versions:
            fast.take(list(Counter(version).items()))
        while came:
            gone = data.draw(st.lists(st.sampled_from(came), max_size=3, unique=True))
            if not gone:
                break
            fast.take([(row, -n) for row, n in Counter(row for row, _ in gone).items()])
            for row, _ in gone:  # of equal rows the last
                came.remove(max((c for c in came if c[0] == row), key=lambda c: c[1]))
        twin = Fast(tmp_path_factory.mktemp("s"), clauses)
        for i in range(len(versions)):
            twin.take(list(Counter(row for row, at in came if at == i).items()))
        assert fast.admitted() == twin.admitted()
        assert sum(fast.quarantine().values()) == sum(twin.quarantine().values())

    run()


def test_what_lies_below_retained_history_is_not_repaired():
    """RETAIN bounds what can be repaired; a MAX AHEAD that is left out is a day after the commit."""
    ticks = pa.chunked_array([[88, 89, 90, 101]])
    rows = pa.table({"__tick": ticks})
    judged = judged_by(rows, Lateness(100, repair=True, within=20, retain=11).rules(ticks, TIME))
    assert judged.good.column("__tick").to_pylist() == [89, 90, 101]
    assert Lateness(100, repair=True, within=20, retain=11).repairable_from == 89  # WITHIN is for what comes late
    assert Lateness(None, retain=11).repairable_from is None
    assert judged.reasons.to_pylist() == ["late: below the retained history (RETAIN) at heartbeat 100 (tick 100)"]
    day = 86_400_000_000
    seconds = TimeDomain(TimeKind.TIMESTAMP, 1_000_000)
    ticks = pa.chunked_array([[86_400, 86_401]])
    judged = judged_by(pa.table({"__tick": ticks}), ahead_rules(ticks, seconds, None, 999_999))
    assert judged.good.column("__tick").to_pylist() == [86_400]
    assert ahead_rules(ticks, TIME, day, 0) == []


def test_an_update_below_the_heartbeat_is_a_correction_under_reject_too(tmp_path):
    """Its new row must not be lost where the old one is taken back; a row that is only late is rejected as ever."""
    fast = Fast(tmp_path, "HEARTBEAT FOR t AS t - 2 ON SOURCE CHANGE CORRECT")
    fast.take([((5, "a", 1), 1), ((20, "a", 1), 1)])
    fast.take([((5, "a", 1), -1), ((5, "a", 2), 1)])
    assert fast.admitted() == Counter({(5, "a", 2): 1, (20, "a", 1): 1})
    fast.take([((6, "a", 2), 1)])
    assert sum(fast.quarantine().values()) == 1


def test_equal_values_are_equal_however_they_are_written(tmp_path):
    """-0.0 and 0.0, and NaNs, are one value where rows are taken back."""
    rows = pa.table({"t": pa.array([1], pa.int64()), "x": [0.0]})
    held = pa.table({"t": pa.array([1], pa.int64()), "x": [-0.0], "__tick": pa.array([1], pa.int64())})
    from sweeparea.spark_jobs.admission.judging.stage import row_texts

    assert row_texts(rows) == row_texts(held.select(["t", "x"]))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from("ab"), st.integers(1, 2), st.booleans()), max_size=25),
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from("ab"), st.integers(1, 2), st.integers(0, 2)), max_size=6),
    st.integers(1, 20),
)
def test_duplicates_of_any_length_of_chain(rows, before, within):
    """Against the rule itself: in order, a row near a kept one is dropped. Of what was kept some was taken back."""
    alive = [(t, k) for t, k, n, back in before if back < n]
    kept = [(t, k, n) for t, k, n, _ in before] + [(t, k, -min(n, back)) for t, k, n, back in before if back]
    order = sorted(range(len(rows)), key=lambda i: (rows[i][1], rows[i][0]))
    expected = [0] * len(rows)
    for i in order:
        t, k, n, stands = rows[i]
        for _ in range(n):
            if any(k == other and abs(t - at) <= within for at, other in alive):
                expected[i] += 1
            elif stands:
                alive.append((t, k))

    def table(entries: list[Any]) -> pa.Table:
        columns = list(zip(*(e[:3] for e in entries), strict=True)) or [(), (), ()]
        return pa.table(
            [pa.array(columns[0], pa.int64()), pa.array(columns[1], pa.string()), pa.array(columns[2], pa.int64())],
            names=["__tick", "k", "__n"],
        )

    stands = np.array([r[3] for r in rows], np.bool_)
    found = duplicates.duplicates(table(rows), table(kept), ["k"], ["k", "__tick"], within, stands)
    assert found.tolist() == expected
