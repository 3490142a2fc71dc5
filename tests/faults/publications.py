"""Scenarios without Spark: a stream is admitted and two queries publish, by the code of ``tables`` alone.

What a scenario is to the tests: ``prepare(folder)`` makes a data folder; ``run(folder)`` does the work, goes on from
what the ledger says, and may be killed anywhere; ``after(folder)`` is more work, which shows what was kept inside.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import write_file
from sweeparea.tables.publication.deployed import Deployed, DeployedRow
from sweeparea.tables.publication.ledger import Ledger, LedgerRow, now_micros
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication, recover

SCHEMA = pa.schema([("tick", pa.int64()), ("text", pa.string())])
ENDED = "ended"
FILES = 2
"""How many files a slice adds to its stream of results."""


def rows(tick: int, count: int = 2) -> pa.Table:
    return pa.Table.from_pylist([{"tick": tick, "text": f"{tick}.{i}"} for i in range(count)], schema=SCHEMA)


def registered(folder: str, name: str, kind: NameKind) -> str:
    """The registration of a name, made by whichever run comes first."""
    made = DeployedRow(name, kind, f"CREATE {name}", name, registration=f"{name}-1")
    return Deployed(folder).register(made).registration


def admit(folder: str, last: int) -> None:
    """A stream whose versions are admitted one by one, some rows to quarantine."""
    ledger = Ledger(folder)
    recover(folder, ledger)
    registration = registered(folder, "s", NameKind.STREAM)
    while True:
        publication = Publication(folder, ledger, "s", NameKind.STREAM, registration)
        attempt = publication.begin()
        # what is to be done is told by the row that the commit will follow, not by one read before
        version = (publication.previous.committed or 0) + 1 if publication.previous else 1
        if version > last:
            return
        for path, count in ((ledger.layout.admitted("s"), 3), (ledger.layout.quarantine("s"), version % 2)):
            ledger.log(path).create(SCHEMA, name="s", description="a table of a test")
            if count:
                publication.stage(path, [write_file(rows(version, count), path, attempt, "part-0")])
        publication.commit(version, {}, {"source_version": version})


def publish(folder: str, name: str, last: int) -> list[LedgerRow]:
    """A query up to an instant: a stream of results grows by several files, open rows and a SweepArea are replaced."""
    ledger = Ledger(folder)
    recover(folder, ledger)
    registration = registered(folder, name, NameKind.QUERY)
    made = []
    while (row := one_slice(ledger, name, registration, last)) is not None:
        made.append(row)
    return made


def one_slice(ledger: Ledger, name: str, registration: str, last: int) -> LedgerRow | None:
    publication = Publication(ledger.layout.data_folder, ledger, name, NameKind.QUERY, registration)
    attempt = publication.begin()
    tick = (publication.previous.committed or 0) + 1 if publication.previous else 1
    if tick > last:
        return None
    relation, istream, state = result_tables(ledger, name)
    for path in (relation, istream, state):
        ledger.log(path).create(SCHEMA, name=name, description="a table of a test")
    added = [write_file(rows(tick), istream, attempt, f"part-{i}") for i in range(FILES)]
    publication.stage(istream, added)
    log = ledger.log(state)
    version = log.version()
    publication.stage(
        state, [write_file(rows(tick, 1), state, attempt, "area")], log.files(version), base_version=version
    )
    _stage_relation(publication, ledger.log(relation), attempt, tick)
    return publication.commit(tick, {"s": {"seq": tick, "heartbeat": tick}}, {"rows": FILES * 2})


def _stage_relation(publication: Publication, log: DeltaLog, attempt: str, tick: int) -> None:
    """One row ends, and as many as the tick counts are open now. A user's OPTIMIZE may have put both into one file."""
    version = log.version()
    ended = pa.Table.from_pylist([{"tick": tick, "text": ENDED}], schema=SCHEMA)
    adds, removes = (
        [write_file(ended, log.uri, attempt, "closed"), write_file(rows(tick, tick), log.uri, attempt, "open")],
        [],
    )
    for number, file in enumerate(log.files(version)):
        held = pq.ParquetFile(f"{log.uri}/{file.path}").read().to_pylist()
        kept = [row for row in held if row["text"] == ENDED]
        if len(kept) < len(held):
            removes.append(file)
            if kept:
                adds.append(write_file(pa.Table.from_pylist(kept, schema=SCHEMA), log.uri, attempt, f"kept-{number}"))
    publication.stage(log.uri, adds, removes, base_version=version)


def result_tables(ledger: Ledger, name: str) -> tuple[str, str, str]:
    layout = ledger.layout
    return layout.result(name), layout.result(f"{name}__istream"), layout.state(name, "agg")


# -- the scenarios -----------------------------------------------------------------------------------------------------


class First:
    """Nothing is there yet: the first runs make the ledger, the registrations and the tables."""

    @staticmethod
    def prepare(folder: str) -> None:
        Path(folder, "data").mkdir(parents=True)

    @staticmethod
    def run(folder: str) -> None:
        admit(f"{folder}/data", 1)
        publish(f"{folder}/data", "q", 1)

    @staticmethod
    def after(folder: str) -> None:
        admit(f"{folder}/data", 2)
        publish(f"{folder}/data", "q", 2)


class Later:
    """Two slices after others, of a query whose open rows and SweepArea are replaced."""

    @staticmethod
    def prepare(folder: str) -> None:
        admit(f"{folder}/data", 2)
        publish(f"{folder}/data", "q", 2)

    @staticmethod
    def run(folder: str) -> None:
        admit(f"{folder}/data", 3)
        publish(f"{folder}/data", "q", 4)

    @staticmethod
    def after(folder: str) -> None:
        publish(f"{folder}/data", "q", 5)


class Many:
    """Two queries and a stream, by turns."""

    @staticmethod
    def prepare(folder: str) -> None:
        Path(folder, "data").mkdir(parents=True)

    @staticmethod
    def run(folder: str) -> None:
        for tick in range(1, 7):
            admit(f"{folder}/data", tick)
            publish(f"{folder}/data", "q", tick)
            publish(f"{folder}/data", "r", tick)

    @staticmethod
    def after(folder: str) -> None:
        publish(f"{folder}/data", "r", 7)


def prepare(scenario: str, folder: str) -> None:
    _SCENARIOS[scenario].prepare(folder)


def run(scenario: str, folder: str) -> None:
    _SCENARIOS[scenario].run(folder)


def after(scenario: str, folder: str) -> None:
    _SCENARIOS[scenario].after(folder)


def drop(folder: str) -> None:
    """Forgets the query with its tables, as ``sweeparea drop`` does."""
    data = f"{folder}/data"
    ledger = Ledger(data)
    row = ledger.row("q")
    if row is not None:
        ledger.forget("q", row.seq)
    for path in result_tables(ledger, "q"):
        shutil.rmtree(path, ignore_errors=True)
    deployed = Deployed(data)
    deployed.remove("q", deployed.rows()["q"].registration)


def made_anew(folder: str, last: int) -> None:
    """The query under a new registration, up to an instant."""
    data = f"{folder}/data"
    Deployed(data).register(DeployedRow("q", NameKind.QUERY, "CREATE q", "q", registration="q-2"))
    publish(data, "q", last)


def trim_log(folder: str) -> None:
    """Many commits of others, and a log of the head that is cleaned up to its last checkpoint."""
    ledger = Ledger(f"{folder}/data")
    for seq in range(1, 45):
        row = LedgerRow("z", NameKind.QUERY, "z-1", seq, seq, uuid.uuid4().hex, at=now_micros())
        ledger.commit(row, None if seq == 1 else seq - 1)
    log = Path(ledger.layout.ledger, "_delta_log")
    last = max(int(path.name.split(".")[0]) for path in log.glob("*.checkpoint.parquet"))
    for path in log.glob("*.json"):
        if int(path.name.split(".")[0]) < last:
            path.unlink()
    ledger.forget("z", 44)


_SCENARIOS = {"first": First, "later": Later, "many": Many}
