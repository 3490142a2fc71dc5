"""The columns of a source: which types tell time, which names are the engine's own, and the error for one that is not
there.
"""

from __future__ import annotations

from collections.abc import Iterable

from sweeparea.cql.text.errors import BindError, Place, listing, nearest
from sweeparea.operators.time.domain import TimeKind
from sweeparea.spark_jobs.spark.errors import ReservedNameError

TIME_TYPES = {
    "bigint": TimeKind.BIGINT,
    "timestamp": TimeKind.TIMESTAMP,
    "timestamp_ntz": TimeKind.TIMESTAMP,
    "date": TimeKind.TIMESTAMP,
}
"""The kind of time of a column's Spark type."""


def no_column(clause: str, column: str, known: Iterable[str], place: Place) -> BindError:
    """The error for a column that a clause names and its source does not have."""
    known = list(known)
    hint = nearest(column, known) or f"Its columns are {listing(known)}"
    return BindError(f"column {column} of {clause} is unknown", place, hint)


def refuse_reserved(name: str, columns: Iterable[str]) -> None:
    """Refuses a source with columns in the engine's own name space: its tables add ``__tick``, ``__seq``, ``__n``."""
    taken = [c for c in columns if c.startswith("__")]
    if taken:
        raise ReservedNameError(
            f"{name}: its source has the column(s) {', '.join(taken)}. Names that begin with two underscores are"
            " SweepArea's own. Rename them in the source table."
        )
