"""Where a slice finds the SweepAreas of its operators and stages the next ones.

Three layouts. *Keyed*: a log of which a slice touches the keys that it has to do with (``operators/sweep_area.py``).
*Whole*: one snapshot, read and replaced by every slice, for operators without a key and for those that look at every
row at every instant. *Held*: the live rows of a join's side, a log by the time of expiry (``operators/expiry_log.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators import bridge
from sweeparea.operators.sweep_area import DUE, SEQ, AreaFile, Due, SweepArea, to_merge
from sweeparea.spark_jobs import frames
from sweeparea.tables import scan
from sweeparea.tables.delta_log import DeltaLog
from sweeparea.tables.files import DataFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class SweepAreas:
    """The SweepAreas of one slice.

    ``log(op)`` gives an operator's table, ``create(op, schema)`` makes it unless it is there. ``staged``: the files
    that the slice replaces, by operator that it has run.
    """

    spark: SparkSession
    log: Callable[[str], DeltaLog]
    create: Callable[[str, pa.Schema], None]
    spill: str
    seq: int
    h1: int
    partitions: int
    staged: dict[str, list[DataFile]] = field(default_factory=dict)
    _files: dict[str, list[DataFile]] = field(default_factory=dict)

    def files(self, op: str) -> list[DataFile]:
        """The files that the last slice left."""
        if op not in self._files:
            log = self.log(op)
            self._files[op] = log.files() if log.exists() else []
        return self._files[op]

    # -- whole ---------------------------------------------------------------------------------------------------------

    def read(self, op: str) -> DataFrame | None:
        """All rows of a whole SweepArea; None: no rows."""
        if not self.files(op):
            return None
        chosen = scan.plan(self.log(op), self.files(op))
        return frames.read(self.spark, chosen, chosen.schema.names)

    def target(self, op: str, schema: pa.Schema) -> bridge.Target:
        """Where the next snapshot goes."""
        self.create(op, schema)
        self.staged[op] = self.files(op)
        return bridge.Target(self.log(op).uri, schema, op)

    # -- keyed ---------------------------------------------------------------------------------------------------------

    def quiet(self, op: str) -> bool:
        """Whether no key of a keyed SweepArea needs a look in this slice."""
        return all(AreaFile.of("", file).due > self.h1 for file in self.files(op))

    def keyed(self, op: str, schema: pa.Schema, keys: Sequence[str], due: Due) -> SweepArea:
        """The SweepArea of an operator that sweeps ``keys``, for its task."""
        root, files = self.log(op).uri, self.files(op)
        area = SweepArea(root, op, schema, tuple(keys), due, self.seq, self.h1, partitions=self.partitions)
        self.create(op, area.stored)
        merge = self.staged[op] = _to_merge(files)
        described = {file.path: AreaFile.of(root, file) for file in files}
        return replace(area, files=tuple(described.values()), merge=tuple(described[file.path] for file in merge))

    def given(self, area: SweepArea, rows: DataFrame | None) -> DataFrame:
        """What the task of a keyed sweep is given: new rows, and rows with NULL copies that only name a key.

        There is at least one of these, so that the task runs; where there are several workers, those of the keys that
        are due: each worker looks after the keys that it is given.
        """
        nothing = (f"CAST(NULL AS {frames.spark_type(f.type)}) AS `{f.name}`" for f in area.schema)
        parts = [] if rows is None else [rows]
        parts.append(self.spark.range(1).selectExpr(*nothing))
        due = [file for file in area.files if file.due <= self.h1]
        if due and not area.alone:
            stored = self.spark.read.schema(frames.ddl(area.stored)).parquet(*(file.path for file in due))
            keys = set(area.key_columns)
            named = (
                f"`{f.name}`" if f.name in keys else f"CAST(NULL AS {frames.spark_type(f.type)}) AS `{f.name}`"
                for f in area.schema
            )
            parts.append(stored.where(f"{DUE} <= {self.h1}L").selectExpr(*named).distinct())
        return frames.concatenated(parts)


def _to_merge(files: Sequence[DataFile]) -> list[DataFile]:
    newest_first = sorted(files, key=lambda file: scan.bounds(file, SEQ)[1] or 0, reverse=True)
    return newest_first[: to_merge([file.rows for file in newest_first])]
