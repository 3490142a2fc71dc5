"""One version of a stream's source becomes one commit: elements, quarantined rows and a heartbeat.

The order in which a row is judged: is it an element at all (a timestamp inside the time domain); does it repeat a kept
row (DEDUPLICATE BY); is it too far ahead, does it violate a constraint, is it late. What the version removed comes
first. Lateness is judged by the heartbeat that the commit before has published, so each version is judged the same
however many of them one run takes.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.cql.syntax.statements import ConstraintSpec
from sweeparea.heartbeats.policies import VersionFacts
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.values import keys
from sweeparea.spark_jobs.admission.judging import duplicates as duplicate_rows
from sweeparea.spark_jobs.admission.judging.judge import (
    PIECE,
    Judgement,
    Lateness,
    ahead_rules,
    as_heartbeat,
    constraint_rules,
    judged_by,
    latest_instant,
    malformed_rules,
    pieces,
    timestamp_rules,
)
from sweeparea.spark_jobs.admission.judging.rules import Rules
from sweeparea.spark_jobs.admission.judging.stage import CAME, Stage, quarantine_rows
from sweeparea.spark_jobs.admission.judging.state import StreamState
from sweeparea.spark_jobs.admission.stream import taken_back
from sweeparea.spark_jobs.admission.stream.reinstated import reinstate
from sweeparea.spark_jobs.spark import json_values

Evaluate = Callable[[pa.Table], pa.Table]
"""Adds ``__tick``, ``__heartbeat`` and ``__check_0``, .. to rows of the source, row for row."""
Lookup = Callable[[pa.Table], pa.Table]
"""The admitted rows that could make rows duplicates (``judging/duplicates.kept_rows``)."""


@dataclass
class Outcome:
    """What the rows of a version have come to, gathered over its pieces. ``counts`` as ``admit_state.COUNTS``."""

    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    warned: Counter[str] = field(default_factory=Counter)
    least_tick: int | None = None
    max_tick: int | None = None
    max_heartbeat: int | None = None
    sources: dict[str, int] = field(default_factory=dict)
    elements: list[pa.Table] = field(default_factory=list)

    def saw(self, good: pa.Table, rules: Rules, latest: int | None = None) -> None:
        """Notes what the heartbeat's policy wants to know of admitted elements, and how early they are. Heartbeats
        beyond ``latest`` (microseconds) are counted and not taken.
        """
        ticks = pc.min_max(good.column("__tick")).as_py()
        self.least_tick = _least(self.least_tick, ticks["min"])
        self.max_tick = _greatest(self.max_tick, ticks["max"])
        values = good.column("__heartbeat")
        if latest is not None:
            distant = pc.fill_null(pc.greater(values, latest), False)
            self.counts["distant"] += pc.sum(distant).as_py() or 0
            values = pc.if_else(distant, pa.scalar(None, pa.int64()), values)
        greatest = as_heartbeat(pc.max(values).as_py(), rules.domain)
        self.max_heartbeat = _greatest(self.max_heartbeat, greatest)
        spec = rules.declared.heartbeat
        if spec is not None and spec.kind == "per" and spec.column is not None:
            column = next(c for c in rules.columns if c.lower() == spec.column.lower())
            for key, tick in by_source(good.column(column), values, rules.domain).items():
                self.sources[key] = max(tick, self.sources.get(key, tick))
        if spec is not None and spec.kind == "policy":
            self.elements.append(good.select([*rules.columns, "__tick"]))

    def facts(self, state: StreamState, read_time: int) -> VersionFacts:
        """What the heartbeat's policy is told; ``read_time``: when the source's log was read (microseconds)."""
        return VersionFacts(self.max_tick, self.max_heartbeat, state.instant, read_time, self.sources, state.policy)


def by_source(column: pa.ChunkedArray, values: pa.ChunkedArray, domain: TimeDomain) -> dict[str, int]:
    """HEARTBEAT PER: the greatest heartbeat of each value of ``column`` (as JSON text), NULL heartbeats apart."""
    known = pc.is_valid(values)
    column, values = column.filter(known), values.filter(known)
    if not len(values):
        return {}
    code, count = keys.codes([column])
    most = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(most, code, keys.int64_of(values))
    at = np.unique(code, return_index=True)[1]
    shown = json_values.rows(keys.canonical(pa.table({"source": column.take(pa.array(at))})), [0])
    found: dict[str, int] = {}
    for (value,), greatest in zip(shown, most.tolist(), strict=True):
        tick = as_heartbeat(greatest, domain)
        assert tick is not None
        found[json.dumps(value, ensure_ascii=False)] = tick
    return found


@dataclass(frozen=True)
class Dropped:
    """Duplicates: evaluated rows with as many copies as were dropped, and the reasons as the quarantine has them."""

    rows: pa.Table
    reasons: pa.Array


def judge_piece(judged: pa.Table, rules: Rules, lateness: Lateness, commit_time: int, what: str, warned: Counter[str],
                duplicates: Lookup | None = None) -> tuple[Judgement, Dropped]:  # fmt: skip
    """Judges evaluated rows; returns the judgement and what was dropped as duplicates.

    ``duplicates`` looks up the rows that were kept before; then the rows must be all of their version.
    """
    first = [*malformed_rules(judged), *timestamp_rules(judged.column("__tick"), rules.declared.timestamp_by)]
    if duplicates is None or rules.apart is None:
        judgement = judged_by(judged, [*first, *_later(judged, rules, lateness, commit_time, what, warned)])
        return judgement, Dropped(judged.slice(0, 0), pa.array([], pa.string()))
    timed = judged_by(judged, first)
    rows = timed.good
    # a constraint that admits nothing of a version where it is violated does not ask duplicates
    rest = _later(rows, rules.with_constraints(keeping_out), lateness, commit_time, what, Counter())
    against = judged_by(rows.select(["__tick"]).append_column("__at", pa.array(np.arange(rows.num_rows))), rest)
    stands = np.zeros(rows.num_rows, np.bool_)
    stands[keys.int64_of(against.good.column("__at"))] = True
    copies_ = duplicate_rows.duplicates(rows, duplicates(rows), rules.duplicate_by, rules.order, rules.apart, stands)
    reasons = np.full(rows.num_rows, duplicate_rows.DUPLICATE, object)
    reasons[~stands] = [f"{duplicate_rows.DUPLICATE}; besides {reason}" for reason in against.reasons.to_pylist()]
    dropped = Dropped(_with_copies(rows, copies_), pa.array(reasons[copies_ > 0], pa.string()))
    rows = _with_copies(rows, keys.int64_of(rows.column("__n")) - copies_)
    second = judged_by(rows, _later(rows, rules, lateness, commit_time, what, warned))
    return _joined(timed, second), dropped


def keeping_out(constraints: Iterable[ConstraintSpec]) -> tuple[ConstraintSpec, ...]:
    """The constraints, of which none stops the version: a row that breaks one that would is kept out."""
    return tuple(replace(c, on_violation="quarantine") if c.on_violation == "fail" else c for c in constraints)


def _with_copies(rows: pa.Table, n: np.ndarray) -> pa.Table:
    """Rows with so many copies each (int64), those with none left out."""
    counted = rows.set_column(rows.column_names.index("__n"), "__n", pa.array(n, pa.int64()))
    return counted.filter(pa.array(n > 0))


def _later(
    rows: pa.Table, rules: Rules, lateness: Lateness, commit_time: int, what: str, warned: Counter[str]
) -> list[Any]:
    tick, declared = rows.column("__tick"), rules.declared
    return [
        *ahead_rules(tick, rules.domain, declared.max_ahead, commit_time),
        *constraint_rules(rows, declared.constraints, what, warned),
        *lateness.rules(tick, rules.domain),
    ]


def _joined(first: Judgement, second: Judgement) -> Judgement:
    reasons = pa.chunked_array([*_chunks(first.reasons), *_chunks(second.reasons)], pa.string())
    return Judgement(second.good, pa.concat_tables([first.bad, second.bad]), reasons, first.counts + second.counts)


def _chunks(array: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return array.chunks if isinstance(array, pa.ChunkedArray) else [array]


def judge_version(
    rules: Rules, state: StreamState, version: int, commit_time: int, rows: Iterable[pa.Table], evaluate: Evaluate,
    keep: Callable[[pa.Table], None], keep_out: Callable[[pa.Table], None], duplicates: Lookup | None = None,
    told: Callable[[int], None] = lambda rows: None,
    corrects: bool = False,
    came_in: pa.Table | None = None,
) -> Outcome:  # fmt: skip
    """Judges the rows that a version added (the source's columns and ``__n``), piece by piece.

    ``corrects``: the version took elements back (ON SOURCE CHANGE CORRECT), so what it adds is the other half of that
    correction and repairs, whatever LATE says of elements that are only late. ``came_in``: duplicates that became
    elements by it; they are staged and judged already, and move the heartbeat like the rows that the version adds.

    Elements go to ``keep`` (with ``__tick``), what stays out to ``keep_out``, as the quarantine holds it. With
    ``duplicates`` the rows must come in one piece.
    """
    outcome, done = Outcome(), 0
    lateness, name = rules.lateness(state.heartbeat, state.repairs_from), rules.declared.name
    if corrects:
        lateness = replace(lateness, repair=True)
    what = f"Stream {name}, version {version} of its source"
    latest = latest_instant(rules.domain, rules.declared.max_ahead, commit_time)
    if came_in is not None and came_in.num_rows:
        outcome.counts.update(rows=copies(came_in), reinstated=copies(came_in))
        outcome.saw(evaluate(came_in.select([*rules.columns, "__n"])), rules, latest)
    for piece in rows:
        judged = evaluate(piece)
        judgement, dropped = judge_piece(judged, rules, lateness, commit_time, what, outcome.warned, duplicates)
        good, bad = judgement.good, judgement.bad
        outcome.reasons += judgement.counts
        late_out = sum(n for kind, n in judgement.counts.items() if kind.startswith("late:"))
        repaired = 0
        if lateness.repair and lateness.heartbeat is not None:
            repaired = copies(good.filter(pc.less_equal(good.column("__tick"), lateness.heartbeat)))
        outcome.counts.update(
            rows=copies(good),
            quarantined=copies(bad),
            deduplicated=copies(dropped.rows),
            late=late_out + repaired,
            repaired=repaired,
        )
        if bad.num_rows:
            keep_out(quarantine_rows(bad, judgement.reasons, name, version))
        if dropped.rows.num_rows and rules.remembers:
            keep_out(quarantine_rows(dropped.rows.select(bad.column_names), dropped.reasons, name, version))
        if good.num_rows:
            outcome.saw(good, rules, latest)
            keep(good.select([*rules.columns, "__tick", "__n"]))
        done += piece.num_rows
        told(done)
    return outcome


def copies(rows: pa.Table) -> int:
    """Rows with their copies, taken back or not."""
    return int(np.abs(keys.int64_of(rows.column("__n"))).sum())


def added_and_removed(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """A version's signed rows, apart."""
    plus = pc.greater(rows.column("__n"), 0)
    return rows.filter(plus), rows.filter(pc.invert(plus))


def sized(rows: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Rows in portions that are judged at a time: small ones together, large ones in parts."""
    held: list[pa.Table] = []
    for table in rows:
        for part in pieces(table):
            if held and sum(t.num_rows for t in held) + part.num_rows > PIECE:
                yield pa.concat_tables(held)
                held = []
            held.append(part)
    if held:
        yield pa.concat_tables(held)


def take_back(
    stage: Stage, rules: Rules, removed: pa.Table, state: StreamState, version: int, counts: Counter[str]
) -> pa.Table | None:
    """ON SOURCE CHANGE CORRECT for the rows that a version removed (with ``__tick``); returns the duplicates that
    became elements in their place, if any.
    """
    found = taken_back.take_back(stage, removed, rules.columns)
    came_in = None
    if found.elements.num_rows:
        stage.move(found.elements.select([*rules.columns, "__tick", "__n"]))
        state.corrected(stage.seq, pc.min(found.elements.column("__tick")).as_py(), taken_back=True)
        if rules.remembers:
            came_in = _reinstate(stage, rules, state, version, counts)
    if found.unmatched.num_rows:
        stage.keep_out(taken_back.unmatched_rows(found.unmatched, rules.declared.name, version))
    counts.update(taken_back=copies(found.elements), cancelled=found.cancelled, quarantined=copies(found.unmatched))
    return came_in


def _reinstate(stage: Stage, rules: Rules, state: StreamState, version: int, counts: Counter[str]) -> pa.Table:
    """Duplicates come in for what the version took back; elements that they make duplicates go out."""
    found = reinstate(stage, rules, rules.lateness(state.heartbeat, state.repairs_from).repairable_from)
    if found.went_out.num_rows:
        rows = found.went_out
        reasons = pa.repeat(pa.scalar(duplicate_rows.DUPLICATE), rows.num_rows)
        held = quarantine_rows(rows, reasons, rules.declared.name, version)
        stage.keep_out(held.set_column(held.column_names.index("__seq"), "__seq", rows.column(CAME)), stamp=False)
        state.corrected(stage.seq, pc.min(rows.column("__tick")).as_py(), taken_back=True)
    counts.update(displaced=copies(found.went_out), deduplicated=copies(found.went_out))
    return found.came_in


def _least(a: int | None, b: int | None) -> int | None:
    return min((x for x in (a, b) if x is not None), default=None)


def _greatest(a: int | None, b: int | None) -> int | None:
    return max((x for x in (a, b) if x is not None), default=None)
