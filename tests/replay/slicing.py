"""Random slicings: the same timeline, cut by other heartbeats (Law S2)."""

from __future__ import annotations

import random
from typing import Any

from tests.replay.values import iso, micros


def slicing(rng: random.Random, start: int, ends: dict[str, int], timestamps: bool) -> Any:
    """A ``heartbeats`` member in which each input ends at its own instant, together with the others or apart."""

    def shown(tick: int) -> Any:
        return iso(tick) if timestamps else tick

    def cuts(end: int, most: int) -> list[Any]:
        inner = sorted({rng.randint(start - 2, max(end, start)) for _ in range(rng.randint(0, most))})
        return [shown(c) for c in inner if c < end] + [shown(end)]

    if len(set(ends.values())) == 1 and rng.random() < 0.8:
        return cuts(next(iter(ends.values())), 3)
    steps = rng.randint(2, 4)
    apart: dict[str, list[Any]] = {}
    for name, end in ends.items():
        given = cuts(end, steps - 1)
        while len(given) < steps:
            given.insert(rng.randint(0, len(given)), None)
        apart[name] = given
    return apart


def last_heartbeats(case: dict[str, Any]) -> dict[str, int]:
    """The last heartbeat of every input of a case."""
    given = case["heartbeats"]
    names = [*case["streams"], *case.get("relations", ())]
    steps: dict[str, list[Any]] = given if isinstance(given, dict) else {name: list(given) for name in names}
    read = micros if case.get("time") else int
    return {name: read([h for h in steps[name] if h is not None][-1]) for name in names}


def reslice(case: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The case under another random slicing."""
    read = micros if case.get("time") else int
    cut = slicing(rng, read(case.get("start_at", 0)), last_heartbeats(case), bool(case.get("time")))
    return {**case, "heartbeats": cut}


def one_slice(case: dict[str, Any]) -> dict[str, Any]:
    """The case in a single slice."""
    shown = iso if case.get("time") else int
    return {**case, "heartbeats": {name: [shown(end)] for name, end in last_heartbeats(case).items()}}
