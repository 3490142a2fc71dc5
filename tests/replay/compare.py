"""Compares a result line of ``replay`` with an expected one, and checks the laws that every result keeps (R1, R2)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

MEMBERS = ("columns", "istream", "dstream", "relation", "rstream", "stream")


def difference(expected: dict[str, Any], got: dict[str, Any], members: tuple[str, ...] = MEMBERS) -> str:
    """What differs, as text; empty if nothing does. Of an error only the type is compared."""
    if "error" in expected or "error" in got:
        kinds = [result.get("error", {}).get("type") for result in (expected, got)]
        if kinds[0] == kinds[1]:
            return ""
        return f"expected {kinds[0] or 'a result'}, got {got.get('error') or 'a result'}"
    wrong = [m for m in members if expected.get(m) != got.get(m)]
    return "\n".join(
        f"{m}: expected {json.dumps(expected.get(m))}\n{m}: got      {json.dumps(got.get(m))}" for m in wrong
    )


def broken_law(result: dict[str, Any], tick: Callable[[Any], int]) -> str:
    """What breaks Laws R1 and R2 (semantics, section 5) at an instant where ``result`` changes. ``tick`` reads one."""
    came, went = (_by_instant(result[member], tick) for member in ("istream", "dstream"))
    held: dict[int, Counter[str]] = {}
    for ts, te, values in result["relation"]:
        held.setdefault(tick(ts), Counter())[json.dumps(values)] += 1
        if te is not None:
            held.setdefault(tick(te), Counter())[json.dumps(values)] -= 1
    rebuilt: Counter[str] = Counter()
    relation: Counter[str] = Counter()
    for instant in sorted({*came, *went, *held}):
        arrivals, ends = came.get(instant, Counter()), went.get(instant, Counter())
        size = relation.total()
        relation.update(held.get(instant, Counter()))
        rebuilt.update(arrivals)
        rebuilt.subtract(ends)
        if both := arrivals & ends:
            return f"R1: at {instant} both istream and dstream have {both}"
        if relation.total() != size + arrivals.total() - ends.total():
            return f"R1: at {instant} the relation has {relation.total()} rows, {size} + {arrivals} - {ends} before"
        if +rebuilt != +relation or min(rebuilt.values(), default=0) < 0:
            return f"R2: at {instant} the streams sum up to {+rebuilt}, the relation holds {+relation}"
    return ""


def _by_instant(rows: list[list[Any]], tick: Callable[[Any], int]) -> dict[int, Counter[str]]:
    found: dict[int, Counter[str]] = {}
    for instant, values in rows:
        found.setdefault(tick(instant), Counter())[json.dumps(values)] += 1
    return found
