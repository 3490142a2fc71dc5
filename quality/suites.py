"""Which checks a staged slice of a result table gets. Plain data, no Great Expectations import.

A check is ``{id, type, kwargs, severity, meta}``: ``type`` names a Great Expectations expectation, ``kwargs`` its
arguments, ``id`` is unique within the list. ``critical`` stops the slice, ``warning`` is counted and published with
the verdict. Two sources: the constraints that the author declared, and the laws that every result obeys (a violation
is an engine defect that must never reach a reader).

The rows that the checks judge are the rows as they will be published, followed by one boolean column ``__check_<name>``
per constraint, in the constraints' order. As in a SQL CHECK, a constraint is violated where it is FALSE; NULL passes.
Where its condition cannot be computed (a division by zero, an overflow, a failed cast) the column is NULL: that row has
the outcome of a violation, and the verdict calls it an error. Between workers the same stands in one column of tokens
(``broken_sql``), which is '' for nearly all rows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TypedDict

from sweeparea.operators.plan.plan import Constraint
from sweeparea.operators.sweeps.quarantine import KeptOutBy, Quarantine, no_truth, violation
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import TS

CHECK_PREFIX = "__check_"
SEVERITY = {"fail": "critical", "warn": "warning"}
NEVER = f"{TS} = {INF}L"
"""A condition that no row of a bag fulfils, and that no optimizer knows it of (``tried``)."""
CONSTRAINT, COMPUTED = "constraint:", "computed:"
"""How the checks of a constraint begin, before its name: rows that violate it, rows that it cannot be computed for."""
UNCOMPUTED = "uncomputed"
"""In the ``meta`` of a check that counts rows for which a condition could not be computed."""

Instant = int | datetime | None
"""A tick where time is BIGINT, else an aware datetime: the type of the table's own time columns. None: before or after
all that there are.
"""


class Check(TypedDict):
    """One item of a suite; JSON-able but for datetimes among ``kwargs``."""

    id: str
    type: str
    kwargs: dict[str, Any]
    severity: str
    meta: dict[str, Any]


def check_column(constraint: str) -> str:
    """The boolean column in which the judged rows carry a constraint's truth. A name that is no plain word stands there
    by its hash.

    >>> check_column("delay_sane")
    '__check_delay_sane'
    """
    plain = re.fullmatch(r"[A-Za-z0-9_]+", constraint)
    return CHECK_PREFIX + (constraint if plain else hashlib.sha256(constraint.encode()).hexdigest()[:16])


def truths(constraints: Iterable[Constraint], guard: str) -> dict[str, str]:
    """By column Spark SQL of the constraints' truths: TRUE also where the condition is NULL, NULL where it cannot be
    computed. ``guard``: as of ``tried``.
    """
    return {check_column(c.name): f"{tried(c.condition.sql, guard)} = 0" for c in constraints}


def tried(condition: str, guard: str) -> str:
    """Spark SQL: 0 where a condition holds or is NULL, 1 where it does not hold, NULL where it cannot be computed.

    Spark has no TRY of any expression. But its ``try_to_binary`` computes the text that it is given, and all below
    that, under the same roof, where each error becomes NULL; others, as ``try_add``, catch an error of their own alone.
    ``guard`` is a condition that never holds and that no optimizer knows it of: what stands behind it is computed where
    it stands, while a part that occurs twice would else be computed before, outside of that roof.
    """
    text = f"CASE WHEN {guard} THEN '2' WHEN coalesce(({condition}), TRUE) THEN '0' ELSE '1' END"
    return f"CAST(CAST(try_to_binary({text}, 'utf-8') AS STRING) AS INT)"


def broken_sql(constraints: Iterable[Constraint], guard: str) -> str:
    """Spark SQL of the column ``BROKEN``: the tokens of the constraints that a row breaks; '' for none."""
    tokens = [
        f"elt(1 + coalesce({tried(c.condition.sql, guard)}, 2), '', '{violated(c)}', '{uncomputed(c)}')"
        for c in constraints
    ]
    return tokens[0] if len(tokens) == 1 else f"concat({', '.join(tokens)})"


def violated(constraint: Constraint) -> str:
    """The token of a row that a constraint's condition is FALSE for."""
    return f"{_identity(constraint)};"


def uncomputed(constraint: Constraint) -> str:
    """The token of a row that a constraint's condition cannot be computed for."""
    return f"{_identity(constraint)}!"


def _identity(constraint: Constraint) -> str:
    # SweepAreas hold tokens: they are those of a condition, not of a place in the list
    return hashlib.sha256(f"{constraint.name}\0{constraint.condition.sql}".encode()).hexdigest()[:12]


def quarantine(constraints: Iterable[Constraint]) -> Quarantine | None:
    """Which rows stand in the quarantine of a query, and why; None: no constraint keeps rows out."""
    rules: list[KeptOutBy] = []
    for c in constraints:
        if c.on_violation == "quarantine":
            text = c.condition.text or c.condition.sql
            rules.append(KeptOutBy(violated(c), c.name, violation(c.name, text)))
            rules.append(KeptOutBy(uncomputed(c), c.name, no_truth(c.name, text)))
    return Quarantine(tuple(rules)) if rules else None


def judged(constraints: Iterable[Constraint]) -> list[Constraint]:
    """The constraints that a verdict judges. Those that quarantine have already taken their rows out: that none is left
    is a law.
    """
    return [c for c in constraints if c.on_violation in SEVERITY]


def constraint_checks(constraints: Iterable[Constraint]) -> list[Check]:
    """ON VIOLATION FAIL UPDATE becomes a critical check, WARN a warning; a second one tells where the condition could
    not be computed. Of QUARANTINE ROW it is a law that no such row is left.
    """
    found: list[Check] = []
    for c in constraints:
        column, text = check_column(c.name), c.condition.text or c.condition.sql
        if c.on_violation in SEVERITY:
            severity, meta = SEVERITY[c.on_violation], {"constraint": c.name, "expect": text}
            of, computed = f"{CONSTRAINT}{c.name}", f"{COMPUTED}{c.name}"
        else:
            severity, meta = "critical", {"law": "kept out"}
            of, computed = f"law:kept out by {c.name}", f"law:computed, or kept out by {c.name}"
        kwargs: dict[str, Any] = {"column": column, "value_set": [True]}
        found.append(_check(of, "expect_column_values_to_be_in_set", kwargs, severity, meta))
        told = {**meta, UNCOMPUTED: True}
        found.append(_check(computed, "expect_column_values_to_not_be_null", {"column": column}, severity, told))
    return found


def expectation_check(name: str, expectation: str, kwargs: dict[str, Any], on_violation: str = "fail") -> Check:
    """``CONSTRAINT name EXPECT gx.<expectation>(..)``: an expectation of Great Expectations as it stands."""
    return _check(f"constraint:{name}", expectation, dict(kwargs), SEVERITY[on_violation], {"constraint": name})


def stream_checks(
    columns: Sequence[str], h0: Instant, h1: Instant, constraints: Sequence[Constraint] = (), ts: str = "ts"
) -> list[Check]:
    """Checks of an istream, dstream or rstream slice (h0, h1]: ``columns`` are the query's, without ``ts``.

    Every element has an instant, and it lies in the slice (semantics of a slice: nothing at or below h0 changes any
    more).
    """
    return [
        _columns([*columns, ts], constraints),
        _law("instant is known", "expect_column_values_to_not_be_null", {"column": ts}),
        _law("instant lies in the slice", "expect_column_values_to_be_between", _within(ts, h0, h1)),
        *constraint_checks(constraints),
    ]


def relation_checks(
    columns: Sequence[str], h0: Instant, h1: Instant, constraints: Sequence[Constraint] = ()
) -> list[Check]:
    """Checks of the rows that slice (h0, h1] adds to a relation's table: ``columns`` are the query's.

    A validity is half-open and not empty, and ``valid_to`` is known only once it is final: NULL, or in the slice that
    closes the row.
    """
    return [
        _columns([*columns, "valid_from", "valid_to"], constraints),
        _law("validity has a start", "expect_column_values_to_not_be_null", {"column": "valid_from"}),
        _law(
            "validity is not empty",
            "expect_column_pair_values_a_to_be_greater_than_b",
            {"column_A": "valid_to", "column_B": "valid_from", "ignore_row_if": "either_value_is_missing"},
        ),
        _law("validity ends in the slice", "expect_column_values_to_be_between", _within("valid_to", h0, h1)),
        *constraint_checks(constraints),
    ]


def _columns(columns: Sequence[str], constraints: Sequence[Constraint]) -> Check:
    expected = [*columns, *(check_column(c.name) for c in constraints)]
    return _law("columns", "expect_table_columns_to_match_ordered_list", {"column_list": expected})


def _within(column: str, h0: Instant, h1: Instant) -> dict[str, Any]:
    if h0 is None and h1 is None:  # one bound is asked for
        h0 = datetime.min.replace(tzinfo=UTC)
    return {"column": column, "min_value": h0, "max_value": h1, "strict_min": True}


def _law(name: str, expectation: str, kwargs: dict[str, Any]) -> Check:
    return _check(f"law:{name}", expectation, kwargs, "critical", {"law": name})


def _check(id_: str, expectation: str, kwargs: dict[str, Any], severity: str, meta: dict[str, Any]) -> Check:
    return {"id": id_, "type": expectation, "kwargs": kwargs, "severity": severity, "meta": meta}
