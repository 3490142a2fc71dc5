"""Programs that race for the ledger: ``python -m tests.tables.racers slice|storm <data folder> <name> ..``."""

from __future__ import annotations

import sys
import time
import uuid
from pathlib import Path

from sweeparea.tables.errors import LostRace
from sweeparea.tables.publication.ledger import Ledger, LedgerRow, now_micros
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication
from tests.tables.slices import QUERY, stage_slice


def wait_for_all(folder: Path, me: str, all_of_us: int) -> None:
    """Return when every racer has called this."""
    folder.mkdir(exist_ok=True)
    (folder / me).touch()
    while len(list(folder.iterdir())) < all_of_us:
        time.sleep(0.001)


def slice_race(data_folder: str, me: str, line: str) -> None:
    """Two runs of one query begin from the same state and commit the same slice."""
    publication = Publication(data_folder, Ledger(data_folder), QUERY, NameKind.QUERY, "r1")
    stage_slice(publication, 1)
    wait_for_all(Path(line), me, 2)
    try:
        publication.commit(1, {}, {"by": me})
    except LostRace as error:
        print(f"lost: {error}")
    else:
        print("won")


def storm(data_folder: str, me: str, line: str, count: int) -> None:
    """Commit to the own row as fast as it goes while others do the same."""
    ledger = Ledger(data_folder)
    wait_for_all(Path(line), me, 2)
    for seq in range(1, count + 1):
        row = LedgerRow(me, NameKind.QUERY, "r1", seq, seq, uuid.uuid4().hex, at=now_micros())
        ledger.commit(row, None if seq == 1 else seq - 1)
    print("done")


if __name__ == "__main__":
    if sys.argv[1] == "slice":
        slice_race(sys.argv[2], sys.argv[3], sys.argv[4])
    else:
        storm(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
