"""Law S3: a run killed anywhere and started again gives the same tables as a run that was not."""

from __future__ import annotations

import signal
from pathlib import Path

from sweeparea.tables.ledger import Ledger
from sweeparea.tables.publish import recover
from tests.tables.processes import finish, start
from tests.tables.slices import CRASH_POINTS, QUERY, contents, run


def test_a_run_killed_at_any_point_and_started_again_equals_an_undisturbed_one(tmp_path: Path) -> None:
    undisturbed = str(tmp_path / "undisturbed")
    run(undisturbed, 3)
    expected = contents(undisturbed)
    folders = {point: str(tmp_path / f"killed{number}") for number, point in enumerate(CRASH_POINTS)}
    processes = {point: start("slices", folder, 3, 2, point) for point, folder in folders.items()}
    for point, process in processes.items():
        code, _, error = finish(process)
        assert code == -signal.SIGKILL, (point, error)
        # The ledger commit decides: killed before it, the slice is not there; after it, it is.
        row = Ledger(folders[point]).row(QUERY)
        assert row is not None
        assert row.committed == (1 if point == "publish.staged" else 2), point
    for point, folder in folders.items():
        run(folder, 3)
        assert contents(folder) == expected, point


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
