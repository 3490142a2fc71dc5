"""VAR, STDDEV, COVAR, CORR, REGR, SKEWNESS and KURTOSIS of what is valid at every instant, from exact sums of powers.

The sums may subtract (``kernels/powers.py``), so the state is one row for each group and end, as that of SUM, and a
value is the formula of the sums that the bag itself would have (``moments.py``): neither order nor slicing can change
a bit. Calls over one argument share their sums.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from sweeparea.operators import keys as key_codes
from sweeparea.operators import moments
from sweeparea.operators.aggregate_calls import Additive, BaseCall, Elements, Instants, Result
from sweeparea.operators.kernels import powers as kernel


def powers_of(function: str) -> int:
    """How many powers of its argument a formula takes, or ``PAIRS``: what calls must agree in to share sums."""
    if function in moments.PAIRS:
        return kernel.PAIRS
    return {"SKEWNESS": 3, "KURTOSIS": 4}.get(function, 2)


class MomentSum(Additive):
    """A function of ``SUMS_OF_POWERS``, of doubles or of structs of two."""

    def __init__(self, elements: Elements, table: pa.Table, i: int, call: BaseCall):
        super().__init__(elements, table, i, call)
        self.powers = powers_of(call.function)
        self.sums = 5 if self.powers == kernel.PAIRS else self.powers
        parts = self.array.flatten() if self.powers == kernel.PAIRS else [self.array]
        words = [key_codes.numpy_of(part, 0.0).astype(np.float64).view(np.int64) for part in parts]
        self.x, self.y = words[0], words[-1]
        self._read_state(table, i, call)

    def _arrays(self, rows: np.ndarray, copies: np.ndarray) -> tuple:
        kind, copies, begin, end, data = self._state(rows, copies)
        return self.sums, self.powers, kind, self.x[rows], self.y[rows], copies, begin, end, data

    def results(self, at: Instants, call: BaseCall, present: np.ndarray, copies: np.ndarray) -> Result:
        counts = super().results(at, call, present, copies).values
        offsets, data = kernel.running(*at.cut, *self._arrays(at.rows, copies))
        found, text = [], data.tobytes()
        last, value = (-1, b""), None
        for n, (a, b) in zip(counts.tolist(), itertools.pairwise(offsets.tolist()), strict=True):
            state = n, text[a:b]
            if state != last:
                last, value = state, self._value(call.function, n, state[1])
            found.append(value)
        valid = np.array([v is not None for v in found], np.bool_)
        values = np.array([0.0 if v is None else v + 0.0 for v in found], np.float64)
        return Result(values.view(np.int64), valid)

    def _value(self, function: str, n: int, state: bytes) -> float | None:
        *sums, odd = decoded(state, self.powers)
        if self.powers == kernel.PAIRS:
            return moments.of_pair_sums(function, n, sums, odd)
        return moments.of_sums(function, n, sums, odd[0])

    def _encoded(self, first: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return kernel.encode_runs(first, *self._arrays(rows, self.raw(rows)))


def decoded(state: bytes, powers: int) -> Iterator[tuple[int, int]]:
    """Each sum as (integer, e), the integer times ``2**-e``; then the two counts of values that are not finite."""
    factors = (1, 1, 2, 2, 2) if powers == kernel.PAIRS else range(1, powers + 1)
    at = 0
    for k in factors if state else ():
        low, size = int.from_bytes(state[at : at + 2], "little"), int.from_bytes(state[at + 2 : at + 4], "little")
        at += 4 + size
        yield int.from_bytes(state[at - size : at], "little", signed=True), kernel.FACTOR * k - 30 * low
    if not state:
        yield from itertools.repeat((0, 0), len(factors))
    odd = state[at:] or bytes(16)
    yield int.from_bytes(odd[:8], "little", signed=True), int.from_bytes(odd[8:], "little", signed=True)
