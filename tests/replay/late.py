"""Cases in which elements come late: the result must be that of the case in which all are on time (law L1)."""

from __future__ import annotations

import copy
import random
from typing import Any


def late(case: dict[str, Any], chance: random.Random, share: float = 0.3) -> dict[str, Any]:
    """The case with some of its streams' rows coming after any of its heartbeats, and repaired."""
    made = copy.deepcopy(case)
    beats = made["heartbeats"]
    last = len(beats) if isinstance(beats, list) else max(map(len, beats.values()), default=0)
    for stream in made.get("streams", {}).values():
        rows = stream["rows"]
        delayed = {i for i, row in enumerate(rows) if row[0] is not None and chance.random() < share}
        stream["late"] = "repair"
        stream["arrivals"] = [[chance.randint(0, last), *rows[i]] for i in sorted(delayed)]
        stream["rows"] = [row for i, row in enumerate(rows) if i not in delayed]
    return made
