"""Whether a query's SweepAreas can be continued: its plan, and the columns of the results that it reads, are those by
which they were written.
"""

from __future__ import annotations

import hashlib

from sweeparea.operators.plan.encoding import strategy_of
from sweeparea.operators.plan.lowering import lowered
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.plan_identity import state_identity, strategy_in
from sweeparea.tables.log.delta_log import DeltaLog, schema_text
from sweeparea.tables.publication.ledger import LedgerRow


def columns_hash(log: DeltaLog) -> str | None:
    """A hash of a table's columns; None: there is no table."""
    return hashlib.sha256(schema_text(log.schema()).encode()).hexdigest()[:16] if log.exists() else None


def stale_state(plan: Plan, row: LedgerRow) -> bool:
    """Whether a query's SweepAreas hold rows of operators that its plan, as it runs, does not have in this form."""
    known = row.of_query.plan
    if known is not None and strategy_in(known) != strategy_of(plan):
        return True  # also where only the result has rows: who tells of an end that is still to come has changed
    running = lowered(plan)
    areas = {op: n for op, n in row.of_query.state.rows.items() if op != "materialize"}
    held = any(areas.values()) or any(node.keeps_readable for node in running.root.walk())
    return known is not None and held and known != state_identity(running)
