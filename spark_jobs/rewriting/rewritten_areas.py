"""The SweepAreas of a rewrite: those of the shadow take the place of the query's."""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sweeparea.operators.state.sweep_area import HASH, SEQ, SweepArea
from sweeparea.operators.values.columns import with_columns
from sweeparea.spark_jobs.evaluation.only import Only
from sweeparea.spark_jobs.rewriting.relevel import relevel
from sweeparea.spark_jobs.rewriting.shadow import Shadow
from sweeparea.spark_jobs.rewriting.staging import Staging
from sweeparea.spark_jobs.slices.materialize import MATERIALIZE
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile, write_file
from sweeparea.tables.publication.info import AreasInfo, Sizes
from sweeparea.tables.publication.ledger import LedgerRow


class NotSelectable(Exception):
    """A SweepArea of which some keys cannot be exchanged: all of it has to be."""


class RewrittenAreas:
    """SweepAreas of a shadow that was computed up to ``upto``; ``previous``: the query's ledger row, which tells of its
    own.
    """

    def __init__(self, shadow: Shadow, upto: int, staging: Staging, previous: LedgerRow) -> None:
        self.shadow, self.upto, self.staging, self.previous = shadow, upto, staging, previous
        self.name = shadow.plan.name

    def all(self) -> AreasInfo:
        """Stages the shadow's SweepAreas in place of the query's; returns what the ledger says of them."""
        row = self.shadow.row
        told = row.of_query.state if row is not None else AreasInfo()
        ops = {*told.rows, *self.previous.of_query.state.rows}
        for op in sorted(ops):
            mine = DeltaLog(self.shadow.place.layout.state(self.name, op))
            log = DeltaLog(self.shadow.application.layout.state(self.name, op))
            if mine.exists():
                self.staging.exchange(mine, log, f"SweepArea {op} of {self.name}")
            elif log.exists():
                self.staging.publication.stage(log.uri, removes=log.files(), anew=self.staging.renews(log))
            told.grew(op, 0, 0)
        return told

    def some(self, only: Only) -> AreasInfo:
        """As ``all``, for some keys. NotSelectable: a SweepArea's rows do not tell their key."""
        row = self.shadow.row
        told = self.previous.of_query.state
        ops = {*(row.of_query.state.rows if row is not None else {}), *told.rows}
        for op in sorted(ops):
            mine = DeltaLog(self.shadow.place.layout.state(self.name, op))
            log = DeltaLog(self.shadow.application.layout.state(self.name, op))
            fresh = mine.files() if mine.exists() else []
            if not log.exists() and fresh:
                log.create(mine.schema(), name=f"{self.name}.{op}", description=f"SweepArea {op} of {self.name}")
            if not log.exists():
                continue
            names, version = log.schema().names, log.version()
            carrier = only.carrier(names)
            if carrier is None:
                self.staging.publication.abandon()
                raise NotSelectable(op)
            files = log.files(version)
            adds, removes = [], []
            if rows := self._current(mine, fresh, op):
                adds.append(write_file(rows, log.uri, self.staging.attempt, f"{op}-new"))
            for number, file in enumerate(files):
                rows = scan.plan(log, [file]).read(names)
                gone = only.where(rows.column(carrier))
                if gone.any():
                    removes.append(file)
                    if not gone.all():
                        adds.append(
                            write_file(
                                rows.filter(pa.array(~gone)), log.uri, self.staging.attempt, f"{op}-kept-{number}"
                            )
                        )
            self.staging.publication.stage(log.uri, adds=adds, removes=removes, base_version=version)
            left = [*adds, *(file for file in files if file not in removes)]
            told.holds(op, sum(file.rows for file in left), sum(file.size for file in left))
            told.live.pop(op, None)
        return told

    def _current(self, mine: DeltaLog, files: list[DataFile], op: str) -> pa.Table | None:
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
            seq = (self.staging.publication.previous.seq if self.staging.publication.previous else 0) + 1
            rows = with_columns(rows, {SEQ: np.full(rows.num_rows, seq, np.int64)}).sort_by(HASH)
        return rows if rows.num_rows else None

    def levels(self, parts: Sequence[pa.Table], seq: int) -> Sizes:
        """Stages the levels of records whose open rows have another start; returns what the ledger says of them.
        ``parts``: of each history's table, whose rows begin with the record.
        """
        log = DeltaLog(self.shadow.application.layout.state(self.name, MATERIALIZE))
        ids = [c.id for c in self.shadow.plan.root.columns]
        committed = self.previous.committed or 0
        named = pa.concat_tables(
            [part.select([*range(len(ids)), part.num_columns - 1]).rename_columns([*ids, "__from"]) for part in parts]
        )
        adds, removes, more = relevel(log, MATERIALIZE, ids, named, seq, committed, self.staging.attempt)
        self.staging.publication.stage(log.uri, adds=adds, removes=removes)
        told = self.previous.of_query.state
        told.grew(
            MATERIALIZE,
            sum(f.rows for f in adds) - sum(f.rows for f in removes),
            sum(f.size for f in adds) - sum(f.size for f in removes),
        )
        if MATERIALIZE in told.live:
            told.live[MATERIALIZE] += more
        return Sizes(told)
