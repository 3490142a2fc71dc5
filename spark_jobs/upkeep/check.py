"""Whether the tables are what the ledger says, and obey the laws: ``sweeparea check``. Nothing is changed.

Looked at are the logs, the files that they name and these files' footers; results are read for their laws.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from sweeparea.infra.errors import SweepAreaError, UsageError
from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.slices.history import History
from sweeparea.spark_jobs.upkeep import laws
from sweeparea.spark_jobs.upkeep.agreement import disagreement, tables_of
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile
from sweeparea.tables.log.folders import filesystem
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import recover

THREADS = 8
SHOWN = 3
"""So many damaged files of a table are named."""

Tell = Callable[[str], None]


@dataclass
class Checked:
    """The outcome: per name what is ``wrong`` in sentences, and the ``damaged`` tables by their paths in the data
    folder.
    """

    wrong: dict[str, list[str]] = field(default_factory=dict)
    damaged: dict[str, set[str]] = field(default_factory=dict)

    def add(self, name: str, table: str, fault: str) -> None:
        self.wrong.setdefault(name, []).append(f"{table}: {fault}")
        self.damaged.setdefault(name, set()).add(table)


def check(application: Application, name: str | None = None, tell: Tell = lambda text: None) -> Checked:
    """Checks the tables of one stream, relation or query, or of all that have committed."""
    ledger, outcome = application.ledger, Checked()
    head = ledger.head()
    if name is not None and name not in head:
        raise UsageError(
            f"{name} has not committed anything, so there is nothing to check. Known are:"
            f" {', '.join(sorted(head)) or 'none yet'}."
        )
    for each in sorted(head) if name is None else [name]:
        try:
            recover(application.layout.data_folder, ledger, [each])
        except SweepAreaError as error:
            outcome.wrong.setdefault(each, []).append(f"its last commit cannot be applied: {error}")
            tell(f"{each}: WRONG: {outcome.wrong[each][-1]}")
        row = ledger.head().get(each)
        for table in () if row is None else tables_of(row):
            assert row is not None
            _table(application, row, table, outcome, tell)
        if row is not None and row.kind == NameKind.QUERY:
            _laws(application, row, outcome, tell)
    return outcome


def _table(application: Application, row: LedgerRow, table: str, outcome: Checked, tell: Tell) -> None:
    log = DeltaLog(application.layout.absolute(table))
    before = len(outcome.wrong.get(row.name, ()))
    try:
        fault = disagreement(application.ledger, row, table)
        if fault is not None:
            outcome.add(row.name, table, fault)
        if log.exists():
            told = _files(row, table, log, outcome)
            if len(outcome.wrong.get(row.name, ())) == before:
                tell(f"{table}: {told}")
    except (SweepAreaError, OSError) as error:
        outcome.add(row.name, table, str(error))
    for fault in outcome.wrong.get(row.name, [])[before:]:
        tell(f"WRONG: {fault}")


def _files(row: LedgerRow, table: str, log: DeltaLog, outcome: Checked) -> str:
    files = log.files()
    for fault in _damaged(log, files):
        outcome.add(row.name, table, fault)
    rows = sum(file.rows for file in files)
    return f"{rows:,} rows in {len(files)} files, as the ledger says"


def _damaged(log: DeltaLog, files: Collection[DataFile]) -> list[str]:
    """What is wrong with the files that a table's log names."""
    fs, base = filesystem(log.uri)

    def fault(file: DataFile) -> str | None:
        path = f"{base.rstrip('/')}/{file.path}"
        try:
            with fs.open_input_file(path) as source:
                if source.size() != file.size:
                    return f"the file {file.path} has {source.size()} bytes, the log says {file.size}"
                rows = pq.read_metadata(source).num_rows
        except FileNotFoundError:
            return f"the file {file.path} is missing"
        except (pa.ArrowInvalid, OSError) as error:
            return f"the file {file.path} cannot be read: {error}"
        return None if rows == file.rows else f"the file {file.path} has {rows} rows, the log says {file.rows}"

    with ThreadPoolExecutor(THREADS) as pool:
        found = [each for each in pool.map(fault, files) if each is not None]
    more = [f"{len(found) - SHOWN} more files are damaged"] if len(found) > SHOWN else []
    return found[:SHOWN] + more


def _laws(application: Application, row: LedgerRow, outcome: Checked, tell: Tell) -> None:
    """R1, R2 and the canonical form of what a query keeps; not where a table is damaged already."""
    name, layout = row.name, application.layout
    if any(table.startswith("results/") for table in outcome.damaged.get(name, ())) or row.committed is None:
        return
    try:
        plan = application.plans.plan(name)
    except SweepAreaError as error:
        tell(f"{name}: its laws are not looked at, since its text cannot be planned: {error}")
        return
    tables = {}
    for kind in plan.materialize:
        log = DeltaLog(layout.result(plan.table(kind)))
        if log.exists():
            tables[kind] = History.of(log, plan.time)
    kept_out = tables.pop(ResultKind.QUARANTINE, None)
    try:
        faults = laws.broken(tables, row.committed)
        if kept_out is not None:
            faults += [f"quarantine: {f}" for f in laws.broken({ResultKind.RELATION: kept_out}, row.committed)]
            tables[ResultKind.QUARANTINE] = kept_out
    except SweepAreaError:
        before = len(outcome.wrong.get(name, ()))
        for history in tables.values():
            for fault in _unreadable(history):
                outcome.add(name, layout.relative(history.log.uri), fault)
        if len(outcome.wrong.get(name, ())) == before:
            raise
        for fault in outcome.wrong[name][before:]:
            tell(f"WRONG: {fault}")
        return
    for fault in faults:
        outcome.wrong.setdefault(name, []).append(fault)
        outcome.damaged.setdefault(name, set()).update(layout.relative(h.log.uri) for h in tables.values())
        tell(f"WRONG: {name}: {fault}")
    if len(tables) > 1 and not faults:
        tell(f"{name}: {', '.join(sorted(tables))} agree (R1, R2)")


def _unreadable(history: History) -> list[str]:
    """Which files have the size and the rows that the log says, but not what can be read."""
    found = []
    for file in history.log.files(history.version):
        try:
            history.read(file)
        except SweepAreaError as error:
            found.append(f"the file {file.path} cannot be read: {error.__cause__ or error}")
    return found
