"""Releasing rows from quarantine: what a person has looked at, and may have corrected, becomes an element after all.

A released row is judged again, like any other, but it is never too late: below the heartbeat it repairs results, even
under LATE REJECT (semantics, section 9). One that is still wrong stays where it is, with the reason. Rows are admitted
and leave the quarantine in one commit, so none is released twice.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.cql.errors import nearest
from sweeparea.infra.errors import DataError, SweepAreaError
from sweeparea.operators import keys
from sweeparea.spark_jobs import admit_duplicates, json_values, quarantine
from sweeparea.spark_jobs.admit_judge import evaluated
from sweeparea.spark_jobs.admit_rules import Rules, expressions
from sweeparea.spark_jobs.admit_stage import Stage, row_texts, without
from sweeparea.spark_jobs.admit_state import StreamState
from sweeparea.spark_jobs.admit_version import copies, judge_piece
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.errors import NotReadyError, readable
from sweeparea.tables import scan
from sweeparea.tables.errors import LostRace
from sweeparea.tables.publish import Publication, recover

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRIES = 5
"""A release gives way to an admit run that commits at the same time so many times."""
DUPLICATE = "a duplicate of an admitted row (DEDUPLICATE BY)"
KEPT_IN_INFO = 100
"""Rows of a release that the ledger's history tells one by one."""


@dataclass
class Released:
    """``rows`` copies were admitted, ``repaired`` of them below the heartbeat; ``refused``: per row that stays in
    quarantine its id and the reason.
    """

    rows: int = 0
    repaired: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Wanted:
    """Which rows are released, by their ids or by a condition, and what is corrected in them: values of columns as
    they are typed, or the whole ``row`` as a JSON object.
    """

    ids: tuple[str, ...] = ()
    where: str | None = None
    assigned: Mapping[str, str] = field(default_factory=dict)
    row: str | None = None


def release(application: Application, name: str, spark: SparkSession, wanted: Wanted) -> Released:
    """Releases rows of a stream's or relation's quarantine; raises SweepAreaError where there is none such."""
    from sweeparea.spark_jobs.release_relation import release_changes

    application.source(name)
    work = release_changes if name in application.catalog.relations else _released
    with application.analyzing(spark):
        recover(str(application.data), application.ledger, [name])
        for tried in range(TRIES):
            try:
                return work(application, name, spark, wanted)
            except LostRace:
                if tried + 1 == TRIES:
                    raise
            except Exception as error:
                raise readable(error, f"quarantine of {name}") from error
    raise AssertionError("unreachable")


def _released(application: Application, name: str, spark: SparkSession, wanted: Wanted) -> Released:
    row = application.ledger.head().get(name)
    if row is None:
        raise NotReadyError(f"Stream {name} has not been admitted yet. Run `{application.command('admit', name)}`.")
    registration = application.registration(name, row)
    publication = Publication(str(application.data), application.ledger, name, "stream", registration)
    attempt = publication.begin()
    state = StreamState.of(publication.previous)
    columns = quarantine.columns_of(application, name)
    stage = Stage(publication, attempt, columns)
    held = chosen(application, name, stage, wanted, columns)
    if (pc.min(held.rows.column("__n")).as_py() or 0) < 0:
        raise SweepAreaError(
            f"Among these rows of {name} are some that their source took back and that were never elements (negative"
            " copies): there is nothing to admit. Leave them out, with --where '__n > 0'."
        )
    rows = corrected(held, wanted, columns, name)
    rules = Rules.of(application.stream(name), application.input_schema(name).time, rows.column_names)
    heartbeat, constraints = application.source_expressions(name)
    sql = expressions(rules, heartbeat, constraints)
    result, admitted, left = _judge(spark, stage, state, rules, sql, rows, held)
    if result.rows == 0:
        return result
    stage.admit(admitted.select([*rules.columns, "__tick", "__n"]))
    _leave(stage, held, left)
    ticks = admitted.column("__tick")
    state.corrected(stage.seq, pc.min(ticks).as_py())
    if state.heartbeat is not None:
        result.repaired = copies(admitted.filter(pc.less_equal(ticks, state.heartbeat)))
    before = [text for text, n in zip(held.rows.column("__row").to_pylist(), left, strict=True) if n]
    after = row_texts(admitted.select(rules.columns))
    told = [{"from": a, "to": b} for a, b in zip(before, after, strict=True)][:KEPT_IN_INFO]
    counts = Counter(rows=result.rows, released=result.rows, repaired=result.repaired)
    stage.commit(state.heartbeat, state.as_info(counts, released=told))
    return result


def chosen(
    application: Application, name: str, stage: Stage, wanted: Wanted, columns: Sequence[pa.Field]
) -> quarantine.Held:
    """The rows that are wanted, as the quarantine held them when the commit began."""
    held = quarantine.held(application, name, stage.quarantine_version)
    known = set(held.rows.column("__id").to_pylist())
    for each in wanted.ids:
        if each not in known:
            shown = application.command("quarantine", "list", name)
            raise SweepAreaError(
                f"There is no row {each} in the quarantine of {name}: it may have been released already."
                f" {nearest(each, known)} `{shown}` lists what is there.".replace("  ", " ")
            )
    if wanted.ids:
        held = held.where(pc.is_in(held.rows.column("__id"), pa.array(wanted.ids, pa.string())))
    if wanted.where is not None:
        held = quarantine.matching(held, wanted.where, columns)
    elif not wanted.ids:
        raise SweepAreaError("Say which rows are to be released: give their ids, or a condition with --where.")
    if not held.rows.num_rows:
        raise SweepAreaError(f"No row in the quarantine of {name} fulfils the condition {wanted.where}.")
    return held


def corrected(held: quarantine.Held, wanted: Wanted, columns: Sequence[pa.Field], name: str) -> pa.Table:
    """The rows with what a person has put right in them."""
    names = [f.name for f in columns]
    if wanted.row is not None:
        if held.rows.num_rows != 1:
            raise SweepAreaError(
                f"--row gives one row, but {held.rows.num_rows} are to be released. Name one by its id."
            )
        try:
            given = json.loads(wanted.row)
        except ValueError as error:
            raise SweepAreaError(f"--row is no JSON: {error}.") from None
        if not isinstance(given, dict) or sorted(given) != sorted(names):
            raise SweepAreaError(
                f"--row must be a JSON object with exactly the columns of {name}: {', '.join(names)}. A column that is"
                " NULL is written null."
            )
        text = pa.array([json.dumps(given)], pa.string())
        rows = held.rows.set_column(held.rows.column_names.index("__row"), "__row", text)
        return quarantine.typed(rows, columns, name)
    known = {n.lower(): n for n in names}
    values: dict[str, str] = {}
    for column, value in wanted.assigned.items():
        if column.lower() not in known:
            hint = nearest(column, names) or f"Its columns are {', '.join(names)}."
            raise SweepAreaError(f"--set {column}: {name} has no such column. {hint}")
        values[known[column.lower()]] = value
    kept = [f for f in columns if f.name not in values]
    rows = quarantine.typed(held.rows, kept, name)
    made = {f.name: _assigned(values[f.name], f, held.rows.num_rows) for f in columns if f.name in values}
    return pa.table([made[n] if n in made else rows.column(n) for n in names], schema=pa.schema(list(columns)))


def _assigned(text: str, column: pa.Field, count: int) -> pa.Array:
    """``--set column=text``: NULL, a text for a column of texts or instants, else JSON."""
    value: Any = text
    if text == "NULL":
        value = None
    elif not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        try:
            value = json.loads(text)
        except ValueError:
            value = text
    try:
        one = json_values.column([value], column.type, f"--set {column.name}={text}")
    except DataError as error:
        raise SweepAreaError(str(error)) from None
    return one.take(pa.array(np.zeros(count, np.int64)))


def _judge(
    spark: SparkSession,
    stage: Stage,
    state: StreamState,
    rules: Rules,
    sql: Mapping[str, str],
    rows: pa.Table,
    held: quarantine.Held,
) -> tuple[Released, pa.Table, np.ndarray]:
    """What is released, the rows that are admitted, and how many copies of each held row leave."""
    ids = held.rows.column("__id").to_pylist()
    n = held.rows.column("__n")
    count = rows.num_rows
    rows = rows.append_column("__n", n).append_column("__at", pa.array(range(count), pa.int64()))
    # never too late: a person has looked at it. What the history may not hold any more cannot be repaired.
    declared = rules.declared
    failing = tuple(
        replace(c, on_violation="quarantine") if c.on_violation == "fail" else c for c in declared.constraints
    )
    again = replace(rules, declared=replace(declared, constraints=failing, late="repair"), within=None)
    lookup = None
    if again.apart is not None:
        lookup = partial(_kept, stage, again)
    commit_time = max(state.commit_time, time.time_ns() // 1000)
    rows, lateness = evaluated(spark, rows, sql), again.lateness(state.heartbeat)
    judged, _ = judge_piece(rows, again, lateness, commit_time, declared.name, Counter(), lookup)
    good = judged.good.sort_by("__at")
    left = np.zeros(count, np.int64)
    left[keys.int64_of(good.column("__at"))] = keys.int64_of(good.column("__n"))
    result = Released(rows=int(left.sum()))
    reasons = dict(zip(judged.bad.column("__at").to_pylist(), judged.reasons.to_pylist(), strict=True))
    for i in range(count):
        if left[i] < n[i].as_py():
            result.refused.append((ids[i], reasons.get(i, DUPLICATE)))
    return result, good, left


def _kept(stage: Stage, rules: Rules, rows: pa.Table) -> pa.Table:
    assert rules.apart is not None
    return admit_duplicates.kept_rows(stage.admitted, rules.duplicate_by, rows, rules.apart)


def _leave(stage: Stage, held: quarantine.Held, left: np.ndarray) -> None:
    """Takes the released copies out of the quarantine."""
    file, at = keys.int64_of(held.rows.column("__file")), keys.int64_of(held.rows.column("__at"))
    for number in np.unique(file[left > 0]).tolist():
        source = held.files[number]
        rows = scan.plan(stage.quarantine, [source]).read(stage.quarantine.schema().names)
        gone = np.zeros(rows.num_rows, np.int64)
        mine = file == number
        gone[at[mine]] = left[mine]
        stage.replace_quarantine(source, without(rows, gone))
