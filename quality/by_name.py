"""Expectations over several rows, judged: those of Great Expectations by their names, volume, freshness, references.

Great Expectations always judges on its pandas engine, whatever the number of rows: its answers on Spark differ for some
expectations (types, regular expressions, quantiles, NaN), and a verdict must not depend on how many rows there were. It
is given the columns that it needs and no others. Results are those of ``Verdict.results``.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from sweeparea.cql.declarations.suites import kwargs_of
from sweeparea.operators.plan.plan import Expectation
from sweeparea.quality import verdict
from sweeparea.quality.suites import SEVERITY, Check

Result = dict[str, Any]
MOST_UNITS = 500
"""Of so many units of an expectation a commit's verdict tells: of those that are not met, and of the last ones."""
ORDERED = ("expect_column_values_to_be_increasing", "expect_column_values_to_be_decreasing")
"""Those that look at rows in an order: that of their instants, then of their columns."""
STATISTICS = (
    "expect_column_mean_to_be_between",
    "expect_column_sum_to_be_between",
    "expect_column_stdev_to_be_between",
    "expect_column_median_to_be_between",
    "expect_column_quantile_values_to_be_between",
    "expect_column_value_z_scores_to_be_less_than",
    "expect_column_values_to_not_be_outliers",
)
"""Those that reckon with values: of DECIMAL they are given as DOUBLE, since pandas cannot with NULLs among them."""
_LIKE = {
    "expect_column_values_to_match_like_pattern": "expect_column_values_to_match_regex",
    "expect_column_values_to_not_match_like_pattern": "expect_column_values_to_not_match_regex",
    "expect_column_values_to_match_like_pattern_list": "expect_column_values_to_match_regex_list",
    "expect_column_values_to_not_match_like_pattern_list": "expect_column_values_to_not_match_regex_list",
}
"""Great Expectations asks patterns of LIKE of SQL databases only: here they are regular expressions that mean the same.
"""


def columns_of(expectations: Iterable[Expectation], columns: Sequence[str]) -> list[str]:
    """The columns that expectations need, in the order of the table; all for one that judges the table's columns."""
    wanted: set[str] = set()
    for expectation in expectations:
        arguments = dict(expectation.arguments)
        if expectation.type.startswith("expect_table_column"):
            return list(columns)
        named = [arguments.get(key) for key in ("column", "column_A", "column_B", "column_list", "columns")]
        for value in named:
            wanted.update(value if isinstance(value, tuple) else [value] if isinstance(value, str) else [])
    return [column for column in columns if column in wanted]


def check_id(expectation: Expectation) -> str:
    """As those of constraints."""
    return f"constraint:{expectation.name}"


def judge(rows: pa.Table, expectations: Sequence[Expectation], unit: tuple[int, int] | None = None) -> list[Result]:
    """What Great Expectations finds of ``rows``, those of one ``unit`` (its first tick and the one after it).

    One that cannot be built or run has status ``error``.
    """
    of_floats = [e for e in expectations if e.type in STATISTICS and _decimals(rows, e)]
    if of_floats:
        names = {str(dict(e.arguments)["column"]) for e in of_floats}
        whole = {r["id"]: r for r in judge(_cast(rows, names, pa.float64()), of_floats, unit)}
        others = {r["id"]: r for r in judge(rows, [e for e in expectations if e not in of_floats], unit)}
        return [(whole | others)[check_id(e)] for e in expectations]
    dates = {f.name for f in rows.schema if pt.is_date(f.type)}
    rows = _cast(rows, dates, pa.timestamp("us"))  # of dates and NULLs pandas knows no least
    checks = [_check(rows, expectation) for expectation in expectations]
    try:
        told = verdict.audit(rows, "unit", checks).results if checks else []
    except verdict.SuiteError:  # one at least is none: which, is asked one by one
        told = []
        for expectation, check in zip(expectations, checks, strict=True):
            try:
                told += verdict.audit(rows, "unit", [check]).results
            except verdict.SuiteError as error:
                told.append(_result(expectation, "error", None, rows.num_rows, error=str(error)))
    found = {result["id"]: result for result in told}
    results = [found[check_id(e)] for e in expectations]
    return [_of_unit(result, rows.num_rows, unit) for result in results]


def _decimals(rows: pa.Table, expectation: Expectation) -> bool:
    column = dict(expectation.arguments).get("column")
    return column in rows.column_names and pt.is_decimal(rows.schema.field(column).type)


def _cast(rows: pa.Table, columns: set[str], kind: pa.DataType) -> pa.Table:
    """The rows with some columns of another type."""
    for i, name in enumerate(rows.column_names):
        if name in columns:
            rows = rows.set_column(i, pa.field(name, kind), rows.column(name).cast(kind))
    return rows


def _check(rows: pa.Table, expectation: Expectation) -> Check:
    kind, kwargs = _as_asked(expectation.type, kwargs_of(expectation.type, expectation.arguments))
    return {
        "id": check_id(expectation),
        "type": kind,
        "kwargs": _typed(rows, kwargs),
        "severity": SEVERITY[expectation.on_violation],
        "meta": _meta(expectation),
    }


def _as_asked(kind: str, kwargs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if kind not in _LIKE:
        return kind, kwargs
    asked = {k: v for k, v in kwargs.items() if k not in ("like_pattern", "like_pattern_list", "escape")}
    escape = kwargs.get("escape")
    if "like_pattern" in kwargs:
        asked["regex"] = regex_of_like(kwargs["like_pattern"], escape)
    else:
        asked["regex_list"] = [regex_of_like(pattern, escape) for pattern in kwargs["like_pattern_list"]]
    return _LIKE[kind], asked


def regex_of_like(pattern: str, escape: str | None = None) -> str:
    """The regular expression that matches what a pattern of LIKE does.

    >>> regex_of_like("a_%"), regex_of_like("5!%", "!")
    ('(?s)\\\\Aa..*\\\\Z', '(?s)\\\\A5%\\\\Z')
    """
    out: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            out.append(re.escape(next(characters, escape)))
        else:
            out.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return f"(?s)\\A{''.join(out)}\\Z"


def _typed(rows: pa.Table, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Texts that stand for instants as such, where the column's values are instants."""
    column = kwargs.get("column")
    if not isinstance(column, str) or column not in rows.column_names:
        return kwargs
    kind = rows.schema.field(column).type
    if not (pt.is_timestamp(kind) or pt.is_date(kind)):
        return kwargs

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            return value
        if pt.is_date(kind):
            return at.date()
        if kind.tz is None:
            return at
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at

    instants = ("min_value", "max_value", "value_set")
    return {k: ([read(v) for v in value] if isinstance(value, list) else read(value)) if k in instants else value
            for k, value in kwargs.items()}  # fmt: skip


def volume(
    expectation: Expectation, rows: int, past: Sequence[int] = (), unit: tuple[int, int] | None = None
) -> Result:
    """Whether a unit's number of rows is within bounds, or as near to that of ``past`` units as is said.

    With fewer than two past units there is nothing to compare with, and it passes.
    """
    told: dict[str, Any] = dict(expectation.arguments)
    if "last" not in told:
        low, high = told["min"], told["max"]
        good = (low is None or rows >= low) and (high is None or rows <= high)
        return _of_unit(_result(expectation, "pass" if good else "fail", rows, rows), rows, unit)
    good = True
    if len(past) >= 2:
        mean = math.fsum(past) / len(past)
        deviation = math.sqrt(math.fsum((n - mean) ** 2 for n in past) / (len(past) - 1))
        good = abs(rows - mean) <= told["deviations"] * deviation
    return _of_unit(_result(expectation, "pass" if good else "fail", rows, rows), rows, unit)


def fresh(expectation: Expectation, age: int | None) -> Result:
    """Whether what is newest is no older than is said; ``age`` in microseconds, None: there is nothing yet."""
    told: dict[str, Any] = dict(expectation.arguments)
    if age is None:
        return _result(expectation, "fail", None, 0, error="there is nothing yet")
    return _result(expectation, "pass" if age <= told["within"] else "fail", round(age / 1e6, 6), 0)


def of_rows(
    rows: pa.Table,
    expectations: Sequence[Expectation],
    past: Sequence[int] = (),
    unit: tuple[int, int] | None = None,
) -> list[Result]:
    """What expectations of kind gx and volume find of the rows of one unit: columns and ``__tick``. Without a row there
    is nothing to say of columns, only of the table.
    """
    of_gx = [e for e in expectations if e.kind == "gx" and (rows.num_rows or e.type.startswith("expect_table_"))]
    found: list[Result] = []
    if of_gx:
        if any(e.type in ORDERED for e in of_gx):
            rows = rows.sort_by([("__tick", "ascending"), *_sortable(rows)])
        found += judge(rows.drop_columns(["__tick"]), of_gx, unit)
    for expectation in expectations:
        if expectation.kind == "volume":
            last: Any = dict(expectation.arguments).get("last", 0)
            found.append(volume(expectation, rows.num_rows, past[-last:] if last else (), unit))
    return found


def of_units(
    rows: pa.Table, expectations: Sequence[Expectation], per: int, start: int, first: int, end: int
) -> list[Result]:
    """What expectations find of the units ``first`` to ``end`` (not included) of ``per`` ticks each; ``rows`` are those
    from unit ``start`` on, with their ``__tick``.
    """
    ticks = rows.column("__tick").to_numpy()
    order = np.argsort(ticks, kind="stable")
    rows, ticks = rows.take(pa.array(order)), ticks[order]
    edges = np.searchsorted(ticks, np.arange(start, end + 1) * per)
    counts = np.diff(edges).tolist()
    found: dict[str, list[Result]] = {e.name: [] for e in expectations}
    for unit in range(max(first, start), end):
        at = unit - start
        own, span = rows.slice(int(edges[at]), counts[at]), (unit * per, (unit + 1) * per)
        for result in of_rows(own, expectations, counts[:at], span):
            found[result["meta"]["constraint"]].append(result)
    return [result for results in found.values() for result in _bounded(results)]


def name_units(results: Iterable[Result], instant: Callable[[int], str]) -> None:
    """Says in each result's meta, for people, of which unit it is (``when``); ``instant`` gives a tick's text."""
    for result in results:
        unit = result["meta"].get("unit")
        if unit is not None:
            result["meta"]["when"] = f"[{instant(unit[0])}, {instant(unit[1])})"


def _sortable(rows: pa.Table) -> list[tuple[str, str]]:
    return [(f.name, "ascending") for f in rows.schema if not pt.is_nested(f.type) and f.name != "__tick"]


def _bounded(results: list[Result]) -> list[Result]:
    """At most ``MOST_UNITS``: those that are not met, and the last."""
    if len(results) <= MOST_UNITS:
        return results
    last = len(results) - MOST_UNITS // 2
    bad = [i for i, r in enumerate(results[:last]) if r["status"] != "pass"][: MOST_UNITS // 2]
    return [results[i] for i in bad] + results[last:]


def references(expectation: Expectation, rows: int, missing: int, sample: Sequence[Any]) -> Result:
    """Whether all of ``rows`` have what they reference; ``missing`` have not."""
    found = _result(expectation, "fail" if missing else "pass", None, rows, unexpected=missing)
    return {**found, "sample": list(sample) if missing else []}


def not_judged(expectation: Expectation, why: str, unit: tuple[int, int] | None = None) -> Result:
    """One that could not be judged."""
    return _of_unit(_result(expectation, "error", None, 0, error=why), 0, unit)


def _result(
    expectation: Expectation, status: str, observed: Any, rows: int, *, error: str | None = None, unexpected: Any = None
) -> Result:
    return {
        "id": check_id(expectation),
        "type": expectation.type,
        "severity": SEVERITY[expectation.on_violation],
        "status": status,
        "unexpected": unexpected,
        "observed": observed,
        "error": error,
        "sample": [],
        "meta": {**_meta(expectation), "rows": rows},
    }


def _meta(expectation: Expectation) -> dict[str, Any]:
    told = ", ".join(f"{name} => {value!r}" for name, value in expectation.arguments)
    kind = f"gx.{expectation.type}({told})" if expectation.kind == "gx" else f"{expectation.kind.upper()} ({told})"
    return {"constraint": expectation.name, verdict.BY_NAME: expectation.type, "expect": kind}


def _of_unit(result: Result, rows: int, unit: tuple[int, int] | None) -> Result:
    meta = {**result["meta"], "rows": rows}
    return {**result, "meta": meta if unit is None else {**meta, "unit": list(unit)}}
