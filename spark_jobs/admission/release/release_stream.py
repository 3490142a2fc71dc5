"""Releasing rows of a stream's quarantine.

A released row is judged again, like any other, but it is never too late: below the heartbeat it repairs results, even
under LATE REJECT (semantics, section 9). One that is still wrong stays where it is, with the reason. Rows are admitted
and leave the quarantine in one commit, so none is released twice.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.values import keys
from sweeparea.spark_jobs.admission.judging import duplicates, quarantine
from sweeparea.spark_jobs.admission.judging.copies import copies
from sweeparea.spark_jobs.admission.judging.judge import evaluated
from sweeparea.spark_jobs.admission.judging.rules import Rules, expressions, keeping_out
from sweeparea.spark_jobs.admission.judging.stage import Stage, row_texts
from sweeparea.spark_jobs.admission.judging.state import StreamState
from sweeparea.spark_jobs.admission.release.release_rows import Released, chosen, corrected
from sweeparea.spark_jobs.admission.release.wanted_rows import WantedRows
from sweeparea.spark_jobs.admission.stream.version import judge_piece
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.spark.errors import NotReadyError
from sweeparea.tables.log import scan
from sweeparea.tables.publication.info import SourceInfo
from sweeparea.tables.publication.ledger import now_micros
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DUPLICATE = "a duplicate of an admitted row (DEDUPLICATE BY)"
KEPT_IN_INFO = 100
"""Rows of a release that the ledger's history tells one by one."""


def release_elements(application: Application, name: str, spark: SparkSession, wanted: WantedRows) -> Released:
    """Admits the rows that are wanted and right, in one commit; tells why the others stay."""
    row = application.ledger.head().get(name)
    if row is None:
        raise NotReadyError(f"Stream {name} has not been admitted yet. Run `{application.command('admit', name)}`.")
    registration = application.registry.registration(name, row)
    publication = Publication(str(application.data), application.ledger, name, NameKind.STREAM, registration)
    attempt = publication.begin()
    state = StreamState.of(publication.previous)
    columns = quarantine.columns_of(application, name)
    rules = Rules.of(application.stream(name), application.plans.input_schema(name).time, [f.name for f in columns])
    stage = Stage(publication, attempt, columns, came=rules.remembers)
    held = chosen(application, name, stage, wanted, columns)
    if (pc.min(held.rows.column("__n")).as_py() or 0) < 0:
        raise SweepAreaError(
            f"Among these rows of {name} are some that their source took back and that were never elements (negative"
            " copies): there is nothing to admit. Leave them out, with --where '__n > 0'."
        )
    rows = corrected(held, wanted, columns, name)
    heartbeat, constraints = application.sources.stream_expressions(name)
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
    stage.commit(state.heartbeat, state.as_info(counts, SourceInfo(released=told)))
    return result


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
    again = rules.with_constraints(keeping_out)
    again = replace(again, declared=replace(again.declared, late="repair"), within=None)
    lookup = None
    if again.apart is not None:
        lookup = partial(duplicates.kept_rows, stage, again.duplicate_by, within=again.apart)
    commit_time = max(state.commit_time, now_micros())
    scratch = f"{stage.publication.layout.data_folder}/_sweeparea/spill"
    rows, lateness = evaluated(spark, rows, sql, scratch), again.lateness(state.heartbeat, state.repairs_from)
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


def _leave(stage: Stage, held: quarantine.Held, left: np.ndarray) -> None:
    """Takes the released copies out of the quarantine."""
    file, at = keys.int64_of(held.rows.column("__file")), keys.int64_of(held.rows.column("__at"))
    for number in np.unique(file[left > 0]).tolist():
        source = held.files[number]
        gone = np.zeros(scan.plan(stage.quarantine, [source]).rows, np.int64)
        mine = file == number
        gone[at[mine]] = left[mine]
        stage.leave(source, gone)
