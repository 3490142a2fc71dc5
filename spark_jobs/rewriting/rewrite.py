"""Taking over what was computed beside a query's tables: their difference, as one commit.

Published rows that are no longer right go, new ones come, the SweepAreas are exchanged where the stretch reaches the
query's instant, and the signed difference with its cause is kept in ``<query>__corrections``. Readers see each table
change in one commit; where nothing differs nothing is written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.operators.state.splice import NotMet
from sweeparea.quality import verdict
from sweeparea.quality.records import Entry, merged, without_units
from sweeparea.quality.records import entry as entry_of
from sweeparea.quality.verdict_tables import refused
from sweeparea.spark_jobs.rewriting.rewritten import Rewritten
from sweeparea.spark_jobs.rewriting.rewritten_areas import RewrittenAreas
from sweeparea.spark_jobs.rewriting.rewritten_results import RewrittenResults
from sweeparea.spark_jobs.rewriting.shadow import Shadow
from sweeparea.spark_jobs.rewriting.staging import Staging
from sweeparea.spark_jobs.slices.acceptance import accepted, relaxed
from sweeparea.spark_jobs.slices.place import SlicePlace
from sweeparea.spark_jobs.slices.units import JudgedSlice
from sweeparea.spark_jobs.spark.instants import slice_text
from sweeparea.tables.errors import LostRace
from sweeparea.tables.faults import crash_point
from sweeparea.tables.publication.info import (
    ExchangeInfo,
    Info,
    QueryInfo,
    RewriteInfo,
    laid_over,
    without,
)
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication

CAUSE = "a new definition"


class Rewrite:
    """The difference between a shadow, computed up to ``upto``, and what is published; ``closed``: results after
    ``upto`` stand as they are, and the SweepAreas too; ``whole``: all that is published is compared; ``renewed``:
    tables, by their paths in the data folder, that are exchanged whole, whatever they hold.
    """

    def __init__(
        self, shadow: Shadow, upto: int, closed: bool, whole: bool = False, renewed: Collection[str] = ()
    ) -> None:
        self.shadow, self.upto, self.closed = shadow, upto, closed
        self.renewed = frozenset(renewed)
        self.application, self.name = shadow.application, shadow.plan.name
        self.results = RewrittenResults(shadow, upto, closed, whole)

    def differs(self) -> bool:
        """Whether any published row of the stretch is not as computed, or the contents at its end are not."""
        try:
            return any(self.results.difference(kind, *tables) for kind, tables in self.shadow.tables().items())
        except NotMet:
            return True

    def publish(
        self,
        cause: str,
        follows: LedgerRow,
        pins: Mapping[str, dict[str, int | None]],
        always: bool,
        repairs: bool = False,
    ) -> Rewritten:
        """Stages and commits; the published tables must stand at ``upto`` unless the stretch is closed.

        ``follows``: the ledger row that the shadow was begun from.
        ``pins``: what the query's ledger row says from now on of its inputs. ``always``: also where no row differs.
        ``repairs``: only inputs were corrected; else what was computed before is not trusted any more. Raises LostRace
        if the query has gone on meanwhile, NotMet if a closed stretch does not meet what follows it.
        """
        place = SlicePlace.of(self.application, self.name)
        publication = Publication(place.data, place.ledger, self.name, NameKind.QUERY, place.registration)
        staging = Staging(publication, publication.begin(), self.renewed)
        publication.require(follows)
        previous = publication.previous
        if previous is None or previous.committed is None or (not self.closed and previous.committed != self.upto):
            raise LostRace(f"another run of {self.name} has gone on meanwhile; what was recomputed has to follow.")
        seq, done = previous.seq + 1, Rewritten()
        told = self.results.stage(staging, done)
        crash_point("rewrite.staged_results")
        rules = self._rules(previous, repairs)
        if not done and not always and rules == (previous.of_query.zones or {}):
            publication.abandon()
            return done
        built = None if repairs else seq
        parts: list[Info] = [QueryInfo(built=built), QueryInfo(zones=rules or None)]
        if told:
            self.results.tell(staging, told, cause, seq)
            parts.append(QueryInfo(correction_seq=seq))
        areas = RewrittenAreas(self.shadow, self.upto, staging, previous)
        if not self.closed:
            parts.append(areas.all() if self.shadow.only is None else areas.some(self.shadow.only))
        opened = [part.opened for part in told if part.opened is not None]
        if opened and not self.shadow.plan.emits_each:  # of which no SweepArea holds levels
            parts.append(areas.levels(opened, seq))
        crash_point("rewrite.staged_areas")
        if done:
            parts.append(QueryInfo(rewrite=RewriteInfo(cause, self.shadow.since, self.upto, done.counts)))
        parts.append(self._verdict(staging, seq, previous.committed))
        info = without(laid_over(previous.info, *parts), ["exchanged"])
        publication.commit(committed=previous.committed, pins=dict(pins), info=info)
        return done

    def _verdict(self, staging: Staging, seq: int, committed: int | None) -> QueryInfo:
        """The verdict of all slices that were computed beside, as that of this commit. Units of time that it touches
        and that end by the ``committed`` instant are judged as they will be. QualityFailure where one is not met.
        """
        entries = merged(self.shadow.verdicts)
        if committed is not None and any(e.per is not None for e in self.shadow.published.expectations):
            entries = self._units(staging, seq, committed, entries)
        return QueryInfo(verdicts=entries, judged=staging.attempt)

    def _units(self, staging: Staging, seq: int, committed: int, entries: list[Entry]) -> list[Entry]:
        shadow, publication = self.shadow, staging.publication
        plan = relaxed(shadow.published, accepted(publication.previous), shadow.since, self.upto)
        place = SlicePlace.of(self.application, self.name)
        tables: dict[str, tuple[str, pa.Schema]] = {}
        for kind in plan.materialize:
            log = self.application.ledger.log(self.application.layout.result(plan.table(kind)))
            keys = ("closed", "open") if kind == ResultKind.RELATION else (kind,)
            tables |= dict.fromkeys(keys, (log.uri, log.schema()))
        judged = JudgedSlice(self.application, plan, place, shadow.since, self.upto, tables, [], committed=committed)
        judged = replace(judged, content=publication.content(judged.table[0]))
        name = judged.table[0].rsplit("/", 1)[-1]
        told = verdict.with_results(verdict.Verdict(True, [], 0.0, 0), judged.judged())
        entries = [without_units(entry) if entry["table"] == name else entry for entry in entries]
        entries = merged([*entries, entry_of(name, told)])
        if not told.ok:
            refused(
                self.application.ledger, self.name, NameKind.QUERY, entries,
                registration=publication.registration, seq=seq, attempt=staging.attempt, since=shadow.since,
                upto=self.upto, chronon=plan.time.clock, cause="computed again",
            )  # fmt: skip
            verdict.require(told, name, slice_text(plan.time, shadow.since, self.upto))
        return entries

    def _rules(self, previous: LedgerRow, repairs: bool) -> dict[str, list[str]]:
        """By which rules of time zones the query's results were computed, once these are exchanged."""
        before = previous.of_query.zones or {}
        ours = {} if self.shadow.row is None else dict(self.shadow.row.of_query.zones or {})
        whole = not (repairs or self.closed or self.shadow.only) and self.shadow.since < self.shadow.published.start
        return ours if whole else {zone: sorted({*before.get(zone, ()), *ours.get(zone, ())}) for zone in before}

    def replace(self, old: str, new: Mapping[str, Any]) -> Rewritten:
        """Exchanges all results and SweepAreas of a query for those of a ``new`` definition (``deployed.definition``),
        and the deployed one, whose fingerprint is ``old``, for it; the ledger row goes on where the shadow's stands.
        """
        place = SlicePlace.of_deployed(self.application, self.name)
        publication = Publication(place.data, place.ledger, self.name, NameKind.QUERY, place.registration)
        staging = Staging(publication, publication.begin(), self.renewed)
        previous, row = publication.previous, self.shadow.row
        assert previous is not None
        if row is None or (previous.committed or self.upto) > self.upto:
            publication.abandon()
            raise LostRace(
                f"{self.name}: another run was faster: it has exchanged the definition, or gone on with the old one."
                " Nothing of this run was exchanged; apply again."
            )
        seq, done = previous.seq + 1, Rewritten()
        told = self.results.stage(staging, done)
        self.results.new_corrections(staging)
        if told:
            self.results.tell(staging, told, CAUSE, seq)
        crash_point("replace.staged_results")
        info = laid_over(
            row.info,
            RewrittenAreas(self.shadow, self.upto, staging, previous).all(),
            QueryInfo(correction_seq=seq),
            QueryInfo(built=seq),
            QueryInfo(rewrite=RewriteInfo(CAUSE, self.shadow.since, self.upto, done.counts)),
            QueryInfo(exchanged=ExchangeInfo(old, new, done.renewed)),
            self._verdict(staging, seq, None),
            QueryInfo(accepted=previous.of_query.accepted),
        )
        kept = {publication.layout.relative(old.uri) for old, _ in self.shadow.tables().values()}
        gone = [t for t in (previous.of_query.tables or {}) if t.startswith("results/") and t not in kept]
        gone = [t for t in gone if not t.endswith("__corrections")]
        crash_point("replace.staged_areas")
        publication.commit(committed=self.upto, pins=row.pins, info=info, forget=gone)
        return done
