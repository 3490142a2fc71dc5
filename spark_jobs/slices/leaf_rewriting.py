"""Leaves of a relation's open rows written anew by Spark's workers, side by side: a leaf costs a millisecond, a job of
Spark's as much as a hundred of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from sweeparea.operators.bridge import FILES_DDL
from sweeparea.operators.leaves import MISSING, LeafTask, Leaves, MissingRows, Work
from sweeparea.tables.files import DataFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rewrite_by_spark(spark: SparkSession, leaves: Leaves, works: Iterable[Work]) -> list[DataFile]:
    """``leaves.rewrite_here``, each work in a task of its own. Raises MissingRows with all rows that are missing."""
    given = tuple(_light(work) for work in works)
    numbers = spark.range(0, len(given), 1, len(given))
    lines = numbers.mapInArrow(LeafTask(leaves, given), FILES_DDL).collect()
    if missing := sum(line.rows for line in lines if line.target == MISSING):
        raise MissingRows(missing)
    ordered = sorted(lines, key=lambda line: (int(line.target), line.path))
    return [DataFile(line.path, line.size, line.rows, line.stats) for line in ordered]


def _light(work: Work) -> Work:
    """Without the files' statistics, which would be sent to every task."""
    part = (replace(one, file=one.file and replace(one.file, stats="")) for one in work.part)
    return replace(work, part=tuple(part))
