"""RETAIN: admitted elements that no query can need any more go.

An element further than RETAIN below the heartbeat goes when every query that reads the stream has passed it, does not
read it again by range (a join over a window), and would not need it to repair one that may still come late.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.patterns import reach_of, read_again
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.touched import memory
from sweeparea.operators.time.ticks import INF
from sweeparea.spark_jobs.spark.instants import instant_text
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile, write_pieces
from sweeparea.tables.publication.info import SourceInfo, laid_over
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication

if TYPE_CHECKING:
    from sweeparea.spark_jobs.application import Application


@dataclass
class Retention:
    """What RETAIN lets go of one stream: rows up to tick ``cut`` (None: none), or the ``reasons`` why nothing may go.

    ``repairs_from``: the least tick of which a late element can be repaired afterwards; ``INF``: of none.
    """

    stream: str
    cut: int | None = None
    reasons: list[str] = field(default_factory=list)
    repairs_from: int = INF
    rows: int = 0
    files: int = 0


def outlook(application: Application, name: str) -> Retention | None:
    """What RETAIN allows to go of a stream now; None if it has no such clause or no heartbeat yet."""
    declared = application.catalog.streams.get(name)
    row = application.ledger.head().get(name)
    if declared is None or declared.retain is None or row is None or row.committed is None:
        return None
    time = application.plans.input_schema(name).time
    if time.kind != "TIMESTAMP":
        return None
    found = Retention(name)
    late = row.committed - declared.retain // time.chronon  # rows below are not admitted any more
    needed = late
    if declared.deduplicate is not None:  # they make later rows duplicates
        needed -= declared.deduplicate.within.in_ticks(time, "DEDUPLICATE BY .. WITHIN")
    repairs = declared.late == "repair" or declared.on_source_change == "correct"
    from_start = INF  # the first instant of a query that is repaired from START on
    for query, least, plan in _readers(application, name, late, repairs):
        if isinstance(least, str):
            found.reasons.append(f"{query} {least}")
        else:
            needed = min(needed, least)
        if plan is not None and memory(plan.root) >= INF:
            from_start = min(from_start, plan.start)
    if not found.reasons:
        found.cut = needed - 1
        found.repairs_from = INF if from_start <= found.cut else late
        for file in _gone(DeltaLog(application.layout.admitted(name)), found.cut):
            found.rows, found.files = found.rows + file.rows, found.files + 1
    return found


def _readers(
    application: Application, name: str, late: int, repairs: bool
) -> Iterator[tuple[str, int | str, Plan | None]]:
    """Per query that reads a stream the least tick that it may still need, or why that is all of them, and its plan."""
    head, deployed = application.ledger.head(), application.registry.deployed.rows()
    hidden = [row.name for row in deployed.values() if is_hidden(row.name)]
    for query in (*application.catalog.queries, *hidden):
        try:
            plan = application.plans.plan(query)
        except SweepAreaError as error:
            yield query, f"cannot be planned, so what it needs is not known: {error}", None
            continue
        if name in plan.inputs:
            yield query, _least(plan, head.get(query), name, late, repairs), plan
    for row in deployed.values():
        if row.kind == NameKind.QUERY and row.name not in application.catalog.queries and name in row.depends_on:
            yield row.name, "is deployed and no file declares it any more, so what it needs is not known", None


def _least(plan: Plan, row: LedgerRow | None, name: str, late: int, repairs: bool) -> int | str:
    if row is None or row.committed is None:
        return "has not begun"
    least = row.committed + 1
    if name in read_again(plan.root):
        reach = reach_of(plan.root).get(name, 0)
        if reach >= INF and plan.start < late:
            return "reads all elements again for a join over a window without an end"
        least = plan.start if reach >= INF else least - reach - 1
    back = memory(plan.root)
    if back < INF:
        # an element that is late is repaired from so far before it
        least = min(least, min(late, row.committed + 1) - back - 1)
    elif repairs and plan.start < late:
        return "repairs late elements from START on, since its windows do not end: write LATE REJECT, or bound them"
    elif repairs:
        least = min(least, plan.start)
    return least


def _gone(log: DeltaLog, cut: int) -> list[DataFile]:
    """Files that hold rows up to tick ``cut`` only, and those that hold such rows for the greater part."""
    found = []
    for file in log.files() if log.exists() else ():
        least, greatest = scan.bounds(file, "__tick")
        if least is None or greatest is None or least > cut:
            continue
        if greatest <= cut or 2 * (cut - least) >= greatest - least:
            found.append(file)
    return found


def let_go(application: Application, name: str) -> Retention | None:
    """Removes what RETAIN allows to go, as one commit of the stream, which says up to where; None as ``outlook``."""
    found = outlook(application, name)
    if found is None or found.cut is None or not found.files:
        return found
    layout = application.layout
    registration = application.registry.registration(name, application.ledger.head().get(name))
    publication = Publication(layout.data_folder, application.ledger, name, NameKind.STREAM, registration)
    attempt = publication.begin()
    previous = publication.previous
    assert previous is not None
    log = DeltaLog(layout.admitted(name))
    version = log.version()
    removes = _gone(log, found.cut)
    adds, greatest = [], previous.of_source.retained
    for number, file in enumerate(removes):
        last = scan.bounds(file, "__tick")[1] or 0
        greatest = min(found.cut, last) if greatest is None else max(greatest, min(found.cut, last))
        if last > found.cut:
            adds.append(_rest(log, file, found.cut, attempt, f"retained-{number}"))
    adds = [file for file in adds if file.rows]
    found.rows = sum(f.rows for f in removes) - sum(f.rows for f in adds)
    publication.stage(log.uri, adds=adds, removes=removes, base_version=version)
    before = previous.of_source.repairs_from
    least = found.repairs_from if before is None else max(before, found.repairs_from)
    info = laid_over(previous.info, SourceInfo(retained=greatest, repairs_from=least))
    publication.commit(committed=previous.committed, pins=dict(previous.pins), info=info)
    return found


def _rest(log: DeltaLog, file: DataFile, cut: int, attempt: str, stem: str) -> DataFile:
    """A copy of a file without its rows up to ``cut``."""
    schema = log.schema()
    batches = scan.dataset(log.uris([file]), schema).to_batches(
        columns=schema.names, filter=pc.field("__tick") > cut, batch_size=65_536
    )
    rows = (pa.Table.from_batches([batch]).select(schema.names).cast(schema) for batch in batches)
    return write_pieces(rows, schema, log.uri, attempt, stem)


def words(application: Application, found: Retention) -> Sequence[str]:
    """What became of RETAIN, for people."""
    time = application.plans.input_schema(found.stream).time
    lines = []
    if found.cut is not None and found.files:
        lines.append(
            f"{found.stream}: {found.rows:,} elements in {found.files} files, none after"
            f" {instant_text(time, found.cut)}, may go (RETAIN)"
        )
    elif found.cut is None:
        lines += [f"{found.stream}: nothing may go (RETAIN): {reason}" for reason in found.reasons]
    return lines
