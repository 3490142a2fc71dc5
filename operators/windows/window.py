"""Time windows as a map on a stream's bag: each element ``[s, s+1)`` becomes its interval of validity. Linear, no
state.

Definitions: ``windows.py``. Columns in: the record, ``__ts``, ``__n``. Columns out: the record, with WINDOW_START and
WINDOW_END where the query asks for them (then one row for each bucket that holds the element), ``__ts``, ``__te``,
``__n``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sweeparea.operators.values.bag import TE, TS, N
from sweeparea.operators.windows.definitions import BucketWindow, TimeWindow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sweeparea.operators.plan.logical import Window


def apply(
    node: Window, stream: DataFrame, instant_sql: Callable[[str], str], guarded: Callable[[str], str] = str
) -> DataFrame:
    """Bag of elements in, bag of windowed rows out; elements that are never valid are dropped.

    ``instant_sql`` gives the SQL of an instant from that of its tick, ``guarded`` an expression that fails where
    Spark's rules of a time zone are others.
    """
    ids = [c.id for c in node.input.columns]
    spec = node.spec
    assert isinstance(spec, TimeWindow)  # the others sweep
    if node.bounds is None:
        start, end = spec.sql(TS)
        steps = _steps(spec.steps(TS), guarded)
        if not steps:
            return stream.selectExpr(*ids, f"{start} AS {TS}", f"{end} AS {TE}", N).where(f"{TS} < {TE}")
        # a generator, so that Spark does not put all steps into each other when it pushes the filter down
        rows = stream.selectExpr(*ids, TS, N, *steps)
        rows = rows.selectExpr(*ids, N, f"inline(array(struct({start}, {end}))) AS (__from, __to)")
        return rows.where("__from < __to").selectExpr(*ids, f"__from AS {TS}", f"__to AS {TE}", N)
    assert isinstance(spec, BucketWindow)
    rows = stream.selectExpr(*ids, TS, N, *_steps(spec.bounds_steps(TS), guarded))
    rows = rows.selectExpr(*ids, N, f"inline({spec.buckets_sql(TS)}) AS (__first, __past, __from, __to)")
    bounds = [f"{instant_sql(tick)} AS {c.id}" for tick, c in zip(("__first", "__past"), node.bounds, strict=True)]
    return rows.where("__from < __to").selectExpr(*ids, *bounds, f"__from AS {TS}", f"__to AS {TE}", N)


def _steps(steps: Sequence[tuple[str, str]], guarded: Callable[[str], str]) -> list[str]:
    # a select may use the names that it has given before
    return [f"{guarded(expression)} AS {name}" for name, expression in steps]
