"""Recovery by rolling forward. Kills at every point: ``tests/faults``."""

from __future__ import annotations

import signal
from pathlib import Path

from sweeparea.tables.publication.ledger import Ledger
from sweeparea.tables.publication.publish import recover
from tests.tables.processes import finish, start
from tests.tables.slices import QUERY, contents


def test_recovery_alone_applies_what_the_ledger_holds_and_does_it_once(tmp_path: Path) -> None:
    folder = str(tmp_path)
    code, _, error = finish(start("slices", folder, 2, 2, "publish.applied:results/q"))
    assert code == -signal.SIGKILL, error
    ledger = Ledger(folder)
    assert recover(folder, ledger, ["nobody"]) == []
    assert recover(folder, ledger) == [QUERY]
    once = contents(folder)
    assert recover(folder, ledger) == []
    assert contents(folder) == once
    assert once["/results/q__istream"] == [{"tick": t, "text": f"{t}.{i}"} for t in (1, 2) for i in range(2)]
