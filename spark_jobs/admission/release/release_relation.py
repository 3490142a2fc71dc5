"""Releasing changes of a relation from quarantine: what a person has looked at becomes a change after all.

It is never too late: below the heartbeat it repairs results, even under LATE REJECT (semantics, section 9). A row of a
log may be corrected. Of a history only late changes are released, as they are: what is wrong in its rows, or in those
of a feed or a snapshot, is put right in the source, whose next version takes it over.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.heartbeats.policies import HeartbeatDecision
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.values import keys
from sweeparea.spark_jobs.admission.judging import quarantine
from sweeparea.spark_jobs.admission.judging.copies import copies
from sweeparea.spark_jobs.admission.judging.rules import keeping_out
from sweeparea.spark_jobs.admission.relation.change_log import REFUSED
from sweeparea.spark_jobs.admission.relation.change_relation import RelationAdmission
from sweeparea.spark_jobs.admission.relation.change_table import VERSION, RelationStage
from sweeparea.spark_jobs.admission.relation.relation_version import VersionReader
from sweeparea.spark_jobs.admission.release import release_rows
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.spark.errors import NotReadyError
from sweeparea.tables.log import scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BY_ITSELF = "it counts by itself as soon as what it takes away is there: release or append that"
LATE = "late:"


def release_changes(
    application: Application, name: str, spark: SparkSession, wanted: release_rows.Wanted
) -> release_rows.Released:
    """Releases rows of a relation's quarantine; raises SweepAreaError where there is none such."""
    declared = application.catalog.relations[name]
    if declared.contents in ("feed", "static"):
        how = "REFRESH RELATION takes it over" if declared.contents == "static" else "the next version is admitted"
        raise SweepAreaError(f"{name}: put the row right in its source; {how}. Its quarantine has nothing to release.")
    row = application.ledger.head().get(name)
    if row is None:
        raise NotReadyError(f"Relation {name} has not been admitted yet. Run `{application.command('admit', name)}`.")
    run = RelationAdmission(application, name, application.registry.registration(name, row), spark)
    reader = run.reading()
    publication, attempt, state = run.begin()
    stage = run.stage(publication, attempt)
    columns = [f for f in stage.changes.schema if not f.name.startswith("__")]
    held = release_rows.chosen(application, name, stage, wanted, columns)
    reasons = np.array(held.rows.column("__reason").to_pylist(), object)
    refused = {i: BY_ITSELF for i, reason in enumerate(reasons) if reason in REFUSED}
    if declared.contents == "history":
        late = np.array([reason.startswith(LATE) for reason in reasons])
        refused |= {i: "put it right in the source" for i in np.flatnonzero(~late) if i not in refused}
        if wanted.assigned or wanted.row is not None:
            raise SweepAreaError(
                f"{name}: what a history says is corrected in its source; late changes are released as they are."
            )
        changes = _as_they_are(held, columns)
    else:
        rows = release_rows.corrected(held, wanted, columns, name)
        changes, more = _judged(reader, rows, held)
        refused = {**more, **refused}
    stands = np.array([i not in refused for i in range(held.rows.num_rows)])
    changes = changes.filter(pa.array(stands[keys.int64_of(changes.column("__at"))]))
    ids = held.rows.column("__id").to_pylist()
    result = release_rows.Released(rows=copies(changes), refused=[(ids[i], why) for i, why in sorted(refused.items())])
    if not changes.num_rows:
        return result
    if state.heartbeat is not None:
        result.repaired = copies(changes.filter(pc.less_equal(changes.column("__tick"), state.heartbeat)))
    versions = held.rows.column(VERSION).take(changes.column("__at"))
    new = changes.drop_columns(["__at"]).append_column(VERSION, versions)
    counts = run.settle(stage, state, [new], state.heartbeat, released=_leaving(stage, held, stands))
    counts += Counter(rows=result.rows, released=result.rows, repaired=result.repaired)
    run.commit(stage, state, HeartbeatDecision(state.heartbeat, 0, state.policy), counts)
    return result


def _as_they_are(held: quarantine.Held, columns: list[pa.Field]) -> pa.Table:
    """Late changes of a history: the source's columns, ``__tick``, ``__n``, ``__at`` (the row of ``held``)."""
    rows = keys.canonical(quarantine.typed(held.rows, columns, held.name))
    for name in ("__tick", "__n"):
        rows = rows.append_column(name, held.rows.column(name))
    return rows.append_column("__at", pa.array(range(rows.num_rows), pa.int64()))


def _judged(reader: VersionReader, rows: pa.Table, held: quarantine.Held) -> tuple[pa.Table, dict[int, str]]:
    """Corrected rows of a log as changes (with ``__at``), and the reasons against those that are still wrong."""
    constraints = keeping_out(reader.declared.constraints)
    again = replace(reader, declared=replace(reader.declared, constraints=constraints))
    count = rows.num_rows
    rows = rows.append_column("__n", held.rows.column("__n"))
    numbered = rows.append_column("__at", pa.array(range(count), pa.int64()))
    judgement = again.standing(numbered, 0, held.name, Counter())
    changes = again.changes(judgement.good).append_column("__at", judgement.good.column("__at"))
    reasons = dict(zip(judgement.bad.column("__at").to_pylist(), pa.array(judgement.reasons).to_pylist(), strict=True))
    return changes, reasons


def _leaving(stage: RelationStage, held: quarantine.Held, stands: np.ndarray) -> dict[str, np.ndarray]:
    """Per file of the quarantine the copies of its rows that are released."""
    found: dict[str, np.ndarray] = {}
    file, at = keys.int64_of(held.rows.column("__file")), keys.int64_of(held.rows.column("__at"))
    n = keys.int64_of(held.rows.column("__n"))
    for number in np.unique(file[stands]).tolist():
        source = held.files[number]
        rows = scan.plan(stage.quarantine, [source]).rows
        gone = np.zeros(rows, np.int64)
        mine = (file == number) & stands
        gone[at[mine]] = n[mine]
        found[source.path] = gone
    return found
