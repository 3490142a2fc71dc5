"""SQL over one bag of rows in plain Python: holistic, ordered and statistical aggregates, window functions.

Written from SQL's and Spark's definitions, with Fractions and 200 decimal digits where the engine promises one
correctly rounded value. Shares no code with the engine. A row is a tuple; NULL is None.
"""

from __future__ import annotations

import decimal
import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

Row = tuple[Any, ...]
Order = Sequence[tuple[int, bool]]
"""Columns and whether descending; ascending with NULL first, descending with NULL last."""


def rank(value: Any) -> tuple:
    """A sort key: NULL first, NaN greatest, -0.0 as 0.0, strings by their UTF-8 bytes."""
    if value is None:
        return (0,)
    if isinstance(value, str):
        return (1, value.encode())
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return (1, value)


def ordered(rows: Sequence[Row], order: Order) -> list[Row]:
    """The rows in an order, its ties by the whole record."""
    found = sorted(rows, key=lambda r: [rank(v) for v in r])
    for column, descending in reversed(order):
        found.sort(key=lambda r: rank(r[column]), reverse=descending)
    return found


def known(values: Sequence[Any]) -> list[Any]:
    return [v for v in values if v is not None]


def unique(values: Sequence[Any]) -> list[Any]:
    return list({rank(v): v for v in values}.values())


# -- sums and moments --------------------------------------------------------------------------------------------------


def _rounded(x: Fraction) -> float:
    try:
        return x.numerator / x.denominator
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _root(x: Fraction) -> float:
    p, q = math.isqrt(x.numerator), math.isqrt(x.denominator)
    if p * p == x.numerator and q * q == x.denominator:  # exact, so it may lie in the middle between two doubles
        return _rounded(Fraction(p, q))
    with decimal.localcontext(prec=200, Emax=10**6, Emin=-(10**6)):
        return float((decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)).sqrt())


def total(values: Sequence[Any]) -> Any:
    given = known(values)
    if not given:
        return None
    if all(isinstance(v, int) for v in given):
        return sum(given)
    rest = {v for v in given if not math.isfinite(v)}
    if rest:
        return math.nan if any(map(math.isnan, rest)) or len(rest) > 1 else rest.pop()
    return _rounded(sum(map(Fraction, given), Fraction(0)))


def average(values: Sequence[Any]) -> float | None:
    given = known(values)
    return float(total(given)) / len(given) if given else None


class Moments:
    """Exact central moments of pairs."""

    def __init__(self, xs: Sequence[Any], ys: Sequence[Any]) -> None:
        self.n = len(xs)
        x, y = [Fraction(float(v)) for v in xs], [Fraction(float(v)) for v in ys]
        self.mx, self.my = sum(x, Fraction(0)) / self.n, sum(y, Fraction(0)) / self.n
        self.xx = sum(((v - self.mx) ** 2 for v in x), Fraction(0))
        self.yy = sum(((v - self.my) ** 2 for v in y), Fraction(0))
        self.xy = sum(((v - self.mx) * (w - self.my) for v, w in zip(x, y, strict=True)), Fraction(0))
        self.m3 = sum(((v - self.mx) ** 3 for v in x), Fraction(0))
        self.m4 = sum(((v - self.mx) ** 4 for v in x), Fraction(0))


def single(formula: Callable[[Moments], float | None], least: int) -> Callable[[Sequence[Any]], float | None]:
    """A statistic of one argument, NULL of fewer than ``least`` values."""

    def of(values: Sequence[Any]) -> float | None:
        given = known(values)
        if len(given) < least:
            return None
        return formula(Moments(given, given)) if all(map(math.isfinite, given)) else math.nan

    return of


def pair(
    formula: Callable[[Moments], float | None], least: int
) -> Callable[[Sequence[Any], Sequence[Any]], float | None]:
    """A statistic of (x, y), of the rows where neither is NULL."""

    def of(xs: Sequence[Any], ys: Sequence[Any]) -> float | None:
        both = [(x, y) for x, y in zip(xs, ys, strict=True) if x is not None and y is not None]
        if len(both) < least:
            return None
        x, y = zip(*both, strict=True)
        return formula(Moments(x, y)) if all(map(math.isfinite, (*x, *y))) else math.nan

    return of


def _signed_root(sign: Fraction, x: Fraction) -> float:
    return -_root(x) if sign < 0 else _root(x)


var_pop = single(lambda m: _rounded(m.xx / m.n), 1)
sxx = single(lambda m: _rounded(m.xx), 1)
var_samp = single(lambda m: _rounded(m.xx / (m.n - 1)), 2)
stddev_pop = single(lambda m: _root(m.xx / m.n), 1)
stddev_samp = single(lambda m: _root(m.xx / (m.n - 1)), 2)
skewness = single(lambda m: _signed_root(m.m3, m.n * m.m3**2 / m.xx**3) if m.xx else None, 2)
kurtosis = single(lambda m: _rounded(m.n * m.m4 / m.xx**2 - 3) if m.xx else None, 2)
covar_pop = pair(lambda m: _rounded(m.xy / m.n), 1)
covar_samp = pair(lambda m: _rounded(m.xy / (m.n - 1)), 2)
corr = pair(lambda m: _signed_root(m.xy, m.xy**2 / (m.xx * m.yy)) if m.xx and m.yy else None, 2)
slope = pair(lambda m: _rounded(m.xy / m.xx) if m.xx else None, 2)
intercept = pair(lambda m: _rounded(m.my - m.xy / m.xx * m.mx) if m.xx else None, 2)
determination = pair(lambda m: (_rounded(m.xy**2 / (m.xx * m.yy)) if m.yy else 1.0) if m.xx else None, 2)
sxy = pair(lambda m: _rounded(m.xy), 1)


# -- order statistics --------------------------------------------------------------------------------------------------


def percentile(values: Sequence[Any], share: float, descending: bool = False) -> float | None:
    """By linear interpolation."""
    given = sorted(known(values), key=rank, reverse=descending)
    if not given:
        return None
    at = share * (len(given) - 1)
    low, high = float(given[math.floor(at)]), float(given[math.ceil(at)])
    return low if low == high or at == math.floor(at) else (math.ceil(at) - at) * low + (at - math.floor(at)) * high


def percentile_disc(values: Sequence[Any], share: float, descending: bool = False) -> float | None:
    given = sorted(known(values), key=rank, reverse=descending)
    return float(given[max(0, math.ceil(share * len(given)) - 1)]) if given else None


def mode(values: Sequence[Any]) -> Any:
    """Of the most frequent values the least."""
    counts = Counter(rank(v) for v in known(values))
    return min(known(values), key=lambda v: (-counts[rank(v)], rank(v)), default=None)


def by(rows: Sequence[Row], column: int, other: int, descending: bool) -> Any:
    """MAX_BY or MIN_BY, ties by the record."""
    given = ordered([r for r in rows if r[other] is not None], [(other, descending)])
    return given[0][column] if given else None


# -- window functions --------------------------------------------------------------------------------------------------


def partitions(rows: Sequence[Row], keys: Sequence[int], order: Order) -> list[list[Row]]:
    """The rows by their keys, each part in its complete order."""
    parts: dict[tuple, list[Row]] = {}
    for row in ordered(rows, order):
        parts.setdefault(tuple(rank(row[k]) for k in keys), []).append(row)
    return list(parts.values())


def peers(part: Sequence[Row], order: Order, i: int) -> tuple[int, int]:
    """The first and last position of the rows that the order does not tell from row i."""
    same = [j for j, r in enumerate(part) if all(rank(r[c]) == rank(part[i][c]) for c, _ in order)]
    return same[0], same[-1]
