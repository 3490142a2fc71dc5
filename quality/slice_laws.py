"""Laws between what one worker stages for several tables, counted where it is written (semantics, "The laws").

R1: what Istream brings and Dstream takes is the change of the relation, and no value is in both at one instant. The
first is one number a slice: each event, a record that comes or goes at an instant, is hashed to 64 bits, and what the
streams tell less what the relation's rows say sums up to 0 modulo 2^64, however events are spread over workers
(multiset hashing: Clarke et al. 2003, "Incremental multiset hash functions", which is MSet-Add-Hash). A sum of events
that are not the same is 0 with a probability of 2^-64. The others are counts, since a record's rows have one worker.

Runs in Spark's Python workers, beside ``counts.py``.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from sweeparea.operators.values import keys
from sweeparea.operators.values.bag import TE, TS
from sweeparea.operators.values.key_hash import combined, key_hash
from sweeparea.quality.suites import Check

SLICE = "slice"
"""Of which target the line of a worker is that has the counts of these laws."""
R1, BOTH, STATE, TYPES = "law:R1", "law:no value comes and goes at one instant", "law:state", "law:types"
INTERVALS = {"closed": "law:intervals", "quarantine_closed": "law:intervals of the quarantine"}
_OPEN = {"closed": "open", "quarantine_closed": "quarantine_open"}
_WORDS = {
    R1: "what Istream brings and Dstream takes is the change of the relation",
    BOTH: "no value is in Istream and in Dstream at one instant",
    STATE: "what is carried to the next slice is not over, and is no more than that needs",
    TYPES: "columns have the types that are declared",
    INTERVALS["closed"]: "no interval of a record ends where another begins",
    INTERVALS["quarantine_closed"]: "no interval of a record that is kept out ends where another begins",
}
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class SliceLaws:
    """What a worker counts of its tables, by what is written to them: ``width`` columns are the record, results begin
    after ``since`` (as tables hold instants) and the slice ends with tick ``h1``. ``schemas`` are the tables' own;
    ``levels``: whether levels are carried on, beside what is known of the future.
    """

    width: int
    since: int
    h1: int
    schemas: Mapping[str, pa.Schema]
    levels: bool

    def __call__(self, tables: Mapping[str, pa.Table], carry: pa.Table | None) -> dict[str, int]:
        found = {TYPES: sum(_other_types(tables[key], schema) for key, schema in self.schemas.items())}
        came, went = (self._elements(tables.get(key)) for key in ("istream", "dstream"))
        if came is not None and went is not None:
            found[BOTH] = _common(came, went)
        for closed, law in INTERVALS.items():
            if closed not in tables:
                continue
            begins, ends = self._validities(tables[closed], tables[_OPEN[closed]])
            found[law] = _common(begins, ends)
            if closed == "closed" and came is not None and went is not None:
                found[R1] = (_sum(came) - _sum(went) - _sum(begins) + _sum(ends)) & _MASK
        if carry is not None:
            start, end = (keys.int64_of(carry.column(name)) for name in (TS, TE))
            over = end <= self.h1
            found[STATE] = int(np.count_nonzero(over if self.levels else over | (start <= self.h1)))
        return found

    def _elements(self, table: pa.Table | None) -> np.ndarray | None:
        return None if table is None else self._events(table, "ts")

    def _validities(self, closed: pa.Table, opened: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """The events at which rows begin after ``since``, and at which they end."""
        ends = self._events(closed, "valid_to")
        begins: list[np.ndarray] = []
        for table in (closed, opened):
            later = _instants(table, "valid_from") > self.since
            begins.append(self._events(table, "valid_from")[later])
        return np.concatenate(begins), ends

    def _events(self, table: pa.Table, column: str) -> np.ndarray:
        """A hash (uint64) of each row's record and instant."""
        record = [table.column(i) for i in range(self.width)]
        return combined(key_hash(record, table.num_rows), _instants(table, column))


def of_slice(parts: Sequence[Mapping[str, int]]) -> tuple[list[Check], dict[str, int]]:
    """The laws that a slice's workers have looked at, as checks, and how often each is broken."""
    checks: list[Check] = []
    counts: dict[str, int] = {}
    for law in dict.fromkeys(law for part in parts for law in part):
        total = sum(part.get(law, 0) for part in parts)
        counts[law] = int(total & _MASK != 0) if law == R1 else total
        kwargs = {"column": "rows", "value_set": [0]}
        meta = {"law": law, "expect": _WORDS[law]}
        expectation = "expect_column_values_to_be_in_set"
        checks.append({"id": law, "type": expectation, "kwargs": kwargs, "severity": "critical", "meta": meta})
    return checks, counts


def _other_types(table: pa.Table, schema: pa.Schema) -> int:
    def plain(kind: pa.DataType) -> pa.DataType:
        return kind.value_type if pt.is_dictionary(kind) else kind

    return sum(not plain(table.schema.field(field.name).type).equals(field.type) for field in schema)


def _instants(table: pa.Table, column: str) -> np.ndarray:
    values = table.column(column)
    return keys.int64_of(values if pt.is_integer(values.type) else values.cast(pa.int64()))


def _common(a: np.ndarray, b: np.ndarray) -> int:
    """How many values are in both."""
    return len(np.intersect1d(a, b)) if len(a) and len(b) else 0


def _sum(events: np.ndarray) -> int:
    return int(np.sum(events, dtype=np.uint64))
