"""Which checks a staged slice of a result table gets. Plain data, no Great Expectations import.

A check is ``{id, type, kwargs, severity, meta}``: ``type`` names a Great Expectations expectation, ``kwargs`` its
arguments, ``id`` is unique within the list. ``critical`` stops the slice, ``warning`` is counted and published with
the verdict. Two sources: the constraints that the author declared, and the laws that every result obeys (a violation
is an engine defect that must never reach a reader).

The rows that the checks judge are the rows as they will be published, followed by one boolean column ``__check_<name>``
per constraint, in the constraints' order. As in a SQL CHECK, a constraint is violated where it is FALSE; NULL passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TypedDict

from sweeparea.operators.plan.plan import Constraint

CHECK_PREFIX = "__check_"
SEVERITY = {"fail": "critical", "warn": "warning"}

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
    """The boolean column in which the staged rows carry a constraint's truth.

    >>> check_column("delay_sane")
    '__check_delay_sane'
    """
    return CHECK_PREFIX + constraint


def truths(constraints: Iterable[Constraint]) -> list[str]:
    """Spark SQL of the columns that carry the constraints' truths; NULL passes, as in a SQL CHECK."""
    return [f"coalesce(({c.condition.sql}), TRUE) AS {check_column(c.name)}" for c in judged(constraints)]


def judged(constraints: Iterable[Constraint]) -> list[Constraint]:
    """The constraints that a verdict judges. Those that quarantine have already taken their rows out."""
    return [c for c in constraints if c.on_violation in SEVERITY]


def constraint_checks(constraints: Iterable[Constraint]) -> list[Check]:
    """ON VIOLATION FAIL UPDATE becomes a critical check, WARN a warning."""
    return [
        _check(
            f"constraint:{c.name}",
            "expect_column_values_to_be_in_set",
            {"column": check_column(c.name), "value_set": [True]},
            SEVERITY[c.on_violation],
            {"constraint": c.name, "expect": c.condition.text or c.condition.sql},
        )
        for c in judged(constraints)
    ]


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
    expected = [*columns, *(check_column(c.name) for c in judged(constraints))]
    return _law("columns", "expect_table_columns_to_match_ordered_list", {"column_list": expected})


def _within(column: str, h0: Instant, h1: Instant) -> dict[str, Any]:
    if h0 is None and h1 is None:  # one bound is asked for
        h0 = datetime.min.replace(tzinfo=UTC)
    return {"column": column, "min_value": h0, "max_value": h1, "strict_min": True}


def _law(name: str, expectation: str, kwargs: dict[str, Any]) -> Check:
    return _check(f"law:{name}", expectation, kwargs, "critical", {"law": name})


def _check(id_: str, expectation: str, kwargs: dict[str, Any], severity: str, meta: dict[str, Any]) -> Check:
    return {"id": id_, "type": expectation, "kwargs": kwargs, "severity": severity, "meta": meta}
