"""One version of a relation's source: which changes of the relation it tells, and which of its rows are kept out.

A row is kept out for the first reason that applies: no instant, an instant outside time, an interval that ends before
it starts, an operation that there is none of, a constraint. Then changes are judged late or on time, of a history only
those that are left when its rows are netted (semantics, section 8).
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.cql.syntax.statements import CreateRelation
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.sql.expressions import Expr
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.operators.time.ticks import MAX_TICK, MIN_TICK
from sweeparea.operators.values import keys
from sweeparea.spark_jobs.admission.judging.copies import added_and_removed, copies
from sweeparea.spark_jobs.admission.judging.judge import (
    DAY_US,
    Judgement,
    Lateness,
    RowRule,
    constraint_rules,
    judged_by,
    malformed_rules,
    timestamp_rules,
)
from sweeparea.spark_jobs.admission.judging.outcome import Outcome
from sweeparea.spark_jobs.admission.judging.rules import Rules
from sweeparea.spark_jobs.admission.judging.stage import quarantine_rows
from sweeparea.spark_jobs.admission.relation.change_log import ENDS, SETS
from sweeparea.spark_jobs.admission.relation.history_events import FROM, TO, events, representatives
from sweeparea.spark_jobs.declarations.relation_source import SIGNS, RelationSource
from sweeparea.tables.sources.landing import MALFORMED

Evaluate = Callable[[pa.Table], pa.Table]
"""Adds to rows of the source ``__from`` and ``__to``, or ``__tick``, and ``__heartbeat``, ``__check_0``, .."""


@dataclass
class Told:
    """What a version tells. ``changes``: the source's columns, ``__tick``, ``__n``; ``kept_out`` as the quarantine
    holds it; ``withdrawn``: rows (with ``__tick``, ``__n``) that were kept out by an earlier version and are gone now.
    ``outcome`` has the counts, and what the heartbeat's policy wants to know.
    """

    changes: pa.Table
    kept_out: list[pa.Table] = field(default_factory=list)
    withdrawn: pa.Table | None = None
    outcome: Outcome = field(default_factory=Outcome)


@dataclass(frozen=True)
class Known:
    """What earlier commits have of a source: ``changes`` (its columns, ``__tick``, ``__n``), those among them that were
    late and kept out too; ``texts``: the rows in quarantine.
    """

    changes: pa.Table
    texts: pa.Array


@dataclass(frozen=True)
class VersionReader:
    """Reads versions of a relation's source. ``constraints`` are those of the declaration, bound."""

    declared: CreateRelation
    source: RelationSource
    constraints: tuple[Expr, ...]
    evaluate: Evaluate

    @property
    def rules(self) -> Rules:
        names = tuple(name for name, _ in self.source.columns)
        return Rules(cast(Any, self.declared), self.source.time, names)

    def lateness(self, heartbeat: int | None) -> Lateness:
        """How late changes are treated at a heartbeat."""
        within = self.declared.late_within
        ticks = None if within is None else within.in_ticks(self.source.time, "LATE REPAIR WITHIN")
        return Lateness(heartbeat, self.declared.late == "repair", ticks)

    def read(
        self,
        rows: pa.Table,
        version: int,
        heartbeat: int | None,
        instant: int,
        commit_time: int,
        known: Known | None = None,
    ) -> Told:
        """``rows``: what the version added and removed (the source's columns and ``__n``); ``heartbeat`` the one before
        it (tick); ``instant`` its own, c(v), and ``commit_time`` the greatest so far (microseconds). With ``known`` the
        rows are all that the source holds, and what they tell beyond that is taken; without, all of their keys (else
        records) are enough.
        """
        told = Told(rows.slice(0, 0).append_column("__tick", pa.array([], pa.int64())))
        added, removed = added_and_removed(rows)
        good = self._standing(added, version, instant, told, removed=False)
        gone = self._standing(removed, version, instant, told, removed=True)
        changes = self.changes(pa.concat_tables([good, gone]))
        if known is not None:
            changes = self._beyond(changes, known, version, instant)
            told.kept_out = [
                rows.filter(pc.invert(pc.is_in(rows.column("__row"), known.texts))) for rows in told.kept_out
            ]
        lateness = self.lateness(heartbeat)
        judgement = judged_by(changes, lateness.rules(changes.column("__tick"), self.source.time))
        told.changes = judgement.good
        self._keep_out(judgement.bad, judgement.reasons, version, judgement.counts, told)
        self._facts(good, lateness, commit_time, told.outcome)
        repaired = 0 if lateness.heartbeat is None else copies(
            told.changes.filter(pc.less_equal(told.changes.column("__tick"), lateness.heartbeat))
        )  # fmt: skip
        late = sum(n for kind, n in judgement.counts.items() if kind.startswith("late:"))
        told.outcome.counts.update(rows=copies(told.changes), late=late + repaired, repaired=repaired)
        return told

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _standing(self, rows: pa.Table, version: int, instant: int, told: Told, removed: bool) -> pa.Table:
        """The rows that can be changes. A removed row that could not was none when it was added either."""
        what = f"Relation {self.source.name}, version {version} of its source"
        judgement = self.standing(rows, instant, what, told.outcome.warned, removed)
        if removed:
            told.withdrawn = judgement.bad
        else:
            self._keep_out(judgement.bad, judgement.reasons, version, judgement.counts, told)
        return judgement.good

    def standing(
        self, rows: pa.Table, instant: int, what: str, warned: Counter[str], removed: bool = False
    ) -> Judgement:
        """Which rows can be changes, with what ``evaluate`` says of them, and the reason against each other one. Of
        ``removed`` ones no constraint is asked that keeps nothing out.
        """
        judged = self.evaluate(rows)
        if self.source.contents == "feed":
            judged = judged.append_column("__tick", _repeated(instant, judged.num_rows))
        rules = [*malformed_rules(judged), *self._time_rules(judged), *self._operation_rules(judged)]
        judged = self._excused(judged)
        specs, checks = self._constraints(judged, only_quarantine=removed)
        rules += constraint_rules(checks, specs, what, Counter() if removed else warned)
        judgement = judged_by(judged, rules)
        if FROM in judged.column_names:
            judgement.bad = judgement.bad.append_column("__tick", judgement.bad.column(FROM))
        return judgement

    def _time_rules(self, judged: pa.Table) -> list[RowRule]:
        if self.source.contents == "changes":
            return timestamp_rules(judged.column("__tick"), self.source.instants[0])
        if self.source.contents != "history":
            return []
        start, end = judged.column(FROM), judged.column(TO)
        names = self.source.instants
        outside = "timestamp is outside the time domain of [-2^62, 2^62] ticks"
        beyond = pc.or_(pc.less(end, MIN_TICK), pc.greater(end, MAX_TICK))
        backwards = f"ends before it starts: {names[1]} is before {names[0]}"
        return [
            *timestamp_rules(start, names[0]),
            RowRule(outside, beyond, outside),
            RowRule(backwards, pc.less(end, start), backwards),
        ]

    def _operation_rules(self, judged: pa.Table) -> list[RowRule]:
        if self.source.operation is None:
            return []
        codes = [*SETS, ENDS] if self.source.keyed else [*SIGNS]
        known = pc.is_in(judged.column(self.source.operation), pa.array(codes, pa.string()))
        text = f"unknown operation code: {self.source.operation} must be {', '.join(codes[:-1])} or {codes[-1]}"
        return [RowRule(text, pc.invert(known), text)]

    def _excused(self, judged: pa.Table) -> pa.Table:
        """D looks at nothing but its key and instant, so a constraint over other columns does not concern it."""
        keyed = self.source.keyed
        if keyed is None:
            return judged
        told = {*keyed.key, keyed.operation, keyed.sequence, *self.source.instants}
        ends = pc.equal(judged.column(keyed.operation), ENDS)
        for i, expression in enumerate(self.constraints):
            if not expression.columns <= told:
                name = f"__check_{i}"
                excused = pc.or_kleene(judged.column(name), pc.fill_null(ends, False))
                judged = judged.set_column(judged.column_names.index(name), name, excused)
        return judged

    def _constraints(self, judged: pa.Table, only_quarantine: bool) -> tuple[list[Any], pa.Table]:
        """The constraints that are looked at, and the rows with their checks under the numbers of these."""
        chosen = [
            (i, spec)
            for i, spec in enumerate(self.declared.constraints)
            if not only_quarantine or spec.on_violation == "quarantine"
        ]
        table = judged.select([c for c in judged.column_names if not c.startswith("__check_")])
        for number, (i, _) in enumerate(chosen):
            table = table.append_column(f"__check_{number}", judged.column(f"__check_{i}"))
        return [spec for _, spec in chosen], table

    # -- changes -------------------------------------------------------------------------------------------------------

    def changes(self, rows: pa.Table) -> pa.Table:
        """Signed changes: the source's columns, ``__tick``, ``__n``. Values are in their one form."""
        names = [name for name, _ in self.source.columns]
        if self.source.contents == "history":
            return events(keys.canonical(rows.select([*names, FROM, TO, "__n"])), self.source.record)
        rows = keys.canonical(rows.select([*names, "__tick", "__n"]))
        if self.source.operation is None or self.source.keyed is not None:
            return rows
        taken = [code for code, sign in SIGNS.items() if sign < 0]
        away = pc.is_in(rows.column(self.source.operation), pa.array(taken, pa.string()))
        n = pc.if_else(away, pc.negate(rows.column("__n")), rows.column("__n"))
        return rows.set_column(rows.column_names.index("__n"), "__n", n)

    def _beyond(self, changes: pa.Table, known: Known, version: int, instant: int) -> pa.Table:
        """The changes less those that are known. Of a feed only the records are compared: when the difference arose is
        not told, so it is the version's own instant.
        """
        both = pa.concat_tables([changes, known.changes.select(changes.column_names).cast(changes.schema)])
        same = [name for name, _ in self.source.columns] if self.source.contents == "changes" else self.source.record
        code = keys.codes([both.column(c) for c in same])[0]
        feed = self.source.contents == "feed"
        tick = np.full(both.num_rows, instant) if feed else keys.int64_of(both.column("__tick"))
        n = keys.int64_of(both.column("__n"))
        taken = np.where(np.arange(len(n)) < changes.num_rows, n, -n)
        at, ticks, net = representatives(code, tick, taken)
        if self.source.contents == "changes" and np.any(np.sign(net) != np.sign(n[at])):
            raise self.changed_log(version, int(np.abs(net[np.sign(net) != np.sign(n[at])]).sum()))
        found = both.take(pa.array(at))
        for name, values in (("__tick", ticks), ("__n", net)):
            found = found.set_column(found.column_names.index(name), name, pa.array(values))
        return found

    def _keep_out(self, bad: pa.Table, reasons: Any, version: int, counts: Counter[str], told: Told) -> None:
        if not bad.num_rows:
            return
        names = [name for name, _ in self.source.columns]
        names += [MALFORMED] if MALFORMED in bad.column_names else []
        rows = log_rows(bad.select([*names, "__tick", "__n"]), self.source)
        told.kept_out.append(quarantine_rows(rows, reasons, self.source.name, version))
        told.outcome.reasons += counts
        told.outcome.counts["quarantined"] += copies(bad)

    def changed_log(self, version: int, removed: int) -> SweepAreaError:
        """The error of a log whose source has taken rows away."""
        name = self.source.name
        return SweepAreaError(
            f"Relation {name}: version {version} of its source removes or changes {removed} rows, but a log of changes"
            " (CHANGES BY) is only appended to: what is to be undone is a change of its own. Nothing of this version"
            " was admitted, and none after it will be. Ways out: write the change that undoes the row into the log, or"
            f" declare {name} over a table that is only appended to; a table whose rows are updated is CHANGE DATA FEED"
            " (they hold from the time of the commit on) or HISTORY BY (they say themselves when)."
        )

    # -- what the heartbeat is taken from ------------------------------------------------------------------------------

    def _facts(self, rows: pa.Table, lateness: Lateness, commit_time: int, outcome: Outcome) -> None:
        """Tells the policy of the rows that brought a change. What lies more than a day after the source's commit is
        admitted, since a relation may know its future, but moves no heartbeat: one bad row would end the relation.
        """
        if self.source.contents == "feed":
            return
        time = self.source.time
        ticks = [rows.column(FROM), rows.column(TO)] if FROM in rows.column_names else [rows.column("__tick")]
        standing = [self._stands(tick, lateness) for tick in ticks]
        seen = reduce(pc.or_kleene, standing)
        if FROM in rows.column_names:
            rows = rows.append_column("__tick", rows.column(FROM))
        if time.kind == TimeKind.TIMESTAMP:
            latest = commit_time + DAY_US
            near = pc.less_equal(rows.column("__tick"), latest)
            near = pc.and_(near, pc.fill_null(pc.less_equal(rows.column("__heartbeat"), latest), True))
            seen = pc.and_kleene(seen, near)
        rows = rows.filter(pc.fill_null(seen, False))
        if rows.num_rows:
            outcome.saw(rows, self.rules)

    def _stands(self, tick: Any, lateness: Lateness) -> Any:
        against = [rule.holds for rule in lateness.rules(tick, self.source.time)]
        late = reduce(pc.or_kleene, against) if against else pa.repeat(pa.scalar(False), len(tick))
        return pc.and_kleene(pc.is_valid(tick), pc.invert(pc.fill_null(late, False)))


def log_rows(rows: pa.Table, source: RelationSource) -> pa.Table:
    """Signed changes of a log as the rows of that log that they are: each is there, whatever it says."""
    if source.contents != "changes":
        return rows
    n = np.abs(keys.int64_of(rows.column("__n")))
    return rows.set_column(rows.column_names.index("__n"), "__n", pa.array(n))


def ticks_of(column: pa.ChunkedArray, time: TimeDomain) -> pa.ChunkedArray:
    """A column of instants as BIGINT: microseconds since 1970 UTC, or ticks. DATE is midnight, no zone is UTC."""
    if time.kind == TimeKind.BIGINT:
        return column.cast(pa.int64())
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("us"))
    return column.cast(pa.timestamp("us", tz=getattr(column.type, "tz", None))).cast(pa.int64())


def _repeated(value: int, times: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.int64()), times)
