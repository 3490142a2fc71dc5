"""Staging what was admitted or kept out: rows of the admitted and the quarantine table of a stream or relation.

Both tables belong to the one commit of a source version: ``Publication`` makes them appear together or not at all.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.operators.values import keys
from sweeparea.spark_jobs.spark import json_values
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile, write_file
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication
from sweeparea.tables.sources.landing import MALFORMED

QUARANTINE_SCHEMA = pa.schema(
    [
        ("__stream", pa.string()),
        ("__version", pa.int64()),
        ("__seq", pa.int64()),
        ("__reason", pa.string()),
        ("__tick", pa.int64()),
        ("__row", pa.string()),
        ("__n", pa.int64()),
    ]
)
"""``__version`` is the source's, ``__row`` the whole row as a JSON object, ``__n`` its copies (negative: it was taken
back by its source). ``__stream`` names a relation where it is one's."""
ENGINE_FIELDS = (("__tick", pa.int64()), ("__seq", pa.int64()), ("__n", pa.int64()))
CAME = "__came"
"""The commit whose source version brought a row. It is told apart from ``__seq``, the commit that made it an element,
where a row that was a duplicate at first may become one (``stream/reinstated.py``)."""


def next_seq(publication: Publication) -> int:
    """The sequence number that this publication's commit will have."""
    return (publication.previous.seq if publication.previous else 0) + 1


def admitted_schema(columns: Iterable[pa.Field], came: bool = False) -> pa.Schema:
    """The columns of an admitted table over a source's ``columns``; ``came``: with ``__came``."""
    own = (*ENGINE_FIELDS, (CAME, pa.int64())) if came else ENGINE_FIELDS
    return pa.schema([*columns, *(pa.field(name, kind) for name, kind in own)])


def quarantine_rows(bad: pa.Table, reasons: pa.Array | pa.ChunkedArray, name: str, version: int | None) -> pa.Table:
    """Rows that are kept out, as the quarantine holds them.

    ``bad``: the source's columns, ``__tick`` and ``__n`` (one copy each without it); ``reasons`` as many texts.
    """
    count = bad.num_rows
    copies = bad.column("__n") if "__n" in bad.column_names else pa.repeat(pa.scalar(1, pa.int64()), count)
    return pa.table(
        [
            pa.repeat(pa.scalar(name, pa.string()), count),
            pa.repeat(pa.scalar(version, pa.int64()), count),
            pa.repeat(pa.scalar(0, pa.int64()), count),
            reasons,
            bad.column("__tick"),
            pa.array(_shown(bad), pa.string()),
            copies,
        ],
        schema=QUARANTINE_SCHEMA,
    )


def _shown(bad: pa.Table) -> list[str]:
    """Rows as the quarantine shows them; of a record that could not be read its text, as it came."""
    shown = row_texts(bad.select([c for c in bad.column_names if not c.startswith("__")]))
    if MALFORMED in bad.column_names:
        texts = bad.column(MALFORMED).to_pylist()
        whole = zip(shown, texts, strict=True)
        return [row if t is None else json.dumps({MALFORMED: t}, ensure_ascii=False) for row, t in whole]
    return shown


def row_texts(rows: pa.Table) -> list[str]:
    """Each row as the text of a JSON object, by column; equal rows (semantics, section 2) have equal texts."""
    found: list[str] = []
    for start in range(0, rows.num_rows, _TEXTS):
        found += _row_texts(keys.canonical(rows.slice(start, _TEXTS))).to_pylist()
    return found


_TEXTS = 100_000
"""Rows that are written as texts at a time: an Arrow array of texts ends at 2 GB."""


def _row_texts(rows: pa.Table) -> pa.Array:
    if not rows.num_columns:
        return pa.array(["{}"] * rows.num_rows, pa.string())
    parts: list[Any] = []
    for number, name in enumerate(rows.column_names):
        before = "{" if number == 0 else ", "
        parts += [pa.scalar(f"{before}{json.dumps(name, ensure_ascii=False)}: "), _json_texts(rows.column(number))]
    return pc.binary_join_element_wise(*parts, "}", "")


def _json_texts(column: pa.ChunkedArray) -> pa.Array:
    """A column as JSON texts, each value written once."""
    if pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type):
        ends = pc.min_max(column).as_py()
        if ends["min"] is None or (ends["min"] >= -json_values.SAFE and ends["max"] <= json_values.SAFE):
            return keys.one_array(pc.fill_null(column.cast(pa.string()), "null"))
    try:
        coded = keys.one_array(column).dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError:
        return pa.array(_dumped(column), pa.string())
    return pa.array(_dumped(pa.chunked_array([coded.dictionary])), pa.string()).take(coded.indices)


def _dumped(column: pa.ChunkedArray) -> list[str]:
    values = json_values.rows(pa.table({"value": column}), [0])
    return [json.dumps(value, ensure_ascii=False, allow_nan=False) for (value,) in values]


def held_copies(held: pa.Table) -> np.ndarray:
    """The copies of rows of the quarantine (int64); a table that an earlier version made counts none."""
    if "__n" not in held.column_names:
        return np.ones(held.num_rows, np.int64)
    return np.array(keys.numpy_of(keys.one_array(held.column("__n")), 1), np.int64)


def without(held: pa.Table, gone: np.ndarray) -> pa.Table:
    """Rows of the quarantine less so many copies of each."""
    left = held_copies(held) - gone
    if "__n" in held.column_names:
        held = held.set_column(held.column_names.index("__n"), "__n", pa.array(left, pa.int64()))
    return held.filter(pa.array(left != 0))


class Stage:
    """The files of one commit of one stream or relation, written piece by piece and named to the ledger at the end.

    ``columns`` are the source's. Both tables are made if they do not exist; ``came``: with ``__came`` (streams that
    remember duplicates). ``moved`` are staged files of the admitted table: rows that this commit takes back or brings
    in from the quarantine, with their signed copies. ``gathers``: several versions of the source are one commit, so
    each table gets one file at the end; who stages sets ``seq``, by which each version counts as a commit of its own.
    """

    def __init__(
        self,
        publication: Publication,
        attempt: str,
        columns: Iterable[pa.Field],
        kind: NameKind = NameKind.STREAM,
        came: bool = False,
        gathers: bool = False,
    ) -> None:
        self.publication, self.attempt = publication, attempt
        name, layout = publication.name, publication.layout
        self.admitted, self.quarantine = DeltaLog(layout.admitted(name)), DeltaLog(layout.quarantine(name))
        # a table that gained columns has them behind the engine's
        self.schema = self.admitted.schema() if self.admitted.exists() else admitted_schema(columns, came)
        self.seq = self._first = next_seq(publication)
        self._gathered: dict[str, list[pa.Table]] | None = {} if gathers else None
        self.moved: list[DataFile] = []
        self._adds: dict[str, list[DataFile]] = {self.admitted.uri: [], self.quarantine.uri: []}
        self._removes: list[DataFile] = []
        self._leaving: dict[str, tuple[DataFile, np.ndarray]] = {}
        self._written = 0
        self.admitted.create(self.schema, name=name, description=f"admitted {kind} {name}", configuration=None)
        if not self.quarantine.exists():
            self.quarantine.create(
                QUARANTINE_SCHEMA, name=name, description=f"quarantine of {name}", configuration=None
            )
        self.quarantine_version = self.quarantine.version()

    @property
    def brought(self) -> list[DataFile]:
        """The staged files of elements that this commit brings anew."""
        moved = {file.path for file in self.moved}
        return [file for file in self._adds[self.admitted.uri] if file.path not in moved]

    @property
    def gained(self) -> bool:
        """Whether the admitted table has gained columns since it was made."""
        return self.schema.names[-1] not in (*(name for name, _ in ENGINE_FIELDS), CAME)

    def admit(self, rows: pa.Table) -> None:
        """Rows of the admitted table: the source's columns, ``__tick``, ``__n`` and, if they came with another commit
        than this one, ``__came``.
        """
        if CAME in self.schema.names and CAME not in rows.column_names:
            rows = rows.append_column(CAME, pa.repeat(pa.scalar(self.seq, pa.int64()), rows.num_rows))
        # narrow ranges per row group, and files that prune
        self._write(self.admitted, self.schema, rows.sort_by("__tick") if rows.num_rows > 1 else rows)

    def keep_out(self, rows: pa.Table, stamp: bool = True) -> None:
        """Rows of the quarantine, as ``quarantine_rows`` makes them; ``stamp`` False: their ``__seq`` stays."""
        known = self.quarantine.schema().names  # a table of an earlier version counts no copies
        self._write(self.quarantine, pa.schema([f for f in QUARANTINE_SCHEMA if f.name in known]), rows, stamp)

    def move(self, rows: pa.Table) -> None:
        """As ``admit``, of rows that are taken back (negative ``__n``) or come in from the quarantine."""
        before = len(self._adds[self.admitted.uri])
        self.admit(rows)
        self.moved += self._adds[self.admitted.uri][before:]

    def leave(self, file: DataFile, gone: np.ndarray) -> None:
        """So many copies of each row of a file of the quarantine leave it (int64), beside those that did before."""
        self._leaving[file.path] = (file, self.leaving(file, len(gone)) + gone)

    def leaving(self, file: DataFile, rows: int) -> np.ndarray:
        """How many copies of each of a file's ``rows`` leave the quarantine with this commit so far."""
        return self._leaving[file.path][1] if file.path in self._leaving else np.zeros(rows, np.int64)

    def replace_quarantine(self, file: DataFile, stays: pa.Table) -> None:
        """A file of the quarantine, read at ``quarantine_version``, leaves; ``stays`` are its rows that do not."""
        self._write(self.quarantine, stays.schema, stays, stamp=False)
        self._removes.append(file)

    def commit(self, committed: int | None, info: dict[str, Any]) -> LedgerRow:
        """The commit: to the ledger, then to the tables."""
        for log in (self.admitted, self.quarantine):
            if tables := (self._gathered or {}).pop(log.uri, []):
                rows = pa.concat_tables(tables)
                self._file(log, rows.sort_by("__tick") if log is self.admitted else rows)
        for file, gone in self._leaving.values():
            held = scan.plan(self.quarantine, [file]).read(self.quarantine.schema().names)
            self.replace_quarantine(file, without(held, gone))
        self._leaving.clear()
        for log in (self.admitted, self.quarantine):
            removes = self._removes if log is self.quarantine else []
            if self._adds[log.uri] or removes:
                base = self.quarantine_version if removes else None
                self.publication.stage(log.uri, adds=self._adds[log.uri], removes=removes, base_version=base)
        return self.publication.commit(committed, {}, info, numbers=self.seq - self._first + 1)

    def _write(self, log: DeltaLog, schema: pa.Schema, rows: pa.Table, stamp: bool = True) -> None:
        if not rows.num_rows:
            return
        if stamp:
            kept = rows.drop_columns(["__seq"]) if "__seq" in rows.column_names else rows
            rows = kept.append_column("__seq", pa.repeat(pa.scalar(self.seq, pa.int64()), rows.num_rows))
        table = rows.select(schema.names).cast(schema)
        if self._gathered is None:
            self._file(log, table)
        else:
            self._gathered.setdefault(log.uri, []).append(table)

    def _file(self, log: DeltaLog, table: pa.Table) -> None:
        self._written += 1
        self._adds[log.uri].append(write_file(table, log.uri, self.attempt, f"seq-{self.seq}-{self._written}"))
