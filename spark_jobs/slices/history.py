"""A result table as the engine's rows: instants are ticks, an open row's end is ``INF``."""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys
from sweeparea.spark_jobs.spark import frames
from sweeparea.tables.log import scan, stats
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class History:
    """The table of a relation (``valid_from``, ``valid_to``) or of a stream (``ts``), at one version."""

    log: DeltaLog
    time: TimeDomain
    relation: bool
    version: int

    @classmethod
    def of(cls, log: DeltaLog, time: TimeDomain) -> History:
        """The table as it stands."""
        version = log.version()
        return cls(log, time, "valid_to" in log.schema().names, version)

    @property
    def record(self) -> list[str]:
        """The query's own columns."""
        return self.log.schema().names[: -2 if self.relation else -1]

    def stored(self, tick: int) -> int:
        """A tick as the instant columns hold it: microseconds, or ticks."""
        return tick * self.time.stored_scale

    def files(self, since: int, upto: int) -> list[DataFile]:
        """Files that may hold rows that are valid somewhere in ``(since, upto]`` or end there (a stream's: lie there).

        Bounds are ticks.
        """
        files = self.log.files(self.version)
        if not self.relation:
            return scan.prune(files, "ts", self.stored(since + 1), self.stored(upto))
        begun = scan.prune(files, "valid_from", None, self.stored(upto))
        ended = {f.path for f in begun if stats.nulls(f.stats, "valid_to") == 0}
        over = {f.path for f in scan.prune(begun, "valid_to", self.stored(since + 1), None)}
        return [f for f in begun if f.path not in ended or f.path in over]

    def open_after(self, tick: int) -> list[DataFile]:
        """Files that may hold rows of a relation that begin after a tick and are open."""
        begun = scan.prune(self.log.files(self.version), "valid_from", self.stored(tick + 1), None)
        return [f for f in begun if stats.nulls(f.stats, "valid_to") != 0]

    def read(self, file: DataFile) -> pa.Table:
        """All rows of one file, as they are stored. SweepAreaError: it is gone, or cannot be read."""
        try:
            return scan.plan(self.log, [file]).read(self.log.schema().names)
        except FileNotFoundError:
            raise SweepAreaError(
                f"The file {file.path} of {self.log.uri} is gone, though the table has it. `sweeparea check` with"
                " --rebuild computes the query's tables again; to have the file itself back, restore the data folder"
                " from a backup of one moment."
            ) from None
        except (pa.ArrowInvalid, OSError) as error:
            raise SweepAreaError(
                f"The file {file.path} of {self.log.uri} cannot be read: {error}. `sweeparea check` with --rebuild"
                " computes the query's tables again."
            ) from error

    def ticks(self, rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """From and to of each row; a stream's element is ``[t, t+1)``."""
        if not self.relation:
            at = self._ticks(rows.column("ts"))
            return at, at + 1
        end = rows.column("valid_to")
        open_ = pc.is_null(end).to_numpy()
        return self._ticks(rows.column("valid_from")), np.where(open_, INF, self._ticks(end))

    def _ticks(self, column: pa.ChunkedArray) -> np.ndarray:
        if self.time.kind != TimeKind.TIMESTAMP:
            return keys.int64_of(column)
        return keys.int64_of(column.cast(pa.int64())) // self.time.chronon

    def levels(self, spark: SparkSession, at: int) -> DataFrame | None:
        """The relation's rows that are valid at an instant: the record, and ``__from`` as a tick."""
        files = self.files(at - 1, at)
        if not files:
            return None
        chosen = scan.plan(self.log, files)
        rows = frames.read(spark, chosen, self.log.schema().names, [("valid_from", None, self.stored(at))])
        if rows is None:
            return None
        timestamps = self.time.kind == TimeKind.TIMESTAMP
        bound = f"timestamp_micros({self.stored(at)}L)" if timestamps else f"{at}L"
        tick = f"unix_micros(valid_from) DIV {self.time.chronon}L" if timestamps else "valid_from"
        alive = rows.where(f"valid_to IS NULL OR valid_to > {bound}")
        return alive.selectExpr(*(frames.quoted(c) for c in self.record), f"{tick} AS __from")
