"""Scenarios without Spark: a stream is admitted and two queries publish, by the code of ``tables`` alone.

What a scenario is to the tests: ``prepare(folder)`` makes a data folder; ``run(folder)`` does the work, goes on from
what the ledger says, and may be killed anywhere; ``after(folder)`` is more work, which shows what was kept inside.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from sweeparea.tables.deployed import Deployed, DeployedRow
from sweeparea.tables.files import write_file
from sweeparea.tables.ledger import Ledger, LedgerRow
from sweeparea.tables.publish import Publication, recover

SCHEMA = pa.schema([("tick", pa.int64()), ("text", pa.string())])
FILES = 2
"""How many files a slice adds to its stream of results."""


def rows(tick: int, count: int = 2) -> pa.Table:
    return pa.Table.from_pylist([{"tick": tick, "text": f"{tick}.{i}"} for i in range(count)], schema=SCHEMA)


def registered(folder: str, name: str, kind: str) -> str:
    """The registration of a name, made by whichever run comes first."""
    made = DeployedRow(name, kind, f"CREATE {name}", name, registration=f"{name}-1")
    return Deployed(folder).register(made).registration


def admit(folder: str, last: int) -> None:
    """A stream whose versions are admitted one by one, some rows to quarantine."""
    ledger = Ledger(folder)
    recover(folder, ledger)
    row = ledger.row("s")
    registration = registered(folder, "s", "stream")
    for version in range((row.committed or 0) + 1 if row else 1, last + 1):
        publication = Publication(folder, ledger, "s", "stream", registration)
        attempt = publication.begin()
        for path, count in ((ledger.layout.admitted("s"), 3), (ledger.layout.quarantine("s"), version % 2)):
            ledger.log(path).create(SCHEMA, name="s", description="a table of a test")
            if count:
                publication.stage(path, [write_file(rows(version, count), path, attempt, "part-0")])
        publication.commit(version, {}, {"source_version": version})


def publish(folder: str, name: str, last: int) -> list[LedgerRow]:
    """A query up to an instant: a stream of results grows by several files, open rows and a SweepArea are replaced."""
    ledger = Ledger(folder)
    recover(folder, ledger)
    row = ledger.row(name)
    registration = registered(folder, name, "query")
    return [
        one_slice(ledger, name, registration, tick)
        for tick in range((row.committed or 0) + 1 if row else 1, last + 1)
    ]


def one_slice(ledger: Ledger, name: str, registration: str, tick: int) -> LedgerRow:
    publication = Publication(ledger.layout.data_folder, ledger, name, "query", registration)
    attempt = publication.begin()
    relation, istream, state = result_tables(ledger, name)
    for path in (relation, istream, state):
        ledger.log(path).create(SCHEMA, name=name, description="a table of a test")
    added = [write_file(rows(tick), istream, attempt, f"part-{i}") for i in range(FILES)]
    publication.stage(istream, added)
    for path, count in ((relation, tick), (state, 1)):
        log = ledger.log(path)
        version = log.version()
        old = log.files(version)
        publication.stage(path, [write_file(rows(tick, count), path, attempt, "part-0")], old, base_version=version)
    return publication.commit(tick, {"s": {"seq": tick, "heartbeat": tick}}, {"rows": FILES * 2})


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


def prepare(scenario: str, folder: str) -> None:
    _SCENARIOS[scenario].prepare(folder)


def run(scenario: str, folder: str) -> None:
    _SCENARIOS[scenario].run(folder)


def after(scenario: str, folder: str) -> None:
    _SCENARIOS[scenario].after(folder)


_SCENARIOS = {"first": First, "later": Later}
