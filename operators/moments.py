"""Statistical aggregates of bags of doubles, each one correctly rounded value of its exact real (semantics, section 4).

A finite double is an integer times a power of two, so sums of powers and products of the values are integers over one
common power: no summand is ever rounded, and neither order nor slicing can change a bit. What a formula makes of them
is a quotient of integers, or the square root of one, and is rounded once, half to even. With ``n`` values, ``S_k`` the
sum of their k-th powers, ``A = n S_2 - S_1^2`` (of x; ``B`` of y) and ``C = n S_xy - S_x S_y``:

    VAR_POP = A / n^2        VAR_SAMP = A / (n (n-1))       STDDEV_* its root
    COVAR_POP = C / n^2      COVAR_SAMP = C / (n (n-1))     CORR = C / sqrt(A B)
    REGR_SLOPE = C / A       REGR_INTERCEPT = (S_y A - S_x C) / (n A)       REGR_R2 = C^2 / (A B)
    REGR_SXX = A / n         REGR_SYY = B / n               REGR_SXY = C / n
    SKEWNESS = M_3 / sqrt(A^3)     with M_3 = n^2 S_3 - 3 n S_1 S_2 + 2 S_1^3
    KURTOSIS = M_4 / A^2 - 3       with M_4 = n^3 S_4 - 4 n^2 S_1 S_3 + 6 n S_1^2 S_2 - 3 S_1^4

As in Spark SQL, NULL arguments are left out (of pairs: where either is NULL), nothing gives NULL, and so do the *_SAMP
of one value. Where all x (or y) are equal and a formula divides by zero the result is NULL, REGR_R2 of equal y over
different x is 1 (the SQL standard; Spark in ANSI mode fails there). A NaN or an infinity among the values gives NaN.

>>> float(values("VAR_SAMP", pa.array([[1e16, 1.0, -1e16, 3.0]]))[0].as_py()) == 2e32 / 3
True
>>> values("CORR", pa.array([[{"x": 1.0, "y": 2.0}, {"x": 2.0, "y": 4.0}], []])).to_pylist()
[1.0, None]
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sweeparea.infra.errors import DataError
from sweeparea.operators import keys
from sweeparea.operators.exact import Accumulator


@dataclass(frozen=True)
class Exact:
    """``function`` of every list of an array, as values of ``type``."""

    function: str

    @property
    def type(self) -> pa.DataType:
        return VECTOR if self.function in VECTORS else pa.float64()

    def __call__(self, lists: pa.Array) -> pa.Array:
        return (vectors if self.function in VECTORS else values)(self.function, lists)


def values(function: str, lists: pa.Array) -> pa.Array:
    """``function`` of each list: of doubles, or of pairs (structs of two doubles, in the order of SQL's arguments).

    ``lists`` hold no NULLs; a list that is NULL itself counts as empty.
    """
    array = keys.one_array(lists)
    offsets = [0, *_running(keys.lengths(array).tolist())]
    flat = keys.flat_values(array)
    if pa.types.is_struct(flat.type):
        first, second = (keys.numpy_of(part, 0.0).astype("float64").tolist() for part in flat.flatten())
        pairs = PAIRS[function]
        found = [_of_pairs(function, pairs, first[a:b], second[a:b]) for a, b in itertools.pairwise(offsets)]
        return pa.array(found, pa.float64(), from_pandas=False)
    numbers = keys.numpy_of(flat, 0.0).astype("float64").tolist()
    single = SINGLES[function]
    return pa.array([single(numbers[a:b]) for a, b in itertools.pairwise(offsets)], pa.float64())


def vectors(function: str, lists: pa.Array) -> pa.Array:
    """VECTOR_SUM or VECTOR_AVG of each list of vectors of floats: every element exact, rounded to a float in the end.

    DataError where the vectors of one list differ in length. A NULL element makes its sum NULL.
    """
    found = []
    for vectors_ in lists.to_pylist():
        if len({len(vector) for vector in vectors_ or ()}) > 1:
            raise DataError(f"{function}: the vectors of one group differ in length.")
        sums = [None if None in column else VECTORS[function](column) for column in zip(*vectors_ or (), strict=True)]
        found.append(sums if vectors_ else None)
    return pa.array(found, pa.list_(pa.float64())).cast(VECTOR)


def _running(sizes: list[int]) -> list[int]:
    total, found = 0, []
    for size in sizes:
        total += size
        found.append(total)
    return found


# -- exact sums --------------------------------------------------------------------------------------------------------


def _integers(numbers: Sequence[float]) -> tuple[list[int], int]:
    """(integers, e) with ``numbers[i] == integers[i] * 2**-e``, of finite doubles."""
    ratios = [x.as_integer_ratio() for x in numbers]
    e = max((q.bit_length() for _, q in ratios), default=1) - 1
    return [p << (e + 1 - q.bit_length()) for p, q in ratios], e


def ratio(p: int, q: int, e: int = 0) -> float:
    """``p / q * 2**-e``, correctly rounded; infinite beyond the range of doubles."""
    p, q = (p, q << e) if e >= 0 else (p << -e, q)
    try:
        return p / q
    except OverflowError:
        return math.inf if (p > 0) == (q > 0) else -math.inf


def root(p: int, q: int, e: int = 0) -> float:
    """The square root of ``p / q * 2**-e``, correctly rounded; p >= 0, q > 0."""
    if p == 0:
        return 0.0
    p, q = (p, q << e) if e >= 0 else (p << -e, q)
    shift = max(0, 140 - p.bit_length() + q.bit_length())
    shift += shift % 2
    scaled, rest = divmod(p << shift, q)
    whole = math.isqrt(scaled)
    # at least 69 bits of the root are here: one more that says whether any follow decides every rounding
    sticky = int(rest != 0 or whole * whole != scaled)
    return ratio(2 * whole + sticky, 1, shift // 2 + 1)


def _signed(size: float, sign: int) -> float:
    return -size if sign < 0 else size


# -- of one argument ---------------------------------------------------------------------------------------------------


def _sum(numbers: Sequence[float]) -> float | None:
    return Accumulator().add(numbers).double() if numbers else None


def _average(numbers: Sequence[float]) -> float | None:
    total = _sum(numbers)
    return None if total is None else total / len(numbers)


def _finite(numbers: Sequence[float]) -> bool:
    return all(map(math.isfinite, numbers))


def _spread(numbers: Sequence[float]) -> tuple[int, int]:
    """(A, e): A times 2**-e is n S_2 - S_1^2."""
    x, e = _integers(numbers)
    total = sum(x)
    return len(x) * sum(v * v for v in x) - total * total, 2 * e


def _variance(numbers: Sequence[float], sample: bool, rooted: bool) -> float | None:
    n = len(numbers)
    if n <= int(sample):
        return None
    if not _finite(numbers):
        return math.nan
    a, e = _spread(numbers)
    return (root if rooted else ratio)(a, n * (n - 1) if sample else n * n, e)


def _skewness(numbers: Sequence[float]) -> float | None:
    n = len(numbers)
    if not _finite(numbers):
        return math.nan if n > 1 else None
    x, _ = _integers(numbers)
    s1, s2, s3 = (sum(v**k for v in x) for k in (1, 2, 3))
    a, m3 = n * s2 - s1 * s1, n * n * s3 - 3 * n * s1 * s2 + 2 * s1**3
    if a == 0:
        return None
    return _signed(root(m3 * m3, a**3), m3)


def _kurtosis(numbers: Sequence[float]) -> float | None:
    n = len(numbers)
    if not _finite(numbers):
        return math.nan if n > 1 else None
    x, _ = _integers(numbers)
    s1, s2, s3, s4 = (sum(v**k for v in x) for k in (1, 2, 3, 4))
    a = n * s2 - s1 * s1
    m4 = n**3 * s4 - 4 * n * n * s1 * s3 + 6 * n * s1 * s1 * s2 - 3 * s1**4
    return None if a == 0 else ratio(m4 - 3 * a * a, a * a)


# -- of pairs ----------------------------------------------------------------------------------------------------------


class _Pairs:
    """The exact sums of pairs ``(x, y)``; ``ex``, ``ey``: the scales of ``sx`` and ``sy`` as in ``_integers``."""

    def __init__(self, first: Sequence[float], second: Sequence[float]) -> None:
        x, self.ex = _integers(first)
        y, self.ey = _integers(second)
        self.n, self.sx, self.sy = len(x), sum(x), sum(y)
        self.a = self.n * sum(v * v for v in x) - self.sx * self.sx
        self.b = self.n * sum(v * v for v in y) - self.sy * self.sy
        self.c = self.n * sum(v * w for v, w in zip(x, y, strict=True)) - self.sx * self.sy


def _of_pairs(
    function: str, formula: Callable[[_Pairs], float | None], first: Sequence[float], second: Sequence[float]
) -> float | None:
    # REGR_*(y, x) name their arguments the other way round
    x, y = (second, first) if function.startswith("REGR") else (first, second)
    if not x:
        return None
    if function == "REGR_SXX":
        y = [0.0] * len(y)
    if function == "REGR_SYY":
        x = [0.0] * len(x)
    if not (_finite(x) and _finite(y)):
        alone = len(x) == 1 and function not in ("COVAR_POP", "REGR_SXX", "REGR_SYY", "REGR_SXY")
        return None if alone else math.nan
    return formula(_Pairs(x, y))


def _covariance(s: _Pairs, sample: bool) -> float | None:
    if s.n <= int(sample):
        return None
    return ratio(s.c, s.n * (s.n - 1) if sample else s.n * s.n, s.ex + s.ey)


def _correlation(s: _Pairs) -> float | None:
    if s.a == 0 or s.b == 0:
        return None
    return _signed(root(s.c * s.c, s.a * s.b), s.c)


def _slope(s: _Pairs) -> float | None:
    return None if s.a == 0 else ratio(s.c, s.a, s.ey - s.ex)


def _intercept(s: _Pairs) -> float | None:
    return None if s.a == 0 else ratio(s.sy * s.a - s.sx * s.c, s.n * s.a, s.ey)


def _determination(s: _Pairs) -> float | None:
    if s.a == 0:
        return None
    return 1.0 if s.b == 0 else ratio(s.c * s.c, s.a * s.b)


SINGLES: dict[str, Callable[[Sequence[float]], float | None]] = {
    "SUM": _sum,
    "AVG": _average,
    "VAR_POP": lambda x: _variance(x, sample=False, rooted=False),
    "VAR_SAMP": lambda x: _variance(x, sample=True, rooted=False),
    "STDDEV_POP": lambda x: _variance(x, sample=False, rooted=True),
    "STDDEV_SAMP": lambda x: _variance(x, sample=True, rooted=True),
    "SKEWNESS": _skewness,
    "KURTOSIS": _kurtosis,
}
"""Of one argument; SUM and AVG as ``exact.py`` has them."""

PAIRS: dict[str, Callable[[_Pairs], float | None]] = {
    "COVAR_POP": lambda s: _covariance(s, sample=False),
    "COVAR_SAMP": lambda s: _covariance(s, sample=True),
    "CORR": _correlation,
    "REGR_SLOPE": _slope,
    "REGR_INTERCEPT": _intercept,
    "REGR_R2": _determination,
    "REGR_SXX": lambda s: ratio(s.a, s.n, 2 * s.ex),
    "REGR_SYY": lambda s: ratio(s.b, s.n, 2 * s.ey),
    "REGR_SXY": lambda s: ratio(s.c, s.n, s.ex + s.ey),
}
"""Of two arguments."""

VECTOR = pa.list_(pa.field("element", pa.float32()))
VECTORS: dict[str, Callable[[Sequence[float]], float | None]] = {"VECTOR_SUM": _sum, "VECTOR_AVG": _average}
"""Of vectors, element by element."""
