"""Catching up: a long range of time as slices of about ``slice.max_rows`` new rows (law S2 makes any cut right), with
the progress told on the way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.plan import Plan
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.deployment.input_sizes import new_rows
from sweeparea.spark_jobs.slices.corrections import Corrected
from sweeparea.spark_jobs.spark.errors import readable
from sweeparea.spark_jobs.spark.instants import instant_text, slice_text
from sweeparea.tables.publication.info import QueryInfo

MAX_ROWS = 5_000_000
"""Default of ``slice.max_rows``: about how many new input rows one slice takes."""

Tell = Callable[[str], None]


class SliceTooLong(SweepAreaError):
    """A slice whose Rstream has more rows than one slice may have; ``cut`` is where a shorter one should end."""

    def __init__(self, message: str, cut: int) -> None:
        super().__init__(message)
        self.cut = cut


def number_setting(plan: Plan, name: str, default: int) -> int:
    """A setting of a query that is a number; ``default`` where it is not set."""
    given = dict(plan.settings).get(name)
    if given is None:
        return default
    value = given.strip("'\"").replace("_", "")
    if not value.isdigit() or int(value) == 0:
        raise SweepAreaError(f"query {plan.name}: the setting {name} is {value!r}, but must be a number of rows.")
    return int(value)


def catch_up(  # eight parameters: a query, a range with its cuts, how a slice is run, and how it is told
    application: Application,
    plan: Plan,
    done: int,
    target: int,
    run: Callable[[int, int], QueryInfo],
    tell: Tell,
    cuts: Sequence[int] = (),
    what: str = "",
) -> Iterator[tuple[int, QueryInfo]]:
    """Runs the slices of ``(done, target]`` one after the other; yields each one's end and what ``run`` told of it.

    ``run(h0, h1)`` runs one slice. ``cuts`` are instants at which slices must end as well. ``tell`` gets a line for
    each slice: which of about how many, how many rows a second, and how long the rest may take.
    """
    longest, count, taken, begun = target - done, 0, 0, time.monotonic()
    ahead: int | None = None  # how many rows there were by the same estimate that tells how many are left
    while done < target:
        h1 = min([target, done + longest, *(c for c in cuts if c > done)])
        h1 = _cut(application, plan, done, h1)
        if ahead is None and h1 < target:
            ahead = _rows_left(application, plan, done, target)
        started = time.monotonic()
        try:
            info = run(done, h1)
        except SliceTooLong as error:
            longest = error.cut - done
            continue
        except Corrected:
            raise
        except Exception as error:
            names = {c.id: c.label for node in plan.root.walk() for c in node.columns}
            kind = "shared subplan" if is_hidden(plan.name) else "query"
            raise readable(error, f"{kind} {plan.name}, slice {slice_text(plan.time, done, h1)}", names) from error
        count, taken, done = count + 1, taken + (info.rows_in or 0), h1
        left = _rows_left(application, plan, done, target)
        of = f" of about {count + slices(plan, left)}" if left is not None else ""
        now = time.monotonic()
        told = (
            f"{plan.name}: {what}slice {count}{of} up to {instant_text(plan.time, h1)}: {info.rows_in} rows in,"
            f" {sum((info.rows or {}).values())} rows out, {now - started:.1f} s"
        )
        if left and taken:
            told += f" ({taken / (now - begun):,.0f} rows/s"
            # an estimate counts rows that no slice takes, as those of changes that cancel out: only another one tells
            # what has passed; and slices of few rows take the time of a slice, not that of their rows
            passed = (ahead or 0) - left
            told += f", about {_length(left * (now - begun) / passed)} left)" if 10 * passed >= limit(plan) else ")"
        tell(told)
        yield h1, info


def limit(plan: Plan) -> int:
    """About how many new rows a slice takes."""
    return number_setting(plan, "slice.max_rows", MAX_ROWS)


def slices(plan: Plan, rows: int) -> int:
    """About how many slices take so many rows."""
    return max(1, round(rows / limit(plan)))


def _cut(application: Application, plan: Plan, h0: int, h1: int) -> int:
    """The end of a slice of at most about ``slice.max_rows`` new rows; a single instant is never cut.

    Halving finds an end early enough; a later one is looked for while the slice has less than half of the rows that it
    may have, so that a burst has one small slice before it and not one for each halving.
    """
    most, many = limit(plan), h1
    if h1 <= h0 + 1 or new_rows(application.plans, plan, h0, h1) <= most:
        return h1
    few, rows = h0 + 1, 0
    while many - few > 1 and 2 * rows < most:
        middle = few + (many - few) // 2
        found = new_rows(application.plans, plan, h0, middle)
        if found > most:
            many = middle
        else:
            few, rows = middle, found
    return few


def _rows_left(application: Application, plan: Plan, done: int, target: int) -> int | None:
    return None if done >= target else new_rows(application.plans, plan, done, target)


def _length(seconds: float) -> str:
    """A length of time in words, in its two greatest units."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
