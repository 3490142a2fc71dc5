"""Strike a scenario at every point that it passes, run it again, and compare with a run that nobody disturbed."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.state import contents, difference
from tests.faults.zygote import Faults, Outcome, Zygote


@dataclass
class Tally:
    """What was done to a scenario. ``recovery``: seconds of the runs after a kill, by point."""

    kills: int = 0
    survived: int = 0
    recovery: dict[str, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


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
        self._done("run", undisturbed, faults=self.faults.folder)
        self.undisturbed_seconds = time.monotonic() - began
        self.passed = self.faults.passed()
        self.faults.clear()
        self.expected = contents(undisturbed / "data")
        self._done("after", undisturbed)
        self.expected_after = contents(undisturbed / "data")

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

    def struck(self, point: str, nth: int, what: int = signal.SIGKILL) -> tuple[Path, int, Outcome]:
        """A folder in which a run was struck; the run's process id and how it fared."""
        folder = self.copy()
        self.faults.plan(point, nth, what)
        pid = self.start(folder, faults=self.faults.folder)
        outcome = self.zygote.wait(pid)
        self.faults.clear()
        return folder, pid, outcome

    def finish(self, folder: Path) -> None:
        """Runs to the end, whatever has come to pass before."""
        self._done("run", folder)

    def wrong(self, folder: Path, and_after: bool = True) -> str:
        """How the folder differs from that of an undisturbed run, and from it after more work; empty if it does not."""
        found = difference(contents(folder / "data"), self.expected)
        if not found and and_after:
            self._done("after", folder)
            found = difference(contents(folder / "data"), self.expected_after)
        return found

    def kill_at(self, points: Iterable[tuple[str, int]], and_after: bool = True) -> Tally:
        """Kills a run at each of the points and runs again. A run that a kill does not end has died elsewhere."""
        tally = Tally()
        for point, nth in points:
            folder, _, outcome = self.struck(point, nth)
            tally.kills += 1
            began = time.monotonic()
            self.finish(folder)
            tally.recovery[f"{point}#{nth}"] = time.monotonic() - began
            wrong = self.wrong(folder, and_after)
            if outcome.state not in ("killed", "refused") or wrong:
                tally.wrong.append(f"{self.name} {point}#{nth}: {outcome} {wrong}")
            else:
                tally.survived += 1
                shutil.rmtree(folder)
        return tally

    def _done(self, what: str, folder: Path, **options: Any) -> None:
        outcome = self.zygote.run(f"{self.module}:{what}", self.name, folder, **options)
        if outcome.state != "done":
            raise AssertionError(f"{what} of {self.name}: {outcome.state}: {outcome.text}")
