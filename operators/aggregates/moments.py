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
from functools import partial

import pyarrow as pa

from sweeparea.infra.errors import DataError
from sweeparea.operators.values import keys
from sweeparea.operators.values.exact import Accumulator


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
        found = [_of_pairs(function, first[a:b], second[a:b]) for a, b in itertools.pairwise(offsets)]
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


def _scaled(sums: Sequence[tuple[int, int]], factors: Sequence[int]) -> tuple[list[int], int]:
    """(integers, e): the sums ``integer * 2**-e`` of products of so many factors, each factor an integer times
    ``2**-e``.
    """
    e = max((-(-own // k) for (value, own), k in zip(sums, factors, strict=True) if value), default=0)
    return [value << (k * e - own) if value else 0 for (value, own), k in zip(sums, factors, strict=True)], e


# A formula of the number n of values, the sums of their powers, and their scale e.


def _variance(n: int, s: Sequence[int], e: int, sample: bool, rooted: bool) -> float:
    return (root if rooted else ratio)(n * s[1] - s[0] * s[0], n * (n - 1) if sample else n * n, 2 * e)


def _skewness(n: int, s: Sequence[int], e: int) -> float | None:
    s1, s2, s3 = s
    a, m3 = n * s2 - s1 * s1, n * n * s3 - 3 * n * s1 * s2 + 2 * s1**3
    if a == 0:
        return None
    return _signed(root(m3 * m3, a**3), m3)


def _kurtosis(n: int, s: Sequence[int], e: int) -> float | None:
    s1, s2, s3, s4 = s
    a = n * s2 - s1 * s1
    m4 = n**3 * s4 - 4 * n * n * s1 * s3 + 6 * n * s1 * s1 * s2 - 3 * s1**4
    return None if a == 0 else ratio(m4 - 3 * a * a, a * a)


@dataclass(frozen=True)
class _Formula:
    """``value`` of the first ``powers`` sums; NULL of fewer than ``least`` values (``odd``: with one that is not
    finite).
    """

    value: Callable[[int, Sequence[int], int], float | None]
    powers: int = 2
    least: int = 1
    odd: int = 1


_OF_POWERS = {
    "VAR_POP": _Formula(lambda n, s, e: _variance(n, s, e, sample=False, rooted=False)),
    "VAR_SAMP": _Formula(lambda n, s, e: _variance(n, s, e, sample=True, rooted=False), least=2, odd=2),
    "STDDEV_POP": _Formula(lambda n, s, e: _variance(n, s, e, sample=False, rooted=True)),
    "STDDEV_SAMP": _Formula(lambda n, s, e: _variance(n, s, e, sample=True, rooted=True), least=2, odd=2),
    "SKEWNESS": _Formula(_skewness, powers=3, odd=2),
    "KURTOSIS": _Formula(_kurtosis, powers=4, odd=2),
}


OF_SAMPLES = frozenset({"VAR_SAMP", "STDDEV_SAMP", "COVAR_SAMP", "SKEWNESS", "KURTOSIS", "CORR"})
"""NULL of one value: a sample's, or for want of a spread."""


def of_sums(function: str, n: int, sums: Sequence[tuple[int, int]], odd: int) -> float | None:
    """A statistic of n values from the sums of their powers, each ``integer * 2**-e``; ``odd`` of them are not finite
    (and not in the sums).
    """
    formula = _OF_POWERS[function]
    if odd:
        return math.nan if n >= formula.odd else None
    if n < formula.least:
        return None
    integers, e = _scaled(sums[: formula.powers], range(1, formula.powers + 1))
    return formula.value(n, integers, e)


def _of_numbers(function: str, numbers: Sequence[float]) -> float | None:
    finite = [x for x in numbers if math.isfinite(x)]
    x, e = _integers(finite)
    powers = range(1, _OF_POWERS[function].powers + 1)
    return of_sums(function, len(numbers), [(sum(v**k for v in x), k * e) for k in powers], len(numbers) - len(finite))


# -- of pairs ----------------------------------------------------------------------------------------------------------


class _Pairs:
    """What formulas of pairs ``(x, y)`` are made of; ``ex``, ``ey``: the scales of ``sx`` and ``sy``."""

    def __init__(self, n: int, sums: Sequence[tuple[int, int]]) -> None:
        """``sums``: of x, y, xx, yy and xy, each ``integer * 2**-e``."""
        x, y, xx, yy, xy = sums
        (sx, sxx), ex = _scaled((x, xx), (1, 2))
        (sy, syy), ey = _scaled((y, yy), (1, 2))
        more = max(0, xy[1] - ex - ey) if xy[0] else 0  # the product may have more places than both scales together
        sx, sxx, ex = sx << more, sxx << 2 * more, ex + more
        sxy = xy[0] << (ex + ey - xy[1]) if xy[0] else 0
        self.n, self.sx, self.sy, self.ex, self.ey = n, sx, sy, ex, ey
        self.a, self.b, self.c = n * sxx - sx * sx, n * syy - sy * sy, n * sxy - sx * sy


def of_pair_sums(function: str, n: int, sums: Sequence[tuple[int, int]], odd: Sequence[int]) -> float | None:
    """A statistic of n pairs, in the order of SQL's arguments, from the sums of first, second, their squares and their
    product, each ``integer * 2**-e``; ``odd``: how many of the first and of the second are not finite. A pair with
    one such value is in the sums of the other alone.
    """
    if n == 0:
        return None
    x, y, xx, yy, xy = sums
    odd_x, odd_y = odd
    if function.startswith("REGR"):  # REGR_*(y, x) name their arguments the other way round
        x, y, xx, yy, odd_x, odd_y = y, x, yy, xx, odd_y, odd_x
    if function == "REGR_SXX":
        y = yy = xy = (0, 0)
        odd_y = 0
    if function == "REGR_SYY":
        x = xx = xy = (0, 0)
        odd_x = 0
    if odd_x or odd_y:
        alone = n == 1 and function not in ("COVAR_POP", "REGR_SXX", "REGR_SYY", "REGR_SXY")
        return None if alone else math.nan
    return PAIRS[function](_Pairs(n, (x, y, xx, yy, xy)))


def _of_pairs(function: str, first: Sequence[float], second: Sequence[float]) -> float | None:
    parts = []
    for numbers in (first, second):
        finite = [v if math.isfinite(v) else 0.0 for v in numbers]
        integers, e = _integers(finite)
        parts.append((integers, e, sum(not math.isfinite(v) for v in numbers)))
    (x, ex, odd_x), (y, ey, odd_y) = parts
    squares = (sum(v * v for v in x), 2 * ex), (sum(v * v for v in y), 2 * ey)
    product = sum(v * w for v, w in zip(x, y, strict=True)), ex + ey
    return of_pair_sums(function, len(x), [(sum(x), ex), (sum(y), ey), *squares, product], (odd_x, odd_y))


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
    **{function: partial(_of_numbers, function) for function in _OF_POWERS},
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
