"""Events per second and core of each sweep, without Spark: ``python -m benchmarks.kernels [NAME ..]``.

An event is a start or an end, so a row whose end lies within the slice is two. Rows come in the order of time, a
million ticks long; every case runs with few keys (they stay in the processor's cache) and with as many as rows.
Processor time is what counts, so that other load does not; the best of three runs, after one that compiles. A sweep is
measured from Arrow to Arrow; ``loops of ..`` are its compiled loops alone, over rows that are sorted already.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from sweeparea.operators.aggregates.calls import BaseCall
from sweeparea.operators.kernels import aggregate as kernel
from sweeparea.operators.kernels.instants import segments
from sweeparea.operators.kernels.sorting import group_order
from sweeparea.operators.sweeps import aggregate, relation_to_stream, two_counts
from sweeparea.operators.values.bag import TE, TS, N
from sweeparea.operators.values.order import OrderKey
from sweeparea.operators.windows import condition_window, rows_window, session_window
from sweeparea.operators.windows.arrivals import ArrivalSpec

ROWS, TICKS, WINDOW = 1_000_000, 1_000_000, 60
Sweep = Callable[[], object]


def bag(keys: int, seed: int = 1) -> dict[str, np.ndarray]:
    """A record's key ``k``, a value ``v``, and a sliding window's interval."""
    chance = np.random.default_rng(seed)
    ts = np.sort(chance.integers(1, TICKS, ROWS))
    values = {"k": chance.integers(0, keys, ROWS), "v": chance.integers(-1000, 1000, ROWS)}
    return {**values, TS: ts, TE: ts + WINDOW, N: np.ones(ROWS, np.int64)}


def _two_counts(operation: two_counts.Operation, known: bool) -> Callable[[int], Sweep]:
    def prepared(keys: int) -> Sweep:
        columns = bag(keys)
        side = np.random.default_rng(2).integers(0, 2, ROWS).astype(np.int8)
        if operation is two_counts.DISTINCT:
            side[:] = two_counts.LEFT
        rows = pa.table({"k": columns["k"], **{c: columns[c] for c in (TS, TE, N)}, two_counts.SIDE: side})
        spec = two_counts.TwoCountsSpec(("k",), operation, (known, known))
        return lambda: spec.sweep(rows, 0, TICKS)

    return prepared


DOUBLE, BIGINT = pa.float64(), pa.int64()
_PAIR = pa.struct([("x", DOUBLE), ("y", DOUBLE)])
_ROW = pa.struct([("o0", BIGINT), ("v", BIGINT)])


def _arguments(v: np.ndarray, type_: pa.DataType) -> pa.Array:
    if type_ == DOUBLE:
        return pa.array(v / 7)
    if type_ == _PAIR:
        return pa.StructArray.from_arrays([pa.array(v / 7), pa.array(v / 3)], fields=list(_PAIR))
    if type_ == _ROW:
        return pa.StructArray.from_arrays([pa.array(v), pa.array(v)], fields=list(_ROW))
    return pa.array(v)


def _aggregate(function: str, type_: pa.DataType | None, result: pa.DataType, **given: Any) -> Callable[[int], Sweep]:
    def prepared(keys: int) -> Sweep:
        call = BaseCall("x", function, result, None if type_ is None else "v", type_, **given)
        spec = aggregate.AggregateSpec((("k", BIGINT),), (call,), expiry_known=True)
        columns, schema = bag(keys), aggregate.rows_schema(spec)
        arrays = {name: pa.array(values) for name, values in columns.items()}
        arrays |= {"__kind": pa.array(np.zeros(ROWS, np.int16))}
        arrays |= {"a0": _arguments(columns["v"], type_)} if type_ is not None else {}
        rows = [arrays[f.name] if f.name in arrays else pa.nulls(ROWS, f.type) for f in schema]
        table = pa.Table.from_arrays(rows, schema=schema)
        return lambda: aggregate.sweep(table, spec, 0, TICKS)

    return prepared


def _loops(weighted: bool) -> Callable[[int], Sweep]:
    """The loops of COUNT, or of SUM beside its count."""

    def prepared(keys: int) -> Sweep:
        columns = bag(keys)
        order = group_order(columns["k"], keys, columns[TS])
        group, start, end, v = (columns[c][order] for c in ("k", TS, TE, "v"))
        ones = np.ones(ROWS, np.int64)

        def run() -> None:
            cut = segments(group, start, end, TICKS)
            count = kernel.running_sum(cut, ones)
            shown = kernel.running_sum(cut, v) if weighted else count
            changed = np.append(True, shown[1:] != shown[:-1])
            kernel.emissions(cut.group, cut.tick, count > 0, changed, 0)

        return run

    return prepared


def _materialize(keys: int) -> Sweep:
    columns = bag(keys)
    rows = pa.table({"k": columns["k"], **{c: columns[c] for c in (TS, TE, N)}})
    spec = relation_to_stream.MaterializeSpec(("k",), istream=True, dstream=True, relation=True)
    return lambda: relation_to_stream.sweep(rows, spec, 0, TICKS)


def _arrivals(window: Callable[[ArrivalSpec], Callable[[pa.Table], object]]) -> Callable[[int], Sweep]:
    # an element that arrives and leaves is two events; some tie with others of their partition
    def prepared(keys: int) -> Sweep:
        columns = bag(keys)
        given = {"v": columns["v"], "__p0": columns["k"], TS: columns[TS], N: columns[N]}
        rows = pa.table({**given, "__at": np.zeros(ROWS, np.int64), "__when": columns["v"] > 900})
        sweep = window(ArrivalSpec(("v",), ("__p0",), ("v",)))
        return lambda: sweep(rows)

    return prepared


def _rows(count: int, slide: int = 1) -> Callable[[int], Sweep]:
    return _arrivals(lambda a: lambda rows: rows_window.sweep(rows, rows_window.RowsSpec(a, count, slide), 0, TICKS))


CASES: dict[str, Callable[[int], Sweep]] = {
    "loops of count": _loops(False),
    "count": _aggregate("COUNT", None, BIGINT),
    "loops of sum": _loops(True),
    "sum": _aggregate("SUM", BIGINT, BIGINT),
    "sum of doubles": _aggregate("SUM", DOUBLE, DOUBLE),
    "min": _aggregate("MIN", BIGINT, BIGINT),
    "first": _aggregate("FIRST", _ROW, BIGINT, order=(OrderKey("o0"),)),
    "count distinct": _aggregate("COUNT", BIGINT, BIGINT, distinct=True),
    "median": _aggregate("PERCENTILE", BIGINT, DOUBLE),
    "mode": _aggregate("MODE", BIGINT, BIGINT),
    "bit or": _aggregate("BIT_OR", BIGINT, BIGINT),
    "variance": _aggregate("VAR_SAMP", DOUBLE, DOUBLE),
    "correlation": _aggregate("CORR", _PAIR, DOUBLE),
    "distinct": _two_counts(two_counts.DISTINCT, True),
    "difference": _two_counts(two_counts.DIFFERENCE, True),
    "except": _two_counts(two_counts.EXCEPT, True),
    "intersect all": _two_counts(two_counts.INTERSECT_ALL, True),
    "intersect all, negative tuples": _two_counts(two_counts.INTERSECT_ALL, False),
    "relation to stream": _materialize,
    "rows 10": _rows(10),
    "rows 10 slide 3": _rows(10, 3),
    "session": _arrivals(
        lambda a: lambda rows: session_window.sweep(rows, session_window.SessionSpec(a, WINDOW), 0, TICKS)
    ),
    "tumbling when": _arrivals(lambda a: lambda rows: condition_window.sweep(rows, a, 0, TICKS)),
}
"""A sweep's rows, prepared for a number of keys, and the sweep itself."""


def speed(sweep: Sweep) -> float:
    """Million events a second."""
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        sweep()
        best = min(best, time.process_time() - begin)
    return 2 * ROWS / best / 1e6


def main() -> None:
    names = sys.argv[1:] or list(CASES)
    print(f"{'sweep':32}{'1,000 keys':>14}{f'{ROWS:,} keys':>18}   million events/s")
    for name in names:
        CASES[name](10)()
        few, many = (speed(CASES[name](keys)) for keys in (1000, ROWS))
        print(f"{name:32}{few:14.1f}{many:18.1f}")


if __name__ == "__main__":
    main()
