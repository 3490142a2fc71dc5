"""Random queries of aggregates, window functions and LIMIT, with what they must give.

Each is a text over ``S [..]`` or ``R`` (columns k, v, w, s) beside a function from the instantaneous bag to the result.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from tests.replay import bags
from tests.replay.bags import Row, known, rank
from tests.replay.generate import VALUES
from tests.replay.slicing import slicing

COLUMNS = {"k": "int", "v": "double", "w": "int", "s": "string"}
K, V, W, S = range(4)
Rows = list[Row]


def _col(rows: Sequence[Row], i: int) -> list[Any]:
    return [r[i] for r in rows]


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _first(rows: Rows, i: int) -> Any:
    return bags.ordered(rows, [])[0][i] if rows else None


def _listed(rows: Rows, i: int, order: bags.Order = ()) -> list[Any]:
    return known(_col(bags.ordered(rows, order), i))


def _last(rows: Rows, i: int) -> Any:
    return bags.ordered(rows, [])[-1][i] if rows else None


def _above_one(rows: Rows) -> Rows:
    return [r for r in rows if r[W] is not None and r[W] > 1]


def _greatest_mode(values: Sequence[Any]) -> Any:
    counts = Counter(known(values))
    return max(counts, key=lambda v: (counts[v], v), default=None)


def _unique_pairs(rows: Rows) -> tuple[list[Any], list[Any]]:
    pairs = {(rank(r[V]), r[W]): r for r in rows if None not in (r[V], r[W])}.values()
    return [r[V] for r in pairs], [r[W] for r in pairs]


AGGREGATES: list[tuple[str, Callable[[Rows], Any]]] = [
    ("MEDIAN(v)", lambda r: bags.percentile(_col(r, V), 0.5)),
    ("COUNT(DISTINCT s)", lambda r: len(set(known(_col(r, S))))),
    ("COLLECT_LIST(s)", lambda r: _listed(r, S)),
    ("VAR_SAMP(v)", lambda r: bags.var_samp(_col(r, V))),
    ("SUM(v)", lambda r: bags.total(_col(r, V))),
    ("AVG(w)", lambda r: bags.average(_col(r, W))),
    ("COUNT(*)", len),
    ("MIN(s)", lambda r: min(known(_col(r, S)), key=rank, default=None)),
    ("PERCENTILE(w, 0.3)", lambda r: bags.percentile(_col(r, W), 0.3)),
    ("PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY v DESC)", lambda r: bags.percentile(_col(r, V), 0.25, True)),
    ("PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY w)", lambda r: bags.percentile_disc(_col(r, W), 0.5)),
    ("MODE(s)", lambda r: bags.mode(_col(r, S))),
    ("MODE(v)", lambda r: bags.mode(_col(r, V))),
    ("COLLECT_SET(w)", lambda r: sorted(set(known(_col(r, W))))),
    ("ARRAY_AGG(v)", lambda r: _listed(r, V)),
    ("LISTAGG(s, '|')", lambda r: "|".join(_listed(r, S)) if known(_col(r, S)) else None),
    (
        "LISTAGG(s, '|') WITHIN GROUP (ORDER BY v DESC)",
        lambda r: "|".join(_listed(r, S, [(V, True)])) if known(_col(r, S)) else None,
    ),
    ("FIRST(v)", lambda r: _first(r, V)),
    ("ANY_VALUE(s)", lambda r: _first(r, S)),
    ("LAST(s)", lambda r: bags.ordered(r, [])[-1][S] if r else None),
    ("FIRST(s) IGNORE NULLS", lambda r: _first([x for x in r if x[S] is not None], S)),
    ("MAX_BY(s, v)", lambda r: bags.by(r, S, V, True)),
    ("MIN_BY(v, w)", lambda r: bags.by(r, V, W, False)),
    ("BIT_XOR(w)", lambda r: reduce(lambda a, b: a ^ b, known(_col(r, W))) if known(_col(r, W)) else None),
    ("BOOL_OR(w > 1)", lambda r: max((x > 1 for x in known(_col(r, W))), default=None)),
    ("COUNT_IF(w > 1)", lambda r: sum(x > 1 for x in known(_col(r, W)))),
    ("SUM(DISTINCT w)", lambda r: bags.total(list(set(known(_col(r, W)))))),
    ("SUM(DISTINCT v)", lambda r: bags.total(bags.unique(known(_col(r, V))))),
    ("AVG(v)", lambda r: bags.average(_col(r, V))),
    ("SUM(v) FILTER (WHERE w > 1)", lambda r: bags.total([x[V] for x in r if x[W] is not None and x[W] > 1])),
    ("COUNT(*) FILTER (WHERE s = 'a')", lambda r: sum(x[S] == "a" for x in r)),
    (
        "MEDIAN(w) FILTER (WHERE v > 1e0)",
        lambda r: bags.percentile([x[W] for x in r if x[V] is not None and rank(x[V]) > rank(1.0)], 0.5),
    ),
    ("VAR_POP(w)", lambda r: bags.var_pop(_col(r, W))),
    ("STDDEV_SAMP(v)", lambda r: bags.stddev_samp(_col(r, V))),
    ("STDDEV_POP(w)", lambda r: bags.stddev_pop(_col(r, W))),
    ("SKEWNESS(v)", lambda r: bags.skewness(_col(r, V))),
    ("KURTOSIS(v)", lambda r: bags.kurtosis(_col(r, V))),
    ("CORR(v, w)", lambda r: bags.corr(_col(r, V), _col(r, W))),
    ("COVAR_POP(v, w)", lambda r: bags.covar_pop(_col(r, V), _col(r, W))),
    ("COVAR_SAMP(v, w)", lambda r: bags.covar_samp(_col(r, V), _col(r, W))),
    ("REGR_SLOPE(v, w)", lambda r: bags.slope(_col(r, W), _col(r, V))),
    ("REGR_INTERCEPT(v, w)", lambda r: bags.intercept(_col(r, W), _col(r, V))),
    ("REGR_R2(v, w)", lambda r: bags.determination(_col(r, W), _col(r, V))),
    ("REGR_SXY(v, w)", lambda r: bags.sxy(_col(r, W), _col(r, V))),
    ("REGR_SXX(v, w)", lambda r: bags.sxx([x[W] for x in r if x[V] is not None])),
    ("REGR_SYY(v, w)", lambda r: bags.sxx([x[V] for x in r if x[W] is not None])),
    ("CORR(DISTINCT v, w)", lambda r: bags.corr(*_unique_pairs(r))),
    ("VAR_POP(DISTINCT v)", lambda r: bags.var_pop(bags.unique(known(_col(r, V))))),
    ("KURTOSIS(v) FILTER (WHERE w > 1)", lambda r: bags.kurtosis([x[V] for x in _above_one(r)])),
    ("AVG(DISTINCT w)", lambda r: bags.average(bags.unique(known(_col(r, W))))),
    ("COUNT(DISTINCT v)", lambda r: len(bags.unique(known(_col(r, V))))),
    ("COUNT(DISTINCT w, s)", lambda r: len({(x[W], x[S]) for x in r if None not in (x[W], x[S])})),
    ("COUNT(DISTINCT s) FILTER (WHERE w > 1)", lambda r: len({x[S] for x in _above_one(r)} - {None})),
    ("MEDIAN(DISTINCT w)", lambda r: bags.percentile(bags.unique(known(_col(r, W))), 0.5)),
    (
        "PERCENTILE(v, array(0.1, 0.75))",
        lambda r: [bags.percentile(_col(r, V), p) for p in (0.1, 0.75)] if known(_col(r, V)) else None,
    ),
    ("PERCENTILE_DISC(0.4) WITHIN GROUP (ORDER BY v DESC)", lambda r: bags.percentile_disc(_col(r, V), 0.4, True)),
    ("PERCENTILE(w, 1.0 / 3)", lambda r: bags.percentile(_col(r, W), 0.333333)),
    ("MODE() WITHIN GROUP (ORDER BY w DESC)", lambda r: _greatest_mode(_col(r, W))),
    ("LAST(v) IGNORE NULLS", lambda r: _last([x for x in r if x[V] is not None], V)),
    ("FIRST(s) FILTER (WHERE w > 1)", lambda r: _first(_above_one(r), S)),
    ("MIN_BY(s, v) FILTER (WHERE w > 1)", lambda r: bags.by(_above_one(r), S, V, False)),
    ("BIT_AND(w)", lambda r: reduce(lambda a, b: a & b, known(_col(r, W))) if known(_col(r, W)) else None),
    ("BIT_OR(w)", lambda r: reduce(lambda a, b: a | b, known(_col(r, W)), 0) if known(_col(r, W)) else None),
    ("TRY_SUM(w)", lambda r: bags.total(_col(r, W))),
    ("TRY_AVG(v)", lambda r: bags.average(_col(r, V))),
]

Over = Callable[[Sequence[Row], int], Any]
"""The value of row i of a partition in its complete order."""


def _ranked(part: Sequence[Row], i: int, order: bags.Order) -> int:
    return bags.peers(part, order, i)[0] + 1


def _until_peers(part: Sequence[Row], i: int, order: bags.Order) -> Sequence[Row]:
    return part[: bags.peers(part, order, i)[1] + 1]


def _reached(part: Sequence[Row], i: int) -> Sequence[Row]:
    return _until_peers(part, i, _WA)


def _near(part: Sequence[Row], i: int) -> Rows:
    """RANGE BETWEEN 1 PRECEDING AND CURRENT ROW over w."""
    own = part[i][W]
    return [r for r in part if (r[W] is None) == (own is None) and (own is None or own - 1 <= r[W] <= own)]


def _tile(part: Sequence[Row], i: int, n: int) -> int:
    size, larger = divmod(len(part), n)
    edge = larger * (size + 1)
    return i // (size + 1) + 1 if i < edge else larger + (i - edge) // max(size, 1) + 1


@dataclass(frozen=True)
class WindowCall:
    text: str
    keys: tuple[int, ...]
    order: bags.Order
    value: Over


_VD, _WA = [(V, True)], [(W, False)]
WINDOW_CALLS = [
    WindowCall("ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC)", (K,), _VD, lambda p, i: i + 1),
    WindowCall("RANK() OVER (ORDER BY w)", (), _WA, lambda p, i: _ranked(p, i, _WA)),
    WindowCall(
        "DENSE_RANK() OVER (PARTITION BY k ORDER BY w)", (K,), _WA, lambda p, i: len({rank(r[W]) for r in p[: i + 1]})
    ),
    WindowCall("LAG(s) OVER (PARTITION BY k ORDER BY v DESC)", (K,), _VD, lambda p, i: p[i - 1][S] if i else None),
    WindowCall("LEAD(w, 2, -1) OVER (ORDER BY v DESC)", (), _VD, lambda p, i: p[i + 2][W] if i + 2 < len(p) else -1),
    WindowCall(
        "SUM(v) OVER (PARTITION BY k ORDER BY v DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        (K,),
        _VD,
        lambda p, i: bags.total(_col(p[max(0, i - 1) : i + 1], V)),
    ),
    WindowCall("SUM(v) OVER (PARTITION BY k)", (K,), (), lambda p, i: bags.total(_col(p, V))),
    WindowCall("COUNT(*) OVER (PARTITION BY k ORDER BY w)", (K,), _WA, lambda p, i: len(_until_peers(p, i, _WA))),
    WindowCall(
        "SUM(v) OVER (ORDER BY w RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
        (),
        _WA,
        lambda p, i: bags.total(_col(_near(p, i), V)),
    ),
    WindowCall("FIRST_VALUE(s) OVER (PARTITION BY k ORDER BY w)", (K,), _WA, lambda p, i: p[0][S]),
    WindowCall(
        "LAST_VALUE(s) OVER (PARTITION BY k ORDER BY w)", (K,), _WA, lambda p, i: _until_peers(p, i, _WA)[-1][S]
    ),
    WindowCall("NTILE(2) OVER (ORDER BY v DESC)", (), _VD, lambda p, i: _tile(p, i, 2)),
    WindowCall(
        "PERCENT_RANK() OVER (ORDER BY w)",
        (),
        _WA,
        lambda p, i: (_ranked(p, i, _WA) - 1) / (len(p) - 1) if len(p) > 1 else 0.0,
    ),
    WindowCall("CUME_DIST() OVER (ORDER BY w)", (), _WA, lambda p, i: len(_until_peers(p, i, _WA)) / len(p)),
    WindowCall("MEDIAN(v) OVER (PARTITION BY k)", (K,), (), lambda p, i: bags.percentile(_col(p, V), 0.5)),
    WindowCall(
        "VAR_SAMP(v) OVER (PARTITION BY s ORDER BY w)",
        (S,),
        _WA,
        lambda p, i: bags.var_samp(_col(_until_peers(p, i, _WA), V)),
    ),
    WindowCall("AVG(w) OVER (PARTITION BY s)", (S,), (), lambda p, i: bags.average(_col(p, W))),
    WindowCall(
        "COLLECT_LIST(s) OVER (PARTITION BY k ORDER BY w)",
        (K,),
        _WA,
        lambda p, i: known(_col(_reached(p, i), S)),
    ),
    WindowCall("MAX_BY(s, w) OVER (PARTITION BY k)", (K,), (), lambda p, i: bags.by(p, S, W, True)),
    WindowCall("CORR(v, w) OVER (PARTITION BY k)", (K,), (), lambda p, i: bags.corr(_col(p, V), _col(p, W))),
    WindowCall("LISTAGG(s, ',') OVER ()", (), (), lambda p, i: ",".join(_listed(list(p), S)) or _no_text(p)),
    WindowCall("MAX(w) OVER (PARTITION BY k)", (K,), (), lambda p, i: max(known(_col(p, W)), default=None)),
]


def _near_rows(part: Sequence[Row], i: int, low: int | None, high: int | None) -> Sequence[Row]:
    """ROWS BETWEEN row ``low`` and row ``high`` behind row i; None: to the end of the partition."""
    first = 0 if low is None else max(0, i + low)
    return part[first : len(part) if high is None else max(0, i + high + 1)]


def _at(rows: Sequence[Row], i: int, column: int) -> Any:
    return rows[i][column] if -len(rows) <= i < len(rows) else None


_P = "PARTITION BY k ORDER BY v DESC"
REFERENCES = [
    WindowCall(f"LAG(s) OVER ({_P})", (K,), _VD, lambda p, i: p[i - 1][S] if i else None),
    WindowCall(f"LAG(w, 2, w) OVER ({_P})", (K,), _VD, lambda p, i: p[i - 2][W] if i > 1 else p[i][W]),
    WindowCall("LEAD(w, 2, -1) OVER (ORDER BY v DESC)", (), _VD, lambda p, i: p[i + 2][W] if i + 2 < len(p) else -1),
    WindowCall(
        f"LEAD(v, 1, w) OVER ({_P})", (K,), _VD, lambda p, i: _float(p[i + 1][V] if i + 1 < len(p) else p[i][W])
    ),
    WindowCall("FIRST_VALUE(s) OVER (PARTITION BY k ORDER BY w)", (K,), _WA, lambda p, i: p[0][S]),
    WindowCall(
        f"FIRST_VALUE(w) OVER ({_P} ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)",
        (K,),
        _VD,
        lambda p, i: _at(_near_rows(p, i, -2, -1), 0, W),
    ),
    WindowCall(
        f"LAST_VALUE(s) OVER ({_P} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        (K,),
        _VD,
        lambda p, i: _at(_near_rows(p, i, 0, None), -1, S),
    ),
    WindowCall("LAST_VALUE(w) OVER (PARTITION BY k)", (K,), (), lambda p, i: _at(p, -1, W)),
    WindowCall(
        f"NTH_VALUE(s, 2) OVER ({_P} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)",
        (K,),
        _VD,
        lambda p, i: _at(_near_rows(p, i, None, 1), 1, S),
    ),
]
"""Values of other rows, which have an incremental form."""
_Q = "PARTITION BY k ORDER BY w"


def _picked(rows: Sequence[Row], number: int, column: int) -> Any:
    """Of the rows with a value the one with a number, from 0; negative: from the last one on."""
    return _at([r for r in rows if r[column] is not None], number, column)


def _in_reach(part: Sequence[Row], i: int, low: int | None, high: int | None) -> Rows:
    """RANGE BETWEEN what is ``low`` more and ``high`` more than the row's w, ascending, NULL first."""
    own = part[i][W]

    def reached(value: int | None) -> bool:
        after = low is None or (value is None if own is None else value is not None and value >= own + low)
        after = after or (low is not None and own is None and value is not None)
        before = high is None or value is None or (own is not None and value <= own + high)
        return after and before

    return [r for r in part if reached(r[W])]


FRAMES = [
    WindowCall(
        f"SUM(v) OVER ({_P} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        (K,),
        _VD,
        lambda p, i: bags.total(_col(_near_rows(p, i, -1, 0), V)),
    ),
    WindowCall(
        f"AVG(v) FILTER (WHERE w > 1) OVER ({_P} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)",
        (K,),
        _VD,
        lambda p, i: bags.average(_col(_above_one(list(_near_rows(p, i, None, -1))), V)),
    ),
    WindowCall(
        f"COUNT(*) OVER ({_P} ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)",
        (K,),
        _VD,
        lambda p, i: len(_near_rows(p, i, 1, 2)),
    ),
    WindowCall("SUM(v) OVER (PARTITION BY k)", (K,), (), lambda p, i: bags.total(_col(p, V))),
    WindowCall("SUM(w) OVER (ORDER BY w)", (), _WA, lambda p, i: bags.total(_col(_until_peers(p, i, _WA), W))),
    WindowCall(
        f"MIN(s) OVER ({_Q} RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        (K,),
        _WA,
        lambda p, i: min(known(_col(p[bags.peers(p, _WA, i)[0] :], S)), key=rank, default=None),
    ),
    WindowCall(
        "SUM(v) OVER (ORDER BY w RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
        (),
        _WA,
        lambda p, i: bags.total(_col(_near(p, i), V)),
    ),
    WindowCall(
        f"MAX(v) OVER ({_Q} RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
        (K,),
        _WA,
        lambda p, i: max(known(_col(_in_reach(p, i, -2, 1), V)), key=rank, default=None),
    ),
    WindowCall(
        "COUNT(v) OVER (ORDER BY w RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)",
        (),
        _WA,
        lambda p, i: len(known(_col(_in_reach(p, i, 1, None), V))),
    ),
    WindowCall(
        "VAR_SAMP(v) OVER (PARTITION BY s ORDER BY w)",
        (S,),
        _WA,
        lambda p, i: bags.var_samp(_col(_until_peers(p, i, _WA), V)),
    ),
    WindowCall("CORR(v, w) OVER (PARTITION BY k)", (K,), (), lambda p, i: bags.corr(_col(p, V), _col(p, W))),
    WindowCall("MAX_BY(s, w) OVER (PARTITION BY k)", (K,), (), lambda p, i: bags.by(p, S, W, True)),
    WindowCall(
        "LAST_VALUE(s) OVER (PARTITION BY k ORDER BY w)", (K,), _WA, lambda p, i: _until_peers(p, i, _WA)[-1][S]
    ),
    WindowCall(f"LAG(s) IGNORE NULLS OVER ({_P})", (K,), _VD, lambda p, i: _picked(_near_rows(p, i, None, -1), -1, S)),
    WindowCall(
        f"LEAD(w, 2, -1) IGNORE NULLS OVER ({_P})",
        (K,),
        _VD,
        lambda p, i: -1 if (x := _picked(_near_rows(p, i, 1, None), 1, W)) is None else x,
    ),
    WindowCall(
        f"LAST_VALUE(w) IGNORE NULLS OVER ({_P} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        (K,),
        _VD,
        lambda p, i: _picked(_near_rows(p, i, None, 0), -1, W),
    ),
    WindowCall(
        f"NTH_VALUE(s, 2) IGNORE NULLS OVER ({_P} ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING)",
        (K,),
        _VD,
        lambda p, i: _picked(_near_rows(p, i, -2, 2), 1, S),
    ),
    WindowCall(
        "FIRST_VALUE(v) FILTER (WHERE w > 1) OVER (PARTITION BY k)",
        (K,),
        (),
        lambda p, i: _at(_above_one(list(p)), 0, V),
    ),
]
"""Aggregates of frames, which have an incremental form."""
COUNTS = [
    WindowCall("COUNT(*) OVER (PARTITION BY k)", (K,), (), lambda p, i: len(p)),
    WindowCall("NTILE(3) OVER (PARTITION BY k ORDER BY v DESC)", (K,), _VD, lambda p, i: _tile(p, i, 3)),
    WindowCall("CUME_DIST() OVER (ORDER BY v DESC)", (), _VD, lambda p, i: len(_until_peers(p, i, _VD)) / len(p)),
]


def _no_text(part: Sequence[Row]) -> str | None:
    return "" if known(_col(part, S)) else None


def _key(row: Sequence[Any]) -> tuple:
    return tuple(repr([_plain(x) for x in v]) if isinstance(v, list) else repr(_plain(v)) for v in row)


def _plain(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value


@dataclass(frozen=True)
class Case:
    """A replay case and the result of its query for any contents of its input."""

    case: dict[str, Any]
    result: Callable[[Rows], Rows]
    reach: int | None
    """Of the window over S; None: the input is R."""


def _grouped(rng: random.Random) -> tuple[str, Callable[[Rows], Rows], list[str]]:
    calls = [rng.choice(AGGREGATES) for _ in range(rng.choice([1, 2, 4]))]
    names = [f"a{i}" for i in range(len(calls))]
    texts = ", ".join(f"{text} AS {name}" for (text, _), name in zip(calls, names, strict=True))
    if rng.random() < 0.35:
        return f"SELECT {texts} FROM {{}}", lambda rows: [tuple(f(rows) for _, f in calls)], names
    columns = rng.choice([(K,), (K,), (S, K), (V,)])
    keys = ", ".join("kvws"[c] for c in columns)

    def result(rows: Rows) -> Rows:
        return [
            (*(part[0][c] for c in columns), *(f(part) for _, f in calls))
            for part in bags.partitions(rows, columns, ())
        ]

    return f"SELECT {keys}, {texts} FROM {{}} GROUP BY {keys}", result, names


def _analytic(
    rng: random.Random, among: Sequence[WindowCall] = WINDOW_CALLS
) -> tuple[str, Callable[[Rows], Rows], list[str]]:
    calls = [rng.choice(among) for _ in range(rng.choice([1, 1, 2, 3]))]
    names = [f"a{i}" for i in range(len(calls))]
    texts = ", ".join(f"{c.text} AS {name}" for c, name in zip(calls, names, strict=True))

    def result(rows: Rows) -> Rows:
        # equal rows are told apart by their positions
        found: dict[tuple, list[list[Any]]] = {}
        for n, call in enumerate(calls):
            values: dict[tuple, list[Any]] = {}
            for part in bags.partitions(rows, call.keys, call.order):
                for i, row in enumerate(part):
                    values.setdefault(_key(row), []).append(call.value(part, i))
            for key, listed in values.items():
                for j, value in enumerate(listed):
                    entry = found.setdefault(key, [])
                    if n == 0:
                        entry.append([value])
                    else:
                        entry[j].append(value)
        shown = {_key(row): row for row in rows}
        return [(*shown[key], *values) for key, entry in found.items() for values in entry]

    return f"SELECT k, v, w, s, {texts} FROM {{}}", result, names


def _limited(rng: random.Random) -> tuple[str, Callable[[Rows], Rows], list[str]]:
    limit, offset = rng.randint(0, 3), rng.choice([0, 0, 1])
    order = rng.choice([_VD, _WA, [(S, False), (V, True)], [(W, True)]])
    keys = ", ".join(f"{'kvws'[c]}{' DESC' if d else ''}" for c, d in order)
    text = f"SELECT k, v, w, s FROM {{}} ORDER BY {keys} LIMIT {limit}" + (f" OFFSET {offset}" if offset else "")
    return text, lambda rows: bags.ordered(rows, order)[offset : offset + limit], ["v"]


Made = tuple[str, Callable[[Rows], Rows], list[str]]
"""A query, what it gives, and the names of columns that a query above may group by."""
CONDITIONS: dict[str, Callable[[int], bool]] = {
    "{} = 1": lambda n: n == 1,
    "{} <= 2": lambda n: n <= 2,
    "3 > {}": lambda n: n < 3,
    "{} BETWEEN 2 AND 4": lambda n: 2 <= n <= 4,
    "{} > 1": lambda n: n > 1,
    "{} IN (1, 3)": lambda n: n in (1, 3),
    "NOT {} > 2": lambda n: n <= 2,
    "NOT {} = 2": lambda n: n != 2,
    "{} NOT BETWEEN 2 AND 3": lambda n: n not in (2, 3),
    "({} = 2 OR {} = 1)": lambda n: n <= 2,
    "{} < 4 AND {} % 2 = 1": lambda n: n in (1, 3),
}


def cut(rng: random.Random) -> Made:
    """Rows whose ROW_NUMBER, RANK or DENSE_RANK meets a condition, with none, one or two of the numbers shown."""
    order = rng.choice([_VD, _WA, [(S, False), (V, True)]])
    keys = rng.choice([(K,), (K,), (S,), ()])
    over = f"ORDER BY {', '.join('kvws'[c] + (' DESC' if d else '') for c, d in order)}"
    over = f"PARTITION BY {', '.join('kvws'[c] for c in keys)} {over}" if keys else over
    numbers: dict[str, Over] = {
        "ROW_NUMBER": lambda p, i: i + 1,
        "RANK": lambda p, i: _ranked(p, i, order),
        "DENSE_RANK": lambda p, i: len({tuple(rank(r[c]) for c, _ in order) for r in p[: i + 1]}),
    }
    by, *others = rng.sample(list(numbers), rng.choice([1, 2, 3]))
    shown = [by, *others] if rng.random() < 0.6 else others
    condition, meets = rng.choice(list(CONDITIONS.items()))
    text, also = condition.replace("{}", "n0"), rng.random() < 0.3
    names = {function: f"n{i}" for i, function in enumerate([by, *others])}
    listed = ", ".join(f"{function}() OVER ({over}) AS {name}" for function, name in names.items())
    columns = ", ".join(["k", "v", "w", "s", *(f"{names[f]} AS a{i}" for i, f in enumerate(shown))])

    def result(rows: Rows) -> Rows:
        return [
            (*row, *(numbers[function](part, i) for function in shown))
            for part in bags.partitions(rows, keys, order)
            for i, row in enumerate(part)
            if meets(numbers[by](part, i)) and not (also and row[W] is None)
        ]

    more = " AND w IS NOT NULL" if also else ""
    query = f"SELECT {columns} FROM (SELECT *, {listed} FROM {{}}) AS q WHERE {text}{more}"
    return query, result, [f"a{i}" for i in range(len(shown))] or ["v"]


def references(rng: random.Random) -> Made:
    """Rows beside values of others, numbers and what follows from numbers."""
    counted = ("ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE", "PERCENT_RANK", "CUME_DIST", "COUNT")
    return _analytic(rng, [*REFERENCES, *(c for c in WINDOW_CALLS if c.text.startswith(counted)), *COUNTS])


def framed(rng: random.Random) -> Made:
    """Rows beside aggregates of frames, now and then values of others."""
    return _analytic(rng, [*FRAMES, *FRAMES, *REFERENCES, WINDOW_CALLS[0]])


def generate(rng: random.Random, rows: int = 10, make: Callable[[random.Random], Made] | None = None) -> Case:
    """One random case; ``make``: of this kind."""
    text, result, names = (make or rng.choice([_grouped, _grouped, _analytic, _limited]))(rng)
    end = rng.randint(4, 20)
    pools = {name: rng.sample(VALUES[t], min(len(VALUES[t]), rng.choice([3, 5, 8]))) for name, t in COLUMNS.items()}

    def record() -> list[Any]:
        return [rng.choice(pools[name]) for name in COLUMNS]

    case: dict[str, Any] = {"streams": {}, "relations": {}}
    reach = rng.choice([0, 2, 5, 1000]) if rng.random() < 0.7 else None
    if reach is not None:
        source = rng.choice([f"S [Range {reach}]", f"S [Range {reach}]"]) if reach < 1000 else "S [Range Unbounded]"
        given = [[rng.randint(0, end), record()] for _ in range(rows)]
        case["streams"]["S"] = {"columns": COLUMNS, "rows": given}
    else:
        source, live, changes = "R", [], []
        for tick in sorted(rng.randint(-2, end) for _ in range(rows + 4)):
            if live and rng.random() < 0.4:
                changes.append([tick, "-", live.pop(rng.randrange(len(live)))])
            else:
                live.append(record())
                changes.append([tick, "+", live[-1]])
        case["relations"]["R"] = {"columns": COLUMNS, "changes": changes}
    query = text.format(source)
    if rng.random() < 0.25:  # the retractions of the expansion as the input of another operator
        name, inner = names[0], result
        at = (*COLUMNS, *names).index(name) if "a0" not in names or text.startswith("SELECT k, v, w, s,") else None

        def counted(contents: Rows) -> Rows:
            shown = inner(contents)
            place = at if at is not None else len(shown[0]) - len(names) if shown else 0
            counts = Counter(_key((row[place],)) for row in shown)
            values = {_key((row[place],)): row[place] for row in shown}
            return [(values[key], n) for key, n in counts.items()]

        query, result = f"SELECT {name}, COUNT(*) AS n FROM ({query}) AS q GROUP BY {name}", counted
    heartbeats = slicing(rng, 0, {n: end for g in ("streams", "relations") for n in case[g]}, False)
    case = {member: value for member, value in case.items() if value}
    return Case({**case, "query": query, "heartbeats": heartbeats}, result, reach)


def _decoded(values: Sequence[Any]) -> Row:
    return tuple(
        float(v) if isinstance(v, str) and t == "double" else v for v, t in zip(values, COLUMNS.values(), strict=True)
    )


def contents(case: Case, tau: int) -> Rows:
    """The query's input at an instant."""
    if case.reach is not None:
        given = case.case["streams"]["S"]["rows"]
        return [_decoded(values) for tick, values in given if tick <= tau <= tick + case.reach]
    counts: Counter[tuple] = Counter()
    rows: dict[tuple, Row] = {}
    for tick, sign, values in case.case["relations"]["R"]["changes"]:
        row = _decoded(values)
        rows[_key(row)] = row
        counts[_key(row)] += (1 if sign == "+" else -1) if tick <= tau else 0
    return [rows[key] for key in counts.elements()]


def wrong(case: Case, got: dict[str, Any]) -> str:
    """At which instant a result differs from the definition, and how; empty if nowhere."""
    if "error" in got:
        return str(got["error"])
    beats = case.case["heartbeats"]
    end = max(h for h in (beats if isinstance(beats, list) else next(iter(beats.values()))) if h is not None)
    for tau in range(end + 1):
        expected = Counter(_key(row) for row in case.result(contents(case, tau)))
        found = Counter(
            _key([_read(v) for v in values])
            for ts, te, values in got["relation"]
            if ts <= tau and (te is None or tau < te)
        )
        if expected != found:
            return f"at {tau}: missing {expected - found}, too many {found - expected}"
    return ""


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(v) for v in value]
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else value
