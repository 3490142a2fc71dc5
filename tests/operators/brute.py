"""Brute-force twins of the sweeps: the definitions, instant by instant, in Python integers and fractions.

They share no code with the operators. A bag is a list of ``(record, ts, te, n)``; INF is a te beyond every horizon.
"""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

INF = (1 << 63) - 1


def at(bag, tick: int) -> Counter:
    """The instantaneous bag: net copies per record. Records must be hashable and compared by value."""
    held: Counter = Counter()
    for record, ts, te, n in bag:
        if ts <= tick < te:
            held[record] += n
    return Counter({r: n for r, n in held.items() if n})


def plain(value):
    """A value as its equality class: one NaN, one zero, maps by sorted entries."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple((k, plain(v)) for k, v in value.items())
    if isinstance(value, list | tuple):
        return tuple(plain(v) for v in value)
    return value


def total_order(value):
    """Sort key of the total order for scalars: NULL first, NaN greatest, text by UTF-8."""
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return (1, value.encode() if isinstance(value, str) else value + 0.0 if isinstance(value, float) else value)


def exact_sum(pairs, result: str):
    """Sum of (value, n) pairs. ``result``: integer, double, decimal."""
    if result == "integer":
        return sum(v * n for v, n in pairs)
    if result == "decimal":
        with localcontext(prec=200):
            return sum((v * n for v, n in pairs), start=Decimal(0))
    special = {x: sum(n for v, n in pairs if plain(float(v)) == x) for x in ("NaN", math.inf, -math.inf)}
    if special["NaN"] or (special[math.inf] and special[-math.inf]):
        return math.nan
    for infinity in (math.inf, -math.inf):
        if special[infinity]:
            return infinity
    total = sum((Fraction(v) * n for v, n in pairs), Fraction(0))
    try:
        return total.numerator / total.denominator if total else 0.0
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def call(function: str, values: Counter, sum_result: str):
    """One aggregate over a bag of argument values (``*`` counts rows)."""
    kept = [(v, n) for v, n in values.items() if v is not None]
    if function == "COUNT(*)":
        return sum(values.values())
    if function == "COUNT":
        return sum(n for _, n in kept)
    if not kept:
        return None
    if function == "SUM":
        return exact_sum([(math.nan if v == "NaN" else v, n) for v, n in kept], sum_result)
    ordered = sorted((math.nan if v == "NaN" else v for v, _ in kept), key=total_order)
    return ordered[0 if function == "MIN" else -1]


def aggregate(bag, tick: int, functions, sum_result: str = "integer", global_: bool = False) -> Counter:
    """The aggregate relation at one instant; records of the bag are (key, argument) pairs, all calls take that
    argument.
    """
    groups: dict = {}
    for (key, value), n in at([((plain(k), plain(v)), ts, te, n) for (k, v), ts, te, n in bag], tick).items():
        groups.setdefault(key, Counter())[value] += n
    if global_:
        groups.setdefault(None, Counter())
    rows: Counter = Counter()
    for key, values in groups.items():
        if global_ or sum(values.values()):
            rows[(key, *(plain(call(f, values, sum_result)) for f in functions))] += 1
    return rows


def istream(bag, tick: int) -> Counter:
    """R(t) - R(t-1) as bags (Arasu section 5.1)."""
    return at(bag, tick) - at(bag, tick - 1)


def dstream(bag, tick: int) -> Counter:
    """R(t-1) - R(t)."""
    return at(bag, tick - 1) - at(bag, tick)


def history(bag, first: int, last: int) -> Counter:
    """(record, from, to) of the maximal intervals with multiplicity >= k, as of ``last``; to None while open."""
    rows: Counter = Counter()
    for record in {r for r, *_ in bag}:
        count = [at(bag, t)[record] for t in range(first - 1, last + 1)]
        for k in range(1, max(count, default=0) + 1):
            since = None
            for t, c in zip(range(first - 1, last + 1), count, strict=True):
                if c >= k and since is None:
                    since = t
                elif c < k and since is not None:
                    rows[(record, since, t)] += 1
                    since = None
            if since is not None:
                rows[(record, since, None)] += 1
    return rows


def united(intervals) -> set:
    """``(key, ts, te)`` joined to the intervals in which there is any of a key, none touching another."""
    found: list = []
    for key, ts, te in sorted(intervals, key=lambda one: (repr(one[0]), one[1], one[2])):
        if found and found[-1][0] == key and ts <= found[-1][2]:
            found[-1] = (key, found[-1][1], max(found[-1][2], te))
        else:
            found.append((key, ts, te))
    return set(found)


def undominated(intervals) -> set:
    """Those of ``(key, ts, te, rank)`` besides which the key has none that begins and ends around it and is as low."""
    every = set(intervals)
    return {
        (k, ts, te, rank)
        for k, ts, te, rank in every
        if not any(
            other != (k, ts, te, rank) and other[0] == k and other[1] <= ts and other[2] >= te and other[3] <= rank
            for other in every
        )
    }
