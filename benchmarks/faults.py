"""Kills injected and survived, and what recovery costs: runs are killed at every point that they pass.

    python -m benchmarks.faults [--every K] [--seed N] [--jobs NAME ..]

Without ``--jobs`` the runs are those of ``tests/faults/publications.py``, which need no Spark; with it, scenarios of
``tests/faults/jobs.py`` on a Connect server of their own, killed at the points of the run and of Spark's workers.
With ``--every K`` one point of K is taken, chosen by ``--seed``. What was found is printed as it goes.
"""

from __future__ import annotations

import argparse
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sweeparea.infra.errors import exit_code_of
from sweeparea.infra.text_table import text_table
from tests.faults.server import serving
from tests.faults.strikes import Scenario, Tally
from tests.faults.zygote import Point, Zygote

MODULE = "tests.faults.publications"
GROUPS = {
    "while files are staged": ("create.", "columns.", "file.", "publish.staged", "slice.", "rewrite.", "replace."),
    "at a commit of a log": ("commit.", "format."),
    "while it is applied": ("publish.ledger_committed", "publish.applied", "publish.history", "drop."),
}
TELL_SECONDS = 60


def main() -> None:
    """Prints one line per scenario and kind of point; seconds are those of the run after the kill, to its end."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="one point of so many (default: each)")
    parser.add_argument("--seed", type=int, default=0, help="chooses them")
    parser.add_argument(
        "--jobs", nargs="+", default=[], metavar="NAME", help="scenarios with Spark: stream, relation .."
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    tallies: dict[tuple[str, str], Tally] = {}
    undisturbed: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            for name, scenario in scenarios(Path(folder), options.jobs):
                undisturbed[name] = scenario.undisturbed_seconds
                chosen = some(scenario.passed, options.every, options.seed)
                print(f"{name}: {len(chosen)} of {len(scenario.passed)} points", flush=True)
                for group, begins in GROUPS.items():
                    tally = tallies[name, group] = Tally()
                    strike(scenario, [p for p in chosen if p[0].startswith(begins)], group, tally)
        except KeyboardInterrupt:
            print("interrupted; what was done until then:")
    lines = [(name, "undisturbed", "", "", f"{seconds:.2f}", "") for name, seconds in undisturbed.items()]
    lines += [(name, group, *figures(tally)) for (name, group), tally in tallies.items()]
    total = Tally()
    for (name, group), tally in tallies.items():
        total.kills, total.survived = total.kills + tally.kills, total.survived + tally.survived
        total.recovery |= {f"{name} {group} {point}": seconds for point, seconds in tally.recovery.items()}
    lines.append(("all", "all", *figures(total)))
    print(text_table(["run", "killed", "kills", "survived", "seconds after, median", "most"], lines))


def scenarios(folder: Path, jobs: list[str]) -> Iterator[tuple[str, Scenario]]:
    """The scenarios by name, prepared."""
    if jobs:
        with serving(folder) as server:
            for name in jobs:
                yield name, server.scenario(name)
        return
    zygote = Zygote(MODULE)
    try:
        for name in ("first", "later"):
            yield name, Scenario(zygote, MODULE, name, folder / name)
    finally:
        zygote.close()


def figures(tally: Tally) -> tuple[str, str, str, str]:
    """Kills, survived, and median and most of the seconds after."""
    seconds = list(tally.recovery.values())
    median, most = (f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}") if seconds else ("", "")
    return str(tally.kills), str(tally.survived), median, most


def some(points: list[Point], every: int, seed: int) -> list[Point]:
    """One of each ``every`` points that follow each other, in their order."""
    chance = random.Random(seed)
    return [chance.choice(points[at : at + every]) for at in range(0, len(points), every)]


def strike(scenario: Scenario, points: list[Point], what: str, tally: Tally) -> None:
    """Kills at some points and adds to the tally; says once a minute how far it has come."""
    told = time.monotonic()
    for point in points:
        try:
            one = scenario.kill_at([point], and_after=False)
        except AssertionError as error:  # a run after the kill that did not come to its end
            one = Tally(kills=1, wrong=[f"{point}: {error}"])
        tally.kills += one.kills
        tally.survived += one.survived
        tally.recovery |= one.recovery
        for wrong in one.wrong:
            print(wrong, flush=True)
        if time.monotonic() - told > TELL_SECONDS or len(points) == tally.kills:
            told = time.monotonic()
            kills, survived, median, _ = figures(tally)
            print(
                f"{scenario.name}, {what}: {kills} of {len(points)} kills, {survived} survived, median {median} s",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(exit_code_of(main, "run the same command again"))
