"""Whether the workers of a sweep have been sent much unequal numbers of rows, because of single keys; then these keys
are divided (``operators/hot_keys.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from sweeparea.operators import bridge, exchange, hot_keys
from sweeparea.operators.hot_keys import StretchesTask
from sweeparea.operators.state.sweep import Sweep
from sweeparea.operators.state.sweep_area import SweepArea
from sweeparea.operators.stretches import KeyStretch, stretches, uneven
from sweeparea.operators.worker_memory import Watch
from sweeparea.spark_jobs.evaluation.running import RunningSlice
from sweeparea.spark_jobs.spark import frames

UNEVEN = 1.2
"""Rows are divided where a worker has so many times the mean,"""
LEAST = 100_000
"""and so many rows more than the mean: two more jobs must be worth their time."""
HOT = 0.25
"""A key is divided that has this part of the mean,"""
KEPT = 1.0
"""where the SweepArea has at most so many rows for each new one: the worker of a stretch reads all that is kept of its
key."""


def divided(
    slice: RunningSlice,
    op: str,
    lines: Sequence[Mapping[str, Any]],
    sweep: Sweep,
    area: SweepArea | bridge.Target,
    watch: Watch,
) -> StretchesTask | None:
    """The sweep of all workers over the files of ``lines``, of which those of hot keys are divided; None: no need."""
    if not divisible(sweep):
        return None
    rows = [0] * slice.partitions
    for line in lines:
        rows[line["receiver"]] += line["rows"]
    busy = set(uneven(rows, UNEVEN, LEAST))
    if not busy or (isinstance(area, SweepArea) and _kept(slice, op, area) > KEPT * sum(rows)):
        return None
    sent = [(line["receiver"], line["path"], line["rows"]) for line in lines if line["receiver"] in busy]
    shares = hot_keys.shares(sent, len(rows))
    found = _collected(slice, hot_keys.SurveyTask(shares, sweep.keys), hot_keys.SURVEY_SCHEMA, len(shares))
    mean = sum(rows) / len(rows)
    keys = hot_keys.hot_keys([tuple(line) for line in found], HOT * mean)
    cut = tuple(stretches(rows, keys, slice.h0, slice.h1)) if keys else ()
    if len(cut) <= len(keys):
        return None
    folder, workers = f"{slice.areas.spill}/exchange/{op}_divided", len(rows)
    task = hot_keys.DivideTask(shares, sweep, cut, folder, slice.h0, workers)
    parts = _collected(slice, task, hot_keys.DIVIDED_SCHEMA, len(shares))
    whole = [line for line in lines if line["receiver"] not in busy]
    whole += [part.asDict() for part in parts if part["stretch"] == hot_keys.WHOLE]
    files = exchange.by_receiver(whole, workers)
    if sweep.values is not None:
        shared = exchange.by_receiver([p.asDict() for p in parts if p["stretch"] == hot_keys.VALUES], workers)
        count = hot_keys.CountTask(sweep, slice.h0, slice.h1, area, slice.attempt, shared, cut, folder, watch)
        parts = _collected(slice, count, hot_keys.DIVIDED_SCHEMA, workers)
        slice.areas.twice.add(op)
    return StretchesTask(sweep, slice.h0, slice.h1, area, slice.attempt, files, _by_worker(cut, parts, workers), watch)


def divisible(sweep: Sweep) -> bool:
    """Whether the rows of one key can be divided."""
    return sweep.carried is not None or sweep.values is not None


def _kept(slice: RunningSlice, op: str, area: SweepArea) -> int:
    return slice.areas.counts.get(op, sum(file.rows for file in area.files))


def _by_worker(
    cut: Sequence[KeyStretch], parts: Sequence[Any], workers: int
) -> tuple[tuple[tuple[KeyStretch, tuple[str, ...]], ...], ...]:
    files = [tuple(sorted(p["path"] for p in parts if p["stretch"] == number)) for number in range(len(cut))]
    pairs = list(zip(cut, files, strict=True))
    return tuple(tuple(pair for pair in pairs if pair[0].worker == worker) for worker in range(workers))


def _collected(slice: RunningSlice, task: Callable[..., Any], schema: pa.Schema, workers: int) -> list[Any]:
    return frames.mapped(slice.spark, frames.workers(slice.spark, workers), task, schema).collect()
