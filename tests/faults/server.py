"""Scenarios with Spark on one Connect server, which outlives the runs that are killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sweeparea.infra.services import spark_connect
from tests.faults.strikes import Scenario
from tests.faults.zygote import Zygote

JOBS = "tests.faults.jobs"


@dataclass
class Server:
    """The scenarios of ``jobs.py``, each prepared once."""

    zygote: Zygote
    folder: Path
    faults: Path
    made: dict[str, Scenario]

    def scenario(self, name: str) -> Scenario:
        if name not in self.made:
            self.made[name] = Scenario(self.zygote, JOBS, name, self.folder / name, self.faults)
        return self.made[name]


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server of its own for the time of the block, with all that it needs in ``folder``."""
    faults = folder / "faults"
    faults.mkdir()
    os.environ["SWEEPAREA_FAULTS"] = str(faults)  # for the server's workers
    try:
        with spark_connect.running(folder / "run") as address:
            del os.environ["SWEEPAREA_FAULTS"]
            environment = {"SPARK_REMOTE": address, "SWEEPAREA_RUN": str(folder / "run"), "SWEEPAREA_SYNC": "off"}
            zygote = Zygote("pyspark.sql.connect.session", JOBS, environment=environment)
            yield Server(zygote, folder, faults, {})
            zygote.close()
    finally:
        os.environ.pop("SWEEPAREA_FAULTS", None)
