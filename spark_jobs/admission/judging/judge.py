"""Judging the rows of a source: Spark says what only SQL can, then rules give each row the first reason against it.

Shared by everything that admits: rows of streams, changes of relations, rows that a person releases.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.heartbeats.policies import last_tick_at
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.operators.time.ticks import MAX_TICK, MIN_TICK
from sweeparea.operators.values import keys
from sweeparea.quality.suites import tried
from sweeparea.spark_jobs.admission.judging.stage import row_texts
from sweeparea.spark_jobs.admission.judging.verdicts import Broken, VersionRefused, uncomputed, violated
from sweeparea.spark_jobs.spark import frames, zone_guards
from sweeparea.spark_jobs.spark.instants import instant_text
from sweeparea.tables.sources.landing import MALFORMED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sweeparea.cql.syntax.statements import ConstraintSpec

PIECE = 1_000_000
"""Rows that are judged at a time: a version of any size takes the memory of so many, beside its columns."""
PIECE_BYTES = 256 << 20
"""And so many bytes of them, about: rows may be wide."""
DAY_US = 86_400_000_000
SAMPLES = 5
"""So many rows are shown of those that break a constraint."""


@dataclass(frozen=True)
class RowRule:
    """A reason to keep rows out, and the rows that it holds for (a BOOLEAN each; NULL is no). ``kind`` is the reason
    as reports count it.
    """

    reason: str
    holds: pa.Array | pa.ChunkedArray
    kind: str


def evaluated(
    spark: SparkSession, rows: pa.Table, expressions: Mapping[str, str], scratch: str | None = None
) -> pa.Table:
    """``rows`` with one more column for each Spark SQL expression over their columns, row for row.

    Only the columns that occur in an expression go to Spark. Many rows go by a file in the folder ``scratch``, which is
    ten times as fast as inside the query; it is removed again.
    """
    if not rows.num_rows:
        return _with(rows, pa.table({name: pa.array([], _types(name)) for name in expressions}))
    zone_guards.require_zones_in(spark, expressions.values())
    expressions = {name: zone_guards.guarded_text(spark, sql) for name, sql in expressions.items()}
    text = " ".join(expressions.values()).lower()
    needed = rows.select([c for c in rows.column_names if c.lower() in text and c != frames.ROW])
    wanted = [frames.ROW, *(f"{sql} AS {frames.quoted(name)}" for name, sql in expressions.items())]
    if scratch is None or rows.num_rows <= frames.LOCAL_ROWS:
        numbered = needed.append_column(frames.ROW, pa.array(np.arange(rows.num_rows)))
        made = frames.from_arrow(spark, numbered).selectExpr(*wanted).toArrow()
    else:
        with frames.as_file(spark, needed, scratch) as frame:
            made = frame.selectExpr(*wanted).toArrow()
    if not np.array_equal(keys.int64_of(made.column(frames.ROW)), np.arange(rows.num_rows)):
        made = made.sort_by(frames.ROW)  # a large file is read in parts, in an order of Spark's own
    return _with(rows, made.drop_columns([frames.ROW]))


def _types(name: str) -> pa.DataType:
    return pa.bool_() if name.startswith("__check_") else pa.int64()


def _with(rows: pa.Table, made: pa.Table) -> pa.Table:
    for name in made.column_names:
        rows = rows.append_column(name, made.column(name))
    return rows


def pieces(rows: pa.Table, size: int = PIECE) -> Iterable[pa.Table]:
    """``rows`` in portions of at most ``size``, in order; none for no rows."""
    return (rows.slice(start, size) for start in range(0, rows.num_rows, size))


def tick_sql(column: str, domain: TimeDomain) -> str:
    """Spark SQL of the tick of an instant: microseconds are floored to the chronon. ``column`` is quoted SQL."""
    if domain.kind == TimeKind.BIGINT:
        return f"CAST({column} AS BIGINT)"
    micros = f"unix_micros(CAST({column} AS TIMESTAMP))"
    c = domain.chronon
    return micros if c == 1 else f"(({micros} - pmod({micros}, {c}L)) DIV {c}L)"


def heartbeat_sql(sql: str | None, domain: TimeDomain) -> str:
    """Spark SQL of a heartbeat's expression in microseconds, or in ticks where time is BIGINT; see ``as_heartbeat``."""
    if sql is None:
        return "CAST(NULL AS BIGINT)"
    return f"CAST(({sql}) AS BIGINT)" if domain.kind == TimeKind.BIGINT else f"unix_micros(CAST(({sql}) AS TIMESTAMP))"


def as_heartbeat(value: int | None, domain: TimeDomain) -> int | None:
    """A value of ``heartbeat_sql`` as a heartbeat: the last tick that lies wholly at or before it."""
    if value is None or domain.kind == TimeKind.BIGINT:
        return value
    return last_tick_at(value, domain.chronon)


def condition_sql(sql: str) -> str:
    """Spark SQL of a constraint: violated means FALSE, NULL of the condition passes; NULL where it cannot be computed
    for a row (under ANSI: a division by zero, an overflow, a failed cast).
    """
    return f"{tried(sql, f'{frames.ROW} < 0')} = 0"


# -- rules -------------------------------------------------------------------------------------------------------------


def malformed_rules(rows: pa.Table) -> list[RowRule]:
    """A record that could not be read is kept out with its text, whatever could be made of its columns."""
    if MALFORMED not in rows.column_names:
        return []
    return [RowRule("malformed record", pc.is_valid(rows.column(MALFORMED)), "malformed record")]


def timestamp_rules(tick: pa.ChunkedArray, column: str) -> list[RowRule]:
    """A NULL timestamp is never an element (Patroumpas, section 2.1); time ends at 2^62 ticks on both sides."""
    null = f"timestamp column {column} is NULL"
    outside = "timestamp is outside the time domain of [-2^62, 2^62] ticks"
    beyond = pc.or_(pc.less(tick, MIN_TICK), pc.greater(tick, MAX_TICK))
    return [RowRule(null, pc.is_null(tick), null), RowRule(outside, beyond, outside)]


def ahead_rules(tick: pa.ChunkedArray, domain: TimeDomain, ahead: int | None, commit_time: int) -> list[RowRule]:
    """MAX AHEAD: an element further after its source's commit is kept out, so that one bad row cannot end a stream.

    ``ahead`` and ``commit_time`` are microseconds; None is the default of a day. BIGINT time has no clock.
    """
    latest = latest_instant(domain, ahead, commit_time)
    if latest is None:
        return []
    length = dt.timedelta(microseconds=latest - commit_time)
    text = f"timestamp lies more than MAX AHEAD ({length}) after its source's commit"
    return [RowRule(text, pc.greater(tick, latest // domain.chronon), text)]


def latest_instant(domain: TimeDomain, ahead: int | None, commit_time: int) -> int | None:
    """The last instant (microseconds) that MAX AHEAD lets an element of a source's commit have, and a heartbeat that
    is taken from one; None without a clock.
    """
    return None if domain.kind != TimeKind.TIMESTAMP else commit_time + (DAY_US if ahead is None else ahead)


def constraint_rules(
    judged: pa.Table, constraints: Sequence[ConstraintSpec], what: str, warned: Counter[str]
) -> list[RowRule]:
    """Rules of constraints that quarantine, by the columns ``__check_0``, ..; those that warn are counted.

    A row for which a condition cannot be computed has the outcome of one that violates it. Raises VersionRefused where
    a constraint ON VIOLATION FAIL UPDATE is violated; ``what`` names the version.
    """
    rules: list[RowRule] = []
    broken: list[Broken] = []
    for i, constraint in enumerate(constraints):
        check = judged.column(f"__check_{i}")
        breaks, unknown = pc.invert(check), pc.is_null(check)
        count, errors = pc.sum(breaks).as_py() or 0, pc.sum(unknown).as_py() or 0
        if not count and not errors:
            continue
        if constraint.on_violation == "fail":
            sample = judged.filter(pc.or_(pc.fill_null(breaks, False), unknown)).slice(0, SAMPLES)
            shown = row_texts(sample.select([c for c in sample.column_names if not c.startswith("__")]))
            broken.append(Broken(constraint, count, errors, tuple(shown)))
        elif constraint.on_violation == "warn":
            warned[constraint.name] += count + errors
        else:
            text, error = violated(constraint), uncomputed(constraint)
            rules += [RowRule(text, breaks, text), RowRule(error, unknown, error)]
    if broken:
        raise VersionRefused(what, judged.num_rows, broken)
    return rules


LATE = "late: at or below the heartbeat"


@dataclass(frozen=True)
class Lateness:
    """What becomes of elements at or below the ``heartbeat`` (tick; None: nothing is late).

    ``repair``: they are admitted and results corrected, unless they are more than ``within`` ticks older or more than
    ``retain`` ticks older (None: no such bound), where the history may be gone.
    """

    heartbeat: int | None
    repair: bool = False
    within: int | None = None
    retain: int | None = None

    @property
    def repairable_from(self) -> int | None:
        """The least tick whose results can be corrected; None: all can."""
        return None if self.heartbeat is None or self.retain is None else self.heartbeat - self.retain

    def rules(self, tick: pa.ChunkedArray, domain: TimeDomain) -> list[RowRule]:
        """The rules for late elements that are kept out."""
        h = self.heartbeat
        if h is None:
            return []
        shown = f"heartbeat {instant_text(domain, h)} (tick {h})"
        if not self.repair:
            return [RowRule(f"{LATE.removesuffix('heartbeat')}{shown}", pc.less_equal(tick, h), LATE)]
        found = []
        if self.retain is not None:
            text = "late: below the retained history (RETAIN)"
            found.append(RowRule(f"{text} at {shown}", pc.less(tick, h - self.retain), text))
        if self.within is not None:
            text = "late: older than LATE REPAIR WITHIN"
            found.append(RowRule(f"{text} at {shown}", pc.less(tick, h - self.within), text))
        return found


@dataclass
class Judgement:
    """Rows that stand, and rows that are kept out with the first reason against each. ``counts``: of the latter by the
    kind of reason, with their copies (``__n``) where they have any.
    """

    good: pa.Table
    bad: pa.Table
    reasons: pa.Array | pa.ChunkedArray
    counts: Counter[str]


def judged_by(rows: pa.Table, rules: Iterable[RowRule]) -> Judgement:
    """Applies rules in their order: the first that holds for a row is its reason."""
    code: Any = pa.repeat(pa.scalar(-1, pa.int32()), rows.num_rows)
    named = list(rules)
    for i, rule in enumerate(named):
        holds = pc.and_(pc.equal(code, -1), pc.fill_null(rule.holds, False))
        code = pc.if_else(holds, pa.scalar(i, pa.int32()), code)
    good = pc.equal(code, -1)
    against = pc.filter(code, pc.invert(good))
    bad = rows.filter(pc.invert(good))
    copies = keys.int64_of(bad.column("__n")) if "__n" in bad.column_names else None
    counts: Counter[str] = Counter()
    for i, n in enumerate(np.bincount(keys.int64_of(against), copies, len(named)).tolist()):
        if n:
            counts[named[i].kind] += int(n)
    texts = pa.array([rule.reason for rule in named], pa.string())
    return Judgement(rows.filter(good), bad, texts.take(against), counts)
