"""How much of a plan's inputs lies in a stretch of time, from the statistics in their Delta logs."""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from contextlib import suppress

import pyarrow.compute as pc

from sweeparea.cql.binding.scope.inputs import SchemaKind
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.time.ticks import MAX_TICK, MIN_TICK, own_ticks
from sweeparea.spark_jobs.declarations.declarations import Declarations
from sweeparea.spark_jobs.deployment.query_plans import QueryPlans
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog


def new_rows(plans: QueryPlans, plan: Plan, h0: int, h1: int) -> int:
    """About how many rows of a query's inputs have their tick in (h0, h1], from the statistics in the Delta logs."""
    total, declared = 0.0, plans.declared
    for name in plan.inputs:
        if not declared.is_query(declared.owner(name)):
            if not declared.is_static(name):
                low, high = own_ticks(h0 + 1, h1, declared.scale(name, plan.time))
                total += _between(declared.ledger.log(declared.layout.admitted(name)), "__tick", low, high)
        else:
            column = "ts" if plans.input_schema(name).kind == SchemaKind.STREAM else "valid_from"
            scale = plan.time.stored_scale
            log = declared.ledger.log(plans.result_table(name))
            total += _between(log, column, (h0 + 1) * scale, (h1 + 1) * scale - 1)
    return round(total)


COUNTED = 5_000_000
"""Up to so many rows are counted one by one where somebody asks for a number."""


def before_start(declared: Declarations, plan: Plan) -> str:
    """How many elements of a plan's streams lie before its START, in words: "about" where they are too many to count;
    empty if there are none.
    """
    about, total = False, 0
    for name in plan.inputs:
        if name not in declared.catalog.streams:
            continue
        _, last = own_ticks(None, plan.start - 1, declared.scale(name, plan.time))
        log = DeltaLog(declared.layout.admitted(name))
        if last is None or not log.exists():
            continue
        files = scan.prune(log.files(), "__tick", MIN_TICK, last)
        found = None
        if sum(file.rows for file in files) <= COUNTED:
            with suppress(OSError):  # a file that is missing is told of elsewhere
                copies = scan.plan(log, files).read(["__n"], pc.field("__tick") <= last).column("__n")
                found = pc.sum(copies).as_py() or 0
        about = about or found is None
        total += round(_between(log, "__tick", MIN_TICK, last)) if found is None else found
    if total <= 0:
        return ""
    plural = "s before START take" if total != 1 else " before START takes"
    return f"{'about ' if about else ''}{total:,} element{plural} no part"


def _between(log: DeltaLog, column: str, low: int | None, high: int | None) -> float:
    """About how many rows of a table have ``low <= column <= high``, each file's rows taken as evenly spread."""
    total = 0.0
    low, high = MIN_TICK if low is None else low, MAX_TICK if high is None else high
    for file in scan.prune(log.files(), column, low, high) if log.exists() else ():
        least, greatest = scan.bounds(file, column)
        if least is not None and greatest is not None:
            inside = min(high, greatest) - max(low, least) + 1
            total += file.rows * inside / (greatest - least + 1)
    return total
