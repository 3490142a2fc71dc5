"""WITH (strict): a query that would run by snapshot expansion anywhere is refused when it is bound, so by every command
that looks at it."""

from __future__ import annotations

from sweeparea.cql.text.errors import Place, RefusedError
from sweeparea.operators.plan import lowering
from sweeparea.operators.plan.plan import Plan


def check(plan: Plan, place: Place) -> None:
    """RefusedError that names the operators of a strict plan without an incremental form."""
    if dict(plan.settings).get("strict") != "true":
        return
    expanded = dict.fromkeys(why for node in plan.root.walk() if (why := lowering.expansion(node)) is not None)
    if expanded:
        raise RefusedError(
            f"query {plan.name} says strict = true, but {', '.join(expanded)} would run by snapshot expansion, which "
            "evaluates every changed group anew at each instant",
            place,
            "Leave strict out, or use what docs/operators.md lists as incremental",
        )
