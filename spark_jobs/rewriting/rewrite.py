"""Taking over what was computed beside a query's tables: their difference, as one commit.

Published rows that are no longer right go, new ones come, the SweepAreas are exchanged where the stretch reaches the
query's instant, and the signed difference with its cause is kept in ``<query>__corrections``. Readers see each table
change in one commit; where nothing differs nothing is written.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sweeparea.operators.state.leaves import leaf_stem
from sweeparea.operators.state.splice import NotMet
from sweeparea.operators.state.sweep_area import HASH, SEQ, SweepArea
from sweeparea.operators.values.columns import with_columns
from sweeparea.spark_jobs.evaluation.only import Only
from sweeparea.spark_jobs.rewriting.difference import Comparison, TableDifference
from sweeparea.spark_jobs.rewriting.relevel import relevel
from sweeparea.spark_jobs.rewriting.shadow import Shadow
from sweeparea.spark_jobs.slices import corrections
from sweeparea.spark_jobs.slices.history import History
from sweeparea.spark_jobs.slices.materialize import MATERIALIZE
from sweeparea.spark_jobs.slices.place import SlicePlace
from sweeparea.tables.errors import LostRace
from sweeparea.tables.faults import crash_point
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile, copy_staged, write_file
from sweeparea.tables.log.schema import same_columns
from sweeparea.tables.publication.info import (
    AreasInfo,
    ExchangeInfo,
    Info,
    QueryInfo,
    RewriteInfo,
    Sizes,
    laid_over,
    without,
)
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.publish import Publication

CAUSE = "a new definition"


class NotSelectable(Exception):
    """A SweepArea of which some keys cannot be exchanged: all of it has to be."""


@dataclass
class Rewritten:
    """What a rewrite has done: per kind of table how many rows went and came."""

    removed: dict[str, int] = field(default_factory=dict)
    added: dict[str, int] = field(default_factory=dict)
    words: str = ""
    renewed: bool = False
    """Whether a table got other columns, or is there for the first time."""

    def __bool__(self) -> bool:
        return any(self.removed.values()) or any(self.added.values())

    @property
    def counts(self) -> str:
        """The rows in words."""
        return f"{sum(self.removed.values()):,} rows out, {sum(self.added.values()):,} rows in"


class Rewrite:
    """The difference between a shadow, computed up to ``upto``, and what is published; ``closed``: results after
    ``upto`` stand as they are, and the SweepAreas too; ``whole``: all that is published is compared; ``renewed``:
    tables, by their paths in the data folder, that are exchanged whole, whatever they hold.
    """

    def __init__(
        self, shadow: Shadow, upto: int, closed: bool, whole: bool = False, renewed: Collection[str] = ()
    ) -> None:
        self.shadow, self.upto, self.closed, self.whole = shadow, upto, closed, whole
        self.renewed = frozenset(renewed)
        self.application, self.name = shadow.application, shadow.plan.name
        self.time = shadow.plan.time

    def differs(self) -> bool:
        """Whether any published row of the stretch is not as computed, or the contents at its end are not."""
        try:
            return any(self._difference(kind, *tables) for kind, tables in self.shadow.tables().items())
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
        publication = Publication(place.data, place.ledger, self.name, "query", place.registration)
        attempt = publication.begin()
        publication.require(follows)
        previous = publication.previous
        if previous is None or previous.committed is None or (not self.closed and previous.committed != self.upto):
            raise LostRace(f"another run of {self.name} has gone on meanwhile; what was recomputed has to follow.")
        seq, done = previous.seq + 1, Rewritten()
        told = self._results(publication, attempt, done)
        crash_point("rewrite.staged_results")
        rules = self._rules(previous, repairs)
        if not done and not always and rules == (previous.of_query.zones or {}):
            publication.abandon()
            return done
        built = None if repairs else seq
        parts: list[Info] = [QueryInfo(built=built), QueryInfo(zones=rules or None)]
        if told:
            self._tell(publication, attempt, told, cause, seq)
            parts.append(QueryInfo(correction_seq=seq))
        if not self.closed and self.shadow.only is not None:
            parts.append(self._areas_of(self.shadow.only, publication, attempt, previous))
        elif not self.closed:
            parts.append(self._areas(publication, attempt, previous))
        for part in told:
            if part.opened is not None:
                parts.append(self._levels(publication, attempt, previous, part.opened, seq))
        crash_point("rewrite.staged_areas")
        if done:
            parts.append(QueryInfo(rewrite=RewriteInfo(cause, self.shadow.since, self.upto, done.counts)))
        info = without(laid_over(previous.info, *parts), ["exchanged"])
        publication.commit(committed=previous.committed, pins=dict(pins), info=info)
        return done

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
        publication = Publication(place.data, place.ledger, self.name, "query", place.registration)
        attempt = publication.begin()
        previous, row = publication.previous, self.shadow.row
        assert previous is not None
        if row is None or (previous.committed or self.upto) > self.upto:
            publication.abandon()
            raise LostRace(
                f"{self.name}: another run was faster: it has exchanged the definition, or gone on with the old one."
                " Nothing of this run was exchanged; apply again."
            )
        seq, done = previous.seq + 1, Rewritten()
        told = self._results(publication, attempt, done)
        self._new_corrections(publication)
        if told:
            self._tell(publication, attempt, told, CAUSE, seq)
        crash_point("replace.staged_results")
        info = laid_over(
            row.info,
            self._areas(publication, attempt, previous),
            QueryInfo(correction_seq=seq),
            QueryInfo(built=seq),
            QueryInfo(rewrite=RewriteInfo(CAUSE, self.shadow.since, self.upto, done.counts)),
            QueryInfo(exchanged=ExchangeInfo(old, new, done.renewed)),
        )
        kept = {publication.layout.relative(old.uri) for old, _ in self.shadow.tables().values()}
        gone = [t for t in (previous.of_query.tables or {}) if t.startswith("results/") and t not in kept]
        gone = [t for t in gone if not t.endswith("__corrections")]
        crash_point("replace.staged_areas")
        publication.commit(committed=self.upto, pins=row.pins, info=info, forget=gone)
        return done

    def _new_corrections(self, publication: Publication) -> None:
        """Corrections of rows with other columns go: the queries that read these are computed anew."""
        log = DeltaLog(self.application.layout.result(f"{self.name}__corrections"))
        if not log.exists():
            return
        _, new = next(iter(self.shadow.tables().values()))
        record = pa.schema([new.schema().field(name) for name in History.of(new, self.time).record])
        wanted = corrections.schema(record, self.time)
        if not same_columns(log.schema(), wanted):
            publication.stage(log.uri, schema=wanted)

    def _exchange(self, publication: Publication, attempt: str, new: DeltaLog, old: DeltaLog, title: str) -> None:
        """Stages all rows of one table in place of those of another, with their columns."""
        anew = publication.layout.relative(old.uri) in self.renewed
        if not old.exists():
            old.create(new.schema(), name=old.uri.rsplit("/", 1)[-1], description=title)
        adds = [copy_staged(new.uri, file, old.uri, attempt) for file in new.files()]
        if same_columns(old.schema(), new.schema()):
            publication.stage(old.uri, adds=adds, removes=old.files(), anew=anew)
        else:
            publication.stage(old.uri, adds=adds, schema=new.schema(), anew=anew)

    # -- results -------------------------------------------------------------------------------------------------------

    def _results(self, publication: Publication, attempt: str, done: Rewritten) -> list[TableDifference]:
        """Stages each result table: whole where it is renewed or gets other columns, else what differs."""
        told = []
        for kind, (old, new) in self.shadow.tables().items():
            other = self.whole and not (old.exists() and same_columns(old.schema(), new.schema()))
            if other:
                done.removed[kind] = sum(f.rows for f in old.files()) if old.exists() else 0
                done.added[kind] = sum(f.rows for f in new.files())
            if other or publication.layout.relative(old.uri) in self.renewed:
                self._exchange(publication, attempt, new, old, f"{kind} of continuous query {self.name}")
                done.renewed = True
            elif part := self._difference(kind, old, new):
                self._stage(publication, attempt, part)
                done.removed[kind], done.added[kind] = part.out, part.come.num_rows
                told.append(part)
        return told

    def _difference(self, kind: str, old: DeltaLog, new: DeltaLog) -> TableDifference | None:
        shadow, some = self.shadow, self.shadow.only
        labels = {c.id: c.label for c in shadow.plan.root.columns}
        only = None if some is None else (labels[some.key.column], some)
        published = History.of(old, self.time)
        return Comparison(kind, published, new, shadow.since, self.upto, self.closed, self.whole, only).difference()

    @staticmethod
    def _stage(publication: Publication, attempt: str, part: TableDifference) -> None:
        """Files that hold a removed row are written anew without it, new rows into files of their own."""
        removes, adds, old, leaves = [], [], part.old, set()
        for number, (file, gone) in enumerate(zip(part.files, part.removed, strict=True)):
            if not len(gone):
                continue
            removes.append(file)
            kept = np.delete(np.arange(file.rows), gone)
            if len(kept):
                rows = old.read(file).take(pa.array(kept))
                leaf = leaf_stem(file.path)
                stem = f"{part.kind}-kept-{number}" if leaf is None or leaf in leaves else leaf
                leaves.add(stem)
                adds.append(write_file(rows, old.log.uri, attempt, stem))
        come = part.come
        open_ = come.column("valid_to").is_null().to_numpy() if old.relation else np.zeros(come.num_rows, bool)
        for stem, chosen in (("ended", ~open_), ("open", open_)):
            if chosen.any():
                adds.append(write_file(come.filter(pa.array(chosen)), old.log.uri, attempt, f"{part.kind}-{stem}"))
        publication.stage(old.log.uri, adds=adds, removes=removes, base_version=old.version)

    def _tell(self, publication: Publication, attempt: str, parts: list[TableDifference], cause: str, seq: int) -> None:
        """Stages the signed difference of all tables, with its cause."""
        rows = corrections.told(pa.concat_tables([part.told for part in parts]), cause, seq)
        if not rows.num_rows:
            return
        path = self.application.layout.result(f"{self.name}__corrections")
        title = f"corrections of continuous query {self.name}"
        DeltaLog(path).create(rows.schema, name=f"{self.name}__corrections", description=title)
        publication.stage(path, adds=[write_file(rows, path, attempt, "corrections")])

    # -- SweepAreas ----------------------------------------------------------------------------------------------------

    def _areas(self, publication: Publication, attempt: str, previous: LedgerRow) -> AreasInfo:
        """Stages the shadow's SweepAreas in place of the query's; returns what the ledger says of them."""
        row = self.shadow.row
        told = row.of_query.state if row is not None else AreasInfo()
        ops = {*told.rows, *previous.of_query.state.rows}
        for op in sorted(ops):
            mine = DeltaLog(self.shadow.place.layout.state(self.name, op))
            log = DeltaLog(self.application.layout.state(self.name, op))
            if mine.exists():
                self._exchange(publication, attempt, mine, log, f"SweepArea {op} of {self.name}")
            elif log.exists():
                anew = publication.layout.relative(log.uri) in self.renewed
                publication.stage(log.uri, removes=log.files(), anew=anew)
            told.grew(op, 0, 0)
        return told

    def _areas_of(self, only: Only, publication: Publication, attempt: str, previous: LedgerRow) -> AreasInfo:
        """As ``_areas``, for some keys. NotSelectable: a SweepArea's rows do not tell their key."""
        row = self.shadow.row
        told = previous.of_query.state
        ops = {*(row.of_query.state.rows if row is not None else {}), *told.rows}
        for op in sorted(ops):
            mine = DeltaLog(self.shadow.place.layout.state(self.name, op))
            log = DeltaLog(self.application.layout.state(self.name, op))
            fresh = mine.files() if mine.exists() else []
            if not log.exists() and fresh:
                log.create(mine.schema(), name=f"{self.name}.{op}", description=f"SweepArea {op} of {self.name}")
            if not log.exists():
                continue
            names, version = log.schema().names, log.version()
            carrier = only.carrier(names)
            if carrier is None:
                publication.abandon()
                raise NotSelectable(op)
            files = log.files(version)
            adds, removes = [], []
            if rows := self._current(mine, fresh, op, publication):
                adds.append(write_file(rows, log.uri, attempt, f"{op}-new"))
            for number, file in enumerate(files):
                rows = scan.plan(log, [file]).read(names)
                gone = only.where(rows.column(carrier))
                if gone.any():
                    removes.append(file)
                    if not gone.all():
                        adds.append(write_file(rows.filter(pa.array(~gone)), log.uri, attempt, f"{op}-kept-{number}"))
            publication.stage(log.uri, adds=adds, removes=removes, base_version=version)
            left = [*adds, *(file for file in files if file not in removes)]
            told.holds(op, sum(file.rows for file in left), sum(file.size for file in left))
            told.live.pop(op, None)
        return told

    def _current(self, mine: DeltaLog, files: list[DataFile], op: str, publication: Publication) -> pa.Table | None:
        """The rows of a shadow's SweepArea that count, as those of the commit that takes them over: what it does not
        replace has been written earlier.
        """
        if not files:
            return None
        schema = mine.schema()
        rows = scan.plan(mine, files).read(schema.names)
        if HASH in schema.names:
            row = self.shadow.row
            assert row is not None
            keys = row.of_query.state.keys[op]
            rows = SweepArea.beside(mine.uri, op, schema, keys, files, 0, self.upto).held(rows)
            seq = (publication.previous.seq if publication.previous else 0) + 1
            rows = with_columns(rows, {SEQ: np.full(rows.num_rows, seq, np.int64)}).sort_by(HASH)
        return rows if rows.num_rows else None

    def _levels(self, publication: Publication, attempt: str, previous: LedgerRow, levels: pa.Table, seq: int) -> Sizes:
        """Stages the levels of records whose open rows have another start; returns what the ledger says of them."""
        log = DeltaLog(self.application.layout.state(self.name, MATERIALIZE))
        ids = [c.id for c in self.shadow.plan.root.columns]
        committed = previous.committed or 0
        named = levels.rename_columns([*ids, "__from"])
        adds, removes, more = relevel(log, MATERIALIZE, ids, named, seq, committed, attempt)
        publication.stage(log.uri, adds=adds, removes=removes)
        told = previous.of_query.state
        told.grew(
            MATERIALIZE,
            sum(f.rows for f in adds) - sum(f.rows for f in removes),
            sum(f.size for f in adds) - sum(f.size for f in removes),
        )
        if MATERIALIZE in told.live:
            told.live[MATERIALIZE] += more
        return Sizes(told)


__all__ = ["NotMet", "NotSelectable", "Rewrite", "Rewritten"]
