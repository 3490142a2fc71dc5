"""A small query whose slices the tests publish, kill and race: three tables, one appended to, two rewritten.

Also a program: ``python -m tests.tables.slices <data folder> <slices> <slice to die in> <crash point>``.
"""

from __future__ import annotations

import os
import sys

import pyarrow as pa

from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import write_file
from sweeparea.tables.publication.ledger import Ledger, LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication, recover

SCHEMA = pa.schema([("tick", pa.int64()), ("text", pa.string())])
QUERY = "q"


def tables(ledger: Ledger) -> list[str]:
    layout = ledger.layout
    paths = [layout.result(QUERY), layout.result(f"{QUERY}__istream"), layout.state(QUERY, "agg")]
    for path in paths:
        DeltaLog(path).create(SCHEMA, name="t", description="a table of a test")
    return paths


def rows(tick: int, count: int = 2) -> pa.Table:
    return pa.Table.from_pylist([{"tick": tick, "text": f"{tick}.{i}"} for i in range(count)], schema=SCHEMA)


def stage_slice(publication: Publication, tick: int) -> None:
    """The istream table grows; the relation and the state are replaced."""
    attempt = publication.begin()
    relation, istream, state = tables(publication.ledger)
    publication.stage(istream, [write_file(rows(tick), istream, attempt, "part-0")])
    for path, count in ((relation, tick), (state, 1)):
        log = publication.ledger.log(path)
        version = log.version()
        old = log.files(version)
        new = write_file(rows(tick, count), path, attempt, "part-0")
        publication.stage(path, [new], old, base_version=version)


def publish_slice(ledger: Ledger, tick: int) -> LedgerRow:
    publication = Publication(ledger.layout.data_folder, ledger, QUERY, NameKind.QUERY, "r1")
    stage_slice(publication, tick)
    return publication.commit(tick, {"s": {"seq": tick, "heartbeat": tick}}, {"rows": 2})


def run(data_folder: str, last: int, die_in: int | None = None, crash_at: str = "") -> None:
    """Publish slices 1 to ``last``, going on from what the ledger says, as a run of the engine does."""
    ledger = Ledger(data_folder)
    recover(data_folder, ledger)
    row = ledger.row(QUERY)
    for tick in range((row.committed or 0) + 1 if row else 1, last + 1):
        if tick == die_in:
            os.environ["SWEEPAREA_CRASH_AT"] = crash_at
        publish_slice(ledger, tick)


def contents(data_folder: str) -> dict[str, list[dict[str, object]]]:
    """The rows of every table, and the history without what differs between any two runs."""
    ledger = Ledger(data_folder)
    found: dict[str, list[dict[str, object]]] = {
        path.removeprefix(data_folder): DeltaLog(path)
        .read()
        .sort_by([("tick", "ascending"), ("text", "ascending")])
        .to_pylist()
        for path in tables(ledger)
    }
    found["history"] = [{"seq": row.seq, "committed": row.committed, "pins": row.pins} for row in ledger.history()]
    return found


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
