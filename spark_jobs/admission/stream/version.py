"""One version of a stream's source becomes one commit: elements, quarantined rows and a heartbeat.

The order in which a row is judged: is it an element at all (a timestamp inside the time domain); does it repeat a kept
row (DEDUPLICATE BY); is it too far ahead, does it violate a constraint, is it late. What the version removed comes
first. Lateness is judged by the heartbeat that the commit before has published, so each version is judged the same
however many of them one run takes.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.operators.values import keys
from sweeparea.spark_jobs.admission.judging import duplicates as duplicate_rows
from sweeparea.spark_jobs.admission.judging.copies import copies
from sweeparea.spark_jobs.admission.judging.judge import (
    Judgement,
    Lateness,
    ahead_rules,
    constraint_rules,
    judged_by,
    latest_instant,
    malformed_rules,
    timestamp_rules,
)
from sweeparea.spark_jobs.admission.judging.outcome import Outcome
from sweeparea.spark_jobs.admission.judging.rules import Rules, keeping_out
from sweeparea.spark_jobs.admission.judging.stage import CAME, Stage, quarantine_rows
from sweeparea.spark_jobs.admission.judging.state import StreamState
from sweeparea.spark_jobs.admission.stream import taken_back
from sweeparea.spark_jobs.admission.stream.reinstated import reinstate

Evaluate = Callable[[pa.Table], pa.Table]
"""Adds ``__tick``, ``__heartbeat`` and ``__check_0``, .. to rows of the source, row for row."""
Lookup = Callable[[pa.Table], pa.Table]
"""The admitted rows that could make rows duplicates (``judging/duplicates.kept_rows``)."""


@dataclass(frozen=True)
class Dropped:
    """Duplicates: evaluated rows with as many copies as were dropped, and the reasons as the quarantine has them."""

    rows: pa.Table
    reasons: pa.Array


def judge_piece(judged: pa.Table, rules: Rules, lateness: Lateness, commit_time: int, what: str, warned: Counter[str],
                duplicates: Lookup | None = None) -> tuple[Judgement, Dropped]:  # fmt: skip
    """Judges evaluated rows; returns the judgement and what was dropped as duplicates.

    ``duplicates`` looks up the rows that were kept before; then the rows must be all of their keys in their version.
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


@dataclass(frozen=True)
class Judging:
    """By what a version's rows are judged: ``state`` is that before it, ``commit_time`` the greatest so far.

    ``duplicates`` looks up the rows that were kept before; then all rows of a key must come in one piece. ``corrects``:
    the version took elements back (ON SOURCE CHANGE CORRECT), so what it adds is the other half of that correction and
    repairs, whatever LATE says of elements that are only late.
    """

    rules: Rules
    state: StreamState
    version: int
    commit_time: int
    evaluate: Evaluate
    duplicates: Lookup | None = None
    corrects: bool = False

    @property
    def lateness(self) -> Lateness:
        """How late elements are treated."""
        lateness = self.rules.lateness(self.state.heartbeat, self.state.repairs_from)
        return replace(lateness, repair=True) if self.corrects else lateness

    @property
    def latest(self) -> int | None:
        """The greatest instant that a heartbeat may have, in microseconds."""
        return latest_instant(self.rules.domain, self.rules.declared.max_ahead, self.commit_time)


def judge_version(
    judging: Judging,
    rows: Iterable[pa.Table],
    keep: Callable[[pa.Table], None],
    keep_out: Callable[[pa.Table], None],
    told: Callable[[int], None] = lambda rows: None,
    came_in: pa.Table | None = None,
    outcome: Outcome | None = None,
) -> Outcome:
    """Judges the rows that a version added (the source's columns and ``__n``), piece by piece.

    Elements go to ``keep`` (with ``__tick``), what stays out to ``keep_out``, as the quarantine holds it. ``told`` gets
    how many rows are done. ``came_in``: duplicates that became elements by the version (``saw_reinstated``). What its
    rows come to joins ``outcome``, which is returned.
    """
    outcome, done = outcome or Outcome(), 0
    if came_in is not None:
        saw_reinstated(outcome, judging, came_in)
    for piece in rows:
        _judge_into(outcome, judging, piece, keep, keep_out)
        done += piece.num_rows
        told(done)
    return outcome


def saw_reinstated(outcome: Outcome, judging: Judging, came_in: pa.Table) -> None:
    """Notes duplicates that became elements by the version. They are staged and judged already, and move the heartbeat
    like the rows that it adds.
    """
    if came_in.num_rows:
        rules = judging.rules
        outcome.counts.update(rows=copies(came_in), reinstated=copies(came_in))
        outcome.saw(judging.evaluate(came_in.select([*rules.columns, "__n"])), rules, judging.latest)


def _judge_into(
    outcome: Outcome,
    judging: Judging,
    piece: pa.Table,
    keep: Callable[[pa.Table], None],
    keep_out: Callable[[pa.Table], None],
) -> None:
    """Judges one piece of a version, and counts what it has come to."""
    rules, lateness, version = judging.rules, judging.lateness, judging.version
    name = rules.declared.name
    what = f"Stream {name}, version {version} of its source"
    judgement, dropped = judge_piece(
        judging.evaluate(piece), rules, lateness, judging.commit_time, what, outcome.warned, judging.duplicates
    )
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
        outcome.saw(good, rules, judging.latest)
        keep(good.select([*rules.columns, "__tick", "__n"]))


def take_back(
    stage: Stage, rules: Rules, removed: pa.Table, state: StreamState, version: int, counts: Counter[str]
) -> pa.Table | None:
    """ON SOURCE CHANGE CORRECT for rows that a version removed (with ``__tick``), with DEDUPLICATE BY all those of
    their keys; returns the duplicates that became elements in their place, if any.
    """
    found = taken_back.take_back(stage, removed, rules.columns)
    came_in = None
    if found.elements.num_rows:
        taken = found.elements.select([*rules.columns, "__tick", "__n"])
        stage.move(taken)
        state.corrected(stage.seq, pc.min(found.elements.column("__tick")).as_py(), taken_back=True)
        if rules.remembers:
            came_in = _reinstate(stage, rules, taken, state, version, counts)
    if found.unmatched.num_rows:
        stage.keep_out(taken_back.unmatched_rows(found.unmatched, rules.declared.name, version))
    counts.update(taken_back=copies(found.elements), cancelled=found.cancelled, quarantined=copies(found.unmatched))
    return came_in


def _reinstate(
    stage: Stage, rules: Rules, taken: pa.Table, state: StreamState, version: int, counts: Counter[str]
) -> pa.Table:
    """Duplicates come in for elements that were taken back; elements that they make duplicates go out."""
    found = reinstate(stage, rules, taken, rules.lateness(state.heartbeat, state.repairs_from).repairable_from)
    if found.went_out.num_rows:
        rows = found.went_out
        reasons = pa.repeat(pa.scalar(duplicate_rows.DUPLICATE), rows.num_rows)
        held = quarantine_rows(rows, reasons, rules.declared.name, version)
        stage.keep_out(held.set_column(held.column_names.index("__seq"), "__seq", rows.column(CAME)), stamp=False)
        state.corrected(stage.seq, pc.min(rows.column("__tick")).as_py(), taken_back=True)
    counts.update(displaced=copies(found.went_out), deduplicated=copies(found.went_out))
    return found.came_in
