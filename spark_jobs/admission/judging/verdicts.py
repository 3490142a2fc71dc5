"""What a commit of a source says of its quality: rows that broke constraints, and why rows were kept out. And what is
kept of a version that a constraint refuses, until it is put right or a person accepts it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sweeparea.cql.syntax.statements import ConstraintSpec
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.sweeps.quarantine import no_truth, violation
from sweeparea.quality.incidents import KEPT_OUT
from sweeparea.quality.records import Entry, sample_text
from sweeparea.quality.verdict_tables import refused
from sweeparea.tables.publication.info import SourceInfo
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.publish import Publication

ADMISSION = "admission:"
"""How the expectation is named that no row is kept out for a reason that is no constraint."""


def violated(constraint: ConstraintSpec) -> str:
    """The reason by which a row is kept out that breaks a constraint."""
    return violation(constraint.name, constraint.expression.text)


def uncomputed(constraint: ConstraintSpec) -> str:
    """The reason by which a row is kept out for which a condition cannot be computed."""
    return no_truth(constraint.name, constraint.expression.text)


@dataclass(frozen=True)
class Broken:
    """A constraint ON VIOLATION FAIL UPDATE that ``count`` rows violate, and that cannot be computed for ``errors``
    more; ``rows``: some of them, as JSON.
    """

    constraint: ConstraintSpec
    count: int
    errors: int
    rows: tuple[str, ...]

    def __str__(self) -> str:
        found = [f"is violated by {self.count} rows"] if self.count else []
        if self.errors:
            found.append(f"cannot be computed for {self.errors} (a division by zero, an overflow or a failed cast)")
        return f"constraint {self.constraint.name} EXPECT ({self.constraint.expression.text}) {' and '.join(found)}"


class VersionRefused(SweepAreaError):
    """A version of a source of which nothing is admitted: constraints ON VIOLATION FAIL UPDATE are violated."""

    type = "DataError"

    def __init__(self, what: str, rows: int, broken: Sequence[Broken]) -> None:
        first = json.dumps(json.loads(broken[0].rows[0]), ensure_ascii=False)
        super().__init__(
            f"{what}: {'; '.join(map(str, broken))}, and ON VIOLATION FAIL UPDATE admits nothing of it."
            f" First row: {first}. Correct the source, change what happens on violation to QUARANTINE ROW or WARN, or"
            " accept this version with `sweeparea accept`."
        )
        self.rows, self.broken = rows, tuple(broken)


def keep_refused(publication: Publication, attempt: str, version: int, error: Exception) -> None:
    """Keeps the verdict of a version that is refused; of any other error nothing."""
    if not isinstance(error, VersionRefused):
        return
    results = [
        [f"constraint:{each.constraint.name}", "critical", "fail" if each.count else "error", each.count + each.errors]
        for each in error.broken
    ]
    samples = {f"constraint:{each.constraint.name}": [sample_text(row) for row in each.rows] for each in error.broken}
    entry: Entry = {
        "table": publication.name,
        "rows": error.rows,
        "checks": len(results),
        "warnings": {},
        "results": results,
        "samples": samples,
    }
    previous = publication.previous
    refused(
        publication.ledger,
        publication.name,
        publication.kind,
        [entry],
        registration=publication.registration,
        seq=(previous.seq if previous is not None else 0) + 1,
        attempt=attempt,
        source_version=version,
    )


def accepting(row: LedgerRow | None, version: int) -> Callable[[Iterable[Any]], tuple[Any, ...]]:
    """What makes of constraints (or expectations over several rows) those by which a version is judged: where a person
    has accepted violations in it they warn.
    """
    known = () if row is None else row.of_source.accepted or ()
    named = {name for each in known if each.since < version <= each.upto for name in each.constraints}

    def relaxed(declared: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(
            replace(c, on_violation="warn") if c.on_violation == "fail" and c.name in named else c for c in declared
        )

    return relaxed


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
    known: set[str] = set()
    results: list[list[Any]] = []
    for c in constraints:
        known |= {violated(c), uncomputed(c)}
        broken, errors = reasons[violated(c)] + warned[c.name], reasons[uncomputed(c)]
        status = "fail" if broken else "error" if errors else "pass"
        severity = "warning" if c.on_violation == "warn" else KEPT_OUT
        results.append([f"constraint:{c.name}", severity, status, broken + errors])
    others = [(reason, n) for reason, n in sorted(reasons.items()) if reason not in known and n]
    results += [[f"{ADMISSION}{reason}", KEPT_OUT, "fail", n] for reason, n in others]
    if not results:
        return info
    warnings = {id_: n for id_, _, status, n in results if status != "pass"}
    told: Entry = {"table": table, "rows": rows, "checks": len(results), "warnings": warnings, "results": results}
    return replace(info, verdicts=[told], judged=attempt)
