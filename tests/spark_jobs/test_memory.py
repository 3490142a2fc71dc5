"""A worker that lacks memory, or is killed at its work: what the user is told, and that nothing is lost."""

from __future__ import annotations

import os
import resource
import signal
from dataclasses import replace
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from sweeparea.infra.errors import WorkerMemoryError
from sweeparea.operators import bridge, worker_memory
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.evaluation.sweeping import Sweeps
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.slices import long_tasks
from sweeparea.spark_jobs.spark.errors import SliceError
from tests.spark_jobs import shop

AT = "aggregate2, 3 rows in one task, about 2 of them of the key (a)"
WHERE = "query turnover, slice (2019-12-31 23:59:59, 2020-01-01 12:00:19]: "


def _hungry(rows, *, h0, h1):
    _, hard = bound = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (1 << 20, hard))
    try:
        np.ones(1 << 27)
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, bound)


def _dying(rows, *, h0, h1):
    os.kill(os.getpid(), signal.SIGKILL)


def _running(run):
    def task(self, sweep, area):
        return bridge.SweepTask(replace(sweep, run=run), self._slice.h0, self._slice.h1, area, self._slice.attempt)

    return task


@pytest.mark.spark
def test_what_a_worker_was_at_is_told_and_the_next_run_goes_on(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(worker_memory, "NOTED", 1)
    app = shop.application(tmp_path)
    shop.sell(tmp_path, shop.DAYS[0])
    admit(app, "sales", spark)
    with monkeypatch.context() as patched:
        patched.setattr(Sweeps, "_task", _running(_hungry))
        with pytest.raises(WorkerMemoryError) as lacking:
            process(app, "turnover", spark)
        patched.setattr(Sweeps, "_task", _running(_dying))
        with pytest.raises(SliceError) as killed:
            process(app, "turnover", spark)
    told, died = str(lacking.value), str(killed.value)
    assert told.startswith(f"{WHERE}a Python worker of Spark has too little memory: {AT} (Unable to allocate 1.00 GiB")
    assert "SWEEPAREA_WORKER_MEMORY" in told
    assert "slice.max_rows" in told
    assert lacking.value.exit_code == 3
    assert died.startswith(f"{WHERE}a Python worker of Spark died in the middle of its work")
    assert f"It was at work on {AT}." in died
    spilled = Path(str(app.data)) / "_sweeparea" / "spill"
    assert not spilled.exists() or not list(spilled.rglob("*.json"))
    assert process(app, "turnover", spark).rows_in == 3


def test_a_task_that_takes_long_is_told_and_told_again_when_it_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(long_tasks, "FIRST", 0.01)
    (tmp_path / "t.json").write_text('{"operator": "topk1", "rows": 5000000, "key": "(7)", "of_key": 4000000}')
    told: list[str] = []
    grown = Event()

    def tell(text: str) -> None:
        told.append(text)
        if len(told) == 1:
            (tmp_path / "t.json").write_text('{"operator": "topk1", "rows": 6000000, "key": null, "of_key": 0}')
        else:
            grown.set()

    with long_tasks.telling(str(tmp_path), "q", tell):
        assert grown.wait(10)
    assert told == [
        "q: at work for 0 s, now on topk1, 5,000,000 rows in one task, about 4,000,000 of them of the key (7)",
        "q: at work for 0 s, now on topk1, 6,000,000 rows in one task",
    ]
