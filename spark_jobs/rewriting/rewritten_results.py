"""The results of a rewrite: what is staged of each table, and what is told of it in ``<query>__corrections``."""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import numpy as np
import pyarrow as pa

from sweeparea.operators.state.leaves import leaf_stem
from sweeparea.spark_jobs.rewriting.difference import Comparison, TableDifference
from sweeparea.spark_jobs.rewriting.rewritten import Rewritten
from sweeparea.spark_jobs.rewriting.shadow import Shadow
from sweeparea.spark_jobs.rewriting.staging import Staging
from sweeparea.spark_jobs.slices import corrections
from sweeparea.spark_jobs.slices.history import History
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import write_file
from sweeparea.tables.log.schema import same_columns


class RewrittenResults:
    """The tables of a shadow, computed up to ``upto``, against the published ones; ``closed`` and ``whole`` as of
    ``Rewrite``.
    """

    def __init__(self, shadow: Shadow, upto: int, closed: bool, whole: bool) -> None:
        self.shadow, self.upto, self.closed, self.whole = shadow, upto, closed, whole
        self.name, self.time = shadow.plan.name, shadow.plan.time

    def stage(self, staging: Staging, done: Rewritten) -> list[TableDifference]:
        """Stages each result table: whole where it is renewed or gets other columns, else what differs."""
        told = []
        for kind, (old, new) in self.shadow.tables().items():
            other = self.whole and not (old.exists() and same_columns(old.schema(), new.schema()))
            if other:
                done.removed[kind] = sum(f.rows for f in old.files()) if old.exists() else 0
                done.added[kind] = sum(f.rows for f in new.files())
            if other or staging.renews(old):
                staging.exchange(new, old, f"{kind} of continuous query {self.name}")
                done.renewed = True
            elif part := self.difference(kind, old, new):
                self._stage(staging, part)
                done.removed[kind], done.added[kind] = part.out, part.come.num_rows
                told.append(part)
        return told

    def difference(self, kind: str, old: DeltaLog, new: DeltaLog) -> TableDifference | None:
        """What differs in one kind of result; None if nothing does. NotMet: see ``Comparison``."""
        shadow, some = self.shadow, self.shadow.only
        labels = {c.id: c.label for c in shadow.plan.root.columns}
        only = None if some is None else (labels[some.key.column], some)
        published = History.of(old, self.time)
        return Comparison(kind, published, new, shadow.since, self.upto, self.closed, self.whole, only).difference()

    @staticmethod
    def _stage(staging: Staging, part: TableDifference) -> None:
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
                adds.append(write_file(rows, old.log.uri, staging.attempt, stem))
        come = part.come
        open_ = come.column("valid_to").is_null().to_numpy() if old.relation else np.zeros(come.num_rows, bool)
        for stem, chosen in (("ended", ~open_), ("open", open_)):
            if chosen.any():
                adds.append(
                    write_file(come.filter(pa.array(chosen)), old.log.uri, staging.attempt, f"{part.kind}-{stem}")
                )
        staging.publication.stage(old.log.uri, adds=adds, removes=removes, base_version=old.version)

    def tell(self, staging: Staging, parts: list[TableDifference], cause: str, seq: int) -> None:
        """Stages the signed difference of all tables, with its cause."""
        rows = corrections.told(pa.concat_tables([part.told for part in parts]), cause, seq)
        if not rows.num_rows:
            return
        path = self.shadow.application.layout.result(f"{self.name}__corrections")
        title = f"corrections of continuous query {self.name}"
        DeltaLog(path).create(rows.schema, name=f"{self.name}__corrections", description=title)
        staging.publication.stage(path, adds=[write_file(rows, path, staging.attempt, "corrections")])

    def new_corrections(self, staging: Staging) -> None:
        """Corrections of rows with other columns go: the queries that read these are computed anew."""
        log = DeltaLog(self.shadow.application.layout.result(f"{self.name}__corrections"))
        if not log.exists():
            return
        _, new = next(iter(self.shadow.tables().values()))
        record = pa.schema([new.schema().field(name) for name in History.of(new, self.time).record])
        wanted = corrections.schema(record, self.time)
        if not same_columns(log.schema(), wanted):
            staging.publication.stage(log.uri, schema=wanted)
