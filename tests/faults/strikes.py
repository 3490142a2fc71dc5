"""Strike a scenario at every point that it passes, run it again, and compare with a run that nobody disturbed."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.state import contents, difference
from tests.faults.zygote import Faults, Outcome, Point, Zygote

ANOTHER_WAY = ("replace", "columns", "in_place")
"""Runs after which a reader has followed in as many commits as it took, by corrections or by a build."""


@dataclass
class Tally:
    """What was done to a scenario. ``recovery``: seconds of the runs after a kill, by point."""

    kills: int = 0
    survived: int = 0
    recovery: dict[str, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


@contextmanager
def nearly_full(disk: Path, pages: int) -> Iterator[None]:
    """A disk on which so many pages of 4 KB are free, as long as one is inside."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(free - pages * 4096))
    try:
        yield
    finally:
        ballast.unlink()


class Scenario:
    """One scenario of ``module`` in a temporary folder: prepared once, copied for each strike."""

    def __init__(self, zygote: Zygote, module: str, name: str, folder: Path, faults: Path | None = None) -> None:
        self.zygote, self.module, self.name, self.folder = zygote, module, name, folder
        self.faults = Faults(faults or folder / "faults")
        self._copies = 0
        self._done("prepare", folder / "template")
        undisturbed = self.copy()
        self.faults.clear()
        began = time.monotonic()
        pid = self.start(undisturbed, faults=self.faults.folder)
        self._expect_done("run", self.zygote.wait(pid))
        self.undisturbed_seconds = time.monotonic() - began
        self.passed = self.faults.passed()
        self.of_workers: list[Point] = [(point, nth) for point, nth, by in self.faults.journal() if by != pid]
        """The points that Spark's workers pass."""
        self.faults.clear()
        self.expected = contents(undisturbed / "data")
        self._undisturbed = undisturbed

    @functools.cached_property
    def expected_after(self) -> dict[str, Any]:
        """The state after more work."""
        self._done("after", self._undisturbed)
        return contents(self._undisturbed / "data")

    def copy(self) -> Path:
        """A folder in the state before the run."""
        self._copies += 1
        target = self.folder / f"copy-{self._copies}"
        shutil.copytree(self.folder / "template", target, symlinks=True)
        return target

    def start(self, folder: Path, **options: Any) -> int:
        return self.zygote.start(f"{self.module}:run", self.name, folder, **options)

    def run(self, folder: Path, **options: Any) -> Outcome:
        return self.zygote.wait(self.start(folder, **options))

    def struck(
        self, point: str, nth: int, what: int = signal.SIGKILL, driver: bool = False
    ) -> tuple[Path, int, Outcome]:
        """A folder in which a run was struck; the run's process id and how it fared.

        ``driver``: the run itself is struck, whichever process passes the point.
        """
        folder = self.copy()
        self.faults.clear()
        if not driver:
            self.faults.plan(point, nth, what)
        pid = self.start(folder, faults=self.faults.folder)
        if driver:  # long before a worker can have come to the point
            self.faults.plan(point, nth, what, pid)
        outcome = self.zygote.wait(pid)
        self.faults.clear()
        return folder, pid, outcome

    def finish(self, folder: Path) -> None:
        """Runs to the end, whatever has come to pass before."""
        self._done("run", folder)

    def wrong(self, folder: Path, and_after: bool = True) -> str:
        """How the folder differs from that of an undisturbed run, and from it after more work; empty if it does not."""
        found = difference(self._seen(contents(folder / "data")), self._seen(self.expected))
        if not found and and_after:
            self._done("after", folder)
            found = difference(self._seen(contents(folder / "data")), self._seen(self.expected_after))
        return found

    def _seen(self, said: dict[str, Any]) -> dict[str, Any]:
        """What must be equal: everything, or the result tables where others may have come about otherwise."""
        if self.name not in ANOTHER_WAY:
            return said
        return {
            key: rows for key, rows in said.items() if key.startswith("results/") and not key.endswith("__corrections")
        }

    def kill_at(self, points: Iterable[Point], and_after: bool = True, driver: bool = False) -> Tally:
        """Kills a run at each of the points and runs again. Where a worker is killed, the run ends with an error."""
        tally = Tally()
        for point, nth in points:
            folder, _, outcome = self.struck(point, nth, driver=driver)
            tally.kills += 1
            began = time.monotonic()
            self.finish(folder)
            tally.recovery[f"{point}#{nth}"] = time.monotonic() - began
            wrong = self.wrong(folder, and_after)
            expected = "refused" if (point, nth) in self.of_workers and not driver else "killed"
            if outcome.state != expected or wrong:
                tally.wrong.append(f"{self.name} {point}#{nth}: {outcome} {wrong}")
            else:
                tally.survived += 1
                shutil.rmtree(folder)
        return tally

    def _done(self, what: str, folder: Path, **options: Any) -> None:
        self._expect_done(what, self.zygote.run(f"{self.module}:{what}", self.name, folder, **options))

    def _expect_done(self, what: str, outcome: Outcome) -> None:
        if outcome.state != "done":
            raise AssertionError(f"{what} of {self.name}: {outcome.state}: {outcome.text}")
