"""The verdict on a staged slice: Great Expectations runs a list of checks, the caller gets a small JSON-able answer.

``of_counts``: of all tables of a slice at once, from what was counted where their rows were written (``counts.py``).
``audit``: from rows. Up to ``PANDAS_ROWS`` the pandas engine judges an Arrow table in the driver (0.05 s); above, the
Spark engine judges the DataFrame where it lies. Two passes: the first decides with counts only, the second fetches
sample rows for failures only.

Every thread has an ephemeral context of its own, so threads cannot mix up each other's rows (making one costs as much
as the checks of a small slice); SQL expectations are refused, because they go through a view of a fixed name that other
slices of the session overwrite and so can pass a bad slice. Nothing is cached in Spark, nothing is written, nothing
goes over the network.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sweeparea.infra.errors import SweepAreaError
from sweeparea.quality.counts import Counts
from sweeparea.quality.suites import CHECK_PREFIX, UNCOMPUTED, Check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PANDAS_ROWS = 100_000
DECIDE = {"result_format": "BASIC", "partial_unexpected_count": 0}
"""Counts without sample rows: on Spark each sample would be a job of its own."""
SQL_TYPE = "unexpected_rows_expectation"
BY_NAME = "by_name"
"""Key of a check's meta: an author has named the expectation."""
BETWEEN = "expect_column_values_to_be_between"


@dataclass(frozen=True)
class Verdict:
    """``ok``: the slice may be published. ``results``: one a check, in the order given:

    ``{id, type, severity, status: pass|fail|error, unexpected: count|None, observed, error: text|None, sample: [row,
    ..], meta}``
    """

    ok: bool
    results: list[dict[str, Any]]
    seconds: float
    rows: int

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The checks that stop the slice: critical failures, and checks that could not be judged at all. A condition
        of a WARN constraint that cannot be computed for a row is counted.
        """
        return [r for r in self.results if r["status"] != "pass" and _stops(r)]

    @property
    def warnings(self) -> list[dict[str, Any]]:
        return [r for r in self.results if r["status"] != "pass" and not _stops(r)]

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Counted:
    """A table's staged rows as its writers counted them: ``counts`` by check id how many of ``rows`` break it."""

    name: str
    checks: Sequence[Check]
    counts: Counts
    rows: int


class QualityFailure(SweepAreaError):
    """A slice failed its audit and is not published."""

    type = "DataError"


class SuiteError(SweepAreaError):
    """A check that Great Expectations does not know or cannot be built from."""

    type = "RefusedError"


def preload() -> None:
    """Imports Great Expectations, once, quietly. Called by long-lived workers before their first slice."""
    # Airflow configures the root logger at INFO; the level must stand before the import makes its child loggers.
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    import great_expectations  # noqa: F401

    # sets its own level when it is imported
    logging.getLogger("great_expectations.data_context.types.base").setLevel(logging.ERROR)


def of_counts(tables: Sequence[Counted]) -> list[Verdict]:
    """The verdicts on a slice's tables: Great Expectations expects that no row breaks a check.

    A check that is not among a table's counts has status ``error``, which stops the slice.
    """
    begun = time.perf_counter()
    preload()
    import pandas as pd

    asked = [(i, check["id"]) for i, table in enumerate(tables) for check in table.checks]
    told = [key for key in asked if key[1] in tables[key[0]].counts]
    frame = pd.DataFrame({"rows": [tables[i].counts[id_] for i, id_ in told]})
    found = _expected(frame, "expect_column_max_to_be_between", DECIDE, max_value=0) if told else None
    problem = None if found is None else _problem(found)
    failed: set[tuple[int, str]] = set()
    if found is not None and not found.success and problem is None:
        which = _expected(frame, "expect_column_values_to_be_in_set", {"result_format": "COMPLETE"}, value_set=[0])
        failed = {told[at] for at in which.result["unexpected_index_list"]}
    seconds = round(time.perf_counter() - begun, 4)
    verdicts: list[Verdict] = []
    for i, table in enumerate(tables):
        results = [
            _counted_result(c, table.counts.get(c["id"]), (i, c["id"]) not in failed, problem) for c in table.checks
        ]
        ok = all(r["status"] == "pass" or not _stops(r) for r in results)
        verdicts.append(Verdict(ok, results, seconds, table.rows))
    return verdicts


def _expected(frame: Any, expectation: str, result_format: dict[str, Any], **kwargs: Any) -> Any:
    """What Great Expectations finds of the column ``rows``; a thread makes each suite once."""
    known = _OF_THREAD.__dict__.setdefault("suites", {})
    if expectation not in known:
        check: Check = {
            "id": "rows",
            "type": expectation,
            "kwargs": {"column": "rows", **kwargs},
            "severity": "critical",
            "meta": {},
        }
        known[expectation] = _build_suite("slice", [check])
    return _validate(frame, known[expectation], result_format)["rows"]


def _counted_result(check: Check, count: int | None, good: bool, problem: str | None) -> dict[str, Any]:
    problem = problem if count is not None else "its rows were not counted"
    status = "error" if problem else "pass" if good else "fail"
    if status == "fail" and UNCOMPUTED in check["meta"]:
        return _uncomputed(check, count)
    return _told(check, status, count, problem)


def _uncomputed(check: Check, count: Any, sample: Sequence[Any] = ()) -> dict[str, Any]:
    """A condition that cannot be computed for some rows: an error, with as much weight as the constraint gives it."""
    text = "its condition cannot be computed (a division by zero, an overflow or a failed cast) for some rows"
    return {**_told(check, "fail", count, text, sample=sample), "status": "error"}


def _told(
    check: Check, status: str, unexpected: Any, problem: str | None, observed: Any = None, sample: Sequence[Any] = ()
) -> dict[str, Any]:
    """An item of ``Verdict.results``."""
    return {
        "id": check["id"],
        "type": check["type"],
        "severity": check["severity"],
        "status": status,
        "unexpected": None if status == "error" else _plain(unexpected),
        "observed": _plain(observed),
        "error": problem,
        "sample": [_plain(row) for row in sample] if status == "fail" else [],
        "meta": _plain(check["meta"]),
    }


def audit(
    rows: pa.Table | DataFrame, name: str, checks: Sequence[Check], *, samples: int = 5, row_count: int | None = None
) -> Verdict:
    """Judges the staged ``rows`` of table ``name`` by ``checks``.

    ``row_count`` spares the count where the caller knows it (DataFrames only). Raises SuiteError for a check that
    cannot be built; a check that fails while it runs gives status ``error`` in the verdict, which stops the slice.
    """
    begun = time.perf_counter()
    preload()
    _build_suite(name, checks)
    count: Any
    if isinstance(rows, pa.Table):
        count = rows.num_rows
    else:
        count = rows.count() if row_count is None else row_count
        if count <= PANDAS_ROWS:
            rows = rows.toArrow()
    frame = _to_pandas(rows) if isinstance(rows, pa.Table) else rows

    decided = _run(frame, name, checks, DECIDE)
    failed = [c for c in checks if not decided[c["id"]].success]
    detailed = {}
    if failed and samples:
        wanted: dict[str, Any] = {"result_format": "SUMMARY", "partial_unexpected_count": samples}
        wanted["unexpected_index_column_names"] = [c for c in frame.columns if not str(c).startswith(CHECK_PREFIX)]
        detailed = _run(frame, name, failed, wanted)
    results = [_result(c, decided[c["id"]], detailed.get(c["id"]), samples) for c in checks]
    ok = all(r["status"] == "pass" or not _stops(r) for r in results)
    return Verdict(ok, results, round(time.perf_counter() - begun, 4), count)


def with_results(verdict: Verdict, results: Sequence[dict[str, Any]]) -> Verdict:
    """A verdict with more results behind its own."""
    ok = verdict.ok and not any(r["status"] != "pass" and _stops(r) for r in results)
    return replace(verdict, ok=ok, results=[*verdict.results, *results])


NOT_ADMITTED = (
    "{what} of {table} is not admitted", "Nothing of it has been admitted, and the heartbeat stays where it is.",
)  # fmt: skip
NOT_PUBLISHED = (
    "The slice {what} of table {table} is not published",
    "Nothing has been committed and readers see the table as before.",
)


def require(verdict: Verdict, table: str, slice_: str, words: tuple[str, str] = NOT_PUBLISHED) -> Verdict:
    """Returns a good verdict; raises QualityFailure for one that stops the slice. ``slice_`` is readable, as ``(h0,
    h1]``."""
    if verdict.ok:
        return verdict
    parts = [_sentence(result) for result in verdict.failures]
    first, then = words
    what = first.format(what=slice_, table=table)
    raise QualityFailure(
        f"{what[0].upper()}{what[1:]}, since {len(parts)} of its {len(verdict.results)} checks failed over"
        f" {verdict.rows} rows: {' '.join(parts[:SENTENCES])}{_more(len(parts))} {then} Correct the source rows or the"
        " query, or relax the constraint (ON VIOLATION WARN, or QUARANTINE ROW), then run the slice again; a failed law"
        " means a defect of the engine, please report it with these rows."
    )


SENTENCES = 20
"""So many failed checks are told in words."""


def _more(parts: int) -> str:
    return f" And {parts - SENTENCES} more." if parts > SENTENCES else ""


def _stops(result: dict[str, Any]) -> bool:
    # an expectation by name that warns also warns where it cannot be judged, and so does a condition for single rows
    lenient = {BY_NAME, UNCOMPUTED} & result["meta"].keys()
    return result["severity"] == "critical" or (result["status"] == "error" and not lenient)


def _sentence(result: dict[str, Any]) -> str:
    meta = result["meta"]
    what = f"{result['id']} (EXPECT {meta['expect']})" if meta.get("expect") else result["id"]
    what += f" in {meta['when']}" if meta.get("when") else ""
    if result["status"] == "error" and UNCOMPUTED not in meta:
        return f"{what} could not be judged: {result['error']}."
    if result["unexpected"] is None:
        return f"{what} fails, observed {json.dumps(result['observed'])}."
    rows = ", ".join(row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in result["sample"])
    if result["status"] == "error":
        return f"{what}: {result['error']}, {result['unexpected']}" + (f", such as {rows}." if rows else ".")
    return f"{what} fails for {result['unexpected']} rows" + (f", such as {rows}." if rows else ".")


def _build_suite(name: str, checks: Sequence[Check]) -> Any:
    """Great Expectations drops what it cannot read from a list of dictionaries; classes built one by one raise
    instead."""
    import great_expectations as gx
    from great_expectations.expectations.registry import get_expectation_impl

    ids = [c["id"] for c in checks]
    if len(set(ids)) != len(ids):
        raise SuiteError(
            f"The checks of table {name} have repeated ids ({', '.join(ids)}): give each constraint its own name."
        )
    expectations = []
    for c in checks:
        if c["type"] == SQL_TYPE:
            raise SuiteError(
                f"The check {c['id']} of table {name} is a SQL expectation ({SQL_TYPE}); these judge through a view "
                "that other slices share. Write the condition as EXPECT (condition) instead."
            )
        try:
            build: Any = get_expectation_impl(c["type"])
            expectations.append(build(**c["kwargs"], meta={**c["meta"], "check_id": c["id"]}, severity=c["severity"]))
        except Exception as error:
            problem = " ".join(str(error).split())
            raise SuiteError(
                f"The check {c['id']} of table {name} cannot be built from the expectation {c['type']} with "
                f"{c['kwargs']}: {problem}. See the Great Expectations gallery for its name and arguments."
            ) from error
    suite = gx.ExpectationSuite(name=name.replace("/", "_"), expectations=expectations)
    if len(suite.expectations) != len(checks):
        raise SuiteError(
            f"Great Expectations kept {len(suite.expectations)} of the {len(checks)} checks of table {name}."
        )
    return suite


def _run(frame: Any, name: str, checks: Sequence[Check], result_format: dict[str, Any]) -> dict[str, Any]:
    """Great Expectations' results by check id."""
    beyond = [c for c in checks if _beyond_float(c)]
    results = _validate(frame, _build_suite(name, [c for c in checks if c not in beyond]), result_format)
    if beyond:
        frame, beyond = _with_truths(frame, beyond)
        results |= _validate(frame, _build_suite(name, beyond), result_format)
    return results


def _validate(frame: Any, suite: Any, result_format: dict[str, Any]) -> dict[str, Any]:
    """Runs a suite over a frame; results by check id, since their order is not the suite's."""
    batch = _whole(frame).get_batch(batch_parameters={"dataframe": frame})
    results = batch.validate(suite, result_format=result_format).results
    return {r.expectation_config.meta["check_id"]: r for r in results}


_OF_THREAD = threading.local()


def _whole(frame: Any) -> Any:
    """The thread's batch definition for frames of this kind: pandas, or Spark of one session."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    session = getattr(frame, "sparkSession", None)
    known = _OF_THREAD.__dict__.setdefault("definitions", {})
    held = known.get(session is not None)
    if held is None or held[0] is not session:
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        if session is not None:
            source: Any = context.data_sources.add_spark("spark", persist=False)
            source.get_execution_engine().spark = session
        else:
            source = context.data_sources.add_pandas("pandas")
        held = session, source.add_dataframe_asset("slice").add_batch_definition_whole_dataframe("whole")
        known[session is not None] = held
    return held[1]


def _beyond_float(check: Check) -> bool:
    """Great Expectations turns whole bounds into floats, which merges neighbouring ticks beyond 2^53."""
    bounds = (check["kwargs"].get("min_value"), check["kwargs"].get("max_value"))
    return check["type"] == BETWEEN and any(isinstance(b, int) and abs(b) > 1 << 53 for b in bounds)


def _with_truths(frame: Any, checks: Sequence[Check]) -> tuple[Any, list[Check]]:
    """Range checks as boolean columns, compared in whole numbers, and the checks of those columns."""
    rewritten: list[Check] = []
    for i, check in enumerate(checks):
        kwargs, truth = check["kwargs"], f"{CHECK_PREFIX}between_{i}"
        low, high, strict = kwargs.get("min_value"), kwargs.get("max_value"), kwargs.get("strict_min", False)
        column = frame[kwargs["column"]]
        holds = column == column
        if low is not None:
            holds = holds & (column > low if strict else column >= low)
        if high is not None:
            holds = holds & (column < high if kwargs.get("strict_max", False) else column <= high)
        frame = frame.withColumn(truth, holds) if hasattr(frame, "sparkSession") else frame.assign(**{truth: holds})
        in_set = {"column": truth, "value_set": [True]}
        rewritten.append({**check, "type": "expect_column_values_to_be_in_set", "kwargs": in_set})
    return frame, rewritten


def _result(check: Check, decided: Any, detailed: Any, samples: int) -> dict[str, Any]:
    found = {**(decided.result or {}), **((detailed.result if detailed else None) or {})}
    problem = _problem(decided)
    status = "error" if problem is not None else "pass" if decided.success else "fail"
    sample = found.get("partial_unexpected_index_list") or found.get("partial_unexpected_list") or []
    if status == "fail" and UNCOMPUTED in check["meta"]:
        return _uncomputed(check, found.get("unexpected_count"), sample[:samples])
    return _told(check, status, found.get("unexpected_count"), problem, found.get("observed_value"), sample[:samples])


def _problem(decided: Any) -> str | None:
    """What Great Expectations raised while it judged a check."""
    told = decided.exception_info or {}
    if "raised_exception" not in told:  # the other of its two shapes: one entry per metric
        told = next(iter(told.values()), {})
    return (told.get("exception_message") or "it raised an error") if told.get("raised_exception") else None


def _to_pandas(rows: pa.Table) -> Any:
    """The Arrow table as pandas, whole numbers staying whole: a BIGINT column with NULLs must not turn into floats."""
    import pandas as pd

    nullable = {pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype(), pa.int16(): pd.Int16Dtype()}
    with_nulls = {f.name for i, f in enumerate(rows.schema) if rows.column(i).null_count and f.type in nullable}
    frame = rows.drop_columns(list(with_nulls)).to_pandas() if with_nulls else rows.to_pandas()
    for i, field in enumerate(rows.schema):
        if field.name in with_nulls:
            values = rows.column(i).to_pandas(types_mapper=nullable.get)
            frame.insert(i, field.name, values)
    return frame


def _plain(value: Any) -> Any:
    """A value as JSON has it: NumPy scalars unwrapped, decimals, instants, binaries and NaN as text."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if hasattr(value, "asDict"):
        return _plain(value.asDict(recursive=True))
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
