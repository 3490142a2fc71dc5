"""Taking the tables of a name away."""

from __future__ import annotations

import uuid

from sweeparea.spark_jobs.declarations.declarations import Declarations
from sweeparea.tables.errors import LostRace
from sweeparea.tables.faults import crash_point
from sweeparea.tables.log.folders import has_folder, move_folder, remove_at_once, remove_folder, tables_in
from sweeparea.tables.publication.deployed import Deployed

SUFFIXES = ("", "__relation", "__istream", "__dstream", "__rstream", "__quarantine", "__corrections")


def discard(declared: Declarations, deployed: Deployed, name: str, registration: str, purge: bool) -> list[str]:
    """Deletes the tables of a name whose ledger row is gone, or lays them aside; returns what was done.

    LostRace where the name is not deployed under ``registration`` any more: another run has taken the tables away, and
    what is there now is not of this registration.
    """
    layout, done = declared.layout, []
    folders = [layout.result(name + s) for s in SUFFIXES]
    folders += [layout.admitted(name), layout.quarantine(name), layout.state(name, "x").rsplit("/", 1)[0]]
    declared.ledger.close(table for folder in folders for table in tables_in(folder))
    for folder in folders:
        if not has_folder(folder):
            continue
        crash_point("drop.folder", folder)
        _require(declared, deployed, name, registration)
        if purge:
            remove_at_once(folder, layout.spill(uuid.uuid4().hex))
            done.append(f"{name}: removed {folder}")
            continue
        aside = f"{layout.dropped(name, registration)}/{layout.relative(folder)}"
        remove_folder(aside)
        move_folder(folder, aside)
        done.append(f"{name}: moved {folder} to {aside}")
    return done


def _require(declared: Declarations, deployed: Deployed, name: str, registration: str) -> None:
    row = deployed.rows().get(name)
    anew = row is not None and row.registration != registration
    if anew or declared.ledger.row(name) is not None:
        raise LostRace(
            f"{name} was registered anew by another run meanwhile. What is there now is left as it is; drop it again if"
            " that is meant."
        )
