"""Aggregates with a state, of which one is right for whole numbers alone."""

from __future__ import annotations

import pyarrow.compute as pc

from sweeparea.operators.user import aggregate


class Running:
    def __init__(self) -> None:
        self.total = self.count = 0

    def add(self, value: float | None) -> None:
        self.total += value or 0
        self.count += value is not None

    def remove(self, value: float | None) -> None:
        self.total -= value or 0
        self.count -= value is not None

    def merge(self, other: Running) -> None:
        self.total += other.total
        self.count += other.count

    def value(self) -> float | None:
        return self.total if self.count else None


@aggregate(returns="bigint", state=Running)
def summed(values):
    return pc.call_function("sum", [values])


@aggregate(returns="double", state=Running)
def rounded(values):
    return pc.call_function("sum", [values])
