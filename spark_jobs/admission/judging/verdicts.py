"""What a commit of a source says of its quality: rows that broke constraints, and why rows were kept out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sweeparea.cql.syntax.statements import ConstraintSpec
from sweeparea.quality.incidents import KEPT_OUT
from sweeparea.quality.records import Entry
from sweeparea.tables.publication.info import SourceInfo

ADMISSION = "admission:"
"""How the expectation is named that no row is kept out for a reason that is no constraint."""


def violated(constraint: ConstraintSpec) -> str:
    """The reason by which a row is kept out that breaks a constraint."""
    return f"constraint {constraint.name} is violated: {constraint.expression.text}"


def judged(
    info: SourceInfo,
    attempt: str,
    table: str,
    constraints: Iterable[ConstraintSpec],
    rows: int,
    reasons: Counter[str],
    warned: Counter[str],
) -> SourceInfo:
    """``info`` with the verdict on ``rows`` of a source: ``reasons`` counts those kept out, ``warned`` by constraint
    those that were kept. Constraints that no row broke have passed.
    """
    by_reason = {violated(c): c for c in constraints}
    results: list[list[Any]] = []
    for reason, constraint in by_reason.items():
        broken = reasons[reason] + warned[constraint.name]
        severity = "warning" if constraint.on_violation == "warn" else KEPT_OUT
        results.append([f"constraint:{constraint.name}", severity, "fail" if broken else "pass", broken])
    others = [(reason, n) for reason, n in sorted(reasons.items()) if reason not in by_reason and n]
    results += [[f"{ADMISSION}{reason}", KEPT_OUT, "fail", n] for reason, n in others]
    if not results:
        return info
    warnings = {id_: n for id_, _, status, n in results if status == "fail"}
    told: Entry = {"table": table, "rows": rows, "checks": len(results), "warnings": warnings, "results": results}
    return replace(info, verdicts=[told], judged=attempt)
