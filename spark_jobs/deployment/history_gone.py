"""What RETAIN has let go of admitted elements (``upkeep/retained.py``), for whoever is to compute from them."""

from __future__ import annotations

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.patterns import reach_of, read_again
from sweeparea.operators.plan.plan import Plan
from sweeparea.spark_jobs.declarations.declarations import Declarations
from sweeparea.spark_jobs.spark.instants import instant_text


class HistoryGone(SweepAreaError):
    """What is to be computed needs elements that RETAIN has let go."""

    exit_code = 2


def require_history(declared: Declarations, plan: Plan, origin: int) -> None:
    """HistoryGone if a stream that a plan reads no longer has all elements that slices from tick ``origin`` on read."""
    head = declared.ledger.head()
    reaches, again = reach_of(plan.root), read_again(plan.root)
    for name in plan.inputs:
        row = head.get(declared.owner(name))
        gone = None if row is None else row.of_source.retained
        needed = max(plan.start, origin - reaches.get(name, 0)) if name in again else origin
        if gone is None or gone < needed:
            continue
        first = instant_text(plan.time, gone + 1)
        raise HistoryGone(
            f"{plan.name} would have to be computed from {instant_text(plan.time, needed)} on, but elements of {name}"
            f" up to {instant_text(plan.time, gone)} have gone (RETAIN). Nothing was changed. What needs none of them"
            f" can be had: a backfill of later instants with --from, or a query with START AT {first} or later. To"
            f" compute all of it, admit the source under another name without RETAIN and read that stream."
        )


def gone_up_to(declared: Declarations, plan: Plan) -> int | None:
    """The greatest tick up to which a stream that a plan reads has let elements go; None if none has."""
    head = declared.ledger.head()
    rows = [row for name in plan.inputs if (row := head.get(declared.owner(name))) is not None]
    return max((gone for row in rows if (gone := row.of_source.retained) is not None), default=None)
