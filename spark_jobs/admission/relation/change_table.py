"""The log of a relation's changes as a table: ``state/<relation>/changes``.

Each commit of the relation appends what its source version told, whatever the instants; a heartbeat, a late change or
one that was refused is then a question to this table (``change_log.py``). Files are merged as those of SweepAreas are,
so that their number grows with the logarithm of the rows.

Columns: the source's; ``__tick``, ``__n``; ``__version``, that of the source; ``__hash``, that of the change's key or
record; ``__seq``, the commit that brought it.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.operators.state.area_files import to_merge
from sweeparea.spark_jobs.admission.judging.judge import pieces
from sweeparea.spark_jobs.admission.judging.stage import Stage, held_copies
from sweeparea.spark_jobs.admission.relation.change_log import HASH, REFUSED
from sweeparea.spark_jobs.declarations.sources import CHANGES
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile, write_file
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication

VERSION = "__version"
_LEAVING = 50_000
"""Rows that are looked for in the quarantine at a time, as Python's values."""
_OWN = tuple(pa.field(name, pa.int64()) for name in ("__tick", "__n", VERSION, HASH, "__seq"))


@dataclass(frozen=True)
class Leaving:
    """Rows that may leave the quarantine, as it holds them. ``refused``: those that were refused for what the relation
    held, of the same version; else those that were kept out for what they are. ``anytime``: whatever instant they have
    there, as rows of a feed, which happen when their version does.
    """

    rows: pa.Table
    refused: bool
    anytime: bool = False


@dataclass
class _Left:
    copies: int
    version: int | None
    refused: bool

    def matches(self, reason: str, version: int) -> bool:
        same = self.version is None or self.version == version
        return self.copies > 0 and same and (reason in REFUSED) == self.refused


MERGED, MOST_MERGED = 500_000, 2_000_000
"""A file of so many rows is merged no more; and so many are merged at a time, about, which is what the driver holds."""


class ChangeTable:
    """The changes that earlier commits have brought, read in pieces."""

    def __init__(self, path: str, columns: Iterable[pa.Field]) -> None:
        self.log = DeltaLog(path)
        self.schema = pa.schema([*(pa.field(f.name, f.type) for f in columns), *_OWN])
        self.version = self.log.version() if self.log.exists() else None

    @property
    def files(self) -> list[DataFile]:
        """The table's files at the version that it had first."""
        return [] if self.version is None else self.log.files(self.version)

    def between(self, h0: int, h1: int) -> Iterator[pa.Table]:
        """The changes with ``h0 < __tick <= h1``."""
        files = scan.prune(self.files, "__tick", h0 + 1, h1) if h1 > h0 else []
        return self._read(files, (pc.field("__tick") > h0) & (pc.field("__tick") <= h1))

    def holding(self, hashes: np.ndarray) -> Iterator[pa.Table]:
        """The changes whose ``__hash`` is one of ``hashes``, which are sorted."""
        return self._read(scan.near(self.files, HASH, hashes), pc.field(HASH).isin(pa.array(hashes)))

    def _read(self, files: list[DataFile], condition: pc.Expression) -> Iterator[pa.Table]:
        told = pa.schema([f for f in self.schema if f.name != "__seq"])
        return (batch.cast(told) for batch in scan.plan(self.log, files).batches(told.names, condition))


class RelationStage(Stage):
    """One commit of a relation: what is admitted, what is kept out, and the changes that its source told."""

    def __init__(
        self, publication: Publication, attempt: str, record: Iterable[pa.Field], columns: Iterable[pa.Field]
    ) -> None:
        super().__init__(publication, attempt, record, NameKind.RELATION)
        self.changes = ChangeTable(publication.layout.state(publication.name, CHANGES), columns)
        title = f"changes of relation {publication.name} as its source told them"
        self.changes.log.create(self.changes.schema, name=f"{publication.name}.{CHANGES}", description=title)
        self.changes.version = self.changes.log.version()
        self._adds[self.changes.log.uri] = []

    def note(self, rows: pa.Table) -> None:
        """Changes that the table does not have yet: its columns but ``__seq``."""
        self._write(self.changes.log, self.changes.schema, rows.sort_by("__tick") if rows.num_rows > 1 else rows)

    def release(self, released: Mapping[str, np.ndarray]) -> None:
        """Takes rows out of the quarantine: per file (its path) the copies of each of its rows that leave."""
        for file in self.quarantine.files(self.quarantine_version):
            if file.path in released:
                self.leave(file, released[file.path])

    def let_go(self, leaving: Leaving) -> int:
        """Takes rows out of the quarantine; returns how many copies of ``leaving`` have left."""
        return sum(self._let_go(replace(leaving, rows=rows)) for rows in pieces(leaving.rows, _LEAVING))

    def _let_go(self, leaving: Leaving) -> int:
        total = 0
        wanted: dict[tuple[int | None, str], list[_Left]] = {}
        anytime: dict[str, list[_Left]] = {}
        for row in leaving.rows.to_pylist():
            left = _Left(abs(row["__n"]), row[VERSION] if leaving.refused else None, leaving.refused)
            if leaving.anytime:
                anytime.setdefault(row["__row"], []).append(left)
            else:
                wanted.setdefault((row["__tick"], row["__row"]), []).append(left)
        sought = pa.array([*(text for _, text in wanted), *anytime], pa.string())
        for file in self.quarantine.files(self.quarantine_version):
            held = scan.plan(self.quarantine, [file]).read(self.quarantine.schema().names)
            copies = held_copies(held) - self.leaving(file, held.num_rows)
            gone = np.zeros(len(copies), np.int64)
            texts = held.column("__row")
            for i in np.flatnonzero(pc.is_in(texts, sought).to_numpy()):
                row = {name: held.column(name)[int(i)].as_py() for name in ("__tick", "__row", "__reason", VERSION)}
                for left in (*wanted.get((row["__tick"], row["__row"]), ()), *anytime.get(row["__row"], ())):
                    if left.matches(row["__reason"], row[VERSION]):
                        taken = min(left.copies, int(abs(copies[i] - gone[i])))
                        left.copies -= taken
                        gone[i] += taken if copies[i] > 0 else -taken
                        total += taken
            if gone.any():
                self.leave(file, gone)
        return total

    def commit(self, committed: int | None, info: dict[str, object]) -> LedgerRow:
        """As of any stage."""
        log, adds = self.changes.log, list(self._adds[self.changes.log.uri])
        removes = self._merged(adds) if adds else []
        if adds:
            self.publication.stage(log.uri, adds=adds, removes=removes, base_version=self.changes.version)
        return super().commit(committed, info)

    def _merged(self, adds: list[DataFile]) -> list[DataFile]:
        """The newest files that are put together; their union joins ``adds``."""
        files = sorted(self.changes.files, key=lambda f: scan.bounds(f, "__seq")[1] or 0, reverse=True)
        files = [file for file in files if file.rows < MERGED]
        chosen = files[: to_merge([file.rows for file in files])]
        while sum(file.rows for file in chosen) > MOST_MERGED:
            chosen.pop()
        if chosen:
            rows = scan.plan(self.changes.log, chosen).read(self.changes.schema.names).sort_by("__tick")
            adds.append(write_file(rows, self.changes.log.uri, self.attempt, f"seq-{self.seq}-merged"))
        return chosen
