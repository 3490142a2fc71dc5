"""Rows of a result that constraints keep out: a selection of the relation before its streams are made.

A record either obeys all constraints that quarantine or it does not, whatever the instant: so the relation R of a query
is the union of two that have no record in common, sigma(R) and its complement. The first is the result; the history of
the second is the quarantine, kept as the history of any relation (``relation_to_stream.sweep``). Both are selections of
R at each instant, so what is known of R holds of them: neither depends on how time was cut into slices.

Columns in: the record, ``BROKEN`` and a bag's. ``BROKEN`` holds a token for each constraint that the record violates,
or for which its condition could not be computed; '' for none; NULL (of rows that were kept before there was a
constraint): none.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.operators.sweeps.relation_to_stream import Materialized, MaterializeSpec, sweep
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import shared_rows
from sweeparea.operators.values.bag import TE
from sweeparea.operators.values.columns import with_columns

BROKEN = "__broken"
"""The column with the tokens of the constraints that a record breaks, one behind the other."""
CONSTRAINT, REASON = "__constraint", "__reason"
"""The columns that a quarantine's table has behind the record."""


def violation(name: str, condition: str) -> str:
    """The reason by which a row is kept out that violates a constraint."""
    return f"constraint {name} is violated: {condition}"


def no_truth(name: str, condition: str) -> str:
    """The reason by which a row is kept out for which a constraint's condition cannot be computed."""
    return f"constraint {name} cannot be computed for this row: {condition}"


@dataclass(frozen=True)
class KeptOutBy:
    """What a token in ``BROKEN`` says: by which constraint a record is kept out, and why, in words."""

    token: str
    constraint: str
    reason: str


@dataclass(frozen=True)
class Quarantine:
    """The rules of the constraints that keep rows out, in the order of these: the first that holds names the row."""

    rules: tuple[KeptOutBy, ...]

    def holds(self, broken: str | None) -> list[KeptOutBy]:
        """The rules that keep a record with these tokens out."""
        return [rule for rule in self.rules if broken and rule.token in broken]

    def split(self, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Rows that stand, and rows that are kept out."""
        encoded = _tokens(rows)
        out = [i for i, text in enumerate(encoded.dictionary.to_pylist()) if self.holds(text)]
        if not out:
            return rows, rows.slice(0, 0)
        kept = pc.fill_null(pc.is_in(encoded.indices, pa.array(out, encoded.indices.type)), False)
        return rows.filter(pc.invert(kept)), rows.filter(kept)

    def named(self, rows: pa.Table) -> pa.Table:
        """``rows``, which are kept out, with ``CONSTRAINT`` and ``REASON`` in place of ``BROKEN``."""
        encoded = _tokens(rows)
        found = [self.holds(text) for text in encoded.dictionary.to_pylist()]
        names = pa.array([rules[0].constraint for rules in found], pa.string())
        reasons = pa.array(["; ".join(rule.reason for rule in rules) for rules in found], pa.string())
        rest = rows.drop_columns([BROKEN])
        return rest.append_column(CONSTRAINT, names.take(encoded.indices)).append_column(
            REASON, reasons.take(encoded.indices)
        )


def parted(
    how: Callable[[pa.Table, MaterializeSpec, int, int], Materialized],
    rows: pa.Table,
    spec: MaterializeSpec,
    quarantine: Quarantine,
    h0: int,
    h1: int,
) -> tuple[Materialized, Materialized]:
    """What ``how`` makes of the rows that stand, and the history of those that are kept out, whose carry is part of
    the first's.
    """
    good, bad = quarantine.split(rows)
    out = how(good, spec, h0, h1)
    if spec.each:  # their windows were made Now, since a row stays
        bad = with_columns(bad, {TE: np.full(bad.num_rows, INF)})
    history = replace(spec, relation=True, istream=False, dstream=False, rstream=None, each=False, net=False)
    kept = sweep(bad, history, h0, h1)
    if spec.each or not kept.carry.num_rows:
        return out, kept
    carry = [shared_rows.plain(each) for each in (out.carry, kept.carry.select(out.carry.column_names))]
    return replace(out, carry=pa.concat_tables(carry)), kept


def _tokens(rows: pa.Table) -> pa.DictionaryArray:
    return shared_rows.plain(rows.select([BROKEN])).column(BROKEN).combine_chunks().dictionary_encode()
