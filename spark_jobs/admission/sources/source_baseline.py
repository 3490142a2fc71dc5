"""Going on from a source as it is now, where the versions in between can no longer be told.

A log that was cleaned or a file that VACUUM took leaves a gap that nobody can read. What the gap did in sum is still
known exactly: the bag difference between what the source holds now and what was taken from it, which is what was
admitted and what lies in quarantine. What is lost is when it happened, and rows that came and went inside the gap.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.operators.values import keys
from sweeparea.spark_jobs.admission.judging.stage import row_texts
from sweeparea.spark_jobs.admission.sources.source_rows import netted
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.sources.landing import MALFORMED
from sweeparea.tables.sources.netting import N
from sweeparea.tables.sources.source import SourceTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def difference(
    spark: SparkSession,
    source: SourceTable,
    version: int,
    admitted: DeltaLog,
    quarantine: DeltaLog,
    scratch: str,
    by: str | None = None,
) -> Iterator[Callable[[], Iterator[pa.Table]]]:
    """The rows of the source at ``version`` less those that were admitted or are in quarantine, as signed rows.

    Gives a function that reads them in pieces, as ``source_rows.netted``, which has ``by``. Tables that do not exist
    hold nothing.
    """
    columns = list(source.schema().names)

    def pieces() -> Iterator[pa.Table]:
        for piece in source.snapshot_pieces(version):
            yield piece.append_column(N, pa.repeat(pa.scalar(1, pa.int64()), piece.num_rows))
        if admitted.exists():
            for held in scan.plan(admitted).batches([*columns, N]):
                yield held.set_column(len(columns), N, pc.negate(held.column(N)))

    kept_out = _quarantined(quarantine, columns)
    with netted(spark, pieces(), scratch, by) as rows:
        yield (lambda: _without(rows(), kept_out.copy())) if kept_out else rows


def _quarantined(log: DeltaLog, columns: Sequence[str]) -> Counter[str]:
    """The copies of the rows in quarantine, by their text."""
    found: Counter[str] = Counter()
    for file in log.files() if log.exists() else ():
        held = scan.plan(log, [file]).read(log.schema().names)
        copies = keys.int64_of(held.column(N)) if N in held.column_names else np.ones(held.num_rows, np.int64)
        for text, n in zip(held.column("__row").to_pylist(), copies.tolist(), strict=True):
            if n > 0:
                row = json.loads(text)
                if MALFORMED in row:
                    continue  # no record of the source's columns
                # a column that came later is NULL in the rows of before
                found[json.dumps({c: row.get(c) for c in columns}, ensure_ascii=False, allow_nan=False)] += n
    return found


def _without(pieces: Iterator[pa.Table], kept_out: Counter[str]) -> Iterator[pa.Table]:
    """Signed rows less the copies that are in quarantine."""
    for piece in pieces:
        counts = keys.int64_of(piece.column(N)).copy()
        texts = row_texts(piece.drop_columns([N]))
        for i, text in enumerate(texts):
            if counts[i] > 0 and kept_out.get(text):
                taken = min(int(counts[i]), kept_out[text])
                counts[i] -= taken
                kept_out[text] -= taken
        left = piece.set_column(piece.column_names.index(N), N, pa.array(counts, pa.int64()))
        yield left.filter(pa.array(counts != 0))
