"""Kills injected and survived, and what recovery costs: runs without Spark are killed at every point that they pass."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from sweeparea.infra.text_table import text_table
from tests.faults.strikes import Scenario
from tests.faults.zygote import Zygote

MODULE = "tests.faults.publications"
GROUPS = {
    "while files are staged": ("create.", "file.", "publish.staged"),
    "at a commit of a log": ("commit.",),
    "while it is applied": ("publish.ledger_committed", "publish.applied", "publish.history"),
}


def main() -> None:
    """Prints one line per scenario and kind of point; seconds are those of the run after the kill, to its end."""
    zygote = Zygote(MODULE)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("first", "later"):
            scenario = Scenario(zygote, MODULE, name, Path(folder) / name)
            lines.append((name, "undisturbed", "", "", f"{scenario.undisturbed_seconds:.2f}", ""))
            for group, begins in GROUPS.items():
                tally = scenario.kill_at([p for p in scenario.passed if p[0].startswith(begins)], and_after=False)
                seconds = list(tally.recovery.values())
                figures = (f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}")
                lines.append((name, group, str(tally.kills), str(tally.survived), *figures))
                for wrong in tally.wrong:
                    print(wrong)
    zygote.close()
    print(text_table(["run", "killed", "kills", "survived", "seconds after, median", "most"], lines))


if __name__ == "__main__":
    main()
