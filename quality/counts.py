"""What staged rows break, counted where they are written: one number a check, without Great Expectations.

A worker that writes a file has its rows at hand; so a verdict over any number of rows costs the driver a sum, and
Great Expectations judges the sums (``verdict.of_counts``). Each function here counts as the expectation of that name
does, NULLs included: tests compare them. Runs in Spark's Python workers, so it imports pyarrow and nothing heavier.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.operators.plan.plan import Constraint
from sweeparea.operators.sweeps.quarantine import BROKEN
from sweeparea.operators.values import shared_rows
from sweeparea.quality.suites import UNCOMPUTED, check_column, uncomputed, violated

if TYPE_CHECKING:
    from sweeparea.quality.suites import Check

Counts = Mapping[str, int]
"""By the id of a check how many rows break it (of one that judges the table: 1 or 0)."""
SHOWN = "shown"
"""Beside the counts, by the id of a check: some rows that break it, as JSON texts."""
SHOWN_ROWS = 5


def counted(rows: pa.Table, checks: Sequence[Check]) -> dict[str, Any]:
    """How many of ``rows`` break each of ``checks``, and under ``SHOWN`` some rows that break a constraint. KeyError: a
    check of a kind that ``COUNTERS`` lacks.
    """
    found: dict[str, Any] = {check["id"]: COUNTERS[check["type"]](rows, **check["kwargs"]) for check in checks}
    shown: dict[str, list[str]] = {}
    for check in checks:
        if found[check["id"]] and (check["type"] == IN_SET or UNCOMPUTED in check["meta"]):
            truth = rows.column(check["kwargs"]["column"])
            breaks = pc.invert(truth) if check["type"] == IN_SET else pc.is_null(truth)
            shown[check["id"]] = _shown(rows.filter(breaks))
    return {**found, SHOWN: shown} if shown else found


def _shown(rows: pa.Table) -> list[str]:
    """The first rows, without the truths of constraints."""
    some = rows.slice(0, SHOWN_ROWS)
    names = [name for name in some.column_names if not name.startswith("__check_")]
    return [json.dumps(_plain(row), ensure_ascii=False, default=str) for row in some.select(names).to_pylist()]


def _plain(value: Any) -> Any:
    """A value as JSON has it: what is no finite number, and bytes, as text."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.hex() if isinstance(value, bytes) else value


def shown(parts: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The rows that several files' counts show, some of each check."""
    found: dict[str, list[str]] = {}
    for part in parts:
        for id_, rows in part.get(SHOWN, {}).items():
            found[id_] = [*found.get(id_, []), *rows][:SHOWN_ROWS]
    return found


def counted_staged(
    rows: pa.Table, checks: Sequence[Check], constraints: Sequence[Constraint], since: int
) -> dict[str, int]:
    """``counted`` of rows whose truths stand in the column ``BROKEN``, behind their own columns; ``since``: as of
    ``with_truths``.
    """
    return counted(with_truths(rows, constraints, since), checks)


def with_truths(rows: pa.Table, constraints: Sequence[Constraint], since: int) -> pa.Table:
    """Rows with the truth of each constraint in a column of its own, in place of ``BROKEN``; NULL: not computed. What
    began at or before ``since`` (microseconds or a tick, as the table holds instants) was judged then.
    """
    if BROKEN not in rows.column_names:
        return rows
    tokens = shared_rows.plain(rows.select([BROKEN])).column(BROKEN)
    if "valid_from" in rows.column_names:
        before = pc.less_equal(rows.column("valid_from").cast(pa.int64()), since)
        tokens = pc.if_else(before, pa.scalar("", pa.string()), tokens)
    encoded = tokens.combine_chunks().dictionary_encode()
    rows = rows.drop_columns([BROKEN])
    texts = [text or "" for text in encoded.dictionary.to_pylist()]
    for c in constraints:
        false, error = violated(c), uncomputed(c)
        found = [None if error in text else false not in text for text in texts]
        if all(found):
            truth = pa.repeat(pa.scalar(True), rows.num_rows)
        else:
            # a row that was kept before there was a constraint has no tokens
            code = pc.fill_null(encoded.indices, len(texts))
            truth = pa.array([*found, True], pa.bool_()).take(code)
        rows = rows.append_column(check_column(c.name), truth)
    return rows


def summed(parts: Iterable[Counts], checks: Sequence[Check]) -> dict[str, int]:
    """The counts of several files' rows. KeyError: a part lacks a check, so that nobody knows what it would find."""
    several = list(parts)
    return {check["id"]: sum(part[check["id"]] for part in several) for check in checks}


def _other_columns(rows: pa.Table, column_list: list[str]) -> int:
    return int(rows.column_names != column_list)


def _unknown(rows: pa.Table, column: str) -> int:
    return rows.column(column).null_count


def _outside(
    rows: pa.Table,
    column: str,
    min_value: Any = None,
    max_value: Any = None,
    strict_min: bool = False,
    strict_max: bool = False,
) -> int:
    values = rows.column(column)
    below = above = None
    if min_value is not None:
        below = (pc.less_equal if strict_min else pc.less)(values, pa.scalar(min_value, values.type))
    if max_value is not None:
        above = (pc.greater_equal if strict_max else pc.greater)(values, pa.scalar(max_value, values.type))
    both = [truths for truths in (below, above) if truths is not None]
    return _true(both[0] if len(both) == 1 else pc.or_(*both))


def _not_greater(rows: pa.Table, column_A: str, column_B: str, ignore_row_if: str) -> int:
    if ignore_row_if != "either_value_is_missing":
        raise ValueError(f"ignore_row_if = {ignore_row_if} is not counted here")
    return _true(pc.less_equal(rows.column(column_A), rows.column(column_B)))


def _not_in_set(rows: pa.Table, column: str, value_set: list[Any]) -> int:
    values = rows.column(column)
    known = values.drop_null()
    return len(known) - _true(pc.is_in(known, pa.array(value_set, values.type)))


def _true(truths: pa.ChunkedArray) -> int:
    return pc.sum(truths).as_py() or 0


IN_SET = "expect_column_values_to_be_in_set"

COUNTERS: dict[str, Callable[..., int]] = {
    "expect_table_columns_to_match_ordered_list": _other_columns,
    "expect_column_values_to_not_be_null": _unknown,
    "expect_column_values_to_be_between": _outside,
    "expect_column_pair_values_a_to_be_greater_than_b": _not_greater,
    IN_SET: _not_in_set,
}
"""By expectations' names, how rows that break them are counted."""
