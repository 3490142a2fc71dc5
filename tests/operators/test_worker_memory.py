"""A task whose worker lacks memory says what it was at, and one that is killed has left a note that does."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pytest

from sweeparea.infra.errors import WorkerMemoryError
from sweeparea.operators import bridge
from sweeparea.operators.state.due import bag_due
from sweeparea.operators.state.sweep import Sweep
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.operators.worker_memory import TaskRows, Watch, largest_key, running

ROWS = pa.schema([pa.field("k", pa.string()), *BAG_FIELDS])


def bag(keys: list[str]) -> pa.Table:
    size = len(keys)
    return pa.table([pa.array(keys), np.zeros(size, np.int64), np.ones(size, np.int64), np.ones(size, np.int64)], ROWS)


def failing(error: BaseException):
    def run(rows: pa.Table, *, h0: int, h1: int) -> tuple[pa.Table, pa.Table]:
        raise error

    return Sweep(("k",), ROWS, ROWS, bag_due, run)


def task(folder: Path, sweep: Sweep, least: int = 10) -> bridge.SweepTask:
    target = bridge.Target(str(folder / "area"), ROWS, "aggregate2")
    return bridge.SweepTask(sweep, 0, 5, target, "a", Watch("aggregate2", ("k",), str(folder / "notes"), least))


def _too_large() -> MemoryError:
    with pytest.raises(MemoryError) as failed:
        np.empty(1 << 60, np.uint8)
    return failed.value


@pytest.mark.parametrize(
    "error",
    [
        pa.ArrowMemoryError("malloc of size 640 failed"),
        MemoryError(),
        _too_large(),
    ],
)
def test_a_failed_allocation_names_operator_rows_and_largest_key(tmp_path: Path, error: MemoryError):
    rows = bag(["north"] * 30 + ["south"] * 10)
    with pytest.raises(WorkerMemoryError) as told:
        list(task(tmp_path, failing(error))(iter(rows.to_batches())))
    assert str(told.value).startswith("aggregate2, 40 rows in one task, about ")
    assert "of the key (north) (" in str(told.value)
    assert running(str(tmp_path / "notes")) == []


def test_an_error_that_is_none_of_memory_stays_what_it_is(tmp_path: Path):
    with pytest.raises(ZeroDivisionError):
        list(task(tmp_path, failing(ZeroDivisionError()))(iter(bag(["a"] * 20).to_batches())))
    assert running(str(tmp_path / "notes")) == []


def test_the_rows_that_came_before_memory_ended_are_told(tmp_path: Path):
    def batches():
        yield from bag(["a"] * 15).to_batches()
        raise pa.ArrowMemoryError("malloc of size 640 failed")

    with pytest.raises(WorkerMemoryError, match=r"^aggregate2, 15 rows in one task \(malloc of size 640 failed\)$"):
        list(task(tmp_path, failing(MemoryError()))(batches()))


def test_a_task_of_many_rows_has_a_note_while_it_runs_and_one_of_few_has_none(tmp_path: Path):
    seen = []

    def run(rows: pa.Table, *, h0: int, h1: int) -> tuple[pa.Table, pa.Table]:
        seen.append(running(str(tmp_path / "notes")))
        return rows, rows.slice(0, 0)

    sweep = Sweep(("k",), ROWS, ROWS, bag_due, run)
    for size in (9, 10):
        made = cast(Generator, task(tmp_path, sweep)(iter(bag(["a"] * size).to_batches())))
        next(made)
        seen.append(running(str(tmp_path / "notes")))  # it has not ended: rows are taken from it
        made.close()
    many = [TaskRows("aggregate2", 10, "(a)", 10)]
    assert seen == [[], [], many, many]
    assert running(str(tmp_path / "notes")) == []


def test_of_several_tasks_the_largest_is_first_and_a_half_written_note_is_none(tmp_path: Path):
    killed = [Watch("op", folder=str(tmp_path), least=1).over() for _ in range(3)]
    for watched, size in zip(killed, (10, 30, 20), strict=True):
        watched.__enter__().gathered(bag(["a"] * size))
    (tmp_path / "half.json").write_text('{"operator": "x"')
    assert [found.rows for found in running(str(tmp_path))] == [30, 20, 10]


def test_no_key_is_told_where_none_bears_the_task():
    keys = [f"k{i}" for i in range(5000)]
    assert largest_key("op", bag(keys), ("k",)) == TaskRows("op", 5000)
    assert largest_key("op", bag(keys), ()) == TaskRows("op", 5000)
    found = largest_key("op", bag(keys + ["hot"] * 5000), ("k",))
    assert found.key == "(hot)"
    assert 4700 <= found.of_key <= 5300
