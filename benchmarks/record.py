"""A file of results, ``benchmarks/results/<name>.json``, with the machine, versions and commit it was measured on."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

FOLDER = Path(__file__).parent / "results"


@dataclass
class Record:
    """What was measured: ``cases`` are the dicts that ``race.py`` makes."""

    name: str
    made: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    machine: dict[str, Any] = field(default_factory=dict)
    commit: str = ""
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    startup: dict[str, float] = field(default_factory=dict)
    cases: list[dict[str, Any]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    """Figures of ``strategies.py``: title, across, unit, and per strategy its (place, value)."""
    printed: dict[str, str] = field(default_factory=dict)
    """What the benchmarks printed that have no rivals, by name."""

    @property
    def path(self) -> Path:
        """Its file."""
        return FOLDER / f"{self.name}.json"

    def write(self) -> None:
        """Writes it; called after each case, so that what is measured is not lost."""
        self.machine = self.machine or machine()
        self.commit = self.commit or commit()
        self.machine["load at the end"] = load()
        FOLDER.mkdir(exist_ok=True)
        self.path.write_text(json.dumps(self.__dict__, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(path: Path | str) -> Record:
    """The results of a file; a bare name is one in ``benchmarks/results``."""
    path = Path(path)
    if not path.exists() and path.suffix != ".json":
        path = FOLDER / f"{path}.json"
    return Record(**json.loads(path.read_text(encoding="utf-8")))


def machine() -> dict[str, Any]:
    """Processor, cores, memory, system, and what else ran when it began."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory GB": round(psutil.virtual_memory().total / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load at the beginning": load(),
    }


def load() -> list[float]:
    """How many processes wanted a core, on average of 1, 5 and 15 minutes."""
    return [round(value, 1) for value in os.getloadavg()]


def commit() -> str:
    """The checkout's commit, with ``+`` where files differ from it."""
    root = Path(__file__).parent.parent
    try:
        head = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=root, capture_output=True, text=True)
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no"], cwd=root, capture_output=True, text=True
        )
    except OSError:
        return "unknown"
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "") or "unknown"


def _processor() -> str:
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1] if found else platform.processor()
