"""One of two committers: so many compare-and-swap commits to a table's log and to a ledger, whatever the other does."""

from __future__ import annotations

import sys

import pyarrow as pa

from sweeparea.tables.errors import CommitConflict
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import write_file
from sweeparea.tables.publication.ledger import Ledger, LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind


def main(folder: str, name: str, count: int) -> None:
    log, ledger = DeltaLog(f"{folder}/raced"), Ledger(folder)
    conflicts = 0
    print("ready", flush=True)
    sys.stdin.readline()  # both begin together, however long either took to start
    for i in range(1, count + 1):
        file = write_file(pa.table({"who": [name], "i": [i]}), log.uri, name, f"f-{i}")
        while True:
            try:
                log.commit([file], [], app=(name, i), base_version=log.version())
                break
            except CommitConflict:
                conflicts += 1
        row = LedgerRow(name, NameKind.STREAM, "r", i, i, f"{name}-{i}")
        assert ledger.commit(row, i - 1 if i > 1 else None) == row
    print(conflicts)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
