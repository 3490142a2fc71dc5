"""VAR, STDDEV, COVAR, CORR, REGR, SKEWNESS and KURTOSIS of what is valid at every instant, from exact sums of powers.

The sums may subtract (``kernels/sums/powers.py``), so the state is one row for each group and end, as that of SUM, and
a value is the formula of the sums that the bag itself would have (``moments.py``): neither order nor slicing can change
a bit. Calls over one argument share their sums.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sweeparea.operators.aggregates import moments
from sweeparea.operators.aggregates.calls import BaseCall
from sweeparea.operators.aggregates.instants import Elements, Instants, Result
from sweeparea.operators.aggregates.sums import Additive
from sweeparea.operators.kernels.events import Terms
from sweeparea.operators.kernels.sums import powers as kernel
from sweeparea.operators.values import keys as key_codes

_FACTORS = {2: (1, 2), 3: (1, 2, 3), 4: (1, 2, 3, 4), kernel.PAIRS: (1, 1, 2, 2, 2)}
"""Of how many factors the products are that a sum adds."""


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

    def _summed(self, rows: np.ndarray, copies: np.ndarray) -> tuple[int, int, np.ndarray, np.ndarray, Terms]:
        # as the kernel takes them
        return self.sums, self.powers, self.x[rows], self.y[rows], self._terms(rows, copies)

    def results(self, at: Instants, call: BaseCall, present: np.ndarray, copies: np.ndarray) -> Result:
        counts = super().results(at, call, present, copies).values
        offsets, data = kernel.running(at.cut, *self._summed(at.rows, copies))
        text, ends = data.tobytes(), offsets.tolist()
        values, valid = np.zeros(len(counts), np.float64), np.zeros(len(counts), np.bool_)
        last, value = (-1, b""), None
        # of fewer values than these every formula is NULL
        least = 2 if call.function in moments.OF_SAMPLES else 1
        for s in np.flatnonzero(counts >= least).tolist():
            state = int(counts[s]), text[ends[s] : ends[s + 1]]
            if state != last:
                last, value = state, self._value(call.function, *state)
            if value is not None:
                values[s], valid[s] = value + 0.0, True
        return Result(values.view(np.int64), valid)

    def _value(self, function: str, n: int, state: bytes) -> float | None:
        return statistic(function, self.powers, n, *decoded(state, self.powers))

    def _encoded(self, first: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return kernel.encode_runs(first, *self._summed(rows, self.raw(rows)))


def statistic(
    function: str, powers: int, n: int, sums: Sequence[tuple[int, int]], odd: tuple[int, int]
) -> float | None:
    """A function of n values, or pairs, from its sums, each ``integer * 2**-e``; ``odd`` of them are not finite."""
    if powers == kernel.PAIRS:
        return moments.of_pair_sums(function, n, sums, odd)
    return moments.of_sums(function, n, sums, odd[0])


def scaled(sums: Sequence[tuple[int, int]], powers: int) -> list[tuple[int, int]]:
    """Sums (integer, e), from (integer, number of the digit at which it begins)."""
    factors = _FACTORS[powers]
    return [(whole, kernel.FACTOR * k - kernel.BASE * first) for (whole, first), k in zip(sums, factors, strict=True)]


def decoded(state: bytes, powers: int) -> tuple[list[tuple[int, int]], tuple[int, int]]:
    """(sums, counts of values that are not finite): a sum is (integer, e), which is ``integer * 2**-e``."""
    factors = _FACTORS[powers]
    if not state:
        return [(0, 0)] * len(factors), (0, 0)
    sums, at, whole = [], 0, int.from_bytes
    for k in factors:
        end = at + 4 + (state[at + 2] | state[at + 3] << 8)
        low = state[at] | state[at + 1] << 8
        sums.append((whole(state[at + 4 : end], "little", signed=True), kernel.FACTOR * k - 30 * low))
        at = end
    if at == len(state):
        return sums, (0, 0)
    return sums, (whole(state[at : at + 8], "little", signed=True), whole(state[at + 8 :], "little", signed=True))
