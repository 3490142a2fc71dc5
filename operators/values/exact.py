"""Exact sums of doubles, integers and decimals: order, slicing and expired summands cannot change a bit.

The published SUM over DOUBLE is the correctly rounded value (half to even) of the exact real sum, what ``math.fsum``
gives, with three differences: summands can be taken out again; a sum beyond the double range is +-infinity where
``fsum`` raises OverflowError (also where only an intermediate sum would be, which is harmless here); NaN and
infinities are counted apart, so their effect ends with them: any NaN, or infinities of both signs, give NaN. The
exact sum zero is +0.0.

``Accumulator`` is the plain face of ``kernels/sums/exact.py``, for tests, tools and partial sums; sweeps use the
kernels directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from sweeparea.operators.kernels.sums import exact as kernel


class Summed(StrEnum):
    """What an accumulator sums: integers are also unscaled decimals, of 128 bits."""

    DOUBLE = "double"
    INTEGER = "integer"


class Accumulator:
    """A sum that is never rounded. ``kind`` is a ``Summed``, or its value."""

    def __init__(self, kind: str = Summed.DOUBLE, encoded: bytes = b""):
        if kind not in set(Summed):
            raise ValueError(f"an accumulator sums 'double' or 'integer', not {kind!r}")
        self.kind = Summed(kind)
        self._bias = kernel.DOUBLE_BIAS if self.kind == Summed.DOUBLE else kernel.INTEGER_BIAS
        self._acc = kernel.new()
        self.add_encoded(encoded)

    def add(
        self, values: Sequence[float] | np.ndarray, copies: Sequence[int] | np.ndarray | None = None
    ) -> Accumulator:
        """Add ``copies[i]`` (default 1, may be negative) copies of ``values[i]``: doubles, or Python ints within 128
        bits.
        """
        n = np.ones(len(values), np.int64) if copies is None else np.ascontiguousarray(copies, np.int64)
        if self.kind == Summed.DOUBLE:
            kernel.sum_doubles(np.ascontiguousarray(values, np.float64).view(np.int64), n, self._acc)
        else:
            words = np.frombuffer(b"".join(int(v).to_bytes(16, "little", signed=True) for v in values), np.int64)
            kernel.sum_integers(words[1::2].copy(), words[0::2].copy(), n, self._acc)
        return self

    def add_encoded(self, encoded: bytes, sign: int = 1) -> Accumulator:
        """Add (or with sign -1 subtract) what another accumulator of this kind encoded."""
        kernel.add_encoded(self._acc, np.frombuffer(encoded, np.uint8), 0, len(encoded), sign)
        return self

    def encode(self) -> bytes:
        """Canonical bytes: accumulators of one value have one encoding; zero is ``b""``."""
        out = np.zeros(kernel.MAX_BYTES, np.uint8)
        return out[: kernel.encode(self._acc, out, 0)].tobytes()

    def double(self) -> float:
        """The correctly rounded value."""
        return float(np.int64(kernel.to_double(self._acc, self._bias)).view(np.float64))

    def integer(self) -> int:
        """The exact value of an integer accumulator; OverflowError beyond 128 bits."""
        fits, high, low = kernel.to_integer(self._acc)
        if self.kind != Summed.INTEGER or not fits:
            raise OverflowError(
                "the sum does not fit in 128 bits" if self.kind == Summed.INTEGER else "a sum of doubles"
            )
        return int(high) << 64 | int(low) & 0xFFFFFFFFFFFFFFFF
