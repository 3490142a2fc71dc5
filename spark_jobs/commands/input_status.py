"""What status says of a stream or relation: how far it is read, and what has become of its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sweeparea.cql.syntax.statements import CreateRelation, HeartbeatKind
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.spark_jobs.admission.judging import quarantine
from sweeparea.spark_jobs.admission.judging.checks import check_identity
from sweeparea.spark_jobs.admission.judging.policy import set_back
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.status_faults import not_run, wrong_tables
from sweeparea.spark_jobs.spark.instants import instant_text
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.ledger import LedgerRow, now_micros
from sweeparea.tables.publication.name_kinds import NameKind

SOURCES_SHOWN = 5
"""Sources of HEARTBEAT PER that a line tells of."""


@dataclass(frozen=True)
class InputFacts:
    """How far a stream or relation is. ``stopped``: why it is not run; ``unreadable``: why no more can be said of it;
    ``lost``: why nothing more of its source can be admitted; ``wrong``: tables that no run goes on from.

    ``row`` is None where it was never admitted. ``newest`` is the newest version of the source, None where that cannot
    be read. ``rows`` were admitted, ``kept_out`` are in quarantine, ``remembered`` duplicates beside them. ``time``
    says what a tick of the heartbeat is; None of what has none.
    """

    name: str
    kind: NameKind
    static: bool
    row: LedgerRow | None
    stopped: str = ""
    unreadable: str = ""
    newest: int | None = None
    lost: str = ""
    rows: int = 0
    kept_out: int = 0
    remembered: int = 0
    time: TimeDomain | None = None
    wrong: tuple[str, ...] = ()

    @property
    def version(self) -> int:
        """The last version of the source that was taken."""
        return 0 if self.row is None else self.row.of_source.source_version or 0


def input_facts(application: Application, name: str, row: LedgerRow | None) -> InputFacts:
    """What there is to say of a stream or relation."""
    kind = NameKind.STREAM if name in application.catalog.streams else NameKind.RELATION
    plain = InputFacts(name, kind, application.is_static(name), row)
    try:
        stopped = not_run(application, name, row)
        if stopped or row is None:
            return replace(plain, stopped=stopped)
        version, lost = newest(application, name, row)
        out, remembered = (0, 0) if plain.static else kept_out(application, name)
        return replace(
            plain,
            newest=version,
            lost=lost,
            rows=rows_of(application.layout.admitted(name)),
            kept_out=out,
            remembered=remembered,
            time=None if plain.static else application.plans.input_schema(name).time,
            wrong=tuple(wrong_tables(application, row)),
        )
    except SweepAreaError as error:
        return replace(plain, unreadable=str(error))


def input_line(application: Application, facts: InputFacts) -> str:
    """What status says of a stream or relation."""
    row, time = facts.row, facts.time
    if facts.stopped or facts.unreadable:
        return facts.stopped or f"cannot be looked at: {facts.unreadable}"
    if row is None:
        return f"not admitted yet; run `{application.command('admit', facts.name)}`"
    behind = "" if facts.newest is None or facts.newest <= facts.version else f", source is at version {facts.newest}"
    wrong = "".join(f"; {fault}" for fault in facts.wrong)
    if facts.static or time is None:
        return f"pinned at source version {facts.version}{behind}, {facts.rows} rows{wrong}"
    heartbeat = "no heartbeat yet" if row.committed is None else f"heartbeat {instant_text(time, row.committed)}"
    heartbeat += _ahead_of_clock(application, facts.name, row, time)
    lost = f"; goes no further: {facts.lost}" if facts.lost else ""
    return (
        f"{heartbeat}{_per_source(row, time)}, source version {facts.version}{behind}, {facts.rows} rows"
        f" admitted, {facts.kept_out} in quarantine{_counts(row)}"
        f"{f', {facts.remembered} duplicates remembered' if facts.remembered else ''}{lost}{wrong}"
    )


def _ahead_of_clock(application: Application, name: str, row: LedgerRow, time: TimeDomain) -> str:
    """A heartbeat of the clock that the clock has not come to: it was set back."""
    declared = application.source(name)
    spec = declared.heartbeat
    of_clock = spec is not None and spec.kind == HeartbeatKind.CLOCK
    if not of_clock and not (isinstance(declared, CreateRelation) and declared.contents == "feed"):
        return ""
    back = set_back(time, row.committed, now_micros(), spec.lag if of_clock and spec is not None else 0)
    return f" ({back})" if back else ""


def _counts(row: LedgerRow) -> str:
    """What has happened to a stream's rows beside being admitted or kept out, over its life."""
    totals = row.of_source.totals or {}
    told = {
        "late": "late",
        "repaired": "admitted below the heartbeat",
        "deduplicated": "duplicates dropped",
        "reinstated": "of them elements since a kept row was taken back",
        "displaced": "elements that these made duplicates",
        "ignored": "removed by the source and kept",
        "taken_back": "taken back by the source",
        "cancelled": "taken back from quarantine",
        "released": "released from quarantine",
        "clamped": "heartbeats that would have gone back",
        "distant": "heartbeats too far in the future (MAX AHEAD)",
    }
    parts = [f"{totals[key]} {text}" for key, text in told.items() if totals.get(key)]
    return "".join(f", {part}" for part in parts)


def _per_source(row: LedgerRow, time: TimeDomain) -> str:
    """HEARTBEAT PER: the sources that are not idle, the furthest behind first."""
    sources = (row.of_source.policy or {}).get("sources")
    if not isinstance(sources, dict) or not sources:
        return ""
    ordered = sorted(sources.items(), key=lambda item: item[1][0])
    listed = ", ".join(f"{key} {instant_text(time, tick)}" for key, (tick, _) in ordered[:SOURCES_SHOWN])
    more = f" and {len(ordered) - SOURCES_SHOWN} more" if len(ordered) > SOURCES_SHOWN else ""
    return f" held back by {ordered[0][0]} (per source: {listed}{more})"


def newest(application: Application, name: str, row: LedgerRow) -> tuple[int | None, str]:
    """The newest version of a source, and why nothing more of it can be admitted; empty if nothing speaks against it
    here.
    """
    try:
        source = application.sources.table(name)
        latest = source.version()
        check_identity(name, source, row)
    except SweepAreaError as error:
        return None, str(error)
    return latest, ""


def rows_of(path: str) -> int:
    """Rows of a table, by its log; none where there is no table."""
    log = DeltaLog(path)
    return sum(f.rows for f in log.files()) if log.exists() else 0


def kept_out(application: Application, name: str) -> tuple[int, int]:
    """Rows in quarantine: those that something is wrong with, and dropped duplicates that are remembered."""
    total = rows_of(application.layout.quarantine(name))
    declared = application.catalog.streams.get(name)
    if declared is None or declared.deduplicate is None or declared.on_source_change != "correct":
        return total, 0
    return quarantine.counted(application, name)
