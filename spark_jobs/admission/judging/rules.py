"""What a stream's declaration says of its rows, in ticks of its time, and what cannot be said of its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from sweeparea.cql.syntax.statements import ConstraintSpec, CreateStream
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.operators.time.ticks import MAX_TICK, MIN_TICK
from sweeparea.spark_jobs.admission.judging.judge import Lateness, condition_sql, heartbeat_sql, tick_sql
from sweeparea.spark_jobs.spark import frames


@dataclass(frozen=True)
class Rules:
    """What a stream's declaration says of its rows, in ticks of its time.

    ``columns`` are the source's; ``order`` the columns of the total order (SEQUENCE BY first); ``within`` and
    ``retain`` bound what is repaired, ``apart`` is the reach of DEDUPLICATE BY (None: no such clause).
    """

    declared: CreateStream
    domain: TimeDomain
    columns: tuple[str, ...]
    order: tuple[str, ...] = ()
    within: int | None = None
    retain: int | None = None
    duplicate_by: tuple[str, ...] = ()
    apart: int | None = None

    @classmethod
    def of(cls, declared: CreateStream, domain: TimeDomain, columns: Iterable[str]) -> Rules:
        """Raises ParseError where a length does not fit the stream's time, BindError for an unknown column."""
        names = tuple(columns)
        by_name = {name.lower(): name for name in names}
        within = None if declared.late_within is None else declared.late_within.in_ticks(domain, "LATE REPAIR WITHIN")
        retain = declared.retain if domain.kind == TimeKind.TIMESTAMP else None
        sequence = by_name.get((declared.sequence_by or "").lower())
        deduplicate = declared.deduplicate
        return cls(
            declared,
            domain,
            names,
            (*([sequence] if sequence else []), *names),
            within,
            None if retain is None else retain // domain.chronon,
            () if deduplicate is None else tuple(by_name[c.lower()] for c in deduplicate.columns),
            None if deduplicate is None else deduplicate.within.in_ticks(domain, "DEDUPLICATE BY .. WITHIN"),
        )

    @property
    def timestamp(self) -> str:
        """The column that TIMESTAMP BY names, spelt as the source spells it."""
        name = self.declared.timestamp_by
        return next((c for c in self.columns if c.lower() == name.lower()), name)

    @property
    def remembers(self) -> bool:
        """Whether dropped duplicates are remembered: the source may take back the rows that made them duplicates."""
        return self.apart is not None and self.declared.on_source_change == "correct"

    def with_constraints(self, changed: Callable[[Iterable[ConstraintSpec]], tuple[ConstraintSpec, ...]]) -> Rules:
        """The same rules with other constraints, made of those that are declared."""
        return replace(self, declared=replace(self.declared, constraints=changed(self.declared.constraints)))

    def lateness(self, heartbeat: int | None, repairs_from: int | None = None) -> Lateness:
        """How late elements are treated at a heartbeat. ``repairs_from``: below that tick what a repair would read has
        gone (``retained.py``), whatever RETAIN says now.
        """
        retain = self.retain
        if heartbeat is not None and repairs_from is not None:
            least = max(heartbeat - repairs_from, -1)
            retain = least if retain is None else min(retain, least)
        return Lateness(heartbeat, self.declared.late == "repair", self.within, retain)


def expressions(rules: Rules, heartbeat: str | None, constraints: Sequence[str]) -> dict[str, str]:
    """Spark SQL of what judging needs of a row, by the column that holds it; ``heartbeat`` and ``constraints`` as
    ``Sources.stream_expressions`` gives them.
    """
    column = frames.quoted(rules.timestamp)
    return {
        "__tick": tick_sql(column, rules.domain),
        "__heartbeat": guarded(heartbeat_sql(heartbeat, rules.domain), column, rules.domain),
        **{f"__check_{i}": condition_sql(sql) for i, sql in enumerate(constraints)},
    }


def guarded(heartbeat: str, column: str, domain: TimeDomain) -> str:
    """A heartbeat's expression where the row's instant lies inside time: at the ends of BIGINT and of TIMESTAMP the
    least arithmetic overflows, and one such row must not stop the stream.
    """
    ticks = tick_sql(column, TimeDomain(domain.kind, 1))
    return f"CASE WHEN {ticks} BETWEEN {MIN_TICK}L AND {MAX_TICK}L THEN {heartbeat} END"


def keeping_out(constraints: Iterable[ConstraintSpec]) -> tuple[ConstraintSpec, ...]:
    """The constraints, of which none stops the version: a row that breaks one that would is kept out."""
    return tuple(replace(c, on_violation="quarantine") if c.on_violation == "fail" else c for c in constraints)
